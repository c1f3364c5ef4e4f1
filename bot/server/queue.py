"""The work queue: which keys have work, and the lease of the one worker that works on each.

A row is a key that has something to do: a repository, or a task of the server itself. It is the pattern of the
controllers of Kubernetes and of the job queues River, procrastinate and Solid Queue: work is added in the transaction
that makes it necessary, a key stands there once however much waits for it, and whoever works on it holds a lease that
runs out with its process.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from bot.errors import WorldError
from bot.server.database import Database, Transaction, Unheard
from bot.server.model import Instant, Lease, Priority

LEASE = 30_000
"""Milliseconds after which the work of a worker that vanished is taken over. A worker renews its leases meanwhile."""

OLDEST_EVERY = 8
"""One claim in so many takes what has waited longest, whatever its priority: nothing starves."""

PROMOTED = 500
"""Keys that become ready in one transaction."""

CHANNEL = "precedent_queue"

log = logging.getLogger(__name__)

_ADD = """
insert into queue (key, priority, since, due, ready) values (:key, :priority, :due, :due, :ready)
 on conflict (key) do update set
  priority = case when excluded.priority < queue.priority then excluded.priority else queue.priority end,
  since = case when excluded.since < queue.since then excluded.since else queue.since end,
  due = case when queue.lease = '' and excluded.due < queue.due then excluded.due else queue.due end,
  ready = case when queue.lease = '' and excluded.ready = 1 then 1 else queue.ready end
"""
_ANY = """
select 1 as found from (select key from queue where ready = 1 limit 1) as now
 union all select 1 from (select key from queue where ready = 0 and due <= :now limit 1) as due
"""
_PROMOTE = """
update queue set ready = 1, owner = '', lease = '' where key {among}
 (select key from queue where ready = 0 and due <= :now order by due limit :many{skip}){end}
"""
_CLAIM = """
update queue set ready = 0, due = :until, owner = :owner, lease = :lease where key =
 (select key from queue where ready = 1 order by {order} limit 1{skip}) returning key, priority, since
"""


class WorkQueue:
    """The table ``queue``. Every method raises WorldError when the database is not available.

    A key that nobody works on is ready, or will be when it is ``due``. A leased one is due when its lease runs out.
    """

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self.database = database
        self.now = now
        self._skip = " for update skip locked" if database.is_postgres else ""
        # PostgreSQL would read the whole table for "in", as it does not know how few rows there will be.
        among, end = ("= any(array", ")") if database.is_postgres else ("in", "")
        self._promote = _PROMOTE.format(among=among, end=end, skip=self._skip)
        self._claims = 0
        self._counting = threading.Lock()

    def add(self, adding: Transaction, works: Iterable[tuple[str, Priority, Instant]]) -> None:
        """Add work, each with key, priority and the time from which it may be done, in the caller's transaction.

        A key that waits gets the more urgent priority and the earlier time. One that is leased is left alone: its
        worker looks, before it finishes, whether more has come.
        """
        now = self.now()
        rows = sorted(works)  # in a fixed order, or two transactions might wait for each other
        adding.change_each(
            _ADD,
            [
                {"key": key, "priority": int(priority), "due": max(due, 0), "ready": int(due <= now)}
                for key, priority, due in rows
            ],
        )
        if rows:
            self.database.notify(adding, CHANNEL)

    def ensure(self, keys: Iterable[str]) -> None:
        """Add the server's own tasks that are not there yet, to be done now."""
        sql = "insert into queue (key, priority, since, due, ready) values (:key, :priority, :now, :now, 1)"
        now = self.now()
        with self.database.transaction() as ensuring:
            for key in keys:
                if not ensuring.row("select 1 from queue where key = :key", key=key):
                    ensuring.change(
                        f"{sql} on conflict (key) do nothing", key=key, priority=int(Priority.CATCH_UP), now=now
                    )

    def claim(self, owner: str) -> Lease | None:
        """Lease the most urgent key to this owner, of equal ones that which has waited longest; None if none is due."""
        now = self.now()
        with self.database.transaction() as claiming:
            if not claiming.row(_ANY, now=now):
                return None
            claiming.change(self._promote, now=now, many=PROMOTED)
            name = uuid.uuid4().hex
            order = "since" if self._is_turn_of_oldest() else "priority, since"
            row = claiming.row(_CLAIM.format(order=order, skip=self._skip), until=now + LEASE, owner=owner, lease=name)
        return Lease(row["key"], name, Priority(row["priority"]), row["since"]) if row else None

    def _is_turn_of_oldest(self) -> bool:
        with self._counting:
            self._claims += 1
            return self._claims % OLDEST_EVERY == 0

    def renew(self, owner: str, leases: Sequence[str]) -> frozenset[str]:
        """Let these leases last from now on. Returns the ids of those that the owner has lost."""
        if not leases:
            return frozenset()
        sql = "update queue set due = :until where owner = :owner and owner <> '' and lease in :leases returning lease"
        with self.database.transaction() as renewing:
            found = renewing.rows(sql, until=self.now() + LEASE, owner=owner, leases=list(leases))
        return frozenset(leases) - {row["lease"] for row in found}

    def lock(self, holding: Transaction, lease: Lease) -> bool:
        """Whether the lease still holds. It cannot be lost, nor work be added, before the transaction ends."""
        sql = "update queue set lease = lease where key = :key and lease = :lease"
        return bool(holding.change(sql, key=lease.key, lease=lease.id))

    def finish(self, ending: Transaction, lease: Lease, due: Instant = 0, priority: Priority = Priority.CHANGE) -> None:
        """End a lease whose `lock` the transaction has: the key is due again then, or has no work with 0."""
        if not due:
            ending.change("delete from queue where key = :key and lease = :lease", key=lease.key, lease=lease.id)
            return
        now = self.now()
        ending.change(
            "update queue set priority = :priority, since = :since, due = :due, ready = :ready, owner = '', lease = ''"
            " where key = :key and lease = :lease",
            priority=int(priority),
            since=max(due, now),
            due=due,
            ready=int(due <= now),
            key=lease.key,
            lease=lease.id,
        )

    def release(self, owner: str) -> int:
        """Make everything ready that this owner works on, as it ended. Returns how many keys."""
        with self.database.transaction() as releasing:
            sql = "update queue set ready = 1, owner = '', lease = '' where owner = :owner and owner <> ''"
            many = releasing.change(sql, owner=owner)
            if many:
                self.database.notify(releasing, CHANNEL)
            return many


class Wakeups:
    """Wakes a worker when work was added. PostgreSQL says so; on SQLite and behind a pooler it looks every moment."""

    def __init__(self, database: Database, every: float) -> None:
        self._database = database
        self._every = every
        self._came = threading.Event()
        self._stops = threading.Event()

    def wait(self) -> None:
        """Return when work may have come: at a notification, or after the pause."""
        self._came.wait(self._every)
        self._came.clear()

    def wake(self) -> None:
        """End the present wait."""
        self._came.set()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear notifications within the block, on a connection of its own."""
        thread = threading.Thread(target=self._listen, name="wakeups", daemon=True)
        if self._database.is_postgres:
            thread.start()
        try:
            yield
        finally:
            self._stops.set()
            self.wake()
            if thread.ident:
                thread.join()

    def _listen(self) -> None:
        while not self._stops.is_set():
            try:
                with self._database.listening(CHANNEL) as heard:
                    while not self._stops.is_set():
                        if heard(1.0):
                            self.wake()
            except Unheard:
                log.info("notifications do not pass the pooler: workers look for work every %g s", self._every)
                return
            except WorldError:  # looking now and then goes on, and says what is wrong
                self._stops.wait(self._every)
