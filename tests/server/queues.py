"""The queue in its two forms, for the tests that hold for each of them, and an inbox in a file of its own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.github.events import Event
from bot.server.database import Database, Transaction, machine_clock
from bot.server.inbox import Inbox
from bot.server.model import Arrival, Instant, Lease, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.queue import WorkQueue
from bot.server.worker import Worker

REPOSITORY = RepositoryKey(7, 70)
APP = 9


class Clock:
    """The time in milliseconds, which runs on its own and may be set forward."""

    def __init__(self) -> None:
        self.ahead = 0

    def __call__(self) -> Instant:
        return time.time_ns() // 1_000_000 + self.ahead


def arrival(
    name: str, repository: RepositoryKey = REPOSITORY, number: int = 1, action: str = "opened", received_at: int = 1
) -> Arrival:
    event = Event("issues", action, number)
    return Arrival(
        f"{APP}:{name}", repository, event, name="octo-org/hello-world", received_at=received_at, request="r1"
    )


class Losing(WorkQueue):
    """A queue whose rows are lost on their way, after some: what a database does that fails in the middle."""

    left = 0

    def add(
        self, transaction: Transaction, items: Iterable[tuple[str, Priority, Instant]], unread: Collection[str] = ()
    ) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("lost")
        super().add(transaction, items, unread)


class FileInbox(Inbox):
    """An inbox in an SQLite file of its own, which goes with it."""

    def __init__(self, worker: str = "here", now: Callable[[], Instant] = machine_clock) -> None:
        folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
        database = Database(copied(made_file(), folder))
        super().__init__(database, worker, now)
        self.closing = weakref.finalize(self, _remove, database, folder)


def _remove(database: Database, folder: Path) -> None:
    database.close()
    shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Queue:
    """An inbox in a database."""

    inbox: Inbox
    clock: Clock
    url: str
    folder: Path

    @contextlib.contextmanager
    def working(self, run: Callable[[Lease], None], worker: str = "one", jobs: int = 8) -> Iterator[Worker]:
        """A worker that hands what it leases to ``run`` within the block."""
        database, ended = Database(self.url), list[object]()
        made = Worker(Inbox(database, worker, self.clock), run, threading.Event(), jobs)
        thread = threading.Thread(target=lambda: ended.append(made.run_until_stopped()), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.stop.set()
            thread.join(20)
            database.close()
        assert ended, "the worker did not end"

    def keys(self) -> set[str]:
        """The keys that have work."""
        return keys(self.inbox)


def keys(inbox: Inbox) -> set[str]:
    """The keys that have work."""
    with inbox.database.transaction() as asking:
        return {row["key"] for row in asking.rows("select key from queue")}


def leased(inbox: Inbox, repository: RepositoryKey) -> Lease:
    """A lease of this repository, however urgent others are. Fails when it is not due."""
    others: list[Lease] = []
    try:
        while lease := inbox.queue.claim(inbox.worker):
            if lease.key == repository.text:
                return lease
            others.append(lease)
    finally:
        for lease in others:
            inbox.give_back(lease, 0)
    raise AssertionError(f"{repository} has nothing to do now")


class Runs:
    """A `run` that does all it is given, and remembers it: when it began and ended, and what it had."""

    def __init__(self, queue: Queue, seconds: float = 0.0) -> None:
        self.queue = queue
        self.seconds = seconds
        self.calls: list[str] = []
        self.had: list[tuple[RepositoryKey, float, float, list[int]]] = []
        self.result: Callable[[PendingWork], list[Result]] = all_done
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
            self.had.append((work.repository, began, time.monotonic(), seqs))
        self.queue.inbox.end(work, self.result(work), RunReport())

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
    """``url`` is that of a database with all tables."""
    database, clock = Database(url), Clock()
    yield Queue(Inbox(database, "one", clock), clock, url, folder)
    database.close()


@functools.cache
def made_file() -> Path:
    """An SQLite database with all tables, made once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="precedent-inbox-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return prepared_file(folder)


def prepared_file(folder: Path) -> Path:
    """An SQLite database to be copied: to make one takes a second."""
    database = Database.in_folder(folder)
    database.make_tables()
    database.close()
    with contextlib.closing(sqlite3.connect(folder / "queue.sqlite")) as made:
        made.execute("pragma wal_checkpoint(truncate)")
    return folder / "queue.sqlite"


def copied(made: Path, folder: Path) -> str:
    """The URL of a copy of it in this folder."""
    shutil.copy(made, folder / "queue.sqlite")
    return f"sqlite:///{folder / 'queue.sqlite'}"
