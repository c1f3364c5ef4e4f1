"""Updates the index of sessions: reads files that are new or have grown, notes what each session worked on, and forgets
files that are gone.

The modules that read transcripts are imported only when a file has changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bot.local_cache.database import fact, note, writing
from bot.questions.requests import parse_issue
from bot.reading.analyzer import terms
from bot.sources.sessions.files import SessionFile, SessionFiles

if TYPE_CHECKING:
    from bot.sources.sessions.reader import Cursor, SessionMark
    from bot.sources.sessions.session import Utterance

BATCH_SIZE = 5_000
"""Messages written in one transaction: it takes a second or two, during which other writers wait."""

MAX_FILES = 500
"""Files read for one transaction."""

MAX_SUBJECTS = 50
"""Branches and pull requests that are kept for one file of a session, from the first."""

BRANCH, PULL_REQUEST, PROMPT = "branch", "pull request", "prompt"
"""Why a session is linked to an issue: the kinds of its subjects."""

_NO_FILE = 0
_PROMPT_CHARS = 2_000
"""Characters of a prompt."""

_CACHE_KIB = 64 << 10
"""KiB: a transaction that fits does not block readers before it commits."""

_MERGE_PAGES = 1_000
"""Pages of the index that are merged after a deletion, so that the deleted words leave the file, too."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Tick = Callable[[int], None]


def microseconds(moment: datetime) -> int:
    """Microseconds since 1970, the form in which times are stored."""
    return (moment - EPOCH) // timedelta(microseconds=1)


class KnownFile(NamedTuple):
    """The state of a file when it was last read. Its mark is "" while it is read in several batches."""

    number: int
    mark: str
    inode: int
    cursor: Cursor


class SessionSync:
    """One refresh. ``failed`` maps the path of each file that cannot be read to the reason."""

    def __init__(self, database: sqlite3.Connection, files: SessionFiles, tick: Tick) -> None:
        from bot.sources.sessions.times import local_zone

        self._database, self._files, self._tick = database, files, tick
        self._zone = local_zone()
        self.failed: dict[str, str] = {}
        self._touched: set[int] = set()
        self._begun: set[str] = set()
        """Files of which a portion was read: their beginnings are not compared again for the next one."""

    def run(self) -> None:
        """Read batch after batch, each in its own transaction: a failure keeps the earlier batches."""
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        while is_behind(self._database, self._files, self.failed):
            with writing(self._database):
                self._read_batch()
        with writing(self._database):
            self._map_issues(stamp_of(self._files))

    def _read_batch(self) -> None:
        known_files = self._known_files()
        for path in known_files.keys() - {file.path for file in self._files.sessions}:
            self._forget(known_files[path].number)
            self._database.execute("DELETE FROM files WHERE number = ?", (known_files[path].number,))
        self._read_changed(known_files)
        self._database.execute("DELETE FROM sessions WHERE number NOT IN (SELECT session FROM passages)")
        note_prompts(self._database, self._touched)
        self._touched.clear()

    def _read_changed(self, known_files: dict[str, KnownFile]) -> None:
        room, count = BATCH_SIZE, 0
        for file in self._files.sessions:
            previous = known_files.get(file.path)
            if file.path in self.failed or (previous and previous.mark == file.mark):
                continue
            if room <= 0 or count >= MAX_FILES:
                return
            count += 1
            try:
                room -= self._read_file(file, previous, room)
            except OSError as error:
                self.failed[file.path] = error.strerror or str(error)

    def _read_file(self, file: SessionFile, previous: KnownFile | None, room: int) -> int:
        """Read the next portion of a file; returns its number of messages."""
        from bot.sources.sessions.reader import Cursor, is_same, read_portion

        is_continued = previous is not None and (
            file.path in self._begun or (previous.inode == file.inode and is_same(file, previous.cursor))
        )
        cursor = previous.cursor if previous and is_continued else Cursor()
        last = self._last_message(previous.number) if previous and is_continued else None
        portion = read_portion(file, cursor, room, self._zone, last[1:] if last else None)
        if previous and not is_continued:
            self._forget(previous.number)
        if last and portion.replaces_last:
            self._forget_passage(last[0])
        number = self._note_file(file, file.mark if portion.is_last else "", portion.cursor, portion.unfinished)
        names: dict[str, int] = {}
        for name, utterance in portion.messages:
            session = names.get(name) or names.setdefault(name, self._session(name))
            self._add_message(utterance, number, session)
        self._touched.update(names.values())
        for mark in portion.marks:
            note_mark(self._database, number, self._session(mark.session), mark)
        self._begun.add(file.path)
        if portion.lines:
            self._tick(portion.lines)
        return len(portion.messages)

    def _add_message(self, message: Utterance, file: int, session: int) -> None:
        files = "\n".join(message.files)
        terms_found = _terms(message.text, files)
        row = (file, session, message.type, microseconds(message.at) if message.at else None, len(terms_found))
        insert = "INSERT INTO passages (file, session, type, at, length) VALUES (?, ?, ?, ?, ?)"
        number = self._database.execute(insert, row).lastrowid
        self._database.execute("INSERT INTO texts VALUES (?, ?, ?)", (number, message.text, files))
        self._database.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (number, " ".join(terms_found)))

    def _last_message(self, file: int) -> tuple[int, str, Utterance] | None:
        """The last passage of a file: its number, its session and its message."""
        from bot.sources.sessions.session import Utterance

        row = self._database.execute(
            "SELECT p.number, s.id, p.type, t.text, p.at, t.files FROM passages p"
            " JOIN sessions s ON s.number = p.session JOIN texts t ON t.number = p.number"
            " WHERE p.file = ? ORDER BY p.number DESC LIMIT 1",
            (file,),
        ).fetchone()
        if not row:
            return None
        number, session, kind, text, at, files = row
        moment = None if at is None else EPOCH + timedelta(microseconds=at)
        return number, session, Utterance(kind, text, moment, tuple(filter(None, files.split("\n"))))

    def _forget(self, file: int) -> None:
        """Remove the passages of a file."""
        numbers = self._database.execute("SELECT number FROM passages WHERE file = ?", (file,)).fetchall()
        for (number,) in numbers:
            self._forget_passage(number)
        self._database.execute("INSERT INTO words (words, rank) VALUES ('merge', ?)", (-_MERGE_PAGES,))
        self._database.execute("DELETE FROM subjects WHERE file = ?", (file,))

    def _forget_passage(self, number: int) -> None:
        """Remove a passage. The index stores no texts, so it must be given the terms to delete."""
        text, files = self._database.execute("SELECT text, files FROM texts WHERE number = ?", (number,)).fetchone()
        row = (number, " ".join(_terms(text, files)))
        self._database.execute("INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)", row)
        self._database.execute("DELETE FROM texts WHERE number = ?", (number,))
        deleted = self._database.execute("DELETE FROM passages WHERE number = ? RETURNING session", (number,))
        self._touched.update(session for (session,) in deleted.fetchall())

    def _session(self, name: str) -> int:
        self._database.execute("INSERT OR IGNORE INTO sessions (id) VALUES (?)", (name,))
        return int(self._database.execute("SELECT number FROM sessions WHERE id = ?", (name,)).fetchone()[0])

    def _note_file(self, file: SessionFile, mark: str, cursor: Cursor, unfinished: int) -> int:
        row = (file.path, mark, file.inode, *cursor, unfinished)
        return int(
            self._database.execute(
                "INSERT INTO files"
                " (path, mark, inode, offset, session, folder, broken, last, checksum, asked, unfinished)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET mark = excluded.mark,"
                " inode = excluded.inode, offset = excluded.offset, session = excluded.session,"
                " folder = excluded.folder, broken = excluded.broken, last = excluded.last,"
                " checksum = excluded.checksum, asked = excluded.asked, unfinished = excluded.unfinished"
                " RETURNING number",
                row,
            ).fetchone()[0]
        )

    def _known_files(self) -> dict[str, KnownFile]:
        from bot.sources.sessions.reader import Cursor

        rows = self._database.execute(
            "SELECT path, number, mark, inode, offset, session, folder, broken, last, checksum, asked FROM files"
        )
        return {row[0]: KnownFile(row[1], row[2], row[3], Cursor(*row[4:])) for row in rows}

    def _map_issues(self, stamp: str) -> None:
        if fact(self._database, "mapping") == stamp:
            return
        from bot.sources.sessions.issues import issues_of_sessions

        self._database.execute("UPDATE files SET issue = NULL WHERE issue IS NOT NULL")
        issues = issues_of_sessions(self._files.mappings, self._files.sessions)
        self._database.executemany(
            "UPDATE files SET issue = ? WHERE path = ?", ((number, path) for path, number in issues.items())
        )
        note(self._database, "mapping", stamp)


def _terms(text: str, files: str) -> list[str]:
    return terms(text) + terms(files)


def is_behind(database: sqlite3.Connection, files: SessionFiles, failed: Container[str] = ()) -> bool:
    """Whether a file is new, has changed or is gone. Files in ``failed`` count as read. Called before every search."""
    marks = dict(database.execute("SELECT path, mark FROM files"))
    paths = {file.path for file in files.sessions}
    changed = any(marks.get(file.path) != file.mark and file.path not in failed for file in files.sessions)
    return changed or not marks.keys() <= paths


def is_unmapped(database: sqlite3.Connection, files: SessionFiles) -> bool:
    """Whether the issues of sessions may have changed."""
    return fact(database, "mapping") != stamp_of(files)


def stamp_of(files: SessionFiles) -> str:
    """A text that changes with the mapping files and the list of files that they may name."""
    if not files.mappings:
        return ""
    from hashlib import sha256  # slow to load, and rarely needed

    marks = [f"{file.path}\0{file.mark}" for file in files.mappings]
    return sha256("\0".join([*marks, *sorted(file.path for file in files.sessions)]).encode()).hexdigest()


# -- what a session worked on ------------------------------------------------------------------------------------------


def note_mark(database: sqlite3.Connection, file: int, session: int, mark: SessionMark) -> None:
    """Note a branch or a pull request of a session. A transcript repeats each pull request; the last one counts."""
    if mark.kind == PULL_REQUEST:
        delete = "DELETE FROM subjects WHERE session = ? AND file = ? AND kind = ?"
        database.execute(delete, (session, file, PULL_REQUEST))
    row = database.execute("SELECT count(*) FROM subjects WHERE session = ? AND file = ?", (session, file)).fetchone()
    if row[0] < MAX_SUBJECTS:
        _note(database, session, file, mark.kind, mark.name)


def note_prompts(database: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Note the issue that the first prompt of each of these sessions names, and forget sessions that are gone."""
    for session in sessions:
        database.execute("DELETE FROM subjects WHERE session = ? AND kind = ?", (session, PROMPT))
        prompt = database.execute(FIRST_PROMPT_SQL, (_PROMPT_CHARS, session)).fetchone()
        if prompt and ("#" in prompt[0] or "/" in prompt[0]):
            from bot.reading.prompt_subject import subject_of  # loads the Markdown reader

            if name := subject_of(prompt[0]):
                _note(database, session, _NO_FILE, PROMPT, name)
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
    if kind == BRANCH:
        from bot.questions.worktree_query import ticket_numbers

        return [(number, "") for number in ticket_numbers(name)]
    issue = parse_issue(name)
    return [(issue.number, issue.repo)] if issue else []
