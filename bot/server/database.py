"""The database of the queue, SQLite in a file or PostgreSQL: connections, transactions, tables and its clock."""

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
"""Seconds that a writer waits for another one of the same SQLite file; less where somebody waits for an answer."""

CLAIM = (0.001, 0.003)
"""Seconds between two tries to be the one that writes, at least and at most."""

KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
"""A server that vanished is missed after 25 seconds."""

EVERY = 30.0
"""Seconds between two questions to the database; meanwhile the time goes on by what this machine counts."""

OURS = "precedent"
"""Where they are within a PostgreSQL database."""

VERSION = 3
SCHEMA = "schema"
"""The heartbeat that has the version in place of a time."""

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
"""What brings an older version to each newer one, once; ``unless``: what PostgreSQL needs where two begin at once.
Columns that nobody reads any more stay."""

log = logging.getLogger(__name__)
Value = str | int | float | Sequence[int] | Sequence[str]
Row = Mapping[str, Any]


class Transaction:
    """What is done within it is done as a whole. SQL has its values by ``:name``; a sequence stands after ``in``."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, **values: Value) -> list[Row]:
        """What a query, or a statement that ends in ``returning``, gives."""
        found = self.connection.execute(_prepared(sql, _lists(values)), values)
        return [dict(row) for row in found.mappings()]

    def row(self, sql: str, **values: Value) -> Row | None:
        """The first of them."""
        return next(iter(self.rows(sql, **values)), None)

    def change(self, sql: str, **values: Value) -> int:
        """How many rows the statement changed."""
        return self.connection.execute(_prepared(sql, _lists(values)), values).rowcount

    def change_each(self, sql: str, each: Sequence[Mapping[str, Value]]) -> None:
        """The statement once for each of these values."""
        if each:
            self.connection.execute(_prepared(sql, ()), each)


class Database:
    """One database; ``url`` begins with sqlite: or postgresql:. Whatever it raises for its own reasons is a WorldError.

    ``hurry``: whoever asks is waiting for an answer, so a statement has five or six seconds. Nothing is opened before
    the first transaction.
    """

    def __init__(self, url: str, *, hurry: bool = False) -> None:
        self.url = re.sub(r"^postgres(ql)?(\+\w+)?:", "postgresql+psycopg:", url)
        self.is_postgres = self.url.startswith("postgresql")
        if not self.is_postgres and not self.url.startswith("sqlite:///"):
            raise UserError("the database has to be a URL that begins with postgresql://")
        self.engine = _postgres(self.url, hurry) if self.is_postgres else _sqlite(self.url, hurry)

    @classmethod
    def within(cls, folder: Path, *, hurry: bool = False) -> Database:
        """The SQLite file in this folder."""
        return cls(f"sqlite:///{folder / 'queue.sqlite'}", hurry=hurry)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Durable once the block has ended, undone when it raises."""
        with self.asked(), self.engine.begin() as connection:
            yield Transaction(connection)

    @contextlib.contextmanager
    def urgent(self) -> Iterator[Transaction]:
        """A transaction for which somebody waits, which is the one that writes from its start.

        SQLite has who finds another one writing look again after a tenth of a second at last, and those who come
        meanwhile go first: where many write, that adds up to a third of a second now and then.
        """
        with self.transaction() as urgent:
            if not self.is_postgres:
                _claim(urgent.connection)
            yield urgent

    @contextlib.contextmanager
    def session(self) -> Iterator[Transaction]:
        """A connection of its own, for locks that last as long as it: each statement stands alone."""
        with self.asked(), self.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.detach()
            yield Transaction(connection)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Around everything that asks the database: what it says for its own reasons becomes a WorldError."""
        try:
            yield
        except (sa.exc.ProgrammingError, sa.exc.IntegrityError, sa.exc.DataError, sa.exc.NotSupportedError):
            raise
        except (sa.exc.DBAPIError, sa.exc.TimeoutError, sa.exc.PendingRollbackError) as error:  # the last: it broke off
            said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0][:200]
            raise WorldError(f"the queue's database does not answer ({said}): see that it runs and has room") from error

    def make_tables(self) -> None:
        """Make what is missing; twice is nothing. Raises UserError for a database that a newer release has made."""
        with self.transaction() as made:
            for statement in statements(postgres=self.is_postgres):
                made.change(statement)
            found = made.row("select said_at from pulses where name = :name", name=SCHEMA)
            if found and found["said_at"] > VERSION:
                cause = f"the database has version {found['said_at']}, which a newer release made; this one reads up to"
                raise UserError(f"{cause} {VERSION}", "take that release, or a backup from before it")
            if found and found["said_at"] == VERSION:
                return  # who only looks can, though nothing may be written
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
        """Give the connections back."""
        self.engine.dispose()


def _lists(values: Mapping[str, Value]) -> tuple[str, ...]:
    return tuple(name for name, value in values.items() if isinstance(value, (list, tuple)))


@lru_cache(maxsize=500)
def _prepared(sql: str, lists: tuple[str, ...]) -> sa.TextClause:
    return sa.text(sql).bindparams(*(sa.bindparam(name, expanding=True) for name in lists))


_KNOWS_SUBSEC = (3, 42)
"""SQLite from which `unixepoch('subsec')` gives parts of a second. The queue's library takes it for granted from Python
3.12 on, but Python is built with the SQLite of the machine: Debian 12 has 3.40."""


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
    """Begin to write, looking often whether nobody else does, for `HURRY` seconds."""
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
    """A server has a hundred connections as a rule: a process takes fifteen or twenty of them at most."""
    limits = "-c statement_timeout=5000 -c lock_timeout=3000" if hurry else "-c lock_timeout=20000"
    options = {"connect_timeout": 5, "options": f"-c search_path={OURS} {limits}", **KEEPALIVE}
    often, patience = (5, 3) if hurry else (10, 30)
    return sa.create_engine(
        url, pool_pre_ping=True, connect_args=options, pool_size=often, max_overflow=10, pool_timeout=patience
    )


def statements(*, postgres: bool) -> list[str]:
    """What makes the tables that are missing."""
    serial = "bigint generated always as identity primary key" if postgres else "integer primary key autoincrement"
    tables = _TABLES.format(serial=serial, big="bigint" if postgres else "integer")
    return [*([f"create schema if not exists {OURS}"] if postgres else []), *tables.split(";")]


def written(value: object) -> str:
    """A list of ours as text."""
    return json.dumps(value, separators=(",", ":"))


def machine_clock() -> Instant:
    """Now, for this machine."""
    return time.time_ns() // 1_000_000


class DatabaseClock:
    """Now, for the database. A machine whose own clock is off begins nothing too early or too late.

    SQLite's clock is the machine's, as all its processes are on one. Asking for the time never waits for the database.
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
        """Ask the database what time it is. Raises WorldError."""
        if not self._database.is_postgres:
            return
        with self._database.transaction() as asking:
            before = time.monotonic()
            row = asking.row("select cast(1000 * extract(epoch from clock_timestamp()) as bigint) as now")
            assert row is not None
            self._told = int(row["now"]), (before + time.monotonic()) / 2

    @contextmanager
    def kept(self, every: float = EVERY) -> Iterator[None]:
        """Asked now, and again and again within the block. Raises WorldError where it cannot be asked now."""
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
                log.warning("the time goes on by this machine's count: %s", error)
