"""Opens the SQLite files of the cache. Each can be rebuilt from its sources, so a damaged one is replaced.

A file of another version, or a damaged one, is emptied and its tables are created again. Only its owner may read it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

from bot.errors import WorldError
from bot.reading.analyzer import ANALYSER_VERSION

LOCK_TIMEOUT = 60.0
"""Seconds to wait while another process writes."""


class SqliteSchema(NamedTuple):
    """The tables of a file, and the ``format``, which changes whenever the tables or their content do."""

    format: str
    tables: str


_FACTS_TABLE_SQL = "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"

CARDS_SCHEMA = SqliteSchema(
    "5",
    """
CREATE TABLE segments (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, count INTEGER NOT NULL,
                       deleted TEXT NOT NULL);
CREATE TABLE postings (key BLOB, segment INTEGER, list BLOB NOT NULL, PRIMARY KEY (key, segment)) WITHOUT ROWID;
CREATE TABLE documents (segment INTEGER, document INTEGER, thread TEXT NOT NULL,
                        PRIMARY KEY (segment, document)) WITHOUT ROWID;
CREATE TABLE message_segments (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, count INTEGER NOT NULL,
                               deleted TEXT NOT NULL);
CREATE TABLE message_postings (key BLOB, segment INTEGER, list BLOB NOT NULL, PRIMARY KEY (key, segment)) WITHOUT ROWID;
CREATE TABLE messages (segment INTEGER, document INTEGER, thread TEXT NOT NULL, position INTEGER NOT NULL,
                       author TEXT NOT NULL, role TEXT NOT NULL, at TEXT NOT NULL,
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
CREATE INDEX links_to ON links (target)
""",
)
"""The cards of a repository."""

SESSIONS_SCHEMA = SqliteSchema(
    f"7 {ANALYSER_VERSION}",
    """
CREATE TABLE files (number INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, mark TEXT NOT NULL, inode INTEGER NOT NULL,
                    issue INTEGER, offset INTEGER NOT NULL, session TEXT NOT NULL, folder TEXT NOT NULL,
                    broken INTEGER NOT NULL, last TEXT NOT NULL, checksum INTEGER NOT NULL, asked TEXT NOT NULL,
                    unfinished INTEGER NOT NULL);
CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL);
CREATE TABLE passages (number INTEGER PRIMARY KEY, file INTEGER NOT NULL, session INTEGER NOT NULL, type TEXT NOT NULL,
                       at INTEGER, length INTEGER NOT NULL);
CREATE INDEX passages_of_file ON passages (file);
CREATE INDEX passages_of_session ON passages (session, type, at, file);
CREATE TABLE texts (number INTEGER PRIMARY KEY, text TEXT NOT NULL, files TEXT NOT NULL);
CREATE TABLE subjects (session INTEGER, file INTEGER, kind TEXT, name TEXT, number INTEGER, repo TEXT NOT NULL,
                       PRIMARY KEY (session, file, kind, name, number)) WITHOUT ROWID;
CREATE INDEX subjects_by_number ON subjects (number);
CREATE TABLE heads (path TEXT PRIMARY KEY, mark TEXT NOT NULL, folder TEXT NOT NULL, owner TEXT NOT NULL)
    WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5
    (terms, content = '', tokenize = "ascii tokenchars '!#$%&()*+,-./:;<=>?@[\\]^_`{|}~'");
CREATE VIRTUAL TABLE occurrences USING fts5vocab (words, instance)
""",
)
"""The sessions of this machine. A passage is a message: ``at`` is in microseconds since 1970, ``length`` its number of
terms. Texts are separate from what is counted and sorted. ``subjects`` says what a session worked on: a branch, a pull
request or the issue of its first prompt, with the ``number`` of that thread, or 0. ``heads`` has the working folder
at the start of a transcript and whose that is, "" if unknown. ``words`` indexes the terms of each passage, between
spaces, and stores no text; ``occurrences`` has a row for each term in each passage, as often as it occurs."""

_TRANSIENT_CODES = frozenset(
    {
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR),
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM),
    }
)
"""Errors that do not depend on the content of the file."""


def open_database(path: Path, schema: SqliteSchema, lock_timeout: float = LOCK_TIMEOUT) -> sqlite3.Connection:
    """Open the file at ``path``, or a new, empty one in place of a file that cannot be used. Raises WorldError.

    ``lock_timeout`` is how many seconds to wait for another process.
    """
    try:
        try:
            return _open(path, schema, lock_timeout)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            remove(path)
            return _open(path, schema, lock_timeout)
    except (OSError, sqlite3.Error) as error:
        raise_unusable(path, error)


def empty_database(schema: SqliteSchema) -> sqlite3.Connection:
    """Open an empty database in memory."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    _create_tables(database, schema)
    return database


def fact(database: sqlite3.Connection, name: str) -> str:
    """Return the value stored under this name, or ""."""
    row = database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


def note(database: sqlite3.Connection, name: str, value: str) -> None:
    database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


@contextmanager
def reading(database: sqlite3.Connection) -> Iterator[None]:
    """Run the block on one state of the file, whatever other processes write meanwhile; they wait for it to end."""
    database.execute("BEGIN")
    try:
        yield
    finally:
        if database.in_transaction:  # not if an error has ended it
            database.execute("ROLLBACK")


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one transaction; other writers wait. Deleted rows are overwritten on the disk."""
    database.execute("PRAGMA secure_delete = ON")
    database.execute("PRAGMA cache_spill = OFF")  # else a large change blocks readers long before it commits
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:  # not if a full disk has ended it
            database.execute("ROLLBACK")
        raise


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is to blame, not its surroundings, such as a full disk."""
    return _error_code(error) not in _TRANSIENT_CODES


def is_replaced(error: sqlite3.Error) -> bool:
    """Whether another process has put a new file in the place of the open one."""
    return _full_code(error) == sqlite3.SQLITE_READONLY_DBMOVED


def remove(path: Path) -> None:
    """Delete the file and what SQLite left next to it, the file first: a new one would be restored from a journal."""
    for ending in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def reason_of(error: Exception) -> str:
    """Why the disk or SQLite refuses, in its own words."""
    return str(error.strerror if isinstance(error, OSError) else _original_error(error))


def raise_unusable(path: Path, error: Exception) -> NoReturn:
    """Raise a WorldError for this error of the disk or of SQLite."""
    is_busy = isinstance(error, sqlite3.Error) and _error_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    remedy = "try again" if is_busy else "set XDG_CACHE_HOME to another folder"
    raise WorldError(f"{path} cannot be used: {reason_of(error)}", remedy) from error


def _error_code(error: sqlite3.Error) -> int:
    return _full_code(error) & 0xFF


def _full_code(error: sqlite3.Error) -> int:
    return int(getattr(_original_error(error), "sqlite_errorcode", sqlite3.SQLITE_ERROR))


def _original_error(error: Exception) -> Exception:
    """The error before a failed rollback, which fails if SQLite has already rolled back."""
    return error.__context__ if isinstance(error.__context__, sqlite3.Error) else error


def _open(path: Path, schema: SqliteSchema, lock_timeout: float) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    database = sqlite3.connect(path, timeout=lock_timeout, isolation_level=None)
    try:
        if _format(database) != schema.format:
            with writing(database):
                if _format(database) != schema.format:  # no other process was faster
                    _create_tables(database, schema)
            path.chmod(0o600)
    except BaseException:
        database.close()
        raise
    return database


def _format(database: sqlite3.Connection) -> str:
    has_facts = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone()
    return fact(database, "format") if has_facts else ""


def _create_tables(database: sqlite3.Connection, schema: SqliteSchema) -> None:
    while row := database.execute(_NEXT_TABLE_SQL).fetchone():
        quoted = row[0].replace('"', '""')
        database.execute(f'DROP TABLE "{quoted}"')
    for table in f"{_FACTS_TABLE_SQL}{schema.tables}".split(";\n"):
        database.execute(table)
    note(database, "format", schema.format)


_NEXT_TABLE_SQL = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    " ORDER BY sql NOT LIKE 'CREATE VIRTUAL%' LIMIT 1"
)
"""Virtual tables first, since their shadow tables go with them."""
