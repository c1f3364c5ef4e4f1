"""The database of the queue, SQLite in a file or PostgreSQL: connections, transactions, tables; SQL stays text."""

from __future__ import annotations

import contextlib
import random
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bot.errors import UserError, WorldError
from bot.server.tables import MOVES, OURS, SCHEMA, VERSION, statements

BUSY, HURRY = 30.0, 6.0
"""Seconds that a writer waits for another one of the same SQLite file; less where somebody waits for an answer."""

CLAIM = (0.001, 0.003)
"""Seconds between two tries to be the one that writes, at least and at most."""

KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
"""A server that vanished is missed after 25 seconds."""

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
