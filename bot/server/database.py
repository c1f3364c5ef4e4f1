"""The queue's database, an SQLite file or PostgreSQL: connections, transactions, tables and its clock."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.errors import UserError, WorldError
from bot.server.model import Instant

BUSY, HURRY = 30.0, 6.0
"""Seconds that a writer waits for another writer of the same SQLite file; less if somebody waits for an answer."""

CLAIM = (0.001, 0.003)
"""Least and most seconds between two attempts to start writing."""

KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
"""A vanished server is noticed after 25 seconds."""

EVERY = 30.0
"""Seconds between two reads of the database's clock; in between, this machine counts."""

OURS = "precedent"
"""The schema of our tables in PostgreSQL."""

VERSION = 3
SCHEMA = "schema"
"""The heartbeat whose time is the version of the tables."""

_TABLES = """
create table if not exists deliveries (
  seq {serial}, id text not null unique, lane text not null,
  event text not null, action text not null, number {big} not null, is_pull integer not null,
  comment_id {big} not null, moved_to text not null, name text not null, private integer not null,
  received_at {big} not null, next_at {big} not null, request text not null, extra text not null,
  state text not null default 'waiting', attempts integer not null default 0, begun integer not null default 0,
  finished_at {big} not null default 0, turn text not null default '', reason text not null default '',
  said text not null default '', url text not null default '', matches text not null default '[]',
  nearest text not null default '[]');
create index if not exists deliveries_lane on deliveries (lane, state, seq);
create index if not exists deliveries_state on deliveries (state, seq);
create table if not exists turns (
  id text primary key, ticket text not null, lane text not null, worker text not null,
  began {big} not null, ended {big} not null default 0, stages text not null default '[]',
  pushes text not null default '[]', reads integer not null default 0, writes integer not null default 0,
  notes text not null default '[]');
create index if not exists turns_began on turns (began);
create table if not exists repositories (
  lane text primary key, name text not null default '', private integer not null default 1,
  state text not null default 'active', changed {big} not null default 0, cursor {big} not null default 0,
  pushes text not null default '[]', last_turn {big} not null default 0, rate_left integer not null default -1,
  backoff {big} not null default 0, turn text not null default '');
create table if not exists installations (
  id {big} primary key, account text not null default '', state text not null default 'active',
  changed {big} not null, paused_until {big} not null default 0);
create table if not exists audit (
  seq {serial}, acted_at {big} not null, who text not null, action text not null, asked {big} not null,
  done {big} not null, chosen text not null, why text not null);
create table if not exists pauses (
  installation {big} not null, resource text not null, until {big} not null, primary key (installation, resource));
create table if not exists tallies (
  name text not null, labels text not null, much double precision not null, primary key (name, labels));
create table if not exists tallied (seq {serial}, counted text not null);
create table if not exists pulses (name text primary key, said_at {big} not null, note text not null);
create table if not exists workers (id text primary key, since {big} not null, dead_since {big} not null default 0)
"""

MOVES = {
    2: "insert into pauses (installation, resource, until) select id, 'core', paused_until from installations"
    " where paused_until > 0 on conflict (installation, resource) do nothing",
    3: "alter table deliveries add column {unless}nearest text not null default '[]'",
}
"""Statements that upgrade to each version, run once. ``unless`` is for PostgreSQL, where two processes may start
together. Unused columns stay."""

log = logging.getLogger(__name__)
Value = str | int | float | Sequence[int] | Sequence[str]
Row = Mapping[str, Any]


class Transaction:
    """Runs SQL in one transaction. Values are named ``:name``; a sequence goes after ``in``."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, **values: Value) -> list[Row]:
        """Return the rows of a query, or of a statement that ends in ``returning``."""
        found = self.connection.execute(_prepared(sql, _lists(values)), values)
        return [dict(row) for row in found.mappings()]

    def row(self, sql: str, **values: Value) -> Row | None:
        """Return the first row, or None."""
        return next(iter(self.rows(sql, **values)), None)

    def change(self, sql: str, **values: Value) -> int:
        """Run a statement and return the number of changed rows."""
        return self.connection.execute(_prepared(sql, _lists(values)), values).rowcount

    def change_each(self, sql: str, each: Sequence[Mapping[str, Value]]) -> None:
        """Run the statement once for each of these mappings."""
        if each:
            self.connection.execute(_prepared(sql, ()), each)


class Database:
    """One database; ``url`` begins with sqlite: or postgresql:. Its own failures are raised as WorldError.

    ``hurry``: somebody waits for an answer, so a statement may take five or six seconds. Nothing is opened before the
    first transaction.
    """

    def __init__(self, url: str, *, hurry: bool = False) -> None:
        self.url = re.sub(r"^postgres(ql)?(\+\w+)?:", "postgresql+psycopg:", url)
        self.is_postgres = self.url.startswith("postgresql")
        if not self.is_postgres and not self.url.startswith("sqlite:///"):
            raise UserError("the database has to be a URL that begins with postgresql://")
        self.engine = _postgres(self.url, hurry) if self.is_postgres else _sqlite(self.url, hurry)

    @classmethod
    def within(cls, folder: Path, *, hurry: bool = False) -> Database:
        """Return the database in the SQLite file of this folder."""
        return cls(f"sqlite:///{folder / 'queue.sqlite'}", hurry=hurry)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction: durable when the block ends, rolled back when it raises."""
        with self.asked(), self.engine.begin() as connection:
            yield Transaction(connection)

    @contextlib.contextmanager
    def urgent(self) -> Iterator[Transaction]:
        """Open a transaction that is the only writer from its start, for requests that somebody waits for.

        SQLite lets a blocked writer look again after up to a tenth of a second, and later writers may overtake it:
        with many writers that occasionally adds up to a third of a second.
        """
        with self.transaction() as urgent:
            if not self.is_postgres:
                _claim(urgent.connection)
            yield urgent

    @contextlib.contextmanager
    def session(self) -> Iterator[Transaction]:
        """Open a separate connection, for locks that live as long as it does. Each statement commits by itself."""
        with self.asked(), self.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.detach()
            yield Transaction(connection)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
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
            said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0][:200]
            raise WorldError(f"the queue's database does not answer ({said}): see that it runs and has room") from error

    def make_tables(self) -> None:
        """Create missing tables; may be repeated. Raises UserError for the database of a newer release."""
        with self.transaction() as made:
            for statement in statements(postgres=self.is_postgres):
                made.change(statement)
            found = made.row("select said_at from pulses where name = :name", name=SCHEMA)
            if found and found["said_at"] > VERSION:
                cause = f"the database has version {found['said_at']}, which a newer release made; this one reads up to"
                raise UserError(f"{cause} {VERSION}", "take that release, or a backup from before it")
            if found and found["said_at"] == VERSION:
                return  # reading works on a read-only database
            for version in sorted(MOVES):
                if found and found["said_at"] < version:
                    made.change(MOVES[version].format(unless="if not exists " if self.is_postgres else ""))
            made.change(
                "insert into pulses (name, said_at, note) values (:name, :version, '{}')"
                " on conflict (name) do update set said_at = excluded.said_at",
                name=SCHEMA,
                version=VERSION,
            )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _lists(values: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(name for name, value in values.items() if isinstance(value, (list, tuple)))


@lru_cache(maxsize=500)
def _prepared(sql: str, lists: tuple[str, ...]) -> sa.TextClause:
    return sa.text(sql).bindparams(*(sa.bindparam(name, expanding=True) for name in lists))


_KNOWS_SUBSEC = (3, 42)
"""The first SQLite in which `unixepoch('subsec')` has fractions of a second. The queue's library relies on it from
Python 3.12 on, but Python uses the SQLite of the machine: Debian 12 has 3.40."""


def _sqlite(url: str, hurry: bool) -> sa.Engine:
    patience = HURRY if hurry else BUSY
    options = {"timeout": patience, "isolation_level": "IMMEDIATE", "check_same_thread": False}
    engine = sa.create_engine(url, connect_args=options, pool_size=10, max_overflow=100)

    def prepare(connection: Any, _: object) -> None:
        if sqlite3.sqlite_version_info < _KNOWS_SUBSEC:
            connection.create_function("unixepoch", 1, lambda _: time.time())
        for words in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={round(1000 * patience)}"):
            connection.execute(f"PRAGMA {words}")

    sa.event.listen(engine, "connect", prepare)
    return engine


def _claim(connection: sa.Connection) -> None:
    """Begin to write, trying often for `HURRY` seconds."""
    until = time.monotonic() + HURRY
    (patience,) = connection.exec_driver_sql("PRAGMA busy_timeout").one()
    connection.exec_driver_sql("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except sa.exc.OperationalError as error:
                code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
                if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            else:
                return
            time.sleep(random.uniform(*CLAIM))
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={patience}")


def _postgres(url: str, hurry: bool) -> sa.Engine:
    """PostgreSQL usually allows a hundred connections; a process takes at most fifteen or twenty of them."""
    limits = "-c statement_timeout=5000 -c lock_timeout=3000" if hurry else "-c lock_timeout=20000"
    options = {"connect_timeout": 5, "options": f"-c search_path={OURS} {limits}", **KEEPALIVE}
    often, patience = (5, 3) if hurry else (10, 30)
    return sa.create_engine(
        url, pool_pre_ping=True, connect_args=options, pool_size=often, max_overflow=10, pool_timeout=patience
    )


def statements(*, postgres: bool) -> list[str]:
    """Return the statements that create missing tables."""
    serial = "bigint generated always as identity primary key" if postgres else "integer primary key autoincrement"
    tables = _TABLES.format(serial=serial, big="bigint" if postgres else "integer")
    return [*([f"create schema if not exists {OURS}"] if postgres else []), *tables.split(";")]


def written(value: object) -> str:
    """Return a list as JSON for a column."""
    return json.dumps(value, separators=(",", ":"))


def machine_clock() -> Instant:
    """Return the time of this machine."""
    return time.time_ns() // 1_000_000


class DatabaseClock:
    """The time of the database, so that a machine whose own clock is off starts nothing too early or too late.

    For SQLite it is the time of the machine, as all processes are on one. Reading the time never waits for the
    database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told: tuple[Instant, float] | None = None

    def __call__(self) -> Instant:
        if self._told is None:
            return machine_clock()
        then, at = self._told
        return then + round(1000 * (time.monotonic() - at))

    def ask(self) -> None:
        """Read the time of the database. Raises WorldError."""
        if not self._database.is_postgres:
            return
        with self._database.transaction() as asking:
            before = time.monotonic()
            row = asking.row("select cast(1000 * extract(epoch from clock_timestamp()) as bigint) as now")
            assert row is not None
            self._told = int(row["now"]), (before + time.monotonic()) / 2

    @contextmanager
    def kept(self, every: float = EVERY) -> Iterator[None]:
        """Read the time now, and regularly within the block. Raises WorldError if it cannot be read now."""
        self.ask()
        stop = threading.Event()
        asking = threading.Thread(target=self._go_on, args=(stop, every), name="clock", daemon=True)
        asking.start()
        try:
            yield
        finally:
            stop.set()
            asking.join()

    def _go_on(self, stop: threading.Event, every: float) -> None:
        while not stop.wait(every):
            try:
                self.ask()
            except WorldError as error:
                log.warning("the database's clock cannot be read; counting on from the last reading: %s", error)
