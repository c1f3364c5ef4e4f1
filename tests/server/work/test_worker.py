"""One worker on a queue in SQLite: it works, renews leases, ends when it may have lost one, and drains on request."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server.model import Delivery, Lease, Note, RepositoryKey, Result, RunReport
from bot.server.storage.deliveries import MAX_SOLO_ATTEMPTS
from bot.server.storage.heartbeats import OBSTACLE
from bot.server.storage.inbox import Inbox
from bot.server.storage.queue import LEASE_DURATION, TAKE_ALL, ClaimRules, WorkQueue
from bot.server.work.worker import CHECK_INTERVAL, EXIT_WORK_ABANDONED, HANG_TIMEOUT, Task, Worker, WorkerExit
from tests.server.queues import Queue, copy_database, keys, queue_in_database, template_file, until
from tests.server.server_process import ServerStage

REPOSITORY = RepositoryKey(17, 4)
HANGS = RepositoryKey(17, 99)


def arrival(number: int, repository: RepositoryKey = REPOSITORY) -> Delivery:
    return Delivery(f"1:{number}", repository, Event("issues", "opened", number))


class WorkerBench:
    """A queue in SQLite, and a worker on it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.inbox = queue.inbox
        self.stop = threading.Event()
        self.may_end = threading.Event()
        self.hangs: Callable[[str], bool] = lambda key: key == HANGS.text
        self.sweeps: list[int] = []
        self.threads: list[threading.Thread] = []

    def run(self, lease: Lease) -> None:
        work = self.inbox.begin(lease)
        if self.hangs(lease.key):
            self.may_end.wait(60)
        if work:
            self.inbox.end(work, [Result(each.seq, "done", "nothing") for each in work.deliveries], RunReport())

    def worker(self, inbox: Inbox | None = None, **settings: Any) -> Worker:
        tasks = {"sweep": Task(lambda: self.sweeps.append(1), 15)}
        return Worker(inbox or self.inbox, self.run, self.stop, 2, tasks, **settings)

    def run_in_thread(self, worker: Worker | None = None) -> tuple[threading.Thread, list[object]]:
        """Run the worker in a thread; return the thread, and a list that gets the way it ended."""
        ended: list[object] = []

        def run_worker() -> None:
            try:
                ended.append((worker or self.worker()).run_until_stopped())
            except WorkerExit as error:
                ended.append(error.code)

        self.threads.append(threading.Thread(target=run_worker, daemon=True))
        self.threads[-1].start()
        return self.threads[-1], ended

    def run_hanging(self, worker: Worker) -> tuple[threading.Thread, list[object]]:
        """Run the worker with a run that does not end."""
        self.inbox.put([arrival(1, HANGS)])
        running = self.run_in_thread(worker)
        until(lambda: self.inbox.counts()["working"] == 1)
        return running

    def close(self) -> None:
        self.may_end.set()
        self.stop.set()
        for thread in threading.enumerate():
            if thread in self.threads or thread.name.startswith("run-"):
                thread.join(10)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[WorkerBench]:
    with queue_in_database(copy_database(template_file(), tmp_path), tmp_path) as queue:
        worker_bench = WorkerBench(queue)
        yield worker_bench
        worker_bench.close()


def test_a_worker_does_all_waiting_work_and_ends_cleanly(bench: WorkerBench) -> None:
    bench.inbox.put([arrival(1), arrival(2), arrival(3, RepositoryKey(17, 5))])
    thread, ended = bench.run_in_thread()
    until(lambda: bench.inbox.counts().get("done") == 3)
    until(lambda: bench.sweeps)
    bench.stop.set()
    thread.join(10)
    assert ended == [True]
    assert keys(bench.inbox) == {"sweep"}, "the task is due again later"


def test_a_worker_sends_a_heartbeat(bench: WorkerBench) -> None:
    bench.run_in_thread()
    until(lambda: "worker:one" in bench.inbox.heartbeats.all())
    _, note = bench.inbox.heartbeats.all()["worker:one"]
    assert note["pid"] == os.getpid()


def run_watched(bench: WorkerBench, file: Path, queue: WorkQueue) -> None:
    """Run a worker on this queue that touches the file."""
    inbox = Inbox(bench.inbox.database, "one", bench.queue.clock)
    inbox.queue = queue
    bench.run_in_thread(bench.worker(inbox, alive=file))


def is_touched(file: Path) -> bool:
    before = file.stat().st_mtime_ns
    with suppress(AssertionError):
        until(lambda: file.stat().st_mtime_ns > before, 3)
    return file.stat().st_mtime_ns > before


def test_a_worker_touches_its_file_even_while_the_queue_fails(bench: WorkerBench, tmp_path: Path) -> None:
    queue = FlakyQueue(bench.inbox.database, bench.queue.clock)
    queue.failures_left = 1_000_000
    run_watched(bench, tmp_path / "alive", queue)
    until((tmp_path / "alive").exists)
    assert is_touched(tmp_path / "alive")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_whose_run_threads_died_does_not_touch_its_file(bench: WorkerBench, tmp_path: Path) -> None:
    queue = BrokenQueue(bench.inbox.database, bench.queue.clock)
    run_watched(bench, tmp_path / "alive", queue)
    until((tmp_path / "alive").exists)
    queue.is_broken = True
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("run-")])
    time.sleep(2 * CHECK_INTERVAL)
    assert not is_touched(tmp_path / "alive")


@pytest.mark.night
@pytest.mark.slow
def test_a_worker_removes_the_file_of_an_earlier_process(tmp_path: Path) -> None:
    file, stage = tmp_path / "alive", ServerStage(tmp_path)
    file.touch()
    try:
        worker = stage.start_worker(0, "--alive", str(file), API_URL="http://127.0.0.1:9")
        worker.wait(60)
        assert not file.exists(), "it could not begin, as nobody answers there"
        stage.start_worker(0, "--alive", str(file))
        until(file.exists, 60)
        assert is_touched(file)
    finally:
        stage.close()


@pytest.mark.slow
def test_a_task_is_done_by_one_worker_while_runs_continue(bench: WorkerBench) -> None:
    other = Inbox(bench.inbox.database, "two", bench.queue.clock)
    blocking_task = Task(lambda: bench.may_end.wait(20) and None, 15)
    worker = Worker(bench.inbox, bench.run, bench.stop, 1, {"sweep": blocking_task})
    bench.run_in_thread(worker)
    until(lambda: worker.busy == 1)
    bench.run_in_thread(bench.worker(other))
    bench.inbox.put([arrival(1)])
    until(lambda: bench.inbox.counts().get("done") == 1)
    assert bench.sweeps == [], "the other worker has it"


@pytest.mark.slow
def test_a_worker_that_lost_a_lease_ends_at_once(bench: WorkerBench) -> None:
    thread, ended = bench.run_hanging(bench.worker(renewal_interval=0.2))
    bench.queue.clock.ahead += LEASE_DURATION + 1
    lease = bench.inbox.queue.claim("other")
    while lease and lease.key != HANGS.text:
        lease = bench.inbox.queue.claim("other")
    thread.join(10)
    assert ended == [EXIT_WORK_ABANDONED]


@pytest.mark.slow
def test_leases_are_renewed_while_their_run_continues(bench: WorkerBench) -> None:
    _, ended = bench.run_hanging(bench.worker(renewal_interval=0.1))
    for _ in range(4):
        bench.queue.clock.ahead += LEASE_DURATION - 5_000
        time.sleep(1)
    assert bench.inbox.queue.claim("other") is None
    bench.may_end.set()
    until(lambda: bench.inbox.counts().get("done") == 1)
    assert ended == []


@pytest.mark.slow
def test_a_run_that_hangs_ends_the_worker(bench: WorkerBench) -> None:
    assert HANG_TIMEOUT > 600, "a first reading takes five minutes"
    thread, ended = bench.run_hanging(bench.worker(hang_timeout=1.0))
    thread.join(10)
    assert ended == [EXIT_WORK_ABANDONED]


@pytest.mark.slow
def test_a_hang_counts_against_its_own_repository_alone(bench: WorkerBench) -> None:
    bench.hangs = lambda key: True
    thread, ended = bench.run_hanging(bench.worker(hang_timeout=4.0))
    bench.inbox.put([arrival(2)])
    until(lambda: bench.inbox.counts()["working"] == 2)
    thread.join(20)
    assert ended == [EXIT_WORK_ABANDONED]
    assert {row.repository: row.begun for row in bench.inbox.deliveries()} == {HANGS: MAX_SOLO_ATTEMPTS, REPOSITORY: 0}
    claimed = [bench.inbox.queue.claim("other") for _ in range(3)]
    assert {lease.key for lease in claimed if lease} == {REPOSITORY.text, "sweep"}, "the others go on at once"


def test_a_worker_drains_when_its_parent_is_gone(bench: WorkerBench) -> None:
    thread, ended = bench.run_in_thread(bench.worker(parent=1))
    thread.join(10)
    assert ended == [True]


def test_a_run_that_outlasts_the_drain_is_released_and_not_blamed(bench: WorkerBench) -> None:
    thread, ended = bench.run_hanging(bench.worker(drain=0.3))
    bench.stop.set()
    thread.join(5)
    assert ended == [False]
    (row,) = bench.inbox.deliveries()
    assert row.begun == 0
    leases = [bench.inbox.queue.claim("other"), bench.inbox.queue.claim("other")]
    assert HANGS.text in [lease.key for lease in leases if lease], "it is ready at once"


class NoHeartbeatInbox(Inbox):
    """A database that accepts no heartbeat."""

    def heartbeat(self, name: str, note: Note) -> None:
        raise WorldError("the connection was refused")


class NotRenewingQueue(WorkQueue):
    """A database that cannot be reached when leases are renewed."""

    renewals = 0

    def renew(self, owner: str, leases: Sequence[str]) -> frozenset[str]:
        self.renewals += 1
        raise WorldError("the connection was refused")


def test_a_worker_survives_a_database_outage_longer_than_its_leases(bench: WorkerBench) -> None:
    unreachable = NoHeartbeatInbox(bench.inbox.database, "one", bench.queue.clock)
    unreachable.queue = queue = NotRenewingQueue(bench.inbox.database, bench.queue.clock)
    _, ended = bench.run_hanging(bench.worker(unreachable, renewal_interval=0.1))
    bench.queue.clock.ahead += 10 * LEASE_DURATION
    until(lambda: ended or queue.renewals >= 2)
    assert ended == []
    bench.may_end.set()
    until(lambda: bench.inbox.counts().get("done") == 1)
    assert ended == [], "nobody took its lease, so it was still its own"


def test_a_worker_leaves_the_leases_of_others_alone_until_they_could_renew_them(bench: WorkerBench) -> None:
    """After an outage of the database, all leases have run out."""
    other = Inbox(bench.inbox.database, "other", bench.queue.clock)
    bench.inbox.put([arrival(1)])
    lease = other.queue.claim("other")
    assert lease
    bench.queue.clock.ahead += LEASE_DURATION + 1
    bench.run_in_thread(bench.worker(outage_grace=1.0))
    time.sleep(0.5)
    assert other.queue.renew("other", [lease.id]) == frozenset()
    bench.queue.clock.ahead += LEASE_DURATION + 1
    until(lambda: bench.inbox.counts().get("done") == 1)


def test_runs_that_hang_leave_places_for_others(bench: WorkerBench) -> None:
    """Even after a restart, when they are known."""
    bench.hangs = lambda key: key.startswith("18-")
    bench.inbox.put([arrival(number, RepositoryKey(18, number)) for number in range(1, 9)])
    for start in range(2):
        bench.run_in_thread(bench.worker(slow_seconds=0.2))
        until(lambda: bench.inbox.counts()["working"] >= 1)
        bench.inbox.put([arrival(100 + start)])
        until(partial(lambda expected: bench.inbox.counts().get("done") == expected, 1 + start))
        assert bench.inbox.counts()["working"] <= 3
        bench.stop.set()
        bench.stop = threading.Event()
        bench.inbox.abandon()


def test_a_worker_without_room_claims_nothing_and_says_so(bench: WorkerBench) -> None:
    full = [True]
    bench.inbox.put([arrival(1)])
    bench.run_in_thread(bench.worker(obstacle=lambda: "disk: full" if full[0] else "", retry_seconds=0.05))
    until(lambda: bench.inbox.heartbeats.all().get("worker:one", (0, {}))[1].get(OBSTACLE))
    assert bench.inbox.counts()["waiting"] == 1
    full[0] = False
    until(lambda: bench.inbox.counts().get("done") == 1)


def test_claims_are_retried_after_a_database_error(bench: WorkerBench) -> None:
    failing_inbox = Inbox(bench.inbox.database, "one", bench.queue.clock)
    failing_inbox.queue = FlakyQueue(bench.inbox.database, bench.queue.clock)
    bench.inbox.put([arrival(1)])
    bench.run_in_thread(bench.worker(failing_inbox, retry_seconds=0.05))
    until(lambda: bench.inbox.counts().get("done") == 1)


class BrokenQueue(WorkQueue):
    """A queue with a bug."""

    is_broken = False

    def claim(self, owner: str, rules: ClaimRules = TAKE_ALL) -> Lease | None:
        if self.is_broken:
            raise ZeroDivisionError
        return super().claim(owner, rules)


class FlakyQueue(WorkQueue):
    """A database that does not answer the first two claims."""

    failures_left = 2

    def claim(self, owner: str, rules: ClaimRules = TAKE_ALL) -> Lease | None:
        self.failures_left -= 1
        if self.failures_left >= 0:
            raise WorldError("the connection was refused")
        return super().claim(owner, rules)
