"""The queue's database, an SQLite file or PostgreSQL: its tables, connections, transactions and clock.

The tables have one version and are never upgraded, as the memories are on their branches.
"""

from __future__ import annotations

import json
import logging
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.errors import UserError, WorldError
from bot.server.log import DATABASE_OUTAGE
from bot.server.model import Instant

BUSY_TIMEOUT, SHORT_BUSY_TIMEOUT = 30.0, 6.0
"""Seconds that a writer waits for another one of the same SQLite file; the short one if somebody awaits an answer."""

LOCK_RETRY_SECONDS = (0.001, 0.003)
"""Minimum and maximum seconds between two attempts to switch to a write-ahead log."""

KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
"""A vanished server is noticed after 25 seconds."""

POOL_SIZE = 2
"""Connections per process to PostgreSQL. Transactions are short."""

_REMEDIES = {
    "authentication failed": "check the user and the password in its address",
    "no password supplied": "put the password into its address",
    '" does not exist': "create it, or correct its address",
    "": "check that it is running and has free space",
}
"""What to do, by a part of the cause; the last is for all others."""

SYNC_INTERVAL = 30.0
"""Seconds between two reads of the database's clock; in between, this machine's clock counts on."""

POSTGRES_SCHEMA = "precedent"
"""The schema of our tables in PostgreSQL."""

SCHEMA_VERSION = 9
SCHEMA_HEARTBEAT = "schema"
"""The heartbeat whose time column holds the version of the tables."""

_TABLES_SQL = """
create table deliveries (
  seq {serial}, id text not null unique, repository text not null,
  event text not null, action text not null, number {big} not null, is_pull integer not null,
  comment_id {big} not null, moved_to text not null, name text not null,
  received_at {big} not null, next_at {big} not null, request text not null, extra text not null,
  state text not null default 'waiting', attempts integer not null default 0, begun integer not null default 0,
  finished_at {big} not null default 0, run text not null default '', reason text not null default '',
  said text not null default '', url text not null default '', matches text not null default '[]',
  nearest text not null default '[]', priority integer not null default 1);
create index deliveries_repository on deliveries (repository, state, seq);
create index deliveries_state on deliveries (state, seq);
create table queue (
  key text primary key, priority integer not null, since {big} not null, due {big} not null, ready integer not null,
  history integer not null default 0, owner text not null default '', lease text not null default '',
  slow integer not null default 0, installation {big} not null default 0){often};
create index queue_urgent on queue (history, priority, since) where ready = 1;
create index queue_oldest on queue (history, since) where ready = 1;
create index queue_histories on queue (key) where history = 1 and lease <> '';
create index queue_due on queue (due) where ready = 0;
create index queue_owner on queue (owner) where owner <> '';
create table runs (
  id text primary key, repository text not null, worker text not null,
  began {big} not null, ended {big} not null default 0, stages text not null default '[]',
  pushes text not null default '[]', reads integer not null default 0, writes integer not null default 0,
  notes text not null default '[]');
create index runs_began on runs (began);
create index runs_repository on runs (repository, began);
create table repositories (
  key text primary key, name text not null default '',
  state text not null default 'active', changed {big} not null default 0, cursor {big} not null default 0,
  pushes text not null default '[]', last_run {big} not null default 0,
  backoff {big} not null default 0, unread integer not null default 1, threads {big} not null default -1,
  history text not null default '', visibility text not null default 'private',
  shares text not null default '[]', sharing integer not null default 1,
  people text not null default '[]', former_names text not null default '', indexed integer not null default 0);
create table organisation_changes (
  seq {serial}, installation {big} not null, repository text not null, threads text not null,
  changed_at {big} not null, attempts integer not null default 0, next_at {big} not null default 0);
create index organisation_changes_installation on organisation_changes (installation, seq);
create table organisation_shown (
  repository text not null, thread text not null, other_repository {big} not null, other_thread text not null,
  primary key (repository, thread, other_repository, other_thread));
create index organisation_shown_other on organisation_shown (other_repository, other_thread);
create table installations (
  id {big} primary key, account text not null default '', state text not null default 'active',
  changed {big} not null);
create table audit (
  seq {serial}, acted_at {big} not null, who text not null, action text not null, asked {big} not null,
  done {big} not null, chosen text not null, why text not null);
create table pauses (
  installation {big} not null, resource text not null, until {big} not null, primary key (installation, resource));
create table budgets (
  installation {big} not null, resource text not null, allowed integer not null, remaining integer not null,
  ends {big} not null, primary key (installation, resource));
create table tallies (
  name text not null, labels text not null, much double precision not null, primary key (name, labels));
create table tallied (seq {serial}, counted text not null);
create table digests (repository text primary key, made_at {big} not null, told text not null);
create table heartbeats (name text primary key, said_at {big} not null, note text not null)
"""
_HOT_TABLE_OPTIONS = " with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)"
"""Storage options in PostgreSQL for a table whose rows change all the time."""

log = logging.getLogger(__name__)
Value = str | int | float | Sequence[int] | Sequence[str]
Row = Mapping[str, Any]


class DatabasePart:
    """Tables of a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self.database = database
        self.now = now


class Database:
    """One database; ``url`` begins with sqlite: or postgresql:. Its own failures are raised as WorldError.

    ``hurry``: somebody waits for an answer, so a statement may take at most five or six seconds. Connections open with
    the first transaction. In SQL, values are named ``:name``; a sequence goes after ``in``.
    """

    def __init__(self, url: str, *, hurry: bool = False) -> None:
        self.url = re.sub(r"^postgres(ql)?(\+\w+)?:", "postgresql+psycopg:", url)
        self.is_postgres = self.url.startswith("postgresql")
        if not self.is_postgres and not self.url.startswith("sqlite:///"):
            raise UserError("the database must be a URL that begins with postgresql://")
        self.engine = _postgres(self.url, hurry) if self.is_postgres else _sqlite(self.url, hurry)
        self._limits = _SHORT_LIMITS if hurry else _USUAL_LIMITS
        self._open = threading.local()

    @classmethod
    def in_folder(cls, folder: Path, *, hurry: bool = False) -> Database:
        """Return the database in this folder's SQLite file."""
        return cls(f"sqlite:///{folder / 'queue.sqlite'}", hurry=hurry)

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Make the block one transaction: durable when it ends, rolled back when it raises.

        Within another block of this thread, it belongs to the transaction of that one.
        """
        if hasattr(self._open, "connection"):
            yield self
            return
        with self.translate_errors(), self.engine.begin() as connection:
            if self.is_postgres:
                connection.exec_driver_sql(self._limits)
            self._open.connection = connection
            try:
                yield self
            finally:
                del self._open.connection

    def rows(self, sql: str, **values: Value) -> list[Row]:
        """Return the rows of a query, or of a statement that ends in ``returning``."""
        with self.transaction():
            return [dict(row) for row in self._execute(sql, values).mappings()]

    def row(self, sql: str, **values: Value) -> Row | None:
        return next(iter(self.rows(sql, **values)), None)

    def change(self, sql: str, **values: Value) -> int:
        """Run a statement and return the number of changed rows."""
        with self.transaction():
            return self._execute(sql, values).rowcount

    def change_each(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Run the statement once for each of these mappings."""
        if rows:
            with self.transaction():
                self._open.connection.execute(_prepare(sql, ()), rows)

    def _execute(self, sql: str, values: Mapping[str, Value]) -> sa.CursorResult[Any]:
        lists = tuple(name for name, value in values.items() if isinstance(value, (list, tuple)))
        result: sa.CursorResult[Any] = self._open.connection.execute(_prepare(sql, lists), values)
        return result

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn the database's own failures within the block into WorldError."""
        try:
            yield
        except (sa.exc.ProgrammingError, sa.exc.IntegrityError, sa.exc.DataError, sa.exc.NotSupportedError):
            raise
        except (
            sa.exc.DBAPIError,
            sa.exc.TimeoutError,
            sa.exc.PendingRollbackError,
        ) as error:  # the last: the connection broke
            cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0][:200]
            remedy = next(remedy for sign, remedy in _REMEDIES.items() if sign in cause)
            raise WorldError(f"{DATABASE_OUTAGE} ({cause}): {remedy}") from error

    def make_tables(self) -> None:
        """Create the tables in an empty database, one process at a time; may be repeated.

        Raises UserError if they are there in another version.
        """
        if self._has_tables():
            return  # reading works on a read-only database
        with self.transaction():
            if self.is_postgres:
                self.rows("select pg_advisory_xact_lock(:number)", number=_TABLES_LOCK_NUMBER)
                self.change(f"create schema if not exists {POSTGRES_SCHEMA}")
            else:
                self.change("begin immediate")  # which the driver does only before rows are changed
            if self._has_tables():
                return  # another process was faster
            for statement in _statements(postgres=self.is_postgres):
                self.change(statement)
            self.change(
                "insert into heartbeats (name, said_at, note) values (:name, :version, '{}')",
                name=SCHEMA_HEARTBEAT,
                version=SCHEMA_VERSION,
            )

    def _has_tables(self) -> bool:
        """Whether the tables are there. Raises UserError if they have another version."""
        with self.transaction():
            inspector = sa.inspect(self._open.connection)
            known = inspector.get_table_names(POSTGRES_SCHEMA if self.is_postgres else None)
        tables = {"deliveries", "heartbeats"}.intersection(known)
        if not tables:
            return False
        sql = "select said_at from heartbeats where name = :name"
        row = self.row(sql, name=SCHEMA_HEARTBEAT) if "heartbeats" in tables else None
        version = int(row["said_at"]) if row else 0
        if version == SCHEMA_VERSION:
            return True
        if version > SCHEMA_VERSION:
            release, remedy = "a newer release", "install that release, or restore a backup from before it"
        else:
            release, remedy = "an older release", "give an empty database: the memories are on their branches"
        raise UserError(
            f"the database has version {version}, which {release} made; this one reads only {SCHEMA_VERSION}", remedy
        )

    def close(self) -> None:
        self.engine.dispose()


@lru_cache(maxsize=500)
def _prepare(sql: str, lists: tuple[str, ...]) -> sa.TextClause:
    return sa.text(sql).bindparams(*(sa.bindparam(name, expanding=True) for name in lists))


def _sqlite(url: str, hurry: bool) -> sa.Engine:
    patience = SHORT_BUSY_TIMEOUT if hurry else BUSY_TIMEOUT
    options = {"timeout": patience, "isolation_level": "IMMEDIATE", "check_same_thread": False}
    engine = sa.create_engine(url, connect_args=options, pool_size=10, max_overflow=100)

    def prepare(connection: Any, _: object) -> None:
        connection.execute(f"PRAGMA busy_timeout={round(1000 * patience)}")
        _enable_write_ahead_log(connection, time.monotonic() + patience)
        connection.execute("PRAGMA synchronous=FULL")

    sa.event.listen(engine, "connect", prepare)
    return engine


def _enable_write_ahead_log(connection: Any, deadline: float) -> None:
    """Switch to a write-ahead log, so that readers need not wait. SQLite itself does not retry this change."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(random.uniform(*LOCK_RETRY_SECONDS))


_LIMITS_SQL = f"select set_config('search_path', '{POSTGRES_SCHEMA}', true), set_config('lock_timeout', '%s', true)"
_USUAL_LIMITS = _LIMITS_SQL % "20s"
_SHORT_LIMITS = _LIMITS_SQL % "3s" + ", set_config('statement_timeout', '5s', true)"
"""Set in each transaction, and for it alone: a pooler may give each transaction another connection."""

_TABLES_LOCK_NUMBER = 0x50726563_6564656E
"""The number of the advisory lock for creating tables."""


_CONNECT_OPTIONS = {"connect_timeout": 5, "prepare_threshold": None, **KEEPALIVE}
"""Options of a connection to PostgreSQL. Prepared statements would be left behind in a pooler's connections."""


def _postgres(url: str, hurry: bool) -> sa.Engine:
    patience = 3 if hurry else 30
    return sa.create_engine(
        url,
        pool_pre_ping=True,
        connect_args=_CONNECT_OPTIONS,
        pool_size=POOL_SIZE,
        max_overflow=8 if hurry else 0,  # the web process answers several requests at once
        pool_timeout=patience,
    )


def _statements(*, postgres: bool) -> list[str]:
    """Return the statements that create the tables."""
    serial = "bigint generated always as identity primary key" if postgres else "integer primary key autoincrement"
    tables = _TABLES_SQL.format(
        serial=serial, big="bigint" if postgres else "integer", often=_HOT_TABLE_OPTIONS if postgres else ""
    )
    return tables.split(";")


def to_json(value: object) -> str:
    """Return a value as compact JSON for a column."""
    return json.dumps(value, separators=(",", ":"))


def machine_clock() -> Instant:
    return time.time_ns() // 1_000_000


class DatabaseClock:
    """The time of the database, so that a machine whose own clock is off starts nothing too early or too late.

    With SQLite it is the machine's time, since all processes run on one machine. Reading the time never waits for the
    database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last_reading: tuple[Instant, float] | None = None

    def __call__(self) -> Instant:
        if self._last_reading is None:
            return machine_clock()
        reading, read_at = self._last_reading
        return reading + round(1000 * (time.monotonic() - read_at))

    def sync(self) -> None:
        """Read the time of the database. Raises WorldError."""
        if not self._database.is_postgres:
            return
        with self._database.transaction():
            before = time.monotonic()
            row = self._database.row("select cast(1000 * extract(epoch from clock_timestamp()) as bigint) as now")
            assert row is not None
            self._last_reading = int(row["now"]), (before + time.monotonic()) / 2

    @contextmanager
    def keep_current(self, interval: float = SYNC_INTERVAL) -> Iterator[None]:
        """Read the time now, and regularly within the block. Raises WorldError if it cannot be read now."""
        self.sync()
        stop = threading.Event()
        thread = threading.Thread(target=self._sync_loop, args=(stop, interval), name="clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _sync_loop(self, stop: threading.Event, interval: float) -> None:
        while not stop.wait(interval):
            try:
                self.sync()
            except WorldError as error:
                log.warning("the database's clock cannot be read; counting on from the last reading: %s", error)
