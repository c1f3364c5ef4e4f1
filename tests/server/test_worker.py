"""One worker, on a queue in SQLite: works, renews its leases, ends when it may have lost one, drains when told to."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server import worker as module
from bot.server.inbox import Inbox
from bot.server.model import Arrival, Instant, Lease, Note, RepositoryKey, Result, RunReport
from bot.server.queue import LEASE, WorkQueue
from bot.server.worker import HANGING, LOST, Task, Worker, WorkerExit
from tests.server.queues import Queue, copied, keys, made_file, queue_in_database, until
from tests.server.stage import ServerStage

REPOSITORY = RepositoryKey(17, 4)
HANGS = RepositoryKey(17, 99)


def arrival(number: int, repository: RepositoryKey = REPOSITORY) -> Arrival:
    return Arrival(f"1:{number}", repository, Event("issues", "opened", number))


class House:
    """A queue in SQLite, and a worker on it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.inbox = queue.inbox
        self.stop = threading.Event()
        self.go_on = threading.Event()
        self.swept: list[float] = []
        self.threads: list[threading.Thread] = []

    def run(self, lease: Lease) -> None:
        work = self.inbox.begin(lease)
        if lease.key == HANGS.text:
            self.go_on.wait(60)
        if work:
            self.inbox.end(work, [Result(each.seq, "done", "nothing") for each in work.deliveries], RunReport())

    def worker(self, inbox: Inbox | None = None, parent: int = 0) -> Worker:
        tasks = {"sweep": Task(lambda: self.swept.append(time.monotonic()), 15)}
        return Worker(inbox or self.inbox, self.run, self.stop, 2, tasks, parent)

    def alive(self, worker: Worker | None = None) -> tuple[threading.Thread, list[object]]:
        """The worker at work in a thread, and how it ended."""
        ended: list[object] = []

        def live() -> None:
            try:
                ended.append((worker or self.worker()).run_until_stopped())
            except WorkerExit as error:
                ended.append(error.code)

        self.threads.append(threading.Thread(target=live, daemon=True))
        self.threads[-1].start()
        return self.threads[-1], ended

    def hanging(self, worker: Worker) -> tuple[threading.Thread, list[object]]:
        """The worker with a run that does not end."""
        self.inbox.put([arrival(1, HANGS)])
        found = self.alive(worker)
        until(lambda: self.inbox.counts()["working"] == 1)
        return found

    def close(self) -> None:
        self.go_on.set()
        self.stop.set()
        for thread in threading.enumerate():
            if thread in self.threads or thread.name.startswith("run-"):
                thread.join(10)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with queue_in_database(copied(made_file(), tmp_path), tmp_path) as queue:
        made = House(queue)
        yield made
        made.close()


def test_what_waits_is_done_and_the_end_is_clean(house: House) -> None:
    house.inbox.put([arrival(1), arrival(2), arrival(3, RepositoryKey(17, 5))])
    thread, ended = house.alive()
    until(lambda: house.inbox.counts().get("done") == 3)
    until(lambda: house.swept)
    house.stop.set()
    thread.join(10)
    assert ended == [True]
    assert keys(house.inbox) == {"sweep"}, "the task is due again later"


def test_a_worker_tells_that_it_lives(house: House) -> None:
    house.alive()
    until(lambda: "worker:one" in house.inbox.heartbeats())
    _, note = house.inbox.heartbeats()["worker:one"]
    assert note["pid"] == os.getpid()


def watched(house: House, file: Path, queue: WorkQueue) -> None:
    """A worker over this queue that touches the file, which is there by now."""
    inbox = Inbox(house.inbox.database, "one", house.queue.clock)
    inbox.queue = queue
    house.alive(replace(house.worker(inbox), alive=file))


def is_touched(file: Path) -> bool:
    before = file.stat().st_mtime_ns
    with suppress(AssertionError):
        until(lambda: file.stat().st_mtime_ns > before, 3)
    return file.stat().st_mtime_ns > before


def test_a_worker_touches_its_file_also_while_nothing_can_be_claimed(house: House, tmp_path: Path) -> None:
    queue = Failing(house.inbox.database, house.queue.clock)
    queue.left = 1_000_000
    watched(house, tmp_path / "alive", queue)
    until((tmp_path / "alive").exists)
    assert is_touched(tmp_path / "alive")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_does_no_run_any_more_does_not_touch_its_file(house: House, tmp_path: Path) -> None:
    queue = Broken(house.inbox.database, house.queue.clock)
    watched(house, tmp_path / "alive", queue)
    until((tmp_path / "alive").exists)
    queue.is_broken = True
    until(lambda: not [each for each in threading.enumerate() if each.name.startswith("run-")])
    time.sleep(2 * module.BEAT)
    assert not is_touched(tmp_path / "alive")


@pytest.mark.slow
def test_the_file_of_an_earlier_process_tells_nothing_about_a_worker(tmp_path: Path) -> None:
    file, stage = tmp_path / "alive", ServerStage(tmp_path)
    file.touch()
    try:
        worker = stage.worker(0, "--alive", str(file), API_URL="http://127.0.0.1:9")
        worker.wait(60)
        assert not file.exists(), "it could not begin, as nobody answers there"
        stage.worker(0, "--alive", str(file))
        until(file.exists, 60)
        assert is_touched(file)
    finally:
        stage.close()


@pytest.mark.slow
def test_a_task_is_done_by_one_worker_and_beside_the_runs(house: House) -> None:
    other = Inbox(house.inbox.database, "two", house.queue.clock)
    blocked = Task(lambda: house.go_on.wait(20) and None, 15)
    worker = Worker(house.inbox, house.run, house.stop, 1, {"sweep": blocked})
    house.alive(worker)
    until(lambda: worker.busy == 1)
    house.alive(house.worker(other))
    house.inbox.put([arrival(1)])
    until(lambda: house.inbox.counts().get("done") == 1)
    assert house.swept == [], "the other worker has it"


@pytest.mark.slow
def test_who_has_lost_a_lease_ends_at_once(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWAL", 0.2)
    thread, ended = house.hanging(house.worker())
    house.queue.clock.ahead += LEASE + 1
    taken = house.inbox.queue.claim("other")
    while taken and taken.key != HANGS.text:
        taken = house.inbox.queue.claim("other")
    thread.join(10)
    assert ended == [LOST]


@pytest.mark.slow
def test_leases_are_renewed_as_long_as_the_run_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWAL", 0.1)
    _, ended = house.hanging(house.worker())
    for _ in range(4):
        house.queue.clock.ahead += LEASE - 5_000
        time.sleep(1)
    assert house.inbox.queue.claim("other") is None
    house.go_on.set()
    until(lambda: house.inbox.counts().get("done") == 1)
    assert ended == []


@pytest.mark.slow
def test_a_run_that_hangs_ends_the_worker(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    thread, ended = house.hanging(house.worker())
    time.sleep(1)
    assert ended == []
    assert HANGING > 600, "a first reading takes five minutes"
    monkeypatch.setattr(module, "HANGING", 1.0)
    thread.join(10)
    assert ended == [LOST]


def test_a_worker_drains_when_who_started_it_is_gone(house: House) -> None:
    thread, ended = house.alive(house.worker(parent=1))
    thread.join(10)
    assert ended == [True]


def test_a_run_that_does_not_end_is_left_for_others_and_not_blamed(house: House) -> None:
    worker = house.worker()
    worker.drain = 0.3
    thread, ended = house.hanging(worker)
    house.stop.set()
    thread.join(5)
    assert ended == [False]
    (row,) = house.inbox.deliveries()
    assert row.begun == 0
    found = [house.inbox.queue.claim("other"), house.inbox.queue.claim("other")]
    assert HANGS.text in [lease.key for lease in found if lease], "it is ready at once"


class Away(Inbox):
    """A database that takes no heartbeat."""

    def heartbeat(self, name: str, note: Note) -> None:
        raise WorldError("the connection was refused")


class NotRenewing(WorkQueue):
    """A database that cannot be reached when leases are renewed."""

    def renew(self, owner: str, leases: Sequence[str]) -> frozenset[str]:
        raise WorldError("the connection was refused")


@pytest.mark.slow
def test_a_database_that_is_away_for_a_while_ends_no_worker(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWAL", 0.1)
    away = Away(house.inbox.database, "one", house.queue.clock)
    away.queue = NotRenewing(house.inbox.database, house.queue.clock)
    thread, ended = house.hanging(house.worker(away))
    time.sleep(1.5)
    assert ended == []
    monkeypatch.setattr(module, "LEASE", Instant(1_000))
    thread.join(10)
    assert ended == [LOST], "by now somebody else may have the lease"


def test_a_queue_that_cannot_be_asked_is_asked_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TROUBLE", 0.05)
    failing = Inbox(house.inbox.database, "one", house.queue.clock)
    failing.queue = Failing(house.inbox.database, house.queue.clock)
    house.inbox.put([arrival(1)])
    house.alive(house.worker(failing))
    until(lambda: house.inbox.counts().get("done") == 1)


class Broken(WorkQueue):
    """A queue with a bug."""

    is_broken = False

    def claim(self, owner: str) -> Lease | None:
        if self.is_broken:
            raise ZeroDivisionError
        return super().claim(owner)


class Failing(WorkQueue):
    """A database that does not answer the first two claims."""

    left = 2

    def claim(self, owner: str) -> Lease | None:
        self.left -= 1
        if self.left >= 0:
            raise WorldError("the connection was refused")
        return super().claim(owner)
