"""The queue in its two forms, for the tests that hold for each of them, and an inbox in a file of its own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.github.events import Event
from bot.server.database import Database, Transaction, machine_clock
from bot.server.inbox import Inbox
from bot.server.leases import Locks, locks
from bot.server.model import Arrival, Instant, PendingWork, RepositoryKey, Result, RunReport
from bot.server.queue import Dispatch, Tickets, prepare

LANE = RepositoryKey(7, 70)
APP = 9


class Clock:
    """The time in milliseconds, which runs on its own and may be set forward."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> Instant:
        return time.time_ns() // 1_000_000 + self.ahead


def arrival(
    name: str, lane: RepositoryKey = LANE, number: int = 1, action: str = "opened", received_at: int = 1
) -> Arrival:
    event = Event("issues", action, number)
    return Arrival(f"{APP}:{name}", lane, event, name="octo-org/hello-world", received_at=received_at, request="r1")


class Losing:
    """Tickets that are lost on their way: what a database does that fails in the middle."""

    def __init__(self, tickets: Tickets, after: int) -> None:
        self.tickets = tickets
        self.left = after

    def add(self, transaction: Transaction, ticket: str, lane: RepositoryKey, delay: float = 0.0) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("lost")
        self.tickets.add(transaction, ticket, lane, delay)

    def __getattr__(self, name: str) -> object:
        return getattr(self.tickets, name)


class FileInbox(Inbox):
    """An inbox in an SQLite file of its own, which goes with it."""

    def __init__(
        self, worker: str = "here", now: Callable[[], Instant] = machine_clock, tickets: type[Tickets] = Tickets
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
        database = Database(copied(made_file(), folder))
        super().__init__(database, tickets(database), worker, now)
        self.closing = weakref.finalize(self, _remove, database, folder)


def _remove(database: Database, folder: Path) -> None:
    database.close()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Queue:
    """An inbox and its tickets in one database."""

    tickets: Tickets
    inbox: Inbox
    clock: Clock
    dispatch: Callable[[str, int], Dispatch]
    with_tickets: Callable[[Tickets], Inbox]
    url: str
    folder: Path
    held: Locks

    @contextlib.contextmanager
    def working(
        self, run: Callable[[str, RepositoryKey], None], worker: str = "one", at_once: int = 8
    ) -> Iterator[Dispatch]:
        """Tickets are given to ``run`` within the block."""
        dispatch = self.dispatch(worker, at_once)
        dispatch.start(run)
        try:
            yield dispatch
        finally:
            dispatch.stop(5)
            dispatch.close()

    def add(self, ticket: str, lane: RepositoryKey, delay: float = 0.0) -> None:
        """A ticket on its own."""
        with self.inbox.database.transaction() as adding:
            self.tickets.add(adding, ticket, lane, delay)

    @contextlib.contextmanager
    def dead_worker(self) -> Iterator[str]:
        """The name of a worker that began the ticket of `LANE`, and the delivery, and died."""
        assert LANE.key in self.tickets.live(), "it needs something to begin"
        with lone_worker(self.url, self.folder, "dead", "hang") as process:
            until(lambda: any(row.state == "working" for row in self.inbox.deliveries()), 60)
            process.kill()
            process.wait()
        yield "dead"


class Turns:
    """A `run` that does all it is given, and remembers it: when it began and ended, and what it had."""

    def __init__(self, queue: Queue, seconds: float = 0.0) -> None:
        self.queue = queue
        self.seconds = seconds
        self.calls: list[str] = []
        self.had: list[tuple[RepositoryKey, float, float, list[int]]] = []
        self.result: Callable[[PendingWork], list[Result]] = all_done
        self.lock = threading.Lock()

    def __call__(self, ticket: str, lane: RepositoryKey) -> None:
        with self.lock:
            self.calls.append(ticket)
        began = time.monotonic()
        work = self.queue.inbox.begin(ticket, lane, self.queue.clock())
        if work is None:
            return
        time.sleep(self.seconds)
        seqs = [each.seq for each in work.deliveries]
        with self.lock:
            self.had.append((lane, began, time.monotonic(), seqs))
        self.queue.tickets.cancel(self.queue.inbox.end(work, self.result(work), RunReport()))

    @property
    def seqs(self) -> list[int]:
        return [seq for _, _, _, seqs in self.had for seq in seqs]


def all_done(work: PendingWork) -> list[Result]:
    return [Result(each.seq, "done", "memory has something to tell", said="created") for each in work.deliveries]


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for it; fails when it does not come."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def settled(queue: Queue, seconds: float = 20.0) -> None:
    """Wait until nothing is to be done."""

    def nothing_left() -> bool:
        counts = queue.inbox.counts()
        return not counts["waiting"] and not counts["working"]

    until(nothing_left, seconds)


@contextlib.contextmanager
def lone_worker(url: str, folder: Path, name: str, mode: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works; see `tests.server.lone_worker`."""
    command = [sys.executable, "-m", "tests.server.lone_worker", url, str(folder), name, mode]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def queue_in_database(url: str, folder: Path) -> Iterator[Queue]:
    """``url`` is that of a database that `prepare` has made."""
    database, clock = Database(url), Clock()
    tickets = Tickets(database)
    ledger = Inbox(database, tickets, "one", clock)
    held = locks(database, folder / "workers")
    yield Queue(
        tickets,
        ledger,
        clock,
        lambda worker, at_once: Dispatch(database, worker, held, at_once),
        lambda others: Inbox(database, others, "one", clock),
        url,
        folder,
        held,
    )
    held.close()
    database.close()


@functools.cache
def made_file() -> Path:
    """An SQLite database with all tables, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return prepared_file(folder)


def prepared_file(folder: Path) -> Path:
    """An SQLite database to be copied: to make one takes a second."""
    database = Database.within(folder)
    prepare(database, folder)
    with database.session() as session:
        session.rows("pragma wal_checkpoint(truncate)")
    database.close()
    return folder / "queue.sqlite"


def copied(made: Path, folder: Path) -> str:
    """The URL of a copy of it in this folder."""
    shutil.copy(made, folder / "queue.sqlite")
    return f"sqlite:///{folder / 'queue.sqlite'}"
