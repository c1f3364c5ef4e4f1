"""The contract of every queue: order and one run at a time per repository, nothing lost, nothing done twice."""

from __future__ import annotations

import random
import threading
import time
import uuid
from itertools import pairwise

import pytest

from bot.server.inbox import Inbox
from bot.server.model import Lease, RepositoryKey, Result, RunReport
from bot.server.queue import LEASE_DURATION
from tests.server.queues import (
    REPOSITORY,
    LossyQueue,
    Queue,
    Runs,
    all_done,
    arrival,
    lone_worker,
    until,
    wait_until_settled,
)


@pytest.mark.slow
def test_deliveries_of_a_repository_are_handled_in_order_of_arrival(queue: Queue) -> None:
    runs = Runs(queue, seconds=0.02)
    with queue.running_worker(runs):
        for _ in range(6):
            queue.inbox.put([arrival(str(uuid.uuid4())) for _ in range(5)])
            time.sleep(0.15)
        wait_until_settled(queue)
    assert runs.seqs == sorted(runs.seqs)
    assert len(runs.seqs) == 30


@pytest.mark.slow
def test_repositories_run_concurrently_but_each_has_one_run_at_a_time(queue: Queue) -> None:
    runs = Runs(queue, seconds=0.3)
    repositories = [RepositoryKey(7, number) for number in (1, 2, 3, 4)]
    with queue.running_worker(runs):
        for number in range(3):
            queue.inbox.put([arrival(f"{repository.text}/{number}", repository) for repository in repositories])
            time.sleep(0.25)
        wait_until_settled(queue)
    for repository in repositories:
        times = sorted((began, ended) for of, began, ended, _ in runs.records if of == repository)
        assert all(before[1] <= after[0] for before, after in pairwise(times))
    others = [(one, other) for one in runs.records for other in runs.records if one[0] != other[0]]
    assert any(one[1] < other[2] and other[1] < one[2] for one, other in others)


@pytest.mark.slow
def test_concurrent_runs_are_limited(queue: Queue) -> None:
    runs = Runs(queue, seconds=0.3)
    with queue.running_worker(runs, jobs=2):
        queue.inbox.put([arrival(str(number), RepositoryKey(7, number)) for number in range(1, 8)])
        wait_until_settled(queue)
    edges = sorted([(began, 1) for _, began, _, _ in runs.records] + [(ended, -1) for _, _, ended, _ in runs.records])
    running, most = 0, 0
    for _, change in edges:
        running += change
        most = max(most, running)
    assert most <= 2


@pytest.mark.slow
def test_a_repeated_delivery_is_ignored(queue: Queue) -> None:
    runs = Runs(queue)
    assert queue.inbox.put([arrival("a"), arrival("b"), arrival("a", number=2)]) == [True, True, False]
    assert queue.inbox.put([arrival("b"), arrival("c")]) == [False, True]
    with queue.running_worker(runs):
        wait_until_settled(queue)
        assert queue.inbox.put([arrival("a")]) == [False]
        time.sleep(0.5)
    rows = queue.inbox.deliveries()
    assert [(row.id, row.event.number, row.state) for row in rows] == [
        ("9:c", 1, "done"),
        ("9:b", 1, "done"),
        ("9:a", 1, "done"),
    ]
    assert runs.seqs == sorted(row.seq for row in rows)


@pytest.mark.slow
def test_a_run_takes_fifty_waiting_deliveries_and_the_next_run_the_rest(queue: Queue) -> None:
    runs = Runs(queue)
    names = [str(uuid.uuid4()) for _ in range(70)]
    queue.inbox.put([arrival(name) for name in names])
    with queue.running_worker(runs):
        wait_until_settled(queue)
        until(lambda: not queue.keys())
    assert [len(seqs) for _, _, _, seqs in runs.records] == [50, 20]
    assert runs.seqs == sorted(runs.seqs)
    assert len(runs.calls) == 2


@pytest.mark.slow
def test_a_retry_waits_for_its_time_and_younger_deliveries_overtake_it(queue: Queue) -> None:
    runs = Runs(queue)
    runs.result = lambda work: [
        Result(each.seq, "waiting", "the world failed", next_at=queue.clock() + 1500)
        if each.event.number == 1 and not each.attempts
        else Result(each.seq, "done", "")
        for each in work.deliveries
    ]
    with queue.running_worker(runs):
        queue.inbox.put([arrival("fails", number=1)])
        until(lambda: runs.records)
        queue.inbox.put([arrival("younger", number=2)])
        wait_until_settled(queue)
    first, second, retry = runs.records
    assert [len(run[3]) for run in runs.records] == [1, 1, 1]
    assert (first[3], retry[3]) == ([1], [1])
    assert second[1] < retry[1]
    assert retry[1] - first[2] >= 1.3
    assert queue.inbox.deliveries()[-1].attempts == 1


@pytest.mark.slow
def test_a_dead_delivery_is_left_alone_until_it_is_retried_or_dropped(queue: Queue) -> None:
    runs = Runs(queue)
    runs.result = lambda work: [Result(each.seq, "dead", "no permission") for each in work.deliveries]
    queue.inbox.put([arrival("a"), arrival("b", number=2), arrival("c", number=3)])
    with queue.running_worker(runs):
        until(lambda: queue.inbox.counts()["dead"] == 3)
        first, second, third = sorted(row.seq for row in queue.inbox.deliveries(state="dead"))
        assert queue.inbox.drop([first], "not wanted") == 1
        runs.result = lambda work: [Result(each.seq, "done", "") for each in work.deliveries]
        assert queue.inbox.retry([first, second, 99]) == 1
        wait_until_settled(queue)
        time.sleep(0.5)
    assert runs.seqs == [first, second, third, second]
    assert [row.state for row in queue.inbox.deliveries()] == ["dead", "done", "dropped"]


@pytest.mark.slow
def test_order_holds_for_many_repositories_with_failures(queue: Queue) -> None:
    random_ids = random.Random(5)
    runs = Runs(queue, seconds=0.01)
    runs.result = lambda work: [
        Result(each.seq, "waiting", "again", next_at=queue.clock() + 200)
        if each.event.number == 13 and each.attempts < 2
        else Result(each.seq, "done", "")
        for each in work.deliveries
    ]
    with queue.running_worker(runs):
        for number in range(40):
            queue.inbox.put(
                [arrival(str(uuid.UUID(int=random_ids.getrandbits(128))), RepositoryKey(7, number % 5 + 1), number)]
            )
        wait_until_settled(queue)
    for repository in {run[0] for run in runs.records}:
        firsts = list(dict.fromkeys(seq for of, _, _, seqs in runs.records if of == repository for seq in seqs))
        assert firsts == sorted(firsts)
    assert queue.inbox.counts()["done"] == 40


def test_a_delivery_and_its_queue_item_are_stored_together_or_not_at_all(queue: Queue) -> None:
    losing = Inbox(queue.inbox.database, "one", queue.clock)
    losing.queue = LossyQueue(queue.inbox.database, queue.clock)
    with pytest.raises(ConnectionError):
        losing.put([arrival("a"), arrival("b", RepositoryKey(7, 71))])
    assert (queue.inbox.deliveries(), queue.keys()) == ([], set())
    assert queue.inbox.put([arrival("a")]) == [True]
    assert queue.keys() == {REPOSITORY.text}


@pytest.mark.slow
@pytest.mark.parametrize("is_released", [True, False])
def test_another_worker_does_what_a_dead_worker_had_begun(queue: Queue, is_released: bool) -> None:
    queue.inbox.put([arrival("a"), arrival("b", number=2)])
    runs = Runs(queue)
    with lone_worker(queue.url, queue.folder, "dead", "hang") as process:
        until(lambda: any(row.state == "working" for row in queue.inbox.deliveries()), 60)
        process.kill()
        process.wait()
    with queue.running_worker(runs, worker="two"):
        time.sleep(1)
        assert runs.calls == [], "its lease lasts, as nobody knows that it is dead"
        if is_released:
            assert queue.inbox.queue.release("dead") == 1
        wait_until_settled(queue, LEASE_DURATION / 1000 + 10)
    assert [seqs for _, _, _, seqs in runs.records] == [[1], [2]], "the oldest comes alone, as it may be what kills"


@pytest.mark.slow
def test_after_stop_no_run_begins_and_the_current_run_is_awaited(queue: Queue) -> None:
    begun, may_end, begun_keys = threading.Event(), threading.Event(), list[str]()

    def run(lease: Lease) -> None:
        begun_keys.append(lease.key)
        begun.set()
        may_end.wait(10)
        work = queue.inbox.begin(lease)
        assert work
        queue.inbox.end(work, all_done(work), RunReport())

    with queue.running_worker(run, jobs=2) as worker:
        queue.inbox.put([arrival("a")])
        assert begun.wait(10)
        worker.stop.set()
        time.sleep(1)
        queue.inbox.put([arrival("b", RepositoryKey(7, 71))])
        may_end.set()
    assert begun_keys == [REPOSITORY.text]
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "done"]
