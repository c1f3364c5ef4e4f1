"""What was read of a repository that somebody tries: an SQLite file in the cache, so that the next reading goes on."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from bot.archive import archive_fields, parse_time, stamp, thread_from_archive
from bot.model import Record, Thread

_FORMAT = 1
_TABLES = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE threads (id INTEGER PRIMARY KEY, created TEXT NOT NULL, fields TEXT NOT NULL);
CREATE INDEX threads_created ON threads (created, id);
PRAGMA user_version = {_FORMAT};
"""


class Shelf:
    """The issues of one repository, without a gap from the newest to the oldest one that is held.

    Each batch is kept as soon as it is read, with the place from which a reading goes on. Raises sqlite3.Error.
    """

    def __init__(self, path: Path) -> None:
        """The shelf at ``path``; an empty one where there is none of this version. Only its owner may read it."""
        self.path = path
        if not _is_one(path):
            _lay_out(path)
        self._database = sqlite3.connect(path, isolation_level=None)

    def close(self) -> None:
        self._database.close()

    def clear(self) -> None:
        """Forget everything; a file that is damaged is replaced too."""
        self._database.close()
        _lay_out(self.path)
        self._database = sqlite3.connect(self.path, isolation_level=None)

    def begin_anew(self) -> None:
        """Forget the issues and how far they were read; what is known of the repository itself stays."""
        with self._database:
            self._database.execute("BEGIN")
            self._database.execute("DELETE FROM threads")
            self._database.execute("DELETE FROM facts WHERE name IN ('place', 'ended', 'upto')")

    def fact(self, name: str) -> str:
        """What is noted under this name, "" where nothing is."""
        found = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else ""

    def note(self, **facts: str) -> None:
        """Note these."""
        self._database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    @property
    def size(self) -> int:
        """How many issues are held."""
        return int(self._database.execute("SELECT count(*) FROM threads").fetchone()[0])

    @property
    def place(self) -> str:
        """From where the reading of older issues goes on."""
        return self.fact("place")

    @property
    def has_all(self) -> bool:
        """Whether the oldest issue of the repository was reached."""
        return bool(self.fact("ended"))

    @property
    def upto(self) -> datetime | None:
        """All changes before this moment are known; None before the first reading."""
        told = self.fact("upto")
        return parse_time(told) if told else None

    def put(self, records: Iterable[Record], *, grows: bool, **facts: str) -> None:
        """Keep these and note ``facts``, both or nothing; what is a tombstone is removed.

        Unless it ``grows`` downwards, an issue older than all that are held is left out: there would be a gap.
        """
        with self._database:
            self._database.execute("BEGIN")
            floor = "" if grows or self.has_all else self._oldest()
            for record in records:
                if not isinstance(record, Thread):
                    self._database.execute("DELETE FROM threads WHERE id = ?", (record.id,))
                    continue
                row = (record.id, stamp(record.created_at), json.dumps(archive_fields(record)))
                if str(row[1]) >= floor:
                    self._database.execute("INSERT OR REPLACE INTO threads VALUES (?, ?, ?)", row)
            self.note(**facts)

    def newest(self, count: int) -> list[Thread]:
        """The newest issues, at most so many; 0 for all."""
        rows = self._database.execute(
            "SELECT fields FROM threads ORDER BY created DESC, id DESC LIMIT ?", (count or -1,)
        )
        return [thread_from_archive(json.loads(fields)) for (fields,) in rows]

    def _oldest(self) -> str:
        return str(self._database.execute("SELECT coalesce(min(created), '') FROM threads").fetchone()[0])


def _is_one(path: Path) -> bool:
    with suppress(sqlite3.DatabaseError):
        if path.exists():
            with closing(sqlite3.connect(path)) as database:
                return bool(database.execute("PRAGMA user_version").fetchone()[0] == _FORMAT)
    return False


def _lay_out(path: Path) -> None:
    for left in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(_TABLES)
