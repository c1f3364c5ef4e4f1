"""The SQLite files of the cache, of cards and of sessions: made anew whenever they are not what they should be."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from bot.errors import WorldError
from bot.reading.analyzer import ANALYSER_VERSION

FORMAT = "3"
"""Of the tables. A file of another format is made anew: nothing is in it that is not elsewhere."""

_PATIENCE, PATIENCE = 30.0, 60.0
"""Seconds that one process waits for another that writes: cards, sessions."""

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
    """The file is no cache of this version."""


def connect(path: Path) -> sqlite3.Connection:
    """The cache at ``path``, which is there. Raises Damaged, WorldError where it is in use."""
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
    """The cache at ``path``; an empty one where there is none that can be read.

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
    """Put a file without threads in place, by one rename: whoever reads the old one meanwhile goes on with it."""
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


SESSION_FORMAT = f"3 {ANALYSER_VERSION} {sys.byteorder}"
"""Of the tables, of the terms in them, and of the numbers in posting lists."""

SESSION_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (number INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, mark TEXT NOT NULL, inode INTEGER NOT NULL,
                    issue INTEGER, offset INTEGER NOT NULL, session TEXT NOT NULL, folder TEXT NOT NULL,
                    broken INTEGER NOT NULL, last TEXT NOT NULL, guard TEXT NOT NULL, unfinished INTEGER NOT NULL);
CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
CREATE TABLE passages (number INTEGER PRIMARY KEY, file INTEGER NOT NULL, session INTEGER NOT NULL, type TEXT NOT NULL,
                       at INTEGER);
CREATE INDEX passages_of_file ON passages (file);
CREATE INDEX passages_of_session ON passages (session, type, at, file);
CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL, files TEXT NOT NULL);
CREATE TABLE segments (number INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, size INTEGER NOT NULL,
                       gone INTEGER NOT NULL);
CREATE TABLE gone (number INTEGER PRIMARY KEY);
CREATE TABLE postings (segment INTEGER, term TEXT, list BLOB NOT NULL, PRIMARY KEY (segment, term)) WITHOUT ROWID
"""
"""Texts lie apart from what is counted and sorted. A passage is a message; ``at`` is in microseconds since 1970. Those
that are ``gone`` still have postings."""

_PASSING = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM),
    }
)
"""Errors that say nothing of what is in the file."""


def open_sessions(path: Path) -> sqlite3.Connection:
    """The file of sessions at ``path``, empty where there was none that can be used. Only its owner may read it.

    Raises WorldError.
    """
    try:
        try:
            return _connected(path)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            remove(path)
            return _connected(path)
    except (OSError, sqlite3.Error) as error:
        unusable(path, error)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame, and not what is around it."""
    return getattr(_first(error), "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in _PASSING


def remove(path: Path) -> None:
    """The file and what SQLite left beside it: nothing is in it that is not elsewhere."""
    for ending in ("-journal", "-wal", "-shm", ""):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def unusable(path: Path, error: Exception) -> NoReturn:
    """Raise what this error of the disk or of SQLite comes to."""
    reason = error.strerror if isinstance(error, OSError) else _first(error)
    raise WorldError(f"{path} cannot be used: {reason}", "name another folder in XDG_CACHE_HOME") from error


def _first(error: Exception) -> Exception:
    """What went wrong before a rollback failed, of which SQLite has done its own."""
    return error.__context__ if isinstance(error.__context__, sqlite3.Error) else error


def _connected(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        if _format(database) != SESSION_FORMAT:
            with writing(database):
                if _format(database) != SESSION_FORMAT:  # nobody else was faster
                    _lay_out_sessions(database)
            path.chmod(0o600)
    except BaseException:
        database.close()
        raise
    return database


def _format(database: sqlite3.Connection) -> str:
    held = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone()
    return fact(database, "format") if held else ""


def _lay_out_sessions(database: sqlite3.Connection) -> None:
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in names.fetchall():
        quoted = name.replace('"', '""')
        database.execute(f'DROP TABLE "{quoted}"')
    for table in SESSION_TABLES.split(";"):
        database.execute(table)
    note(database, "format", SESSION_FORMAT)
