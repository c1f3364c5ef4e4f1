"""One worker, on a queue in SQLite: takes over from the dead, ends when it lost its place, drains when told to."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server.inbox import Inbox
from bot.server.leases import LEADER, FileLocks, WorkerLeases
from bot.server.model import Arrival, Note, RepositoryKey, Result, RunReport
from bot.server.worker import HANGING, LOST, Ended, LeaderTasks, RunSemaphore, Worker, WorkerSetup
from tests.server.queues import Queue, copied, lone_worker, made_file, queue_in_database, until

LANE = RepositoryKey(17, 4)


def arrival(number: int, lane: RepositoryKey = LANE) -> Arrival:
    return Arrival(f"1:{number}", lane, Event("issues", "opened", number))


class House:
    """A queue in SQLite, and what workers on it need."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.inbox = queue.inbox
        self.locks = FileLocks(queue.folder / "workers")
        self.dispatch = queue.dispatch("a", 4)
        self.stop = threading.Event()
        self.held = threading.Event()
        self.swept: list[float] = []
        self.slots = RunSemaphore(2)
        self.threads: list[threading.Thread] = []

    def turn(self, ticket: str, lane: RepositoryKey) -> None:
        with self.slots.taken(lane.key):
            work = self.inbox.begin(ticket, lane, time.time_ns() // 1_000_000)
            while not self.held.is_set() and lane.repository == 99:
                time.sleep(0.01)
            if work:
                self.inbox.end(
                    work, [Result(each.seq, "done", "nothing related") for each in work.deliveries], RunReport()
                )

    def setup(self) -> WorkerSetup:
        leases = WorkerLeases("a", self.inbox.database, self.locks, self.queue.clock)
        return WorkerSetup(leases, self.dispatch, self.inbox, self.turn, self.slots)

    def worker(self, setup: WorkerSetup | None = None, parent: int = 0) -> Worker:
        tasks = LeaderTasks(lambda: self.swept.append(time.monotonic()), 15)
        return Worker(setup or self.setup(), tasks, self.stop, parent)

    def alive(self, worker: Worker | None = None) -> tuple[threading.Thread, list[object]]:
        """The worker at work in a thread, and how it ended."""
        ended: list[object] = []

        def live() -> None:
            try:
                ended.append((worker or self.worker()).live())
            except Ended as error:
                ended.append(error.code)

        self.threads.append(threading.Thread(target=live, daemon=True))
        self.threads[-1].start()
        return self.threads[-1], ended

    def workers(self) -> set[str]:
        """Those that are not known to be dead."""
        with self.inbox.database.transaction() as asking:
            return {row["id"] for row in asking.rows("select id from workers where dead_since = 0")}

    def close(self) -> None:
        self.held.set()
        self.stop.set()
        for thread in self.threads:
            thread.join(10)
        self.dispatch.close()
        self.locks.close()


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
    house.stop.set()
    thread.join(10)
    assert ended == [True]
    assert house.workers() == set(), "who ended well leaves nothing to take over"


def test_a_worker_tells_that_it_lives(house: House) -> None:
    house.alive()
    until(lambda: "worker:a" in house.inbox.heartbeats())
    _, note = house.inbox.heartbeats()["worker:a"]
    assert (note["pid"], note["busy"]) == (os.getpid(), 0)


@pytest.mark.slow
def test_the_tickets_of_a_dead_worker_run_again(house: House) -> None:
    house.inbox.put([arrival(1)])
    with lone_worker(house.queue.url, house.queue.folder, "dead", "hang") as process:
        until(lambda: house.inbox.counts()["working"] == 1, 60)
        house.alive()
        time.sleep(1.2)
        assert house.inbox.counts().get("done", 0) == 0, "a worker that lives keeps what it began"
        process.kill()
        process.wait()
        until(lambda: house.inbox.counts().get("done") == 1, 5)
    assert house.workers() == {"a"}


def test_who_has_lost_its_place_ends_at_once(house: House) -> None:
    thread, ended = house.alive()
    until(house.workers)
    house.locks.close()
    thread.join(5)
    assert ended == [LOST]


@pytest.mark.slow
def test_a_turn_that_hangs_ends_the_worker(house: House) -> None:
    now = [0.0]
    house.slots = RunSemaphore(2, lambda: now[0])
    house.inbox.put([arrival(1, RepositoryKey(17, 99))])
    thread, ended = house.alive()
    until(lambda: house.slots.busy == 1)
    now[0] = HANGING - 1
    time.sleep(1)
    assert ended == []
    now[0] = HANGING + 1
    thread.join(5)
    assert ended == [LOST]


def test_a_worker_drains_when_who_started_it_is_gone(house: House) -> None:
    thread, ended = house.alive(house.worker(parent=1))
    thread.join(10)
    assert ended == [True]


def test_a_turn_that_does_not_end_is_left_for_others(house: House) -> None:
    house.inbox.put([arrival(1, RepositoryKey(17, 99))])
    worker = house.worker()
    worker.drain = 0.3
    thread, ended = house.alive(worker)
    until(lambda: house.slots.busy == 1)
    house.stop.set()
    thread.join(5)
    assert ended == [False]
    assert house.workers() == {"a"}, "its place stays, so that somebody takes over"


@pytest.mark.slow
def test_only_one_sweeps(house: House) -> None:
    other = FileLocks(house.queue.folder / "workers")
    assert other.take(LEADER)
    house.alive()
    until(house.workers)
    time.sleep(1.2)
    assert house.swept == []
    other.close()
    until(lambda: house.swept)
    time.sleep(1.2)
    assert len(house.swept) == 1


def test_a_round_begins_when_it_is_time_and_never_beside_another() -> None:
    begun, go = [], threading.Event()

    def chore() -> None:
        begun.append(1)
        go.wait(10)

    rounds = LeaderTasks(chore, minutes=1)
    for now in (0.0, 50.0, 70.0):
        rounds.go(now)
        until(lambda: begun)
    assert len(begun) == 1, "at 50 it was too early, at 70 the first was still under way"
    go.set()
    assert rounds.thread is not None
    rounds.thread.join(5)
    rounds.go(80.0)
    until(lambda: len(begun) == 2)


class Away(Inbox):
    """A database that takes no heartbeat."""

    def heartbeat(self, name: str, note: Note) -> None:
        raise WorldError("the connection was refused")


@pytest.mark.slow
def test_a_database_that_is_away_for_a_while_ends_no_worker(house: House) -> None:
    away = Away(house.inbox.database, house.inbox.tickets, "a", house.queue.clock)
    thread, ended = house.alive(house.worker(replace(house.setup(), inbox=away)))
    time.sleep(1.5)
    assert ended == []
    house.stop.set()
    thread.join(10)
    assert ended == [True]


def test_slots_are_given_back_whatever_happens() -> None:
    slots = RunSemaphore(1, lambda: 5.0)
    with contextlib.suppress(ValueError), slots.taken("17-4"):
        assert slots.longest() == ("17-4", 0.0)
        raise ValueError
    assert (slots.busy, slots.longest()) == (0, ("", 0.0))
