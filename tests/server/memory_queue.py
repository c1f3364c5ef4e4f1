"""Tickets, their dispatch and who lives, in the memory of one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot.server.model import Instant, RepositoryKey


@dataclass(slots=True)
class Ticket:
    """A wake-up call. ``state`` is waiting, working or ended."""

    id: str
    lane: RepositoryKey
    due: float
    state: str = "waiting"
    worker: str = ""
    ended: Instant = 0


@dataclass
class MemoryTickets:
    """`Tickets` in memory. A transaction is a list, whose tickets count once it is given to ``commit``."""

    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    held: dict[str, Ticket] = field(default_factory=dict)

    def add(self, transaction: object, ticket: str, lane: RepositoryKey, delay: float = 0.0) -> None:
        assert isinstance(transaction, list)
        transaction.append(Ticket(ticket, lane, time.monotonic() + delay))

    def commit(self, transaction: list[Ticket]) -> None:
        with self.changed:
            for ticket in transaction:
                self.held.setdefault(ticket.id, ticket)
            self.changed.notify_all()

    def cancel(self, tickets: Sequence[str]) -> None:
        with self.changed:
            for name in tickets:
                ticket = self.held.get(name)
                if ticket and ticket.state == "waiting":
                    _close(ticket)

    def live(self) -> frozenset[str]:
        with self.changed:
            return frozenset(ticket.lane.key for ticket in self.held.values() if ticket.state != "ended")

    def purge(self, before: Instant) -> int:
        with self.changed:
            old = [each.id for each in self.held.values() if each.state == "ended" and each.ended < before][:5000]
            for name in old:
                del self.held[name]
            return len(old)

    def take(self, worker: str, seconds: float) -> Ticket | None:
        """The oldest ticket that is due, of a lane that nobody works in; waits so long for one."""
        with self.changed:
            found = self._due()
            if found is None:
                self.changed.wait(min(seconds, self._until_next()))
                found = self._due()
            if found is not None:
                found.state, found.worker = "working", worker
            return found

    def done(self, ticket: Ticket, worker: str) -> None:
        """It ran; nothing when somebody else has it since."""
        with self.changed:
            if ticket.worker == worker and ticket.state == "working":
                _close(ticket)
            self.changed.notify_all()

    def give_back(self, worker: str) -> int:
        """What this worker had begun waits again; how many."""
        with self.changed:
            begun = [each for each in self.held.values() if each.state == "working" and each.worker == worker]
            for each in begun:
                each.state, each.worker = "waiting", ""
            self.changed.notify_all()
            return len(begun)

    def _due(self) -> Ticket | None:
        now = time.monotonic()
        busy = {each.lane for each in self.held.values() if each.state == "working"}
        waiting = (each for each in self.held.values() if each.state == "waiting" and each.due <= now)
        return next((each for each in waiting if each.lane not in busy), None)

    def _until_next(self) -> float:
        now = time.monotonic()
        return min(
            (each.due - now for each in self.held.values() if each.state == "waiting" and each.due > now), default=9
        )


def _close(ticket: Ticket) -> None:
    ticket.state, ticket.ended = "ended", time.time_ns() // 1_000_000


@dataclass
class MemoryDispatch:
    """`Dispatch` by threads of this process, in the name of a worker."""

    tickets: MemoryTickets
    worker: str = "here"
    jobs: int = 4
    stopped: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, run: Callable[[str, RepositoryKey], None]) -> None:
        for number in range(self.jobs):
            thread = threading.Thread(target=self._loop, args=(run,), name=f"{self.worker}-{number}", daemon=True)
            self.threads.append(thread)
            thread.start()

    def recover(self, worker: str) -> int:
        return self.tickets.give_back(worker)

    def wake(self) -> int:
        """Here nothing has to be written down."""
        return 0

    def stop(self, seconds: float) -> bool:
        self.stopped.set()
        with self.tickets.changed:
            self.tickets.changed.notify_all()
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in self.threads)

    def _loop(self, run: Callable[[str, RepositoryKey], None]) -> None:
        while not self.stopped.is_set():
            ticket = self.tickets.take(self.worker, 0.2)
            if ticket is not None:
                run(ticket.id, ticket.lane)
                self.tickets.done(ticket, self.worker)


class MemoryGuard:
    """`Guard` over a set of names that several share. ``die`` is what a killed process would do."""

    def __init__(self, name: str, places: set[str], workers: set[str]) -> None:
        self.name = name
        self._places = places
        self._workers = workers
        self._holds: set[str] = set()

    def hold(self) -> None:
        assert self._take(self.name), f"{self.name} is taken"
        self._workers.add(self.name)

    def check(self) -> bool:
        return self.name in self._holds

    def dead(self) -> list[str]:
        others = sorted(self._workers - {self.name})
        return [name for name in others if name in self._holds or self._take(name)]

    def mark_dead(self, worker: str) -> None:
        self._workers.discard(worker)
        self._holds.discard(worker)
        self._places.discard(worker)

    def is_leader(self) -> bool:
        return "leader" in self._holds or self._take("leader")

    def die(self) -> None:
        self._places -= self._holds
        self._holds.clear()

    def _take(self, name: str) -> bool:
        if name in self._places:
            return False
        self._places.add(name)
        self._holds.add(name)
        return True
