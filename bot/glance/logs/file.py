"""The file of the logs: an SQLite database in a cache folder, emptied when it is of another version or damaged."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import NoReturn

from bot.errors import WorldError
from bot.glance.file import fact, note, writing
from bot.reading.words import ANALYSER_VERSION

FORMAT = f"3 {ANALYSER_VERSION} {sys.byteorder}"
"""Of the tables, of the terms in them, and of the numbers in posting lists."""

PATIENCE = 60.0
"""Seconds that one process waits for another that writes."""

TABLES = """
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


def opened(path: Path) -> sqlite3.Connection:
    """The database at ``path``, empty where there was none that can be used. Only its owner may read it.

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
        if _format(database) != FORMAT:
            with writing(database):
                if _format(database) != FORMAT:  # nobody else was faster
                    _lay_out(database)
            path.chmod(0o600)
    except BaseException:
        database.close()
        raise
    return database


def _format(database: sqlite3.Connection) -> str:
    held = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone()
    return fact(database, "format") if held else ""


def _lay_out(database: sqlite3.Connection) -> None:
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (name,) in names.fetchall():
        quoted = name.replace('"', '""')
        database.execute(f'DROP TABLE "{quoted}"')
    for table in TABLES.split(";"):
        database.execute(table)
    note(database, "format", FORMAT)
