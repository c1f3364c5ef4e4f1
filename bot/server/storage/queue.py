"""The work queue: which keys have work, and the lease of the one worker that works on each.

A row is a key that has something to do: a repository, or a task of the server itself. It is the pattern of the
controllers of Kubernetes and of the job queues River, procrastinate and Solid Queue: work is added in the transaction
that makes it necessary, a key is there once, however much waits for it, and its worker holds a lease that runs out
with its process.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.server.model import Instant, Lease, Priority
from bot.server.storage.database import Database, DatabasePart, Row, Value

LEASE_DURATION = 30_000
"""Milliseconds until the work of a vanished worker is taken over. A running worker renews its leases in time."""

RENEWAL_INTERVAL = 8.0
"""Seconds between two renewals of the leases; after one that failed, until the next try there is one second."""

OLDEST_EVERY = 8
"""One claim in this many takes the key that has waited longest, whatever its priority, so nothing starves."""

MAX_PROMOTED = 500
"""Most keys that become ready in one transaction."""

MAX_HISTORIES = 1_000
"""Default limit of histories read at once: more than there are workers."""

SLOW_RUN = 90_000
"""Milliseconds after which a run counts as slow: a part of a history is read for one minute."""

NO_HISTORY, HISTORY_PENDING, HISTORY_INTERRUPTED = -1, 1, 2
"""In the column ``history``, else 0: the next run reads a history, or continues one whose worker vanished. A claim with
the first takes none of them."""

log = logging.getLogger(__name__)

_MAY_TAKE = " and (lease = '' or :takes_over = 1 and lease not in :held)"
_MAY_CLAIM = " and (slow = 0 or :takes_slow = 1) and installation not in :full"
_ADD = """
insert into queue (key, priority, since, due, ready, history, installation)
 values (:key, :priority, :due, :due, :ready, :history, :installation)
 on conflict (key) do update set
  priority = case when excluded.priority < queue.priority then excluded.priority else queue.priority end,
  since = case when excluded.since < queue.since then excluded.since else queue.since end,
  due = case when queue.lease = '' and excluded.due < queue.due then excluded.due else queue.due end,
  ready = case when queue.lease = '' and excluded.ready = 1 then 1 else queue.ready end,
  history = case when queue.lease = '' and excluded.history = 0 then 0 else queue.history end
"""
_WAITING = """
select (select 1 from queue where ready = 1 and history = 0 limit 1) as short,
 (select 1 from queue where ready = 1 and history = 1 limit 1) as history,
 (select 1 from queue where ready = 1 and history = 2 limit 1) as cut_off,
 (select 1 from queue where ready = 0 and due <= :now{may_take} limit 1) as due,
 (select count(*) from (select 1 from queue where history = 1 and lease <> '' limit :most) as leased) as leased
"""
_SELECT_DUE = "select key, owner from queue where ready = 0 and due <= :now{may_take} order by due limit :many{skip}"
_PROMOTE = """
update queue set ready = 1, owner = '', lease = '',
 history = case when history = 1 and lease <> '' then 2 else history end
 where key in :keys and ready = 0 and due <= :now{may_take} returning key
"""
_CLAIM = """
update queue set ready = 0, due = :until, owner = :owner, lease = :lease,
 history = case when history = 2 then 1 else history end where key = ({first})
 returning key, priority, since, history, lease, slow
"""
_CLAIM_KEY = """
insert into queue (key, priority, since, due, ready, owner, lease) values
 (:key, :priority, :now, :until, 0, :owner, :lease) on conflict (key) do update set ready = 0, due = excluded.due,
 owner = excluded.owner, lease = excluded.lease where queue.lease = '' or queue.due <= :now
 returning priority, since
"""
_RELEASE = """
update queue set ready = 1, owner = '', lease = '', history = case when history = 1 then 2 else history end
 where owner = :owner and owner <> ''
"""
_SELECT_FIRST = """
select key from
 (select * from
   (select key, priority, since from queue where ready = 1 and history = 0{may_claim}
     order by {order} limit 1{skip}) as short
  union all select * from
   (select key, priority, since from queue where ready = 1 and history = :history{may_claim}
     and (select count(*) from (select 1 from queue where history = 1 and lease <> '' limit :most) as leased) < :most
     order by {order} limit 1{skip}) as history) as either order by {order} limit 1
"""

_HISTORY_LOCK = 0x50726563_68697374
"""The number of the lock in PostgreSQL under which leased histories are counted and one more is leased."""


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What a worker leaves to others, or for later.

    It takes keys whose last run was slow only if ``takes_slow``, none of the installations in ``full``, and leases of
    vanished workers only if ``takes_over``. ``held`` are its own leases: even if they ran out, they are not given up.
    """

    takes_slow: bool = True
    takes_over: bool = True
    full: frozenset[int] = frozenset()
    held: frozenset[str] = frozenset()


TAKE_ALL = ClaimRules()


class WorkQueue(DatabasePart):
    """The table ``queue``. Every method raises WorldError when the database is not available.

    A key that nobody works on is ready, or will be when it is ``due``. A leased one is due when its lease runs out. At
    most ``histories`` are leased for that at once, over all workers: such a run takes minutes, and many would leave no
    worker for anything else. A history whose worker vanished keeps its place: otherwise it would wait behind others,
    and each of them that vanished as well would hold the place for another lease.
    """

    def __init__(self, database: Database, now: Callable[[], Instant], histories: int = MAX_HISTORIES) -> None:
        super().__init__(database, now)
        self.histories = histories
        self._skip = " for update skip locked" if database.is_postgres else ""
        self._claims = 0
        self._claims_lock = threading.Lock()

    def add(self, items: Iterable[tuple[str, Priority, Instant]], unread: Collection[str] = ()) -> None:
        """Add work, each with key, priority and the time from which it may be done.

        A key that waits gets the more urgent priority and the earlier time. One that is leased is left alone: its
        worker looks, before it finishes, whether more has come. ``unread`` are the keys whose next run reads a whole
        history, whatever its priority.
        """
        now = self.now()
        self.database.change_each(
            _ADD,
            [
                {
                    "key": key,
                    "priority": int(priority),
                    "due": max(due, 0),
                    "ready": int(due <= now),
                    "history": HISTORY_PENDING if priority == Priority.HISTORY or key in unread else 0,
                    "installation": _installation(key),
                }
                for key, priority, due in sorted(items)  # in a fixed order, or two transactions might deadlock
            ],
        )

    def ensure(self, keys: Iterable[str]) -> None:
        """Add those of the server's own tasks that are missing, due now."""
        sql = "insert into queue (key, priority, since, due, ready) values (:key, :priority, :now, :now, 1)"
        now = self.now()
        with self.database.transaction():
            for key in keys:
                if not self.database.row("select 1 from queue where key = :key", key=key):
                    self.database.change(
                        f"{sql} on conflict (key) do nothing", key=key, priority=int(Priority.CATCH_UP), now=now
                    )

    def hasten(self, key: str, due: Instant) -> None:
        """Make a waiting key due at ``due``, if it would be later."""
        sql = "update queue set due = :due where key = :key and due > :due and lease = ''"
        self.database.change(sql, key=key, due=due)

    def claim(self, owner: str, rules: ClaimRules = TAKE_ALL) -> Lease | None:
        """Lease the most urgent key to this owner, the longest waiting first; None if none is due.

        At the limit of leased histories, the others wait while everything else passes them. Of those that wait,
        interrupted ones come first.
        """
        now = self.now()
        takes: dict[str, Value] = {"now": now, "takes_over": int(rules.takes_over), "held": ["", *rules.held]}
        with self.database.transaction():
            ready = self._find_ready(takes)
            if ready["due"]:
                self._promote_due(takes)
                ready = self._find_ready(takes)
            history = NO_HISTORY
            if ready["leased"] < self.histories:
                history = HISTORY_INTERRUPTED if ready["cut_off"] else HISTORY_PENDING if ready["history"] else history
            if not ready["short"] and history == NO_HISTORY:
                return None
            row = self._claim_first(owner, now + LEASE_DURATION, history, rules)
        if row is None:
            return None
        return Lease(
            row["key"],
            row["lease"],
            Priority(row["priority"]),
            row["since"],
            is_history=bool(row["history"]),
            is_slow=bool(row["slow"]),
        )

    def _promote_due(self, takes: Mapping[str, Value]) -> None:
        """Make due keys ready, also those whose lease ran out."""
        select = _SELECT_DUE.format(may_take=_MAY_TAKE, skip=self._skip)
        owners = {row["key"]: row["owner"] for row in self.database.rows(select, many=MAX_PROMOTED, **takes)}
        for row in self.database.rows(_PROMOTE.format(may_take=_MAY_TAKE), keys=list(owners), **takes):
            if owner := owners[row["key"]]:
                fields = {"repository": row["key"], "worker": owner}
                log.warning("a lease ran out, as its worker did not renew it: it is taken over", extra=fields)

    def _find_ready(self, takes: Mapping[str, Value]) -> Row:
        row = self.database.row(_WAITING.format(may_take=_MAY_TAKE), most=self.histories, **takes)
        assert row is not None
        return row

    def _claim_first(self, owner: str, until: Instant, history: int, rules: ClaimRules) -> Row | None:
        """Claim the first key, including those whose ``history`` is in this state."""
        if history != NO_HISTORY and self.database.is_postgres:  # two workers at once would count the same
            self.database.rows("select pg_advisory_xact_lock(:number)", number=_HISTORY_LOCK)
        order = "since" if self._takes_oldest() else "priority, since"
        first = _SELECT_FIRST.format(order=order, skip=self._skip, may_claim=_MAY_CLAIM)
        return self.database.row(
            _CLAIM.format(first=first),
            until=until,
            owner=owner,
            lease=uuid.uuid4().hex,
            most=self.histories,
            history=history,
            takes_slow=int(rules.takes_slow),
            full=sorted(rules.full),
        )

    def _takes_oldest(self) -> bool:
        with self._claims_lock:
            self._claims += 1
            return self._claims % OLDEST_EVERY == 0

    def claim_key(self, owner: str, key: str) -> Lease | None:
        """Lease this key to this owner, whether it has work or not; None while another owner works on it."""
        now, priority, lease = self.now(), int(Priority.CATCH_UP), uuid.uuid4().hex
        row = self.database.row(
            _CLAIM_KEY, key=key, priority=priority, owner=owner, lease=lease, until=now + LEASE_DURATION, now=now
        )
        return Lease(key, lease, Priority(row["priority"]), row["since"]) if row else None

    def renew(self, owner: str, leases: Sequence[str]) -> frozenset[str]:
        """Renew these leases from now. Returns the ids of those that the owner has lost."""
        if not leases:
            return frozenset()
        sql = "update queue set due = :until where owner = :owner and owner <> '' and lease in :leases returning lease"
        renewed = self.database.rows(sql, until=self.now() + LEASE_DURATION, owner=owner, leases=list(leases))
        return frozenset(leases) - {row["lease"] for row in renewed}

    def mark_slow(self, lease: Lease) -> None:
        """Remember that this key's run takes long, even if its worker vanishes."""
        sql = "update queue set slow = 1 where key = :key and lease = :lease"
        self.database.change(sql, key=lease.key, lease=lease.id)

    def lock(self, lease: Lease) -> bool:
        """Whether the lease still holds. Until the caller's transaction ends, it cannot be lost nor work be added."""
        sql = "update queue set lease = lease where key = :key and lease = :lease"
        return bool(self.database.change(sql, key=lease.key, lease=lease.id))

    def lock_keys(self, keys: Collection[str]) -> None:
        """Lock these keys where they are in the queue: none of their runs begins or ends before the transaction does.

        A run locks its key before its repository. A transaction that changes the repository before it adds work would
        deadlock with the run. So this comes first, with all the keys that get work.
        """
        # In the order of `add`.
        self.database.change_each(
            "update queue set lease = lease where key = :key", [{"key": key} for key in sorted(keys)]
        )

    def finish(
        self,
        lease: Lease,
        due: Instant = 0,
        priority: Priority = Priority.CHANGE,
        *,
        is_unread: bool = False,
        is_quick: bool = False,
    ) -> None:
        """End a lease that the transaction has locked. The key is due again at ``due``; with 0 it has no more work.

        ``is_unread``: its next run reads a whole history, whatever its priority. ``is_quick``: its run was not slow, so
        that the next one need not be.
        """
        if not due:
            self.database.change("delete from queue where key = :key and lease = :lease", key=lease.key, lease=lease.id)
            return
        now = self.now()
        self.database.change(
            "update queue set priority = :priority, since = :since, due = :due, ready = :ready, history = :history,"
            " slow = case when :quick = 1 then 0 else slow end, owner = '', lease = ''"
            " where key = :key and lease = :lease",
            priority=int(priority),
            quick=int(is_quick),
            history=HISTORY_PENDING if is_unread or priority == Priority.HISTORY else 0,
            since=max(due, now),
            due=due,
            ready=int(due <= now),
            key=lease.key,
            lease=lease.id,
        )

    def release(self, owner: str) -> int:
        """Make all keys of this owner ready again, as its process ended. Returns how many."""
        return self.database.change(_RELEASE, owner=owner)


def _installation(key: str) -> int:
    """The installation of a repository; 0 for the server's own tasks."""
    number, dash, _ = key.partition("-")
    return int(number) if dash and number.isdecimal() else 0
