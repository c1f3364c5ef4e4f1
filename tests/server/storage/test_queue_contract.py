"""Workers on a queue: one run at a time per repository, limits, killed processes, and a stop."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from itertools import pairwise

import pytest

from bot.server.model import Lease, RepositoryKey, RunReport
from bot.server.storage.queue import LEASE_DURATION
from tests.server.queues import REPOSITORY, Queue, Runs, all_done, arrival, until, wait_until_settled

pytestmark = pytest.mark.slow

HANGING = """
import sys, threading
from bot.server.storage.database import Database, machine_clock
from bot.server.storage.inbox import Inbox
inbox = Inbox(Database(sys.argv[1]), "dead", machine_clock)
assert inbox.begin(inbox.queue.claim("dead"))
threading.Event().wait()
"""
"""A process that begins a run, which never ends."""


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


@pytest.mark.night
@pytest.mark.parametrize("is_released", [True, False])
def test_another_worker_does_what_a_killed_process_had_begun(queue: Queue, is_released: bool) -> None:
    queue.inbox.put([arrival("a"), arrival("b", number=2)])
    runs = Runs(queue)
    with subprocess.Popen([sys.executable, "-c", HANGING, queue.url]) as process:
        until(lambda: any(row.state == "working" for row in queue.inbox.deliveries()), 60)
        process.kill()
    with queue.running_worker(runs, worker="two"):
        time.sleep(1)
        assert runs.calls == [], "its lease lasts, as nobody knows that it is dead"
        if is_released:
            assert queue.inbox.queue.release("dead") == 1
        else:
            queue.clock.ahead += LEASE_DURATION
        wait_until_settled(queue)
    assert [seqs for _, _, _, seqs in runs.records] == [[1], [2]], "the oldest comes alone, as it may be what kills"


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
