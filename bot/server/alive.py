"""Who lives: each worker holds a place that is lost with its process, and whoever lives finds those that do not."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bot.errors import WorldError
from bot.server.database import Database
from bot.server.locks import Locks, ServerLocks
from bot.server.nouns import Instant

LEADER = "leader"

LINGER = 30_000
"""Milliseconds. A worker that lost its place, but lives, may take a ticket until it sees that; so it is asked about a
second time after that long."""


class Places:
    """`Guard` over locks and the table ``workers``. ``name`` is new for every start of a process."""

    def __init__(self, name: str, database: Database, locks: Locks, now: Callable[[], Instant]) -> None:
        self.name = name
        self._database = database
        self._locks = locks
        self._now = now
        self._alone = threading.RLock()

    def hold(self) -> None:
        with self._alone:
            if not self._locks.take(self.name):
                raise WorldError(f"another process is {self.name}")
            if isinstance(self._locks, ServerLocks) and not self._locks.is_seen(self.name):
                raise WorldError(
                    "something between us and PostgreSQL shares connections: give the server's own address"
                )
            with self._database.transaction() as holding:
                holding.change("insert into workers (id, since) values (:name, :now)", name=self.name, now=self._now())

    def check(self) -> bool:
        with self._alone:
            return self._locks.holds(self.name)

    def dead(self) -> list[str]:
        with self._alone:
            with self._database.transaction() as asking:
                found = asking.rows(
                    "select id from workers where id <> :name and (dead_since = 0 or dead_since < :long)"
                    " order by since",
                    name=self.name,
                    long=self._now() - LINGER,
                )
            names = [str(row["id"]) for row in found]
            return [name for name in names if self._locks.holds(name) or self._locks.take(name)]

    def bury(self, worker: str) -> None:
        """Our own name: we end, and have begun nothing that did not end."""
        with self._alone:
            with self._database.transaction() as burying:
                burying.change(
                    "delete from workers where id = :worker and (dead_since > 0 and dead_since < :long or id = :name)",
                    worker=worker,
                    long=self._now() - LINGER,
                    name=self.name,
                )
                burying.change(
                    "update workers set dead_since = :now where id = :worker and dead_since = 0",
                    worker=worker,
                    now=self._now(),
                )
            self._locks.give(worker)

    def leads(self) -> bool:
        with self._alone:
            return self._locks.holds(LEADER) or self._locks.take(LEADER)
