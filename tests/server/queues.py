"""The queue for tests in both databases, and an inbox in its own SQLite file."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import sqlite3
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.github.events import Event
from bot.server.model import Delivery, Instant, Lease, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.storage.database import Database, machine_clock
from bot.server.storage.inbox import Inbox
from bot.server.storage.operations import Operation, replay_or_drop
from bot.server.storage.queue import LEASE_DURATION
from bot.server.work.worker import Worker

REPOSITORY = RepositoryKey(7, 70)
APP = 9


class Clock:
    """The real time in milliseconds, plus ``ahead``."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> Instant:
        return time.time_ns() // 1_000_000 + self.ahead


def arrival(
    name: str, repository: RepositoryKey = REPOSITORY, number: int = 1, action: str = "opened", received_at: int = 1
) -> Delivery:
    event = Event("issues", action, number)
    return Delivery(
        f"{APP}:{name}", repository, event, name="octo-org/hello-world", received_at=received_at, request="r1"
    )


class LossyInbox(Inbox):
    """An inbox that fails after ``adds_left`` additions to its queue, like a database that fails in the middle."""

    adds_left = 0

    def enqueue(self, work: Iterable[tuple[str, Priority]]) -> None:
        self.adds_left -= 1
        if self.adds_left < 0:
            raise ConnectionError("lost")
        super().enqueue(work)


class FileInbox(Inbox):
    """An inbox in its own SQLite file, which is deleted with it."""

    def __init__(self, worker: str = "here", now: Callable[[], Instant] = machine_clock) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
        database = Database(copy_database(template_file(), self.folder))
        super().__init__(database, worker, now)
        self.closing = weakref.finalize(self, _remove, database, self.folder)


def lost_inbox() -> Inbox:
    """An inbox whose database cannot be opened."""
    return Inbox(Database("sqlite:////nowhere/queue.sqlite"), "lost", machine_clock)


def drop(inbox: Inbox, numbers: Iterable[int], why: str = "for the test") -> int:
    """Drop these deliveries, as an operator does; returns how many."""
    return replay_or_drop(inbox, Operation("drop", "tester", tuple(numbers), why)).done


def replay(inbox: Inbox, numbers: Iterable[int]) -> int:
    """Replay these dead deliveries, as an operator does; returns how many."""
    return replay_or_drop(inbox, Operation("replay", "tester", tuple(numbers))).done


def _remove(database: Database, folder: Path) -> None:
    database.close()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Queue:
    """An inbox in a database, with its clock."""

    inbox: Inbox
    clock: Clock
    url: str
    folder: Path

    @contextlib.contextmanager
    def running_worker(self, run: Callable[[Lease], None], worker: str = "one", jobs: int = 8) -> Iterator[Worker]:
        """A worker that passes its leases to ``run`` during the block."""
        database, exit_codes = Database(self.url), list[object]()
        running = Worker(Inbox(database, worker, self.clock), run, threading.Event(), jobs)
        thread = threading.Thread(target=lambda: exit_codes.append(running.run_until_stopped()), daemon=True)
        thread.start()
        try:
            yield running
        finally:
            running.stop.set()
            thread.join(20)
            database.close()
        assert exit_codes, "the worker did not end"

    def keys(self) -> set[str]:
        """The keys that have work."""
        return keys(self.inbox)


def keys(inbox: Inbox) -> set[str]:
    """The keys that have work."""
    return {row["key"] for row in inbox.database.rows("select key from queue")}


TAKE = """
update queue set ready = 0, due = :until, owner = :owner, lease = :lease,
 history = case when history > 0 then 1 else 0 end
 where key = :key and (ready = 1 or due <= :now) returning priority, since, history
"""
"""Leases one key, whatever else is due; what is leased is due when the lease runs out."""


def take_lease(inbox: Inbox, repository: RepositoryKey) -> Lease:
    """Lease this repository, however urgent others are. Fails when it is not due."""
    now, lease = inbox.queue.now(), uuid.uuid4().hex
    row = inbox.database.row(
        TAKE, key=repository.text, until=now + LEASE_DURATION, owner=inbox.worker, lease=lease, now=now
    )
    assert row, f"{repository} has nothing to do now"
    return Lease(repository.text, lease, Priority(row["priority"]), row["since"], is_history=bool(row["history"]))


def claim(inbox: Inbox) -> Lease:
    """Lease what comes first."""
    lease = inbox.queue.claim(inbox.worker)
    assert lease is not None, "nothing is due"
    return lease


def begin_work(inbox: Inbox, repository: RepositoryKey = REPOSITORY) -> PendingWork:
    """Begin a run of this repository, in which something has to wait."""
    work = inbox.begin(take_lease(inbox, repository))
    assert work is not None, f"nothing waits in {repository}"
    return work


class Runs:
    """A `run` that completes all its deliveries and records when it began and ended, and what it had."""

    def __init__(self, queue: Queue, seconds: float = 0.0) -> None:
        self.queue = queue
        self.seconds = seconds
        self.calls: list[str] = []
        self.records: list[tuple[RepositoryKey, float, float, list[int]]] = []
        self.lock = threading.Lock()

    def __call__(self, lease: Lease) -> None:
        with self.lock:
            self.calls.append(lease.key)
        began = time.monotonic()
        work = self.queue.inbox.begin(lease)
        if work is None:
            return
        time.sleep(self.seconds)
        seqs = [each.seq for each in work.deliveries]
        with self.lock:
            self.records.append((work.repository, began, time.monotonic(), seqs))
        self.queue.inbox.end(work, all_done(work), RunReport())


def all_done(work: PendingWork) -> list[Result]:
    return [Result(each.seq, "done", "memory has something to show", said="created") for each in work.deliveries]


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until the condition holds; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def wait_until_settled(queue: Queue, seconds: float = 20.0) -> None:
    """Wait until nothing is waiting or working."""

    def nothing_left() -> bool:
        counts = queue.inbox.counts()
        return not counts["waiting"] and not counts["working"]

    until(nothing_left, seconds)


@contextlib.contextmanager
def queue_in_database(url: str, folder: Path) -> Iterator[Queue]:
    """A queue in the database at ``url``, which has all tables."""
    database, clock = Database(url), Clock()
    yield Queue(Inbox(database, "one", clock), clock, url, folder)
    database.close()


@functools.cache
def template_file() -> Path:
    """An SQLite database with all tables, created once per process."""
    folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return make_template(folder)


def make_template(folder: Path) -> Path:
    """Create an SQLite database to copy from, since creating one takes a second."""
    database = Database.in_folder(folder)
    database.make_tables()
    database.close()
    with contextlib.closing(sqlite3.connect(folder / "queue.sqlite")) as file:
        file.execute("pragma wal_checkpoint(truncate)")
    return folder / "queue.sqlite"


def copy_database(template: Path, folder: Path) -> str:
    """Copy a database into this folder; returns its URL."""
    shutil.copy(template, folder / "queue.sqlite")
    return f"sqlite:///{folder / 'queue.sqlite'}"
