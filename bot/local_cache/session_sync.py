"""Brings the logs up to date with their files: reads what is new or has grown, and forgets what is gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bot.local_cache.database import fact, note, writing
from bot.local_cache.session_index import LAST, Batch, forget, is_behind, stamp_of, tidy
from bot.reading.analyzer import terms
from bot.sources.clock import local_zone
from bot.sources.session import Utterance
from bot.sources.session_files import SessionFile, SessionFiles
from bot.sources.session_issues import issues_of_sessions
from bot.sources.session_reader import Cursor, is_same, read_portion

BATCH = 5_000
"""Messages that are written at once: a second or two, for which others who write have to wait."""

MAX_FILES = 500
"""Files that are read for one batch."""

_CACHE = 64 << 10
"""KiB: a batch that fits keeps nobody from reading until it is written."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Tick = Callable[[int], None]


class KnownFile(NamedTuple):
    """What is known of a file. Its mark is "" while it is read in several batches."""

    number: int
    mark: str
    inode: int
    cursor: Cursor


class SessionSync:
    """One refresh. ``failed`` has the files that cannot be read, with the reason."""

    def __init__(self, database: sqlite3.Connection, files: SessionFiles, tick: Tick) -> None:
        self._database, self._files, self._tick = database, files, tick
        self._zone = local_zone()
        self.failed: dict[str, str] = {}

    def run(self) -> None:
        """Batch after batch, each a transaction: what is written stays, whatever happens to the rest."""
        self._database.execute(f"PRAGMA cache_size = -{_CACHE}")
        while is_behind(self._database, self._files, self.failed):
            with writing(self._database):
                self._step()
        with writing(self._database):
            self._number(stamp_of(self._files))

    def _step(self) -> None:
        held = self._held()
        for path in held.keys() - {file.path for file in self._files.sessions}:
            forget(self._database, held[path].number)
            self._database.execute("DELETE FROM files WHERE number = ?", (held[path].number,))
        batch = Batch(int(fact(self._database, "next") or 1))
        if batch.first + 2 * BATCH > LAST:
            raise sqlite3.DatabaseError("full")  # it is made anew, with numbers from 1
        self._fill(batch, held)
        batch.write(self._database)
        note(self._database, "next", str(batch.next))
        tidy(self._database)
        self._database.execute("DELETE FROM sessions WHERE number NOT IN (SELECT session FROM passages)")

    def _fill(self, batch: Batch, held: Mapping[str, KnownFile]) -> None:
        count = 0
        for file in self._files.sessions:
            known = held.get(file.path)
            if file.path in self.failed or (known and known.mark == file.mark):
                continue
            if len(batch) >= BATCH or count >= MAX_FILES:
                return
            count += 1
            try:
                self._take(file, known, batch)
            except OSError as error:
                self.failed[file.path] = error.strerror or str(error)

    def _take(self, file: SessionFile, known: KnownFile | None, batch: Batch) -> None:
        goes_on = known is not None and known.inode == file.inode and is_same(file, known.cursor)
        cursor = known.cursor if known and goes_on else Cursor()
        portion = read_portion(file, cursor, BATCH - len(batch), self._zone)
        if known and not goes_on:
            forget(self._database, known.number)
        number = self._note_file(file, file.mark if portion.is_last else "", portion.cursor, portion.unfinished)
        names: dict[str, int] = {}
        for name, utterance in portion.said:
            session = names.get(name) or names.setdefault(name, self._session(name))
            self._add(utterance, number, session, batch)
        self._tick(portion.lines)

    def _add(self, said: Utterance, file: int, session: int, batch: Batch) -> None:
        number = batch.add(terms(said.text) + terms("\n".join(said.files)))
        at = (said.at - _EPOCH) // _MICROSECOND if said.at else None
        self._database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", (number, file, session, said.type, at))
        self._database.execute("INSERT INTO texts VALUES (?, ?, ?)", (number, said.text, "\n".join(said.files)))

    def _session(self, name: str) -> int:
        self._database.execute("INSERT OR IGNORE INTO sessions (id) VALUES (?)", (name,))
        return int(self._database.execute("SELECT number FROM sessions WHERE id = ?", (name,)).fetchone()[0])

    def _note_file(self, file: SessionFile, mark: str, cursor: Cursor, unfinished: int) -> int:
        row = (file.path, mark, file.inode, *cursor, unfinished)
        return int(
            self._database.execute(
                "INSERT INTO files (path, mark, inode, offset, session, folder, broken, last, guard, unfinished)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET mark = excluded.mark,"
                " inode = excluded.inode, offset = excluded.offset, session = excluded.session,"
                " folder = excluded.folder, broken = excluded.broken, last = excluded.last, guard = excluded.guard,"
                " unfinished = excluded.unfinished RETURNING number",
                row,
            ).fetchone()[0]
        )

    def _held(self) -> dict[str, KnownFile]:
        rows = self._database.execute(
            "SELECT path, number, mark, inode, offset, session, folder, broken, last, guard FROM files"
        )
        return {row[0]: KnownFile(row[1], row[2], row[3], Cursor(*row[4:])) for row in rows}

    def _number(self, stamp: str) -> None:
        if fact(self._database, "mapping") == stamp:
            return
        self._database.execute("UPDATE files SET issue = NULL WHERE issue IS NOT NULL")
        known = issues_of_sessions(self._files.mappings, self._files.sessions)
        self._database.executemany(
            "UPDATE files SET issue = ? WHERE path = ?", ((number, path) for path, number in known.items())
        )
        note(self._database, "mapping", stamp)
