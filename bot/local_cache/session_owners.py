"""Finds the transcripts in the usual folders of coding agents that belong to a checkout. Others are not read.

A transcript begins with the folder that its agent worked in. Of other transcripts only this beginning is read, once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from bot.local_cache.database import writing
from bot.sources.session_head import MAX_HEAD_BYTES, Origin, head_of, origin_in
from bot.sources.session_worktrees import Worktrees

if TYPE_CHECKING:
    from bot.local_cache.session_sources import SessionSources
    from bot.sources.session_files import SessionFile, SessionFiles


class _Head(NamedTuple):
    """The working folder of a transcript, and the git folder of its checkout while that existed, or the name of its
    repository in the transcript."""

    mark: str
    folder: str
    owner: str


def own_sessions(database: sqlite3.Connection, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
    """Return the transcripts of the checkout and of the other worktrees of its repository.

    One that names no folder counts only in the checkout's own. One whose folder is gone counts if it was in a worktree
    when it was first seen, or names the repository.
    """
    trees = Worktrees(str(sources.top))
    heads = _read_heads(database, files.sessions, trees)
    own = tuple(f"{each.path}/" for each in sources.folders if each.is_own)
    is_inside = {head: _is_own(head, trees) for head in set(heads.values()) if head.folder}
    return tuple(
        file
        for file in files.sessions
        if is_inside.get(heads[file.path], not heads[file.path].folder and file.path.startswith(own))
    )


def _is_own(head: _Head, trees: Worktrees) -> bool:
    if trees.holds(head.folder):
        return True
    return trees.is_owner(head.owner) and not os.path.isdir(head.folder)  # noqa: PTH112


def _read_heads(database: sqlite3.Connection, files: Iterable[SessionFile], trees: Worktrees) -> dict[str, _Head]:
    """The head of each of these files by its path. Unknown folders are ""."""
    rows = database.execute("SELECT path, mark, folder, owner FROM heads")
    stored = {path: _Head(*row) for path, *row in rows}
    heads = {}
    for file in files:
        known = stored.get(file.path, _Head("", "", ""))
        heads[file.path] = known if known.mark == file.mark else _read_head(file, known, trees)
    changed = [(path, *head) for path, head in heads.items() if stored.get(path) != head]
    if changed or stored.keys() - heads.keys():
        with writing(database):
            gone = [(path,) for path in stored.keys() - heads.keys()]
            database.executemany("DELETE FROM heads WHERE path = ?", gone)
            database.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", changed)
    return heads


def _read_head(file: SessionFile, known: _Head, trees: Worktrees) -> _Head:
    """The head of a file that is new or has changed since it was ``known``, when its folder may have existed."""
    origin = Origin(file.folder) if file.folder else origin_in(head_of(file.path, MAX_HEAD_BYTES))
    former = known.owner if known.folder == origin.folder and known.owner.startswith("/") else ""
    return _Head(file.mark, origin.folder, trees.owner_of(origin.folder) or former or origin.repository)
