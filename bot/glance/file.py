"""The file of a glance: an SQLite database in a cache folder, made anew whenever it is not what it should be."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.errors import WorldError

FORMAT = "3"
"""Of the tables. A file of another format is made anew: nothing is in it that is not elsewhere."""

_PATIENCE = 30.0
"""Seconds that one process waits for another that writes."""

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE segments (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, count INTEGER NOT NULL,
                       deleted TEXT NOT NULL);
CREATE TABLE postings (key BLOB, segment INTEGER, list BLOB NOT NULL, PRIMARY KEY (key, segment)) WITHOUT ROWID;
CREATE TABLE documents (segment INTEGER, document INTEGER, thread TEXT NOT NULL,
                        PRIMARY KEY (segment, document)) WITHOUT ROWID;
CREATE TABLE shards (path TEXT PRIMARY KEY, mark TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE threads (id TEXT PRIMARY KEY, shard TEXT NOT NULL, digest TEXT NOT NULL, updated TEXT NOT NULL,
                      decided TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX threads_of_shard ON threads (shard);
CREATE INDEX threads_updated ON threads (updated);
CREATE INDEX threads_decided ON threads (decided) WHERE decided != '';
CREATE TABLE files (name TEXT, thread TEXT, path TEXT, PRIMARY KEY (name, thread, path)) WITHOUT ROWID;
CREATE INDEX files_of_thread ON files (thread);
CREATE TABLE links (source TEXT, target TEXT, kind TEXT, PRIMARY KEY (source, target, kind)) WITHOUT ROWID;
CREATE INDEX links_to ON links (target);
"""


class Damaged(Exception):
    """The file is no glance of this version."""


def connect(path: Path) -> sqlite3.Connection:
    """The glance at ``path``, which is there. Raises Damaged, WorldError where it is in use."""
    try:
        database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
        try:
            if fact(database, "format") == FORMAT:
                return database
        except BaseException:
            database.close()
            raise
        database.close()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            raise Damaged(str(error)) from error
        raise WorldError(f"{path} cannot be used now: {error}", "try again") from error
    except sqlite3.DatabaseError as error:
        raise Damaged(str(error)) from error
    raise Damaged("another format")


def fact(database: sqlite3.Connection, name: str) -> str:
    """What is noted under this name, "" where nothing is."""
    found = database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return str(found[0]) if found else ""


def note(database: sqlite3.Connection, name: str, value: str) -> None:
    """Note something under this name."""
    database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def made(path: Path) -> sqlite3.Connection:
    """The glance at ``path``; an empty one where there is none that can be read.

    Only its owner may read it. Raises WorldError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(Damaged):
            if path.exists():
                return connect(path)
        _lay_out(path)
        return connect(path)
    except (OSError, sqlite3.OperationalError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WorldError(
            f"{path.parent} cannot be written: {reason}", "name another folder in XDG_CACHE_HOME"
        ) from error
    except Damaged as error:
        raise WorldError(f"{path} cannot be read: {error}", "remove it") from error


def _lay_out(path: Path) -> None:
    """Put a file without threads in place, by one rename: who meanwhile reads the old one goes on with it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    database = sqlite3.connect(fresh, isolation_level=None)
    database.executescript(TABLES)
    note(database, "format", FORMAT)
    database.close()
    fresh.replace(path)
    for left in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside counts, or nothing of it; others who write wait. What is deleted is overwritten."""
    database.execute("PRAGMA secure_delete = ON")
    database.execute("PRAGMA cache_spill = OFF")  # else a large change keeps readers out long before its end
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if database.in_transaction:  # a full disk has ended it by itself
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
