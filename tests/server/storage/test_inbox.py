"""The inbox: what a run gets and may end, when its key is due again, lost leases, and counts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.errors import UserError, WorldError
from bot.github.events import Event
from bot.server.model import Delivery, Instant, Priority, RepositoryKey, Result, RunReport
from bot.server.storage.database import Database
from bot.server.storage.deliveries import MAX_SOLO_ATTEMPTS, NEVER_ENDED, DeliveryFilter
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.inbox import HANG_PAUSE, HUNG_TWICE, Inbox
from bot.server.storage.queue import LEASE_DURATION
from tests.server.queues import (
    APP,
    REPOSITORY,
    Clock,
    LossyInbox,
    Queue,
    all_done,
    arrival,
    begin_work,
    claim,
    drop,
    replay,
    take_lease,
    until,
)

OTHER = RepositoryKey(7, 71)
URGENT, CHANGE, CATCH_UP, HISTORY = Priority


def crash_worker(queue: Queue) -> None:
    """The worker crashes, and its parent releases its leases."""
    assert queue.inbox.queue.release(queue.inbox.worker) > 0


def due(queue: Queue) -> dict[str, tuple[Instant, Priority]]:
    """The keys that are not leased → when each is due and how urgent it is."""
    rows = queue.inbox.database.rows("select key, due, priority from queue where lease = ''")
    return {row["key"]: (row["due"], Priority(row["priority"])) for row in rows}


def test_a_delivery_is_stored_with_its_location_and_without_anybodys_name(queue: Queue) -> None:
    event = Event("issue_comment", "created", 5, True, 77, "monalisa", "octo-org/other#9", (("reason", "why"),), (3,))
    extra = (("added", "17,18"), ("account", "octo-org"))
    stored = Delivery("9:a", REPOSITORY, event, "octo-org/hello-world", 12_345_678_901_234, "r1", extra)
    queue.inbox.put([stored])
    (row,) = queue.inbox.deliveries()
    assert row.event == Event("issue_comment", "created", 5, True, 77, moved_to="octo-org/other#9")
    assert (row.id, row.repository, row.name) == ("9:a", REPOSITORY, "octo-org/hello-world")
    assert (row.state, row.received_at, row.request, row.extra) == ("waiting", 12_345_678_901_234, "r1", extra)


def test_hostile_text_is_stored_in_a_form_that_databases_accept(queue: Queue) -> None:
    bad = replace(arrival("a"), name="a\0\ud800/b", event=Event("issues", "x\0\ud800", 2**53 - 1), extra=(("a", "\0"),))
    assert queue.inbox.put([bad, arrival("b")]) == [True, True]
    work = begin_work(queue.inbox)
    first = work.deliveries[0]
    assert first.event.number == 2**53 - 1
    results = [Result(each.seq, "done", "\0\ud800' --", url="\0") for each in work.deliveries]
    assert queue.inbox.end(work, results, RunReport())
    assert queue.inbox.deliveries()[-1].reason.endswith("' --")


def test_a_run_gets_the_due_deliveries_of_its_repository_oldest_first(queue: Queue) -> None:
    queue.inbox.put([arrival("b", number=2), arrival("x", OTHER), arrival("a", number=1)])
    work = begin_work(queue.inbox)
    assert [(each.id, each.state, each.begun, each.run) for each in work.deliveries] == [
        ("9:b", "working", 1, work.id),
        ("9:a", "working", 1, work.id),
    ]
    assert [row.state for row in queue.inbox.deliveries(DeliveryFilter(repository=OTHER))] == ["waiting"]
    assert [row.state for row in queue.inbox.deliveries(DeliveryFilter(repository=REPOSITORY))] == [
        "working",
        "working",
    ]


def test_a_repeated_delivery_is_ignored(queue: Queue) -> None:
    assert queue.inbox.put([]) == []
    assert queue.inbox.put([arrival("a"), arrival("b"), arrival("a", number=2)]) == [True, True, False]
    work = begin_work(queue.inbox)
    queue.inbox.end(work, all_done(work), RunReport())
    assert queue.inbox.put([arrival("b"), arrival("a")]) == [False, False]
    assert [(row.id, row.event.number, row.state) for row in queue.inbox.deliveries()] == [
        ("9:b", 1, "done"),
        ("9:a", 1, "done"),
    ]
    assert queue.keys() == set()


def test_a_run_gets_fifty_deliveries_and_the_next_run_the_rest(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(70)])
    for expected in (range(1, 51), range(51, 71)):
        work = begin_work(queue.inbox)
        assert [each.seq for each in work.deliveries] == [*expected]
        queue.inbox.end(work, all_done(work), RunReport())
    assert queue.keys() == set()


def test_a_delivery_and_its_queue_item_are_stored_together_or_not_at_all(queue: Queue) -> None:
    losing = LossyInbox(queue.inbox.database, "one", queue.clock)
    with pytest.raises(ConnectionError):
        losing.put([arrival("a"), arrival("b", OTHER)])
    assert (queue.inbox.deliveries(), queue.keys()) == ([], set())
    assert queue.inbox.put([arrival("a")]) == [True]
    assert queue.keys() == {REPOSITORY.text}


def test_a_key_whose_deliveries_were_all_dropped_is_removed(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    assert drop(queue.inbox, [1, 2], "not wanted") == 2
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert queue.keys() == set()


def test_a_finished_delivery_is_stored_with_its_run(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    url, shown = "https://github.example/c/1", ((4, 0.75), (5, 0.5))
    nearest = ((4, 0.75, "same error"), (6, 0.31, ""))
    result = Result(work.deliveries[0].seq, "done", "because", said="created", url=url, matches=shown, nearest=nearest)
    report = RunReport((("look", 0.5), ("push", 1.25)), (111, 222), 7, 3, 88_000, ("a note",))
    assert queue.inbox.end(work, [result], report)
    delivery = queue.inbox.delivery(1)
    assert delivery is not None
    row, run = delivery
    assert (row.state, row.reason, row.said, row.url, row.matches) == ("done", "because", "created", url, shown)
    assert row.nearest == nearest
    assert (row.begun, row.next_at, row.attempts, row.run) == (0, 0, 0, work.id)
    assert run is not None
    assert (run.id, run.repository, run.worker, run.began) == (work.id, REPOSITORY, "one", work.began_at)
    assert (run.stages, run.pushes, run.notes) == (report.stages, report.pushes, report.notes)
    assert (run.reads, run.writes) == (7, 3)
    assert run.began <= run.ended == row.finished_at <= queue.clock()


def test_after_a_crash_each_begun_delivery_comes_alone_and_newer_ones_follow(queue: Queue) -> None:
    queue.inbox.put([arrival(name) for name in "abc"])
    assert len(begin_work(queue.inbox).deliveries) == 3
    crash_worker(queue)
    queue.inbox.put([arrival("d"), arrival("e")])
    batches = list[list[tuple[str, int]]]()
    for _ in range(4):
        work = begin_work(queue.inbox)
        batches.append([(each.id, each.begun) for each in work.deliveries])
        queue.inbox.end(work, all_done(work), RunReport())
    assert batches == [[("9:a", 2)], [("9:b", 2)], [("9:c", 2)], [("9:d", 1), ("9:e", 1)]]
    assert queue.keys() == set()


def test_a_begun_delivery_comes_alone_even_behind_others(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    queue.inbox.end(work, [Result(1, "waiting", "the network", queue.clock() + 60_000)], RunReport())
    queue.inbox.put([arrival("b"), arrival("c")])
    assert [each.id for each in begin_work(queue.inbox).deliveries] == ["9:b", "9:c"]
    crash_worker(queue)
    queue.clock.ahead += 60_000
    batches = list[list[str]]()
    for _ in range(3):
        work = begin_work(queue.inbox)
        batches.append([each.id for each in work.deliveries])
        queue.inbox.end(work, all_done(work), RunReport())
    assert batches == [["9:a"], ["9:b"], ["9:c"]]


def test_a_delivery_that_crashes_five_runs_alone_is_dead_and_others_are_not_blamed(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b"), arrival("c")])
    assert [each.begun for each in begin_work(queue.inbox).deliveries] == [1, 1, 1]
    for before in range(5):
        crash_worker(queue)
        assert [(each.id, each.begun) for each in begin_work(queue.inbox).deliveries] == [("9:a", before + 2)]
        assert [row.begun for row in queue.inbox.deliveries(DeliveryFilter(state="waiting"))] == [1, 1]
    crash_worker(queue)
    assert [(each.id, each.begun) for each in begin_work(queue.inbox).deliveries] == [("9:b", 2)]
    (dead,) = queue.inbox.deliveries(DeliveryFilter(state="dead"))
    assert (dead.id, dead.reason, dead.begun) == ("9:a", NEVER_ENDED, 0)
    assert 0 < dead.finished_at <= queue.clock()


def test_a_repository_whose_run_hangs_pauses_and_a_delivery_that_hangs_twice_is_dead(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    queue.inbox.blame(begin_work(queue.inbox).lease)
    ((paused_until, _),) = due(queue).values()
    assert paused_until > queue.clock() + HANG_PAUSE - 60_000
    assert queue.inbox.queue.claim("other") is None
    for name in ("9:a", "9:b"):
        queue.clock.ahead += HANG_PAUSE
        work = begin_work(queue.inbox)
        assert [each.id for each in work.deliveries] == [name], "each alone"
        queue.inbox.blame(work.lease)
        assert [(row.id, row.begun) for row in queue.inbox.deliveries(DeliveryFilter(state="dead"), limit=1)] == [
            (name, 0)
        ]
    assert {row.reason for row in queue.inbox.deliveries(DeliveryFilter(state="dead"))} == {HUNG_TWICE}
    assert due(queue) == {}


def test_a_run_that_hung_once_and_then_ends_is_done(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    queue.inbox.blame(begin_work(queue.inbox).lease)
    queue.clock.ahead += HANG_PAUSE
    work = begin_work(queue.inbox)
    queue.inbox.end(work, all_done(work), RunReport())
    assert [(row.state, row.begun) for row in queue.inbox.deliveries()] == [("done", 0)]


def test_a_run_that_lost_its_lease_is_not_blamed(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lease = begin_work(queue.inbox).lease
    crash_worker(queue)
    queue.inbox.blame(lease)
    assert [each.begun for each in begin_work(queue.inbox).deliveries] == [3]


def test_a_run_that_ended_does_not_count_as_a_crash(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for _ in range(MAX_SOLO_ATTEMPTS + 2):
        work = begin_work(queue.inbox)
        assert work.deliveries[0].begun == 2
        queue.inbox.end(work, [Result(1, "waiting", "the network")], RunReport())


def test_a_retried_dead_delivery_starts_like_a_new_one(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=URGENT)])
    for _ in range(MAX_SOLO_ATTEMPTS):
        begin_work(queue.inbox)
        crash_worker(queue)
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert replay(queue.inbox, [1]) == 1
    (again,) = queue.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert (again.id, again.begun, again.attempts, again.reason, again.finished_at) == ("9:a", 0, 0, "", 0)
    assert queue.inbox.oldest_waiting() >= again.next_at > again.received_at, "it waits since now"
    assert [priority for _, priority in due(queue).values()] == [URGENT]
    assert [each.begun for each in begin_work(queue.inbox).deliveries] == [2]


def test_a_run_that_lost_its_lease_stores_nothing(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    lost_work = begin_work(queue.inbox)
    crash_worker(queue)
    taken_over = begin_work(queue.inbox)
    report = RunReport(pushes=(5,), notes=("a note",), requeue_after=queue.clock() + 60_000)
    assert not queue.inbox.end(lost_work, all_done(lost_work), report)
    assert queue.inbox.counters.read() == {}
    assert queue.inbox.installations.repository(REPOSITORY).pushes == ()
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "working"]
    assert (queue.keys(), due(queue)) == ({REPOSITORY.text}, {})
    assert queue.inbox.end(taken_over, all_done(taken_over), RunReport())
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "done"]


def test_a_run_whose_lease_went_to_an_idle_worker_stores_nothing_either(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lost_work = begin_work(queue.inbox)
    queue.inbox.limits.pause(REPOSITORY.installation, "core", queue.clock() + 60_000)
    crash_worker(queue)
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert not queue.inbox.end(lost_work, all_done(lost_work), RunReport())
    assert queue.keys() == {REPOSITORY.text}


def test_a_lost_lease_neither_begins_a_run_nor_is_given_back(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lost_lease = take_lease(queue.inbox, REPOSITORY)
    crash_worker(queue)
    taken_over = take_lease(queue.inbox, REPOSITORY)
    assert queue.inbox.begin(lost_lease) is None
    queue.inbox.give_back(lost_lease, 0)
    assert due(queue) == {}
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting"]
    assert queue.inbox.begin(taken_over) is not None


def test_an_expired_lease_is_valid_until_another_worker_takes_the_key(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", OTHER)])
    late, lost_work = begin_work(queue.inbox), begin_work(queue.inbox, OTHER)
    queue.clock.ahead += LEASE_DURATION - 1000
    queue.inbox.queue.renew("one", [late.id])
    queue.clock.ahead += 1001
    begin_work(queue.inbox, OTHER)
    queue.clock.ahead += LEASE_DURATION
    assert queue.inbox.end(late, all_done(late), RunReport())
    assert not queue.inbox.end(lost_work, all_done(lost_work), RunReport())


def test_a_run_ends_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begin_work(queue.inbox)
    assert queue.inbox.end(work, all_done(work), RunReport())
    assert not queue.inbox.end(work, all_done(work), RunReport())
    assert queue.inbox.counters.read()["precedent_runs_total", ("done",)] == 1


def test_only_counting_attempts_are_counted(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for counts in (True, False, True):
        work = begin_work(queue.inbox)
        queue.inbox.end(work, [Result(1, "waiting", "the network", counts=counts)], RunReport())
    (row,) = queue.inbox.deliveries()
    assert (row.state, row.attempts, row.begun, row.reason) == ("waiting", 2, 0, "the network")


def test_a_delivery_without_a_result_waits_as_after_a_crash(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begin_work(queue.inbox)
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "done", "")], RunReport())
    (row,) = queue.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert (row.id, row.begun) == ("9:b", 1)
    assert [(each.id, each.begun) for each in begin_work(queue.inbox).deliveries] == [("9:b", 2)]


def test_a_key_is_due_when_its_next_delivery_is_due(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), replace(arrival("b"), priority=URGENT), replace(arrival("c"), priority=HISTORY)])
    work = begin_work(queue.inbox)
    soon, late = queue.clock() + 60_000, queue.clock() + 90_000
    first, second, third = (each.seq for each in work.deliveries)
    results = [Result(first, "done", ""), Result(second, "waiting", "", late), Result(third, "waiting", "", soon)]
    queue.inbox.end(work, results, RunReport())
    assert due(queue) == {REPOSITORY.text: (soon, HISTORY)}
    assert queue.inbox.queue.claim("two") is None
    queue.clock.ahead += 60_000
    work = begin_work(queue.inbox)
    assert [each.seq for each in work.deliveries] == [third]
    queue.inbox.end(work, all_done(work), RunReport())
    assert due(queue) == {REPOSITORY.text: (late, URGENT)}
    queue.clock.ahead += 30_000
    work = begin_work(queue.inbox)
    assert [each.seq for each in work.deliveries] == [second]
    queue.inbox.end(work, all_done(work), RunReport())
    assert queue.keys() == set()


def test_a_lease_that_comes_too_early_is_put_off_until_a_delivery_is_due(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work, later = begin_work(queue.inbox), queue.clock() + 60_000
    queue.inbox.end(work, [Result(1, "waiting", "the network", later)], RunReport())
    queue.inbox.queue.add([(REPOSITORY.text, URGENT, 0)])
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert due(queue) == {REPOSITORY.text: (later, CHANGE)}


def test_a_delivery_that_arrives_during_a_run_is_left_to_the_next_run(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    queue.inbox.put([replace(arrival("b"), priority=URGENT)])
    assert (queue.keys(), due(queue)) == ({REPOSITORY.text}, {})
    queue.inbox.end(work, all_done(work), RunReport())
    assert [priority for _, priority in due(queue).values()] == [URGENT]
    assert [each.id for each in begin_work(queue.inbox).deliveries] == ["9:b"]


def test_a_key_is_as_urgent_as_its_most_urgent_delivery(queue: Queue) -> None:
    priorities = [(REPOSITORY, HISTORY), (REPOSITORY, URGENT), (REPOSITORY, CHANGE), (OTHER, CATCH_UP)]
    queue.inbox.put(
        [replace(arrival(str(n), repository), priority=each) for n, (repository, each) in enumerate(priorities)]
    )
    assert {key: priority for key, (_, priority) in due(queue).items()} == {
        REPOSITORY.text: URGENT,
        OTHER.text: CATCH_UP,
    }
    queue.inbox.put([replace(arrival("more", OTHER), priority=CHANGE)])
    assert due(queue)[OTHER.text][1] == CHANGE


def test_a_lease_that_is_given_back_is_due_later_with_no_run_begun(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=URGENT)])
    lease = take_lease(queue.inbox, REPOSITORY)
    queue.inbox.give_back(lease, 60)
    at, priority = due(queue)[REPOSITORY.text]
    assert priority == URGENT
    assert 55_000 < at - queue.clock() <= 60_000
    assert queue.inbox.queue.claim("two") is None
    queue.clock.ahead += 60_000
    assert begin_work(queue.inbox).deliveries[0].begun == 2


def test_the_keys_of_a_paused_installation_are_due_when_the_pause_ends(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", RepositoryKey(8, 1))])
    limits, paused = queue.inbox.limits, queue.clock() + 5000
    limits.pause(7, "core", paused)
    limits.pause(7, "secondary", paused - 4000)
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert due(queue)[REPOSITORY.text] == (paused, CHANGE)
    assert [row.begun for row in queue.inbox.deliveries(DeliveryFilter(repository=REPOSITORY))] == [0]
    assert begin_work(queue.inbox, RepositoryKey(8, 1)).deliveries[0].id == "9:b"
    assert queue.inbox.queue.claim("two") is None, "nobody waits with a lease"
    queue.inbox.put([replace(arrival("c"), priority=URGENT)])
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None, "what comes meanwhile does not end the pause"
    assert due(queue)[REPOSITORY.text] == (paused, URGENT)
    queue.clock.ahead += 5001
    assert [each.id for each in begin_work(queue.inbox).deliveries] == ["9:a", "9:c"]


def test_a_repository_that_pushed_recently_is_due_when_it_may_push_again(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work, pushed = begin_work(queue.inbox), queue.clock() - 1000
    queue.inbox.end(work, all_done(work), RunReport(pushes=(pushed, pushed - 500)))
    queue.inbox.put([arrival("b")])
    calls = list[tuple[Instant, ...]]()

    def earliest(pushes: tuple[Instant, ...]) -> Instant:
        calls.append(tuple(pushes))
        return pushes[-1] + 10_000

    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY), earliest) is None
    assert calls == [(pushed - 500, pushed)]
    assert due(queue) == {REPOSITORY.text: (pushed + 10_000, CHANGE)}
    queue.clock.ahead += 10_000
    work = queue.inbox.begin(take_lease(queue.inbox, REPOSITORY), earliest)
    assert [each.id for each in work.deliveries] == ["9:b"]


def test_a_stopping_worker_releases_its_leases_and_its_unfinished_runs_count_as_never_begun(queue: Queue) -> None:
    third = RepositoryKey(7, 72)
    queue.inbox.put([arrival("e", RepositoryKey(7, 73))])
    queue.inbox.end(begin_work(queue.inbox, RepositoryKey(7, 73)), [Result(1, "waiting", "the network")], RunReport())
    queue.inbox.put([arrival("a"), arrival("b"), arrival("c", OTHER), arrival("d", third)])
    other = Inbox(queue.inbox.database, "two", queue.clock)
    abandoned = begin_work(queue.inbox)
    continued = begin_work(other, OTHER)
    take_lease(queue.inbox, third)
    assert queue.inbox.abandon() == 2
    assert due(queue).keys() == {REPOSITORY.text, third.text, "7-73"}
    *others, before = queue.inbox.deliveries()
    assert {row.id: row.begun for row in others} == {"9:a": 0, "9:b": 0, "9:c": 2, "9:d": 0}
    assert (before.id, before.state, before.attempts) == ("9:e", "waiting", 1), "its result was stored before"
    assert not queue.inbox.end(abandoned, all_done(abandoned), RunReport())
    assert other.end(continued, all_done(continued), RunReport())
    again = begin_work(other, REPOSITORY)
    assert [(each.id, each.begun) for each in again.deliveries] == [("9:a", 1), ("9:b", 1)]
    assert queue.inbox.abandon() == 0


@pytest.mark.slow
def test_deliveries_that_arrive_or_are_retried_while_runs_end_are_done_exactly_once(queue: Queue) -> None:
    """Each delivery is dead at first, and a thread retries the dead all the time."""
    repositories, count, stop = (REPOSITORY, OTHER), 30, threading.Event()
    ended = Counter[tuple[int, str]]()

    def put(part: int) -> None:
        for number in range(count):
            queue.inbox.put([arrival(f"{part}-{number}-{repository.text}", repository) for repository in repositories])

    def retry_all() -> None:
        while not stop.is_set():
            replay(queue.inbox, range(1, 4 * count + 1))

    def work(name: str) -> None:
        inbox = Inbox(queue.inbox.database, name, queue.clock)
        while not stop.is_set():
            lease = inbox.queue.claim(name)
            run = inbox.begin(lease) if lease else None
            if run is None:
                time.sleep(0.01)
                continue
            results = [
                Result(each.seq, "done" if ended[each.seq, "dead"] else "dead", "again") for each in run.deliveries
            ]
            ended.update((each.seq, each.state) for each in results)
            assert inbox.end(run, results, RunReport())

    with ThreadPoolExecutor(5) as pool:
        futures = [pool.submit(work, "one"), pool.submit(work, "two"), pool.submit(retry_all)]
        try:
            for each in [pool.submit(put, part) for part in range(2)]:
                each.result(60)
            until(lambda: queue.inbox.counts()["done"] == 4 * count or any(each.done() for each in futures), 60)
            until(lambda: not queue.keys())
        finally:
            stop.set()
        for each in futures:
            each.result(10)
    assert set(ended.values()) == {1}
    assert len(ended) == 2 * 4 * count


def test_one_process_leads_until_it_has_been_silent_for_too_long(queue: Queue) -> None:
    heartbeats = Heartbeats(queue.inbox.database, queue.clock)
    assert heartbeats.try_lead("exporter", "one", 15)
    assert heartbeats.try_lead("other", "two", 15), "each name has a process of its own"
    for _ in range(3):
        queue.clock.ahead += 10_000
        assert not heartbeats.try_lead("exporter", "two", 15)
        assert heartbeats.try_lead("exporter", "one", 15)
    queue.clock.ahead += 15_500
    assert heartbeats.try_lead("exporter", "two", 15)
    assert not heartbeats.try_lead("exporter", "one", 15)
    assert heartbeats.all()["exporter"][1] == {"process": "two"}


def test_a_repository_is_requeued_at_the_time_that_its_run_reports(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    requeue_after = queue.clock() + 60_000
    queue.inbox.end(work, all_done(work), RunReport(requeue_after=requeue_after, backoff=60_000))
    (row,) = queue.inbox.deliveries(DeliveryFilter(state="waiting"))
    assert (row.id, row.event, row.next_at) == (
        f"{APP}:again-{REPOSITORY.text}-{work.id}",
        Event("catch-up"),
        requeue_after,
    )
    assert row.name == "octo-org/hello-world"
    assert queue.inbox.installations.repository(REPOSITORY).backoff == 60_000
    assert due(queue) == {REPOSITORY.text: (requeue_after, CATCH_UP)}


def test_a_repository_is_requeued_only_once_and_at_the_earliest_time(queue: Queue) -> None:
    soon, late = queue.clock() + 60_000, queue.clock() + 90_000
    for name, at in (("a", late), ("b", soon), ("c", late)):
        queue.inbox.put([arrival(name)])
        work = begin_work(queue.inbox)
        queue.inbox.end(work, all_done(work), RunReport(requeue_after=at))
    assert [row.next_at for row in queue.inbox.deliveries(DeliveryFilter(state="waiting"))] == [soon]
    assert due(queue) == {REPOSITORY.text: (soon, CATCH_UP)}


def test_a_long_history_read_continues_at_once_but_behind_everything_else(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    queue.inbox.put([replace(arrival("b", OTHER), priority=CATCH_UP)])
    queue.inbox.end(work, all_done(work), RunReport(requeue_after=queue.clock()))
    assert due(queue)[REPOSITORY.text][1] == HISTORY
    claimed = [queue.inbox.queue.claim("one") for _ in range(2)]
    assert [lease.key for lease in claimed if lease] == [OTHER.text, REPOSITORY.text]


def test_deliveries_are_listed_newest_first_by_page_state_and_repository(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number), OTHER if number % 2 else REPOSITORY) for number in range(6)])
    listed = queue.inbox.deliveries(limit=2)
    assert [row.id for row in listed] == ["9:5", "9:4"]
    assert [row.id for row in queue.inbox.deliveries(DeliveryFilter(before=listed[-1].seq), limit=2)] == ["9:3", "9:2"]
    assert [row.id for row in queue.inbox.deliveries(DeliveryFilter(repository=OTHER))] == ["9:5", "9:3", "9:1"]
    work = begin_work(queue.inbox)
    queue.inbox.end(work, all_done(work), RunReport())
    assert [row.id for row in queue.inbox.deliveries(DeliveryFilter(state="done"))] == ["9:4", "9:2", "9:0"]
    assert queue.inbox.deliveries(DeliveryFilter(state="done", repository=OTHER)) == []
    assert queue.inbox.delivery(999) is None
    assert queue.inbox.delivery(2) == (queue.inbox.deliveries(DeliveryFilter(repository=OTHER))[-1], None)


def test_stored_delivery_ids_are_found(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(3)])
    ids = [f"9:{number}" for number in range(1200)]
    assert queue.inbox.existing_ids(ids) == {"9:0", "9:1", "9:2"}
    assert queue.inbox.existing_ids([]) == frozenset()


def test_states_are_counted_and_the_oldest_due_delivery_is_found(queue: Queue) -> None:
    assert queue.inbox.counts() == {"waiting": 0, "working": 0, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 0
    queue.inbox.put([arrival("a", received_at=500), arrival("b", received_at=700), arrival("c", OTHER)])
    work = begin_work(queue.inbox)
    first, second = (each.seq for each in work.deliveries)
    later = queue.clock() + 60_000
    queue.inbox.end(work, [Result(first, "waiting", "", later), Result(second, "waiting", "")], RunReport())
    begin_work(queue.inbox, OTHER)
    assert queue.inbox.counts() == {"waiting": 2, "working": 1, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 700


def test_deliveries_are_counted_up_to_a_limit(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(7)])
    assert [queue.inbox.counts(most)["waiting"] for most in (5, 7, 100)] == [5, 7, 7]
    assert queue.inbox.counts(5, ["waiting", "dead"]) == {"waiting": 5, "dead": 0}


def test_any_number_of_deliveries_can_be_retried_or_dropped_at_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begin_work(queue.inbox)
    queue.inbox.end(work, [Result(each.seq, "dead", "no permission") for each in work.deliveries], RunReport())
    first, second = (each.seq for each in work.deliveries)
    unknown = range(second + 1, second + 70_000)
    assert replay(queue.inbox, [first, *unknown]) == 1
    assert drop(queue.inbox, [*unknown, second], "not wanted") == 1
    assert (replay(queue.inbox, []), drop(queue.inbox, [], "")) == (0, 0)
    assert [row.state for row in queue.inbox.deliveries()] == ["dropped", "waiting"]
    assert queue.keys() == {REPOSITORY.text}


@pytest.mark.parametrize(
    ("table", "allowed"),
    [
        ("deliveries", {"SCAN deliveries"}),  # the newest, by primary key
        # Leased histories are counted up to a limit, and the first of two rows is used.
        ("queue", {"SCAN queue USING INDEX queue_histories", "USE TEMP B-TREE FOR ORDER BY"}),
    ],
)
def test_frequent_queries_do_not_scan_whole_tables(tmp_path: Path, table: str, allowed: set[str]) -> None:
    """Checks the plan of each statement: one with "SCAN" grows with the table, unless it takes only the first rows in
    order."""
    plans, database = list[str](), Database.in_folder(tmp_path)

    def explain(connection: Any, _cursor: Any, sql: str, values: Any, *_: object) -> None:
        if table in sql:
            raw = connection.connection.cursor()
            plans.extend(str(row[3]) for row in raw.execute(f"explain query plan {sql}", values))

    database.make_tables()
    inbox = Inbox(database, "one", Clock())
    inbox.put([arrival("a")])
    sa.event.listen(database.engine, "before_cursor_execute", explain)
    inbox.put([arrival("b")])
    inbox.counts()
    inbox.oldest_waiting()
    inbox.deliveries()
    inbox.deliveries(DeliveryFilter(state="dead"))
    inbox.deliveries(DeliveryFilter(state="done", before=9))
    inbox.deliveries(DeliveryFilter(repository=REPOSITORY, state="waiting"), limit=1)
    inbox.purge(1)
    work = inbox.begin(claim(inbox))
    assert work is not None
    inbox.queue.renew("one", [work.id])
    inbox.end(work, [Result(1, "waiting", "")], RunReport(requeue_after=5))
    for _ in range(8):  # one of them takes the key that has waited longest
        inbox.give_back(claim(inbox), 0)
    inbox.queue.ensure(["resync"])
    inbox.abandon()
    database.close()
    assert len(plans) > 20
    assert {plan for plan in plans if plan.startswith((f"SCAN {table}", "USE TEMP B-TREE FOR ORDER"))} == allowed


def test_old_finished_deliveries_are_purged_except_dead_ones(queue: Queue) -> None:
    queue.inbox.put([arrival(name, RepositoryKey(7, number)) for number, name in enumerate("abcd", 1)])
    for number, state in enumerate(("done", "dead", "dropped"), 1):
        work = begin_work(queue.inbox, RepositoryKey(7, number))
        queue.inbox.end(work, [Result(work.deliveries[0].seq, state, "")], RunReport())  # type: ignore[arg-type]
    assert queue.inbox.purge(queue.clock() - 60_000) == 0
    assert queue.inbox.purge(queue.clock() + 1) == 2
    assert [row.id for row in queue.inbox.deliveries()] == ["9:d", "9:b"]
    assert queue.inbox.put([arrival("e")]) == [True]
    assert queue.inbox.deliveries()[0].seq == 5


def test_only_the_heartbeats_of_gone_workers_are_purged(queue: Queue) -> None:
    for name in ("worker:a-1", "worker_b", "app"):
        queue.inbox.heartbeats.store(name, {"pid": 7})
    queue.inbox.purge(queue.clock() - 60_000)
    assert queue.inbox.heartbeats.all().keys() == {"worker:a-1", "worker_b", "app"}
    queue.inbox.purge(queue.clock() + 1)
    assert queue.inbox.heartbeats.all().keys() == {"worker_b", "app"}


def test_an_unreachable_database_is_a_world_error(tmp_path: Path) -> None:
    database = Database("postgresql://nobody:hush@127.0.0.1:9/none", hurry=True)
    with pytest.raises(WorldError, match="does not answer") as caught, database.transaction():
        pass
    assert "hush" not in str(caught.value)
    with pytest.raises(WorldError, match="does not answer"):
        Database.in_folder(tmp_path / "nowhere").make_tables()


def test_an_unsupported_database_url_is_a_user_error() -> None:
    with pytest.raises(UserError, match="postgresql://"):
        Database("mysql://localhost/x")


def test_deliveries_in_sqlite_survive_power_loss(sqlite_template: Path) -> None:
    database = Database.in_folder(sqlite_template.parent)
    assert [database.rows(f"pragma {name}") for name in ("journal_mode", "synchronous")] == [
        [{"journal_mode": "wal"}],
        [{"synchronous": 2}],
    ]
    database.close()


def test_a_delivery_is_found_by_its_number_and_by_the_id_that_github_shows(queue: Queue) -> None:
    guid = "5b2c7d10-1c0d-11ef-9f6e-0a1b2c3d4e5f"
    queue.inbox.put([arrival("another"), arrival(guid)])
    names = ("2", guid, guid.upper(), f"7:{guid}", guid[:-1], f"%:{guid}", "another", "%", "")
    assert [queue.inbox.find(name) for name in names] == [2, 2, 2, 2, 0, 0, 0, 0, 0]
