"""Notes what each session worked on, and finds the sessions that worked on an issue or a branch."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bot.questions.requests import parse_issue

if TYPE_CHECKING:
    from bot.sources.sessions.reader import SessionMark

MAX_SUBJECTS = 50
"""Branches and pull requests that are kept for one file of a session, from the first."""

_BRANCH, _PULL_REQUEST, _PROMPT = "branch", "pull request", "prompt"
_REASONS = {
    _BRANCH: "on the branch {}",
    _PULL_REQUEST: "its pull request is {}",
    _PROMPT: "its first prompt names {}",
}
_NO_FILE = 0
_PROMPT_CHARS = 2_000
"""Characters of a prompt."""


class Subject(NamedTuple):
    """A session, one of its files, and why it matches."""

    session: int
    path: str
    why: str


def note_mark(database: sqlite3.Connection, file: int, session: int, mark: SessionMark) -> None:
    """Note a branch or a pull request of a session. A transcript repeats each pull request; the last one counts."""
    if mark.kind == _PULL_REQUEST:
        delete = "DELETE FROM subjects WHERE session = ? AND file = ? AND kind = ?"
        database.execute(delete, (session, file, _PULL_REQUEST))
    row = database.execute("SELECT count(*) FROM subjects WHERE session = ? AND file = ?", (session, file)).fetchone()
    if row[0] < MAX_SUBJECTS:
        _note(database, session, file, mark.kind, mark.name)


def note_prompts(database: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Note the issue that the first prompt of each of these sessions names, and forget sessions that are gone."""
    for session in sessions:
        database.execute("DELETE FROM subjects WHERE session = ? AND kind = ?", (session, _PROMPT))
        prompt = database.execute(FIRST_PROMPT_SQL, (_PROMPT_CHARS, session)).fetchone()
        if prompt and ("#" in prompt[0] or "/" in prompt[0]):
            from bot.reading.prompt_subject import subject_of  # loads the Markdown reader

            if name := subject_of(prompt[0]):
                _note(database, session, _NO_FILE, _PROMPT, name)
    database.execute("DELETE FROM subjects WHERE session NOT IN (SELECT number FROM sessions)")


FIRST_PROMPT_SQL = (
    "SELECT substr(t.text, 1, ?) FROM passages p JOIN texts t ON t.number = p.number"
    " WHERE p.session = ? AND p.type = 'user' AND t.text != '' ORDER BY p.at IS NULL, p.at, p.number LIMIT 1"
)


def _note(database: sqlite3.Connection, session: int, file: int, kind: str, name: str) -> None:
    for number, repo in _numbers(kind, name) or [(0, "")]:
        row = (session, file, kind, name, number, repo)
        database.execute("INSERT OR IGNORE INTO subjects VALUES (?, ?, ?, ?, ?, ?)", row)


def _numbers(kind: str, name: str) -> list[tuple[int, str]]:
    if kind == _BRANCH:
        from bot.questions.worktree_query import ticket_numbers

        return [(number, "") for number in ticket_numbers(name)]
    issue = parse_issue(name)
    return [(issue.number, issue.repo)] if issue else []


_BY_NUMBER = "s.number = ? AND s.number > 0"
_BY_BRANCH = "s.kind = 'branch' AND s.name = ?"
_SUBJECTS_SQL = (
    "SELECT DISTINCT p.session, f.path, s.kind, s.name, s.repo FROM subjects s"
    " JOIN passages p ON p.session = s.session JOIN files f ON f.number = p.file WHERE "
)
_MAPPED_SQL = "SELECT DISTINCT p.session, f.path FROM files f JOIN passages p ON p.file = f.number WHERE f.issue = ?"


def sessions_about(
    database: sqlite3.Connection, numbers: Iterable[int], repo: str, branch: str = ""
) -> Iterator[Subject]:
    """The sessions that worked on these issues or pull requests of ``repo`` ("" if unknown), or on this branch."""
    for number in numbers:
        yield from _query_subjects(database, _SUBJECTS_SQL + _BY_NUMBER, number, repo)
        for session, path in database.execute(_MAPPED_SQL, (number,)).fetchall():
            yield Subject(session, path, f"a mapping file names #{number}")
    if branch:
        yield from _query_subjects(database, _SUBJECTS_SQL + _BY_BRANCH, branch, repo)


def _query_subjects(database: sqlite3.Connection, sql: str, key: int | str, repo: str) -> Iterator[Subject]:
    for session, path, kind, name, owner in database.execute(sql, (key,)).fetchall():
        if not owner or not repo or owner.casefold() == repo.casefold():
            yield Subject(session, path, _REASONS[kind].format(name))
