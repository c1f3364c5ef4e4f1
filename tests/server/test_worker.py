"""One worker, on a queue in memory: takes over from the dead, ends when it lost its place, drains when told to."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server.log import guarded
from bot.server.model import Arrival, Note, RepositoryKey, Result, RunReport
from bot.server.worker import HANGING, LOST, Ended, LeaderTasks, RunSemaphore, Worker, WorkerSetup
from tests.server.memory_inbox import MemoryLedger
from tests.server.memory_queue import MemoryDispatch, MemoryGuard, MemoryTickets

LANE = RepositoryKey(17, 4)


def arrival(number: int, lane: RepositoryKey = LANE) -> Arrival:
    return Arrival(f"1:{number}", lane, Event("issues", "opened", number))


class House:
    """A ledger with its tickets, and the places of workers; they all live in this process."""

    def __init__(self) -> None:
        self.tickets = MemoryTickets()
        self.inbox = MemoryLedger(self.tickets)
        self.places: set[str] = set()
        self.workers: set[str] = set()
        self.stop = threading.Event()
        self.held = threading.Event()
        self.swept: list[float] = []
        self.slots = RunSemaphore(2)

    def guard(self, name: str) -> MemoryGuard:
        return MemoryGuard(name, self.places, self.workers)

    def turn(self, ticket: str, lane: RepositoryKey) -> None:
        with self.slots.taken(lane.key):
            work = self.inbox.begin(ticket, lane, time.time_ns() // 1_000_000)
            while not self.held.is_set() and lane.repository == 99:
                time.sleep(0.01)
            if work:
                self.inbox.end(
                    work, [Result(each.seq, "done", "nothing related") for each in work.deliveries], RunReport()
                )

    def post(self, name: str = "a") -> WorkerSetup:
        dispatch = MemoryDispatch(self.tickets, name)
        return WorkerSetup(self.guard(name), dispatch, self.inbox, self.turn, self.slots, guarded)

    def worker(self, post: WorkerSetup | None = None, parent: int = 0) -> Worker:
        rounds = LeaderTasks(lambda: self.swept.append(time.monotonic()), 15, guarded)
        return Worker(post or self.post(), rounds, self.stop, parent)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def alive(worker: Worker) -> tuple[threading.Thread, list[object]]:
    """The worker at work in a thread, and how it ended."""
    ended: list[object] = []

    def live() -> None:
        try:
            ended.append(worker.live())
        except Ended as error:
            ended.append(error.code)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    return thread, ended


def test_what_waits_is_done_and_the_end_is_clean() -> None:
    house = House()
    house.inbox.put([arrival(1), arrival(2), arrival(3, RepositoryKey(17, 5))])
    thread, ended = alive(house.worker())
    until(lambda: house.inbox.counts().get("done") == 3)
    house.stop.set()
    thread.join(10)
    assert ended == [True]
    assert house.workers == set(), "who ended well leaves nothing to take over"


def test_a_worker_tells_that_it_lives() -> None:
    house = House()
    thread, _ = alive(house.worker())
    until(lambda: "worker:a" in house.inbox.heartbeats())
    _, note = house.inbox.heartbeats()["worker:a"]
    assert (note["pid"], note["busy"]) == (os.getpid(), 0)
    house.stop.set()
    thread.join(10)


@pytest.mark.slow
def test_the_tickets_of_a_dead_worker_run_again() -> None:
    house = House()
    house.inbox.put([arrival(1)])
    dead = house.guard("dead")
    dead.hold()
    assert house.tickets.take("dead", 1.0)
    thread, _ = alive(house.worker())
    time.sleep(1.2)
    assert house.inbox.counts().get("done", 0) == 0, "a worker that lives keeps what it began"
    dead.die()
    until(lambda: house.inbox.counts().get("done") == 1, 5)
    house.stop.set()
    thread.join(10)
    assert house.workers == set()


def test_who_has_lost_its_place_ends_at_once() -> None:
    house = House()
    post = house.post()
    thread, ended = alive(house.worker(post))
    until(lambda: house.workers)
    assert isinstance(post.guard, MemoryGuard)
    post.guard.die()
    thread.join(5)
    assert ended == [LOST]


@pytest.mark.slow
def test_a_turn_that_hangs_ends_the_worker() -> None:
    house = House()
    now = [0.0]
    house.slots = RunSemaphore(2, lambda: now[0])
    house.inbox.put([arrival(1, RepositoryKey(17, 99))])
    thread, ended = alive(house.worker())
    until(lambda: house.slots.busy == 1)
    now[0] = HANGING - 1
    time.sleep(1)
    assert ended == []
    now[0] = HANGING + 1
    thread.join(5)
    house.held.set()
    assert ended == [LOST]


def test_a_worker_drains_when_who_started_it_is_gone() -> None:
    house = House()
    thread, ended = alive(house.worker(parent=1))
    thread.join(10)
    assert ended == [True]


def test_a_turn_that_does_not_end_is_left_for_others() -> None:
    house = House()
    house.inbox.put([arrival(1, RepositoryKey(17, 99))])
    worker = house.worker()
    worker.drain = 0.3
    thread, ended = alive(worker)
    until(lambda: house.slots.busy == 1)
    house.stop.set()
    thread.join(5)
    assert ended == [False]
    assert house.workers == {"a"}, "its place stays, so that somebody takes over"
    house.held.set()


@pytest.mark.slow
def test_only_one_sweeps() -> None:
    first, second = House(), House()
    second.places, second.workers = first.places, first.workers
    one, _ = alive(first.worker())
    until(lambda: first.swept)
    other, _ = alive(second.worker(second.post("b")))
    time.sleep(1.2)
    assert (len(first.swept), len(second.swept)) == (1, 0)
    for house, thread in ((first, one), (second, other)):
        house.stop.set()
        thread.join(10)


def test_a_round_begins_when_it_is_time_and_never_beside_another() -> None:
    begun, go = [], threading.Event()

    def chore() -> None:
        begun.append(1)
        go.wait(10)

    rounds = LeaderTasks(chore, minutes=1, guarded=guarded)
    for now in (0.0, 50.0, 70.0):
        rounds.go(now)
        until(lambda: begun)
    assert len(begun) == 1, "at 50 it was too early, at 70 the first was still under way"
    go.set()
    assert rounds.thread is not None
    rounds.thread.join(5)
    rounds.go(80.0)
    until(lambda: len(begun) == 2)


class Away(MemoryLedger):
    """A database that takes no pulse."""

    def heartbeat(self, name: str, note: Note) -> None:
        raise WorldError("the connection was refused")


@pytest.mark.slow
def test_a_database_that_is_away_for_a_while_ends_no_worker() -> None:
    house = House()
    post = replace(house.post(), inbox=Away(house.tickets))
    thread, ended = alive(house.worker(post))
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
