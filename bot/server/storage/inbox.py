"""The inbox: stores deliveries, their leases and their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from bot.github.errors import EVENT_LIMITS, HISTORY_LIMITS
from bot.github.events import CATCH_UP_EVENT, Event
from bot.server.model import (
    HOUR,
    MAX_COUNT,
    STATES,
    Delivery,
    Instant,
    Lease,
    PendingWork,
    Priority,
    RepositoryKey,
    RepositoryRow,
    Result,
    RunReport,
    RunRow,
    State,
)
from bot.server.storage.counters import CounterTable, add_counts, run_counters
from bot.server.storage.database import Database, DatabasePart
from bot.server.storage.deliveries import (
    ALL_DELIVERIES,
    MAX_SOLO_ATTEMPTS,
    DeliveryFilter,
    arrival_columns,
    batches,
    close_run,
    insert_deliveries,
    open_run,
    parse_delivery,
    parse_run,
    purge_deliveries,
    purge_runs,
    select_deliveries,
    store_results,
    take_due,
)
from bot.server.storage.github_access import GitHubLimits
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.installations import Digests, Installations, row_after_run
from bot.server.storage.outbox import OrganisationChanges
from bot.server.storage.queue import MAX_HISTORIES, SLOW_RUN, WorkQueue

HANG_PAUSE = HOUR
"""Milliseconds until the next run of a repository whose run hung: it may end a worker, but no other one soon."""

HUNG_TWICE = "its run hung twice"

_GUID = re.compile(r"(?:[0-9]{1,19}:)?([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")


class Inbox(DatabasePart):
    """Deliveries to handle and their results, and the other tables next to them. Every method raises WorldError when
    the database is not available.

    ``worker`` names the process that begins runs here; ``now`` is the clock for results. At most ``histories``
    histories are read at once.
    """

    def __init__(
        self, database: Database, worker: str, now: Callable[[], Instant], histories: int = MAX_HISTORIES
    ) -> None:
        super().__init__(database, now)
        self.worker = worker
        self.queue = WorkQueue(database, now, histories)
        self.changes = OrganisationChanges(database, now)
        self.installations = Installations(database, now)
        self.heartbeats = Heartbeats(database, now)
        self.limits = GitHubLimits(database, now)
        self.counters = CounterTable(database, now)
        self.digests = Digests(database, now)

    def put(self, arrivals: Sequence[Delivery]) -> list[bool]:
        """Store deliveries, and queue work for their repositories, in one transaction. False for each known id."""
        first: dict[str, Delivery] = {}
        for arrival in arrivals:
            first.setdefault(arrival.id, arrival)
        if not first:
            return []
        with self.database.transaction():
            new_ids = insert_deliveries(self.database, [arrival_columns(arrival) for arrival in first.values()])
            self.enqueue([(first[name].repository.text, first[name].priority) for name in new_ids])
        return [arrival is first[arrival.id] and arrival.id in new_ids for arrival in arrivals]

    def begin(self, lease: Lease, earliest: Callable[[Sequence[Instant]], Instant] = lambda _: 0) -> PendingWork | None:
        """Take the due deliveries of the leased repository, oldest first, at most 50; None if nothing can be done now.

        They include those that a dead run left. If the oldest was begun and never ended, it comes alone; after five
        times alone without an end it dies, with that reason. While the installation is paused, or before ``earliest``
        after the last pushes of the repository, the lease is given back until then. Deliveries that only continue a
        history wait while reading history is paused.
        """
        repository, now = RepositoryKey.of(lease.key), self.now()
        with self.database.transaction():
            if not self.queue.lock(lease):
                return None
            row = self.installations.repository(repository)
            resume_at = max(self.limits.paused_until(repository.installation, EVENT_LIMITS), earliest(row.pushes))
            history = self.limits.paused_until(repository.installation, HISTORY_LIMITS)
            due = take_due(self.database, repository, now, with_history=history <= now) if resume_at <= now else []
            # A delivery that was begun and never ended comes alone.
            first = due[:1] if due and due[0].begun else list(takewhile(lambda each: not each.begun, due))
            if not first:
                self._finish(lease, max(now, resume_at), history, is_unread=row.is_unread)
                return None
            is_alone = len(first) == 1
            begun = max(1, first[0].begun) + 1 if is_alone else 1
            taken = [replace(each, state="working", begun=begun, run=lease.id) for each in first]
            self.database.change(
                "update deliveries set state = 'working', begun = :begun, run = :run where seq in :seqs",
                begun=begun,
                run=lease.id,
                seqs=[each.seq for each in taken],
            )
            self.installations.record_work(repository, taken[0].name)
            work = PendingWork(lease, repository, tuple(taken), now)
            open_run(self.database, work, self.worker)
        return work

    def give_back(self, lease: Lease, seconds: float) -> None:
        """End a lease whose work could not be begun or stored; its key is due again after ``seconds``."""
        with self.database.transaction():
            if self.queue.lock(lease):
                due = self.now() + round(1000 * seconds)
                self.queue.finish(lease, due, lease.priority, is_unread=lease.is_history)

    def finish_changes(self, lease: Lease, installation: int, pause: Instant = 0) -> None:
        """End the lease of an installation's changes; its key is due again with the next of them or a purge, and not
        within ``pause`` milliseconds."""
        with self.database.transaction():
            if self.queue.lock(lease):
                next_due = self.changes.next_due(installation)
                due = 0 if next_due is None else max(next_due, self.now() + pause)
                self.queue.finish(lease, due, Priority.CATCH_UP)

    def end(self, work: PendingWork, results: Sequence[Result], report: RunReport) -> bool:
        """Store results, run, counters and the state of the repository, and end the lease. If the lease was lost,
        store nothing and return False.

        The repository is due again when the next of its deliveries is, or at ``requeue_after``.
        """
        now = self.now()
        with self.database.transaction():
            if not self.queue.lock(work.lease):
                return False
            store_results(self.database, work, results, now)
            before = self.installations.repository(work.repository)
            row = row_after_run(before, work, report, now)
            self.installations.store_run_state(row)
            self.changes.note_run(work, row, report, before.last_run)
            close_run(self.database, work, report, now)
            if report.requeue_after:
                self._schedule_follow_up(work, row, now, report)
            is_quick = now - work.began_at < SLOW_RUN
            self._finish(work.lease, now, is_unread=row.is_unread, is_quick=is_quick)
            add_counts(self.database, run_counters(results, report))
            # Last, because other runs of the installation write the same rows.
            self.limits.store(work.repository.installation, report.rates)
        return True

    def blame(self, lease: Lease) -> None:
        """End a lease whose run hangs. Its repository pauses for `HANG_PAUSE`; then its oldest delivery comes alone.
        One that hung before dies."""
        now = self.now()
        with self.database.transaction():
            if not self.queue.lock(lease):
                return
            self.database.change(
                "update deliveries set state = 'dead', reason = :why, finished_at = :now, begun = 0, next_at = 0"
                " where run = :run and state = 'working' and begun > :hung",
                why=HUNG_TWICE,
                now=now,
                run=lease.id,
                hung=MAX_SOLO_ATTEMPTS,
            )
            sql = "update deliveries set begun = :hung where run = :run and state = 'working'"
            self.database.change(sql, hung=MAX_SOLO_ATTEMPTS, run=lease.id)
            self._finish(lease, now + HANG_PAUSE, is_unread=lease.is_history)

    def abandon(self) -> int:
        """Give back all leases of this worker, which has to stop. Its unfinished runs count as never begun."""
        sql = (
            "update deliveries set begun = 0 where state = 'working' and run in"
            " (select lease from queue where owner = :owner and owner <> '')"
        )
        self.database.change(sql, owner=self.worker)
        return self.queue.release(self.worker)

    def deliveries(self, selection: DeliveryFilter = ALL_DELIVERIES, limit: int = 50) -> list[Delivery]:
        """Return at most ``limit`` of these deliveries, newest first."""
        return select_deliveries(self.database, selection, limit)

    def delivery(self, seq: int) -> tuple[Delivery, RunRow | None] | None:
        """A delivery and the last run that handled it; None for an unknown number."""
        with self.database.transaction():
            row = self.database.row("select * from deliveries where seq = :seq", seq=seq)
            if row is None:
                return None
            run = self.database.row("select * from runs where id = :run", run=row["run"])
            return parse_delivery(row), parse_run(run) if run else None

    def find(self, name: str) -> int:
        """The number of the delivery that has this number, or this GUID at GitHub; 0 if there is none.

        An App's id may stand before a GUID. For a GUID, it reads all of them.
        """
        if name.isascii() and name.isdigit() and len(name) < 18:
            return int(name)
        match = _GUID.fullmatch(name)
        if not match:
            return 0
        sql = "select seq from deliveries where id like :name order by seq limit 1"
        row = self.database.row(sql, name=f"%:{match[1].lower()}")
        return int(row["seq"]) if row else 0

    def existing_ids(self, ids: Sequence[str]) -> frozenset[str]:
        sql = "select id from deliveries where id in :ids"
        with self.database.transaction():
            return frozenset(row["id"] for batch in batches(ids) for row in self.database.rows(sql, ids=batch))

    def counts(self, most: int = MAX_COUNT, of: Sequence[State] = STATES) -> Mapping[State, int]:
        """How many deliveries are in each of these states, counted up to ``most``."""
        # One statement, so that a delivery whose state changes meanwhile is counted once.
        selects = (
            f"select '{state}' as state, count(*) as many from"  # noqa: S608 (our own words)
            f" (select 1 from deliveries where state = '{state}' limit :most) as of_{state}"
            for state in of
        )
        rows = self.database.rows(" union all ".join(selects), most=most)
        return {row["state"]: int(row["many"]) for row in rows}

    def oldest_waiting(self) -> Instant:
        """When the first due delivery could have begun; 0 if none is due.

        Histories do not count: those of an organisation may wait for days without anything being wrong.
        """
        sql = (
            "select received_at, next_at from deliveries where state = 'waiting' and next_at <= :now"
            " and priority < :history order by seq limit 1"
        )
        row = self.database.row(sql, now=self.now(), history=int(Priority.HISTORY))
        return max(int(row["received_at"]), int(row["next_at"])) if row else 0

    def enqueue(self, work: Iterable[tuple[str, Priority]]) -> None:
        """Add work for these repositories, to be done now."""
        urgent: dict[str, Priority] = {}
        for key, priority in work:
            urgent[key] = min(priority, urgent.get(key, priority))
        now = self.now()
        unread = frozenset[str]().union(*map(self.installations.unread_keys, batches(list(urgent))))
        self.queue.add([(key, priority, now) for key, priority in urgent.items()], unread)

    def purge(self, before: Instant) -> int:
        """Delete what ended before then, except dead deliveries. Returns how many deliveries went."""
        purged = sum(purge_deliveries(self.database, state, before) for state in ("done", "dropped"))
        purge_runs(self.database, before)
        self.database.change("delete from audit where acted_at < :before", before=before)
        for table in (self.heartbeats, self.installations, self.limits, self.digests):
            table.purge(before)
        self.counters.add_up()
        return purged

    def _finish(
        self,
        lease: Lease,
        at_least: Instant,
        history: Instant = 0,
        *,
        is_unread: bool,
        is_quick: bool = False,
    ) -> None:
        """End the lease: its key is due when its next unfinished delivery is, and no sooner than ``at_least``, or
        ``history`` if that delivery only continues a history."""
        sql = (
            "select case when priority = :last and next_at < :history then :history"
            " when next_at < :least then :least else next_at end as due, min(priority) as priority"
            " from deliveries where repository = :repository and state in ('waiting', 'working')"
            " group by 1 order by 1 limit 1"
        )
        latest = max(at_least, history)
        row = self.database.row(sql, least=at_least, history=latest, last=int(Priority.HISTORY), repository=lease.key)
        is_unread = is_unread and not lease.key.endswith("-0")  # an installation has no history
        due, priority = (row["due"], Priority(row["priority"])) if row else (0, Priority.URGENT)
        self.queue.finish(lease, due, priority, is_unread=is_unread, is_quick=is_quick)

    def _schedule_follow_up(self, work: PendingWork, row: RepositoryRow, now: Instant, report: RunReport) -> None:
        """Schedule another run at ``requeue_after``: move up a waiting follow-up, or else insert a new one."""
        at = report.requeue_after
        urgency = Priority.HISTORY if at <= now else report.urgency
        moved = self.database.change(
            "update deliveries set next_at = case when next_at < :at then next_at else :at end,"
            " priority = case when priority < :urgency then priority else :urgency end"
            " where repository = :repository and state = 'waiting' and event = :event",
            at=at,
            urgency=int(urgency),
            repository=work.repository.text,
            event=CATCH_UP_EVENT,
        )
        if not moved:
            name = f"{work.deliveries[0].id.partition(':')[0]}:again-{work.repository.text}-{work.id}"
            follow_up = Delivery(
                name,
                work.repository,
                Event(CATCH_UP_EVENT),
                name=row.name,
                received_at=now,
                priority=urgency,
            )
            insert_deliveries(self.database, [arrival_columns(follow_up, at)])
