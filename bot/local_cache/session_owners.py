"""Finds the transcripts in the usual folders of coding agents that belong to a checkout. Others are not read.

A transcript begins with the folder that its agent worked in. Of other transcripts only this beginning is read, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bot.local_cache.database import writing
from bot.sources.session_folders import is_within
from bot.sources.session_head import MAX_HEAD_BYTES, folder_in, head_of

if TYPE_CHECKING:
    from bot.local_cache.session_sources import SessionSources
    from bot.sources.session_files import SessionFile, SessionFiles


def own_sessions(database: sqlite3.Connection, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
    """Return the transcripts of the checkout. One that names no folder counts only in the checkout's own."""
    folders = _working_folders(database, files.sessions)
    own = tuple(f"{each.path}/" for each in sources.folders if each.is_own)
    is_inside = {folder: is_within(folder, str(sources.top)) for folder in set(folders.values()) if folder}
    is_inside[""] = False

    def is_own(path: str) -> bool:
        return is_inside[folders[path]] or (not folders[path] and path.startswith(own))

    return tuple(file for file in files.sessions if is_own(file.path))


def _working_folders(database: sqlite3.Connection, files: Iterable[SessionFile]) -> dict[str, str]:
    """The working folder of each of these files by its path, "" for an unknown one."""
    stored = {path: (mark, folder) for path, mark, folder in database.execute("SELECT path, mark, folder FROM heads")}
    changed = {}
    folders = {}
    for file in files:
        mark, folder = stored.get(file.path, ("", ""))
        if mark != file.mark:
            folder = folder_in(head_of(file.path, MAX_HEAD_BYTES))
            changed[file.path] = (file.path, file.mark, folder)
        folders[file.path] = folder
    if changed or stored.keys() - folders.keys():
        with writing(database):
            gone = [(path,) for path in stored.keys() - folders.keys()]
            database.executemany("DELETE FROM heads WHERE path = ?", gone)
            database.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?)", changed.values())
    return folders
