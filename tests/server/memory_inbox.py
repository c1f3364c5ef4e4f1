"""The ledger in the memory of one process. What it promises: test_queue_contract.py."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bot.github.errors import OF_ALL
from bot.server import inbox_rules
from bot.server.database import machine_clock
from bot.server.health import WORKER
from bot.server.model import (
    COUNTED,
    STATES,
    Arrival,
    Delivery,
    Instant,
    Note,
    PendingWork,
    RepositoryKey,
    RepositoryRow,
    Result,
    RunReport,
    RunRow,
    State,
    Tallies,
)
from tests.server.memory_queue import MemoryTickets, Ticket


class MemoryRegister:
    """`Register` in memory; shares the deliveries of its ledger."""

    def __init__(self, rows: dict[int, Delivery], lock: threading.RLock, now: Callable[[], Instant]) -> None:
        self.rows = rows
        self.lock = lock
        self.now = now
        self.known: dict[RepositoryKey, RepositoryRow] = {}
        self.lost: dict[RepositoryKey, Instant] = {}
        self.accounts: dict[int, tuple[str, str, Instant]] = {}
        self.paused: dict[tuple[int, str], Instant] = {}

    def installed(self, installation: int, account: str, state: Literal["active", "suspended", "gone"]) -> None:
        before = self.accounts.get(installation, ("", "", 0))[1]
        self.accounts[installation] = (state, account or before, self.now())

    def state(self, installation: int) -> str:
        return self.accounts.get(installation, ("active", "", 0))[0]

    def pause(self, installation: int, resource: str, until: Instant) -> None:
        self.paused[installation, resource] = max(until, self.paused.get((installation, resource), 0))

    def paused_until(self, installation: int, resources: Sequence[str]) -> Instant:
        return max(self.paused.get((installation, resource), 0) for resource in resources)

    def seen(self, lane: RepositoryKey, name: str, *, private: bool) -> None:
        with self.lock:
            self.known[lane] = replace(self.lane(lane), name=name, private=private)
            self.lost.pop(lane, None)

    def gone(self, lane: RepositoryKey, why: str) -> int:
        with self.lock:
            self.lost[lane] = self.now()
            waiting = [row for row in self.rows.values() if row.lane == lane and row.state == "waiting"]
            for row in waiting:
                self.rows[row.seq] = replace(row, state="dropped", reason=why, finished_at=self.now())
            return len(waiting)

    def lane(self, lane: RepositoryKey) -> RepositoryRow:
        return self.known.get(lane, RepositoryRow(lane))

    def lanes(self, *, active_since: Instant = 0) -> list[RepositoryRow]:
        with self.lock:
            rows = (row for lane, row in sorted(self.known.items()) if lane.repository and lane not in self.lost)
            return [row for row in rows if row.last_run >= active_since]

    def purge(self, before: Instant) -> None:
        """Forget what is gone since before then."""
        for lane in [lane for lane, at in self.lost.items() if at < before]:
            del self.lost[lane]
            self.known.pop(lane, None)
        gone = [number for number, (state, _, at) in self.accounts.items() if state == "gone" and at < before]
        for number in gone:
            del self.accounts[number]


class MemoryLedger:
    """`Ledger` in memory. What was put is as durable as the process."""

    def __init__(
        self, tickets: MemoryTickets, worker: str = "here", now: Callable[[], Instant] = machine_clock
    ) -> None:
        self.tickets = tickets
        self.worker = worker
        self.now = now
        self.lock = threading.RLock()
        self.numbers = itertools.count(1)
        self.rows: dict[int, Delivery] = {}
        self.ids: dict[str, int] = {}
        self.turns: dict[str, RunRow] = {}
        self.current: dict[RepositoryKey, str] = {}
        self.counted: dict[tuple[str, tuple[str, ...]], float] = {}
        self.said: dict[str, tuple[Instant, Note]] = {}
        self.places = MemoryRegister(self.rows, self.lock, now)

    def put(self, arrivals: Sequence[Arrival]) -> list[bool]:
        with self.lock:
            tickets: list[Ticket] = []
            ids = {each.id: each for each in reversed(arrivals) if each.id not in self.ids}
            for name, arrival in ids.items():
                self.tickets.add(tickets, name, arrival.lane)
            found = [ids.pop(each.id, None) is not None for each in arrivals]
            for arrival, is_new in zip(arrivals, found, strict=True):
                if is_new:
                    self._insert(arrival)
            self.tickets.commit(sorted(tickets, key=lambda ticket: self.ids[ticket.id]))
            return found

    def _insert(self, arrival: Arrival, next_at: Instant = 0) -> None:
        seq = next(self.numbers)
        event = inbox_rules.stored_event(arrival.event)
        self.ids[arrival.id] = seq
        self.rows[seq] = Delivery(
            seq, arrival.id, arrival.lane, event, arrival.name, arrival.private, "waiting", arrival.received_at,
            next_at=next_at, request=arrival.request, extra=arrival.extra,
        )  # fmt: skip

    def begin(self, ticket: str, lane: RepositoryKey, now: Instant) -> PendingWork | None:
        with self.lock:
            paused = self.places.paused_until(lane.installation, OF_ALL)
            due = self._due(lane, now) if paused <= now else []
            if not due:
                self._wake(lane, ticket, max(now, paused))
                return None
            name = uuid.uuid4().hex
            taken = [
                replace(each, state="working", begun=each.begun + 1, turn=name) for each in inbox_rules.pick_due(due)
            ]
            self.rows.update({each.seq: each for each in taken})
            self.current[lane] = name
            self.turns[name] = RunRow(name, ticket, lane, self.worker, now)
            first = taken[0]
            self.places.known.setdefault(lane, RepositoryRow(lane, first.name, first.private))
            return PendingWork(name, ticket, lane, tuple(taken), now)

    def _due(self, lane: RepositoryKey, now: Instant) -> list[Delivery]:
        """What waits and is due, with what a dead turn left; what was begun too often is dead."""
        for row in self._of(lane, "working"):
            self.rows[row.seq] = replace(row, state="waiting")
        for row in self._of(lane, "waiting"):
            if row.begun >= inbox_rules.MOST_BEGUN:
                end = Result(row.seq, "dead", inbox_rules.NEVER_ENDED)
                self.rows[row.seq] = inbox_rules.settled_delivery(row, end, now)
        return [row for row in self._of(lane, "waiting") if row.next_at <= now]

    def _of(self, lane: RepositoryKey, *states: State) -> list[Delivery]:
        return [row for row in self.rows.values() if row.lane == lane and row.state in states]

    def _wake(self, lane: RepositoryKey, ticket: str, at_least: Instant) -> None:
        """The next ticket of the lane, where anything waits in it."""
        waiting = self._of(lane, "waiting", "working")
        if waiting:
            until, now = max(at_least, min(row.next_at for row in waiting)), self.now()
            name = inbox_rules.wake(lane, ticket, until, now)
            self._add([name], [lane], inbox_rules.pause(until, now))

    def _add(self, names: Sequence[str], lanes: Sequence[RepositoryKey], delay: float = 0.0) -> None:
        tickets: list[Ticket] = []
        for name, lane in zip(names, lanes, strict=True):
            self.tickets.add(tickets, name, lane, delay)
        self.tickets.commit(tickets)

    def put_off(self, ticket: str, lane: RepositoryKey, seconds: float) -> None:
        now = self.now()
        self._add([inbox_rules.wake(lane, ticket, now + round(1000 * seconds), now)], [lane], seconds)

    def end(self, work: PendingWork, results: Sequence[Result], told: RunReport) -> list[str]:
        with self.lock:
            if self.current.get(work.lane) != work.id:
                return []
            now, lane = self.now(), work.lane
            self.current[lane] = ""
            given = {result.seq: result for result in results}
            for row in work.deliveries:
                result = given.get(row.seq)
                after = inbox_rules.settled_delivery(row, result, now) if result else replace(row, state="waiting")
                self.rows[row.seq] = after
            self._tell(work, told, now)
            self._look_again(work, told, now)
            self.count_up(inbox_rules.tally_run(results, told))
            self._wake(lane, work.ticket, now)
            return inbox_rules.absorbed(work)

    def _tell(self, work: PendingWork, told: RunReport, now: Instant) -> None:
        self.places.known[work.lane] = inbox_rules.row_after_run(self.places.lane(work.lane), told, now)
        self.turns[work.id] = replace(
            self.turns[work.id],
            ended=now,
            stages=told.stages,
            pushes=told.pushes,
            reads=told.reads,
            writes=told.writes,
            notes=told.notes,
        )

    def _look_again(self, work: PendingWork, told: RunReport, now: Instant) -> None:
        if not told.requeue_after:
            return
        for row in self._of(work.lane, "waiting"):
            if row.event.name == inbox_rules.FOLLOW_UP:
                self.rows[row.seq] = replace(row, next_at=min(row.next_at, told.requeue_after))
                return
        self._insert(inbox_rules.follow_up(work, self.places.lane(work.lane), now), told.requeue_after)

    def register(self) -> MemoryRegister:
        return self.places

    def deliveries(
        self, *, state: State | None = None, lane: RepositoryKey | None = None, before: int = 0, limit: int = 50
    ) -> list[Delivery]:
        with self.lock:
            rows = (self.rows[seq] for seq in sorted(self.rows, reverse=True) if not before or seq < before)
            return [row for row in rows if state in (None, row.state) and lane in (None, row.lane)][:limit]

    def delivery(self, seq: int) -> tuple[Delivery, RunRow | None] | None:
        with self.lock:
            row = self.rows.get(seq)
            return (row, self.turns.get(row.turn)) if row else None

    def known(self, ids: Sequence[str]) -> frozenset[str]:
        with self.lock:
            return frozenset(ids) & frozenset(self.ids)

    def retry(self, seqs: Sequence[int]) -> int:
        with self.lock:
            rows = [self.rows[seq] for seq in seqs if seq in self.rows and self.rows[seq].state == "dead"]
            for row in rows:
                now = self.now()
                self.rows[row.seq] = replace(row, state="waiting", attempts=0, next_at=now, finished_at=0, reason="")
            lanes = sorted({row.lane for row in rows})
            self._add([inbox_rules.new_item_id(lane, "retry") for lane in lanes], lanes)
            return len(rows)

    def drop(self, seqs: Sequence[int], why: str) -> int:
        with self.lock:
            rows = [self.rows[seq] for seq in seqs if seq in self.rows and self.rows[seq].state in ("waiting", "dead")]
            for row in rows:
                self.rows[row.seq] = replace(row, state="dropped", reason=why, finished_at=self.now())
            return len(rows)

    def counts(self, most: int = COUNTED, of: Sequence[State] = STATES) -> Mapping[State, int]:
        with self.lock:
            found = Counter(row.state for row in self.rows.values())
            return {state: min(most, found[state]) for state in of}

    def oldest_waiting(self) -> Instant:
        with self.lock:
            due = (row for row in self.rows.values() if row.state == "waiting" and row.next_at <= self.now())
            return next((max(row.received_at, row.next_at) for row in due), 0)

    def mend(self, live: frozenset[str], before: Instant) -> int:
        with self.lock:
            rows = (row for row in self.rows.values() if row.state in ("waiting", "working"))
            lanes = sorted({row.lane for row in rows if row.received_at < before and row.lane.key not in live})
            self._add([inbox_rules.new_item_id(lane, "mend") for lane in lanes], lanes)
            return len(lanes)

    def count_up(self, values: Tallies) -> None:
        with self.lock:
            for key, much in values.items():
                self.counted[key] = self.counted.get(key, 0.0) + much

    def counters(self) -> Tallies:
        with self.lock:
            return dict(self.counted)

    def heartbeat(self, name: str, note: Note) -> None:
        with self.lock:
            self.said[name] = (self.now(), dict(note))

    def heartbeats(self) -> Mapping[str, tuple[Instant, Note]]:
        with self.lock:
            return dict(self.said)

    def purge(self, before: Instant) -> int:
        with self.lock:
            ended = [row for row in self.rows.values() if row.state in ("done", "dropped") and row.finished_at < before]
            for row in ended:
                del self.rows[row.seq], self.ids[row.id]
            self.places.purge(before)
            for name in [turn.id for turn in self.turns.values() if turn.began < before]:
                del self.turns[name]
            for name in [name for name, (at, _) in self.said.items() if name.startswith(WORKER) and at < before]:
                del self.said[name]
            return len(ended)
