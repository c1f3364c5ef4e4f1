"""Finds the transcripts in the usual folders of coding agents that belong to a checkout. Others are not read.

A transcript begins with the folder that its agent worked in. Of other transcripts only this beginning is read, once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from bot.local_cache.database import writing
from bot.sources.sessions.formats import MAX_HEAD_BYTES, Origin, origin_in
from bot.sources.sessions.head import head_of

if TYPE_CHECKING:
    from bot.local_cache.session_sources import SessionSources
    from bot.sources.sessions.files import SessionFile
    from bot.sources.sessions.worktrees import Worktrees


class TranscriptHead(NamedTuple):
    """The working folder of a transcript, and the git folder of its checkout while that existed, or the name of its
    repository in the transcript; "" if unknown."""

    mark: str
    folder: str
    owner: str


class TranscriptHeads(NamedTuple):
    """The head of each transcript by its path, those of them that are new or have changed, and the paths of
    transcripts that are gone."""

    by_path: Mapping[str, TranscriptHead]
    changed: Mapping[str, TranscriptHead]
    gone: frozenset[str]


def read_heads(database: sqlite3.Connection, files: Iterable[SessionFile], trees: Worktrees) -> TranscriptHeads:
    """Return the heads of these files; reads only the beginnings that the database does not know."""
    rows = database.execute("SELECT path, mark, folder, owner FROM heads")
    stored = {path: TranscriptHead(*row) for path, *row in rows}
    by_path = {}
    for file in files:
        known = stored.get(file.path, TranscriptHead("", "", ""))
        by_path[file.path] = known if known.mark == file.mark else _read_head(file, known, trees)
    changed = {path: head for path, head in by_path.items() if stored.get(path) != head}
    return TranscriptHeads(by_path, changed, frozenset(stored.keys() - by_path.keys()))


def _read_head(file: SessionFile, known: TranscriptHead, trees: Worktrees) -> TranscriptHead:
    """The head of a file that is new or has changed since it was ``known``, when its folder may have existed."""
    origin = Origin(file.folder) if file.folder else origin_in(head_of(file.path, MAX_HEAD_BYTES))
    former = known.owner if known.folder == origin.folder and known.owner.startswith("/") else ""
    return TranscriptHead(file.mark, origin.folder, trees.owner_of(origin.folder) or former or origin.repository)


def store_heads(database: sqlite3.Connection, heads: TranscriptHeads) -> None:
    """Store what is new in these heads for the next search."""
    if heads.changed or heads.gone:
        with writing(database):
            database.executemany("DELETE FROM heads WHERE path = ?", [(path,) for path in heads.gone])
            rows = [(path, *head) for path, head in heads.changed.items()]
            database.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", rows)


def own_sessions(
    files: Iterable[SessionFile], heads: TranscriptHeads, sources: SessionSources, trees: Worktrees
) -> tuple[SessionFile, ...]:
    """Return the transcripts of the checkout and of the other worktrees of its repository.

    One that names no folder counts only in the checkout's own. One whose folder is gone counts if it was in a worktree
    when it was first seen, or names the repository.
    """
    own = tuple(f"{each.path}/" for each in sources.folders if each.is_own)
    is_inside = {head: _is_inside(head, trees) for head in set(heads.by_path.values()) if head.folder}

    def is_own(path: str) -> bool:
        head = heads.by_path[path]
        return is_inside[head] if head.folder else path.startswith(own)

    return tuple(file for file in files if is_own(file.path))


def _is_inside(head: TranscriptHead, trees: Worktrees) -> bool:
    if trees.holds(head.folder):
        return True
    return trees.is_owner(head.owner) and not os.path.isdir(head.folder)  # noqa: PTH112
