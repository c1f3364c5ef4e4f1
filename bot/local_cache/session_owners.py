"""Finds the transcripts in the usual folders of coding agents that belong to a checkout. Others are not read.

A transcript begins with the folder that its agent worked in. Of other transcripts only this beginning is read, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from bot.local_cache.database import writing
from bot.sources.session_folders import is_within
from bot.sources.session_head import MAX_HEAD_BYTES, folder_in, head_of

if TYPE_CHECKING:
    from bot.local_cache.session_sources import SessionSources
    from bot.sources.session_files import SessionFile


class WorkingFolders(NamedTuple):
    """The working folder of each transcript by its path, "" for an unknown one; rows of new and changed ones, and the
    paths of those that are gone."""

    by_path: dict[str, str]
    changed: tuple[tuple[str, str, str], ...]
    gone: tuple[str, ...]


def working_folders(database: sqlite3.Connection, files: Iterable[SessionFile]) -> WorkingFolders:
    """Return the working folders of these files; reads only the beginnings that the database does not know."""
    stored = {path: (mark, folder) for path, mark, folder in database.execute("SELECT path, mark, folder FROM heads")}
    changed = []
    by_path = {}
    for file in files:
        mark, folder = stored.get(file.path, ("", ""))
        if mark != file.mark:
            folder = folder_in(head_of(file.path, MAX_HEAD_BYTES))
            changed.append((file.path, file.mark, folder))
        by_path[file.path] = folder
    return WorkingFolders(by_path, tuple(changed), tuple(stored.keys() - by_path.keys()))


def store_folders(database: sqlite3.Connection, folders: WorkingFolders) -> None:
    """Store what is new in these folders for the next search."""
    if folders.changed or folders.gone:
        with writing(database):
            database.executemany("DELETE FROM heads WHERE path = ?", [(path,) for path in folders.gone])
            database.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?)", folders.changed)


def own_sessions(
    files: Iterable[SessionFile], folders: WorkingFolders, sources: SessionSources
) -> tuple[SessionFile, ...]:
    """Return the transcripts of the checkout. One that names no folder counts only in the checkout's own."""
    own = tuple(f"{each.path}/" for each in sources.folders if each.is_own)
    is_inside = {folder: is_within(folder, str(sources.top)) for folder in set(folders.by_path.values()) if folder}
    is_inside[""] = False

    def is_own(path: str) -> bool:
        folder = folders.by_path[path]
        return is_inside[folder] or (not folder and path.startswith(own))

    return tuple(file for file in files if is_own(file.path))
