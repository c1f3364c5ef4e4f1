"""The inbox: what a run gets and may end, when its key is due again, who loses a lease, and what is counted."""

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
from bot.server.database import Database
from bot.server.inbox import Inbox
from bot.server.inbox_rows import MOST_ALONE, NEVER_ENDED
from bot.server.model import Arrival, Instant, PendingWork, Priority, RepositoryKey, Result, RunReport
from bot.server.queue import LEASE
from tests.server.queues import APP, REPOSITORY, Clock, Queue, all_done, arrival, leased, until

OTHER = RepositoryKey(7, 71)
URGENT, CHANGE, CATCH_UP, HISTORY = Priority


def begun(queue: Queue, repository: RepositoryKey = REPOSITORY) -> PendingWork:
    work = queue.inbox.begin(leased(queue.inbox, repository))
    assert work is not None
    return work


def died(queue: Queue) -> None:
    """The worker is gone, and who started it noticed."""
    assert queue.inbox.queue.release(queue.inbox.worker) > 0


def due(queue: Queue) -> dict[str, tuple[Instant, Priority]]:
    """The keys that nobody has leased, when each is due and how urgent it is."""
    with queue.inbox.database.transaction() as asking:
        found = asking.rows("select key, due, priority from queue where lease = ''")
    return {row["key"]: (row["due"], Priority(row["priority"])) for row in found}


def test_a_delivery_is_kept_with_where_to_look_and_without_what_anybody_is_called(queue: Queue) -> None:
    event = Event("issue_comment", "created", 5, True, 77, "monalisa", "octo-org/other#9", (("reason", "why"),), (3,))
    extra = (("added", "17,18"), ("account", "octo-org"))
    given = Arrival("9:a", REPOSITORY, event, "octo-org/hello-world", False, 12_345_678_901_234, "r1", extra)
    queue.inbox.put([given])
    (row,) = queue.inbox.deliveries()
    assert row.event == Event("issue_comment", "created", 5, True, 77, moved_to="octo-org/other#9")
    assert (row.id, row.repository, row.name, row.private) == ("9:a", REPOSITORY, "octo-org/hello-world", False)
    assert (row.state, row.received_at, row.request, row.extra) == ("waiting", 12_345_678_901_234, "r1", extra)


def test_hostile_text_is_kept_as_something_that_can_be_kept(queue: Queue) -> None:
    bad = replace(arrival("a"), name="a\0\ud800/b", event=Event("issues", "x\0\ud800", 2**53 - 1), extra=(("a", "\0"),))
    assert queue.inbox.put([bad, arrival("b")]) == [True, True]
    work = begun(queue)
    first = work.deliveries[0]
    assert first.event.number == 2**53 - 1
    results = [Result(each.seq, "done", "\0\ud800' --", url="\0") for each in work.deliveries]
    assert queue.inbox.end(work, results, RunReport())
    assert queue.inbox.deliveries()[-1].reason.endswith("' --")


def test_nothing_is_put_for_no_deliveries(queue: Queue) -> None:
    assert queue.inbox.put([]) == []


def test_a_run_gets_what_is_due_oldest_first_and_another_repository_is_not_touched(queue: Queue) -> None:
    queue.inbox.put([arrival("b", number=2), arrival("x", OTHER), arrival("a", number=1)])
    work = begun(queue)
    assert [(each.id, each.state, each.begun, each.run) for each in work.deliveries] == [
        ("9:b", "working", 1, work.id),
        ("9:a", "working", 1, work.id),
    ]
    assert [row.state for row in queue.inbox.deliveries(repository=OTHER)] == ["waiting"]
    assert [row.state for row in queue.inbox.deliveries(repository=REPOSITORY)] == ["working", "working"]


def test_a_key_whose_deliveries_were_dropped_has_nothing_to_do_and_is_gone(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    assert queue.inbox.drop([1, 2], "not wanted") == 2
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert queue.keys() == set()


def test_what_ended_says_so_with_its_run(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    url, shown = "https://github.example/c/1", ((4, 0.75), (5, 0.5))
    near = ((4, 0.75, "same error"), (6, 0.31, ""))
    result = Result(work.deliveries[0].seq, "done", "because", said="created", url=url, matches=shown, nearest=near)
    told = RunReport((("look", 0.5), ("push", 1.25)), (111, 222), 7, 3, 88_000, ("a note",))
    assert queue.inbox.end(work, [result], told)
    found = queue.inbox.delivery(1)
    assert found is not None
    row, run = found
    assert (row.state, row.reason, row.said, row.url, row.matches) == ("done", "because", "created", url, shown)
    assert row.nearest == near
    assert (row.begun, row.next_at, row.attempts, row.run) == (0, 0, 0, work.id)
    assert run is not None
    assert (run.id, run.repository, run.worker, run.began) == (work.id, REPOSITORY, "one", work.began_at)
    assert (run.stages, run.pushes, run.notes) == (told.stages, told.pushes, told.notes)
    assert (run.reads, run.writes) == (7, 3)
    assert run.began <= run.ended == row.finished_at <= queue.clock()


def test_after_a_death_each_that_was_begun_comes_alone_and_the_younger_after_them(queue: Queue) -> None:
    queue.inbox.put([arrival(name) for name in "abc"])
    assert len(begun(queue).deliveries) == 3
    died(queue)
    queue.inbox.put([arrival("d"), arrival("e")])
    came = list[list[tuple[str, int]]]()
    for _ in range(4):
        work = begun(queue)
        came.append([(each.id, each.begun) for each in work.deliveries])
        queue.inbox.end(work, all_done(work), RunReport())
    assert came == [[("9:a", 2)], [("9:b", 2)], [("9:c", 2)], [("9:d", 1), ("9:e", 1)]]
    assert queue.keys() == set()


def test_one_that_was_begun_comes_alone_behind_others_too(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    queue.inbox.end(work, [Result(1, "waiting", "the network", queue.clock() + 60_000)], RunReport())
    queue.inbox.put([arrival("b"), arrival("c")])
    assert [each.id for each in begun(queue).deliveries] == ["9:b", "9:c"]
    died(queue)
    queue.clock.ahead += 60_000
    came = list[list[str]]()
    for _ in range(3):
        work = begun(queue)
        came.append([each.id for each in work.deliveries])
        queue.inbox.end(work, all_done(work), RunReport())
    assert came == [["9:a"], ["9:b"], ["9:c"]]


def test_one_that_kills_five_times_alone_is_dead_and_its_neighbours_are_not_counted(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b"), arrival("c")])
    assert [each.begun for each in begun(queue).deliveries] == [1, 1, 1]
    for before in range(5):
        died(queue)
        assert [(each.id, each.begun) for each in begun(queue).deliveries] == [("9:a", before + 2)]
        assert [row.begun for row in queue.inbox.deliveries(state="waiting")] == [1, 1]
    died(queue)
    assert [(each.id, each.begun) for each in begun(queue).deliveries] == [("9:b", 2)]
    (dead,) = queue.inbox.deliveries(state="dead")
    assert (dead.id, dead.reason, dead.begun) == ("9:a", NEVER_ENDED, 0)
    assert 0 < dead.finished_at <= queue.clock()


def test_one_that_came_alone_has_five_tries_as_well_and_then_its_key_has_nothing_to_do(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for before in range(5):
        assert [each.begun for each in begun(queue).deliveries] == [before + 2]
        died(queue)
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert queue.keys() == set()
    (dead,) = queue.inbox.deliveries()
    assert (dead.state, dead.reason) == ("dead", NEVER_ENDED)


def test_a_try_that_ended_is_no_death(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for _ in range(MOST_ALONE + 2):
        work = begun(queue)
        assert work.deliveries[0].begun == 2
        queue.inbox.end(work, [Result(1, "waiting", "the network")], RunReport())


def test_the_dead_are_tried_again_as_if_they_were_new(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=URGENT)])
    for _ in range(MOST_ALONE):
        begun(queue)
        died(queue)
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert queue.inbox.retry([1]) == 1
    (again,) = queue.inbox.deliveries(state="waiting")
    assert (again.id, again.begun, again.attempts, again.reason, again.finished_at) == ("9:a", 0, 0, "", 0)
    assert queue.inbox.oldest_waiting() >= again.next_at > again.received_at, "it waits since now"
    assert [priority for _, priority in due(queue).values()] == [URGENT]
    assert [each.begun for each in begun(queue).deliveries] == [2]


def test_who_lost_the_lease_stores_nothing(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    lost = begun(queue)
    died(queue)
    taken_over = begun(queue)
    report = RunReport(pushes=(5,), notes=("a note",), requeue_after=queue.clock() + 60_000)
    assert not queue.inbox.end(lost, all_done(lost), report)
    assert queue.inbox.counters() == {}
    assert queue.inbox.installations().repository(REPOSITORY).pushes == ()
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "working"]
    assert (queue.keys(), due(queue)) == ({REPOSITORY.text}, {})
    assert queue.inbox.end(taken_over, all_done(taken_over), RunReport())
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting", "done"]


def test_who_lost_the_lease_to_one_that_found_nothing_due_stores_nothing_either(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lost = begun(queue)
    queue.inbox.installations().pause(REPOSITORY.installation, "core", queue.clock() + 60_000)
    died(queue)
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert not queue.inbox.end(lost, all_done(lost), RunReport())
    assert queue.keys() == {REPOSITORY.text}


def test_who_lost_the_lease_begins_nothing_and_gives_nothing_back(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    lost = leased(queue.inbox, REPOSITORY)
    died(queue)
    taken_over = leased(queue.inbox, REPOSITORY)
    assert queue.inbox.begin(lost) is None
    queue.inbox.give_back(lost, 0)
    assert due(queue) == {}
    assert [row.state for row in queue.inbox.deliveries()] == ["waiting"]
    assert queue.inbox.begin(taken_over) is not None


def test_a_lease_that_ran_out_is_not_lost_until_somebody_takes_the_key(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", OTHER)])
    late, lost = begun(queue), begun(queue, OTHER)
    queue.clock.ahead += LEASE - 1000
    queue.inbox.queue.renew("one", [late.id])
    queue.clock.ahead += 1001
    begun(queue, OTHER)
    queue.clock.ahead += LEASE
    assert queue.inbox.end(late, all_done(late), RunReport())
    assert not queue.inbox.end(lost, all_done(lost), RunReport())


def test_a_run_ends_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    assert queue.inbox.end(work, all_done(work), RunReport())
    assert not queue.inbox.end(work, all_done(work), RunReport())
    assert queue.inbox.counters()["precedent_runs_total", ("done",)] == 1


def test_only_tries_that_count_are_counted(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    for counts in (True, False, True):
        work = begun(queue)
        queue.inbox.end(work, [Result(1, "waiting", "the network", counts=counts)], RunReport())
    (row,) = queue.inbox.deliveries()
    assert (row.state, row.attempts, row.begun, row.reason) == ("waiting", 2, 0, "the network")


def test_what_a_run_said_nothing_of_waits_as_if_its_worker_had_died(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "done", "")], RunReport())
    (row,) = queue.inbox.deliveries(state="waiting")
    assert (row.id, row.begun) == ("9:b", 1)
    assert [(each.id, each.begun) for each in begun(queue).deliveries] == [("9:b", 2)]


def test_a_key_is_due_when_the_next_of_its_deliveries_is(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), replace(arrival("b"), priority=URGENT), replace(arrival("c"), priority=HISTORY)])
    work = begun(queue)
    soon, late = queue.clock() + 60_000, queue.clock() + 90_000
    first, second, third = (each.seq for each in work.deliveries)
    results = [Result(first, "done", ""), Result(second, "waiting", "", late), Result(third, "waiting", "", soon)]
    queue.inbox.end(work, results, RunReport())
    assert due(queue) == {REPOSITORY.text: (soon, HISTORY)}
    assert queue.inbox.queue.claim("two") is None
    queue.clock.ahead += 60_000
    work = begun(queue)
    assert [each.seq for each in work.deliveries] == [third]
    queue.inbox.end(work, all_done(work), RunReport())
    assert due(queue) == {REPOSITORY.text: (late, URGENT)}
    queue.clock.ahead += 30_000
    work = begun(queue)
    assert [each.seq for each in work.deliveries] == [second]
    queue.inbox.end(work, all_done(work), RunReport())
    assert queue.keys() == set()


def test_a_lease_that_comes_too_early_waits_for_what_is_due(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work, later = begun(queue), queue.clock() + 60_000
    queue.inbox.end(work, [Result(1, "waiting", "the network", later)], RunReport())
    with queue.inbox.database.transaction() as adding:
        queue.inbox.queue.add(adding, [(REPOSITORY.text, URGENT, 0)])
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert due(queue) == {REPOSITORY.text: (later, CHANGE)}


def test_what_comes_during_a_run_is_done_by_the_next(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    queue.inbox.put([replace(arrival("b"), priority=URGENT)])
    assert (queue.keys(), due(queue)) == ({REPOSITORY.text}, {})
    queue.inbox.end(work, all_done(work), RunReport())
    assert [priority for _, priority in due(queue).values()] == [URGENT]
    assert [each.id for each in begun(queue).deliveries] == ["9:b"]


def test_a_key_is_as_urgent_as_the_most_urgent_of_its_deliveries(queue: Queue) -> None:
    given = [(REPOSITORY, HISTORY), (REPOSITORY, URGENT), (REPOSITORY, CHANGE), (OTHER, CATCH_UP)]
    queue.inbox.put([replace(arrival(str(n), repository), priority=each) for n, (repository, each) in enumerate(given)])
    assert {key: priority for key, (_, priority) in due(queue).items()} == {
        REPOSITORY.text: URGENT,
        OTHER.text: CATCH_UP,
    }
    queue.inbox.put([replace(arrival("more", OTHER), priority=CHANGE)])
    assert due(queue)[OTHER.text][1] == CHANGE


def test_a_lease_that_is_given_back_is_due_later_and_nothing_of_it_was_begun(queue: Queue) -> None:
    queue.inbox.put([replace(arrival("a"), priority=URGENT)])
    lease = leased(queue.inbox, REPOSITORY)
    queue.inbox.give_back(lease, 60)
    at, priority = due(queue)[REPOSITORY.text]
    assert priority == URGENT
    assert 55_000 < at - queue.clock() <= 60_000
    assert queue.inbox.queue.claim("two") is None
    queue.clock.ahead += 60_000
    assert begun(queue).deliveries[0].begun == 2


def test_the_keys_of_an_installation_that_is_paused_are_due_when_the_pause_ends(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", RepositoryKey(8, 1))])
    register, paused = queue.inbox.installations(), queue.clock() + 5000
    register.pause(7, "core", paused)
    register.pause(7, "secondary", paused - 4000)
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert due(queue)[REPOSITORY.text] == (paused, CHANGE)
    assert [row.begun for row in queue.inbox.deliveries(repository=REPOSITORY)] == [0]
    assert begun(queue, RepositoryKey(8, 1)).deliveries[0].id == "9:b"
    assert queue.inbox.queue.claim("two") is None, "nobody waits with a lease"
    queue.inbox.put([replace(arrival("c"), priority=URGENT)])
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None, "what comes meanwhile does not end the pause"
    assert due(queue)[REPOSITORY.text] == (paused, URGENT)
    queue.clock.ahead += 5001
    assert [each.id for each in begun(queue).deliveries] == ["9:a", "9:c"]


def test_a_dead_run_in_an_installation_that_is_paused_is_repeated_after_the_pause(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    begun(queue)
    died(queue)
    paused = queue.clock() + 5000
    queue.inbox.installations().pause(7, "core", paused)
    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY)) is None
    assert due(queue) == {REPOSITORY.text: (paused, CHANGE)}
    queue.clock.ahead += 5001
    assert begun(queue).deliveries[0].begun == 3


def test_a_repository_whose_last_push_is_too_recent_is_due_when_it_may_push_again(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work, pushed = begun(queue), queue.clock() - 1000
    queue.inbox.end(work, all_done(work), RunReport(pushes=(pushed, pushed - 500)))
    queue.inbox.put([arrival("b")])
    asked = list[tuple[Instant, ...]]()

    def earliest(pushes: tuple[Instant, ...]) -> Instant:
        asked.append(tuple(pushes))
        return pushes[-1] + 10_000

    assert queue.inbox.begin(leased(queue.inbox, REPOSITORY), earliest) is None
    assert asked == [(pushed - 500, pushed)]
    assert due(queue) == {REPOSITORY.text: (pushed + 10_000, CHANGE)}
    queue.clock.ahead += 10_000
    work = queue.inbox.begin(leased(queue.inbox, REPOSITORY), earliest)
    assert [each.id for each in work.deliveries] == ["9:b"]


def test_a_worker_that_stops_gives_its_leases_back_and_its_runs_were_never_begun(queue: Queue) -> None:
    third = RepositoryKey(7, 72)
    queue.inbox.put([arrival("a"), arrival("b"), arrival("c", OTHER), arrival("d", third)])
    other = Inbox(queue.inbox.database, "two", queue.clock)
    left = begun(queue)
    kept = other.begin(leased(other, OTHER))
    assert kept is not None
    leased(queue.inbox, third)
    assert queue.inbox.abandon() == 2
    assert due(queue).keys() == {REPOSITORY.text, third.text}
    assert {row.id: row.begun for row in queue.inbox.deliveries()} == {"9:a": 0, "9:b": 0, "9:c": 2, "9:d": 0}
    assert not queue.inbox.end(left, all_done(left), RunReport())
    assert other.end(kept, all_done(kept), RunReport())
    again = other.begin(leased(other, REPOSITORY))
    assert again is not None
    assert [(each.id, each.begun) for each in again.deliveries] == [("9:a", 1), ("9:b", 1)]
    assert queue.inbox.abandon() == 0


def test_what_ended_before_a_worker_stops_stays_ended(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b", OTHER)])
    done = begun(queue)
    queue.inbox.end(done, [Result(1, "waiting", "the network")], RunReport())
    begun(queue, OTHER)
    queue.inbox.abandon()
    assert [(row.id, row.state, row.attempts) for row in queue.inbox.deliveries(repository=REPOSITORY)] == [
        ("9:a", "waiting", 1)
    ]


@pytest.mark.slow
def test_what_comes_or_is_tried_again_while_runs_end_is_done_and_nothing_twice(queue: Queue) -> None:
    """Each delivery is dead at first, and somebody tries the dead again all the time."""
    repositories, many, stop = (REPOSITORY, OTHER), 30, threading.Event()
    ended = Counter[tuple[int, str]]()

    def put(part: int) -> None:
        for number in range(many):
            queue.inbox.put([arrival(f"{part}-{number}-{repository.text}", repository) for repository in repositories])

    def retry() -> None:
        while not stop.is_set():
            queue.inbox.retry(range(1, 4 * many + 1))

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
        going = [pool.submit(work, "one"), pool.submit(work, "two"), pool.submit(retry)]
        try:
            for each in [pool.submit(put, part) for part in range(2)]:
                each.result(60)
            until(lambda: queue.inbox.counts()["done"] == 4 * many or any(each.done() for each in going), 60)
            until(lambda: not queue.keys())
        finally:
            stop.set()
        for each in going:
            each.result(10)
    assert set(ended.values()) == {1}
    assert len(ended) == 2 * 4 * many


def test_one_process_leads_until_it_is_silent_for_too_long(queue: Queue) -> None:
    one, two = queue.inbox, Inbox(queue.inbox.database, "two", queue.clock)
    assert one.try_lead("exporter", 15)
    assert two.try_lead("other", 15), "each name has a process of its own"
    for _ in range(3):
        queue.clock.ahead += 10_000
        assert not two.try_lead("exporter", 15)
        assert one.try_lead("exporter", 15)
    queue.clock.ahead += 15_500
    assert two.try_lead("exporter", 15)
    assert not one.try_lead("exporter", 15)
    assert one.heartbeats()["exporter"][1] == {"process": "two"}


def test_a_repository_is_looked_at_again_when_its_run_says_so(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    again = queue.clock() + 60_000
    queue.inbox.end(work, all_done(work), RunReport(requeue_after=again, backoff=60_000))
    (row,) = queue.inbox.deliveries(state="waiting")
    assert (row.id, row.event, row.next_at) == (f"{APP}:again-{REPOSITORY.text}-{work.id}", Event("catch-up"), again)
    assert row.name == "octo-org/hello-world"
    assert queue.inbox.installations().repository(REPOSITORY).backoff == 60_000
    assert due(queue) == {REPOSITORY.text: (again, CATCH_UP)}


def test_a_repository_is_looked_at_again_once_and_at_the_earliest_time(queue: Queue) -> None:
    soon, late = queue.clock() + 60_000, queue.clock() + 90_000
    for name, at in (("a", late), ("b", soon), ("c", late)):
        queue.inbox.put([arrival(name)])
        work = begun(queue)
        queue.inbox.end(work, all_done(work), RunReport(requeue_after=at))
    assert [row.next_at for row in queue.inbox.deliveries(state="waiting")] == [soon]
    assert due(queue) == {REPOSITORY.text: (soon, CATCH_UP)}


def test_a_long_reading_goes_on_at_once_behind_everything_else(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begun(queue)
    queue.inbox.put([replace(arrival("b", OTHER), priority=CATCH_UP)])
    queue.inbox.end(work, all_done(work), RunReport(requeue_after=queue.clock()))
    assert due(queue)[REPOSITORY.text][1] == HISTORY
    claimed = [queue.inbox.queue.claim("one") for _ in range(2)]
    assert [lease.key for lease in claimed if lease] == [OTHER.text, REPOSITORY.text]


def test_deliveries_are_listed_latest_first_by_page_state_and_repository(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number), OTHER if number % 2 else REPOSITORY) for number in range(6)])
    listed = queue.inbox.deliveries(limit=2)
    assert [row.id for row in listed] == ["9:5", "9:4"]
    assert [row.id for row in queue.inbox.deliveries(limit=2, before=listed[-1].seq)] == ["9:3", "9:2"]
    assert [row.id for row in queue.inbox.deliveries(repository=OTHER)] == ["9:5", "9:3", "9:1"]
    work = begun(queue)
    queue.inbox.end(work, all_done(work), RunReport())
    assert [row.id for row in queue.inbox.deliveries(state="done")] == ["9:4", "9:2", "9:0"]
    assert queue.inbox.deliveries(state="done", repository=OTHER) == []
    assert queue.inbox.delivery(999) is None
    assert queue.inbox.delivery(2) == (queue.inbox.deliveries(repository=OTHER)[-1], None)


def test_what_came_in_is_known(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(3)])
    asked = [f"9:{number}" for number in range(1200)]
    assert queue.inbox.existing_ids(asked) == {"9:0", "9:1", "9:2"}
    assert queue.inbox.existing_ids([]) == frozenset()


def test_states_are_counted_and_the_oldest_that_is_due_is_found(queue: Queue) -> None:
    assert queue.inbox.counts() == {"waiting": 0, "working": 0, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 0
    queue.inbox.put([arrival("a", received_at=500), arrival("b", received_at=700), arrival("c", OTHER)])
    work = begun(queue)
    first, second = (each.seq for each in work.deliveries)
    later = queue.clock() + 60_000
    queue.inbox.end(work, [Result(first, "waiting", "", later), Result(second, "waiting", "")], RunReport())
    begun(queue, OTHER)
    assert queue.inbox.counts() == {"waiting": 2, "working": 1, "done": 0, "dead": 0, "dropped": 0}
    assert queue.inbox.oldest_waiting() == 700


def test_so_many_are_counted_and_no_more(queue: Queue) -> None:
    queue.inbox.put([arrival(str(number)) for number in range(7)])
    assert [queue.inbox.counts(most)["waiting"] for most in (5, 7, 100)] == [5, 7, 7]
    assert queue.inbox.counts(5, ["waiting", "dead"]) == {"waiting": 5, "dead": 0}


def test_any_number_can_be_tried_again_or_dropped_at_once(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begun(queue)
    queue.inbox.end(work, [Result(each.seq, "dead", "no permission") for each in work.deliveries], RunReport())
    first, second = (each.seq for each in work.deliveries)
    many = range(second + 1, second + 70_000)
    assert queue.inbox.retry([first, *many]) == 1
    assert queue.inbox.drop([*many, second], "not wanted") == 1
    assert (queue.inbox.retry([]), queue.inbox.drop([], "")) == (0, 0)
    assert [row.state for row in queue.inbox.deliveries()] == ["dropped", "waiting"]
    assert queue.keys() == {REPOSITORY.text}


def test_the_first_that_is_due_is_found_behind_those_that_are_not(queue: Queue) -> None:
    queue.inbox.put([arrival("a", received_at=500), arrival("b", OTHER, received_at=700)])
    work = begun(queue)
    queue.inbox.end(work, [Result(work.deliveries[0].seq, "waiting", "", queue.clock() + 60_000)], RunReport())
    assert queue.inbox.oldest_waiting() == 700


@pytest.mark.parametrize(
    ("table", "first_ones"),
    [
        ("deliveries", {"SCAN deliveries"}),  # the latest of all, by the key
        # Leased histories are counted up to a limit, and the first of two rows is taken.
        ("queue", {"SCAN queue USING INDEX queue_histories", "USE TEMP B-TREE FOR ORDER BY"}),
    ],
)
def test_what_is_asked_every_few_seconds_goes_through_no_whole_table(
    tmp_path: Path, table: str, first_ones: set[str]
) -> None:
    """The plan of each statement that is run: one that begins with "SCAN" grows with the table, unless it takes the
    first rows in their order and no more."""
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
    inbox.deliveries(state="dead")
    inbox.deliveries(state="done", before=9)
    inbox.deliveries(repository=REPOSITORY, state="waiting", limit=1)
    inbox.purge(1)
    work = inbox.begin(leased(inbox, REPOSITORY))
    assert work is not None
    inbox.queue.renew("one", [work.id])
    inbox.end(work, [Result(1, "waiting", "")], RunReport(requeue_after=5))
    for _ in range(8):  # one of them takes what has waited longest
        inbox.give_back(leased(inbox, REPOSITORY), 0)
    inbox.queue.ensure(["resync"])
    inbox.abandon()
    database.close()
    assert len(plans) > 20
    assert {plan for plan in plans if plan.startswith((f"SCAN {table}", "USE TEMP B-TREE FOR ORDER"))} == first_ones


def test_what_ended_long_ago_is_forgotten_but_the_dead(queue: Queue) -> None:
    queue.inbox.put([arrival(name, RepositoryKey(7, number)) for number, name in enumerate("abcd", 1)])
    for number, state in enumerate(("done", "dead", "dropped"), 1):
        work = begun(queue, RepositoryKey(7, number))
        queue.inbox.end(work, [Result(work.deliveries[0].seq, state, "")], RunReport())  # type: ignore[arg-type]
    assert queue.inbox.purge(queue.clock() - 60_000) == 0
    assert queue.inbox.purge(queue.clock() + 1) == 2
    assert [row.id for row in queue.inbox.deliveries()] == ["9:d", "9:b"]
    assert queue.inbox.put([arrival("e")]) == [True]
    assert queue.inbox.deliveries()[0].seq == 5


def test_the_heartbeats_of_workers_that_are_gone_are_forgotten_and_no_others(queue: Queue) -> None:
    for name in ("worker:a-1", "worker_b", "app"):
        queue.inbox.heartbeat(name, {"pid": 7})
    queue.inbox.purge(queue.clock() - 60_000)
    assert queue.inbox.heartbeats().keys() == {"worker:a-1", "worker_b", "app"}
    queue.inbox.purge(queue.clock() + 1)
    assert queue.inbox.heartbeats().keys() == {"worker_b", "app"}


def test_a_database_that_is_away_is_the_worlds_error(tmp_path: Path) -> None:
    database = Database("postgresql://nobody:hush@127.0.0.1:9/none", hurry=True)
    with pytest.raises(WorldError, match="does not answer") as caught, database.transaction():
        pass
    assert "hush" not in str(caught.value)
    with pytest.raises(WorldError, match="does not answer"):
        Database.in_folder(tmp_path / "nowhere").make_tables()


def test_an_address_that_is_none_is_the_users_error() -> None:
    with pytest.raises(UserError, match="postgresql://"):
        Database("mysql://localhost/x")


def test_deliveries_in_sqlite_survive_power_loss(made_sqlite: Path) -> None:
    database = Database.in_folder(made_sqlite.parent)
    with database.transaction() as asking:
        assert [asking.rows(f"pragma {name}") for name in ("journal_mode", "synchronous")] == [
            [{"journal_mode": "wal"}],
            [{"synchronous": 2}],
        ]
    database.close()


def test_an_urgent_transaction_writes_alone_from_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.server.database.HURRY", 0.2)
    first, second, third = (Database.in_folder(tmp_path, hurry=hurry) for hurry in (True, False, True))
    first.make_tables()
    with first.urgent() as urgent:
        with pytest.raises(WorldError, match="locked"), third.urgent():
            raise AssertionError("two write at once")
        urgent.change("insert into heartbeats (name, said_at, note) values ('a', 1, '{}')")
    with second.transaction() as after:
        assert after.row("select said_at from heartbeats where name = 'a'") == {"said_at": 1}
    with first.urgent() as urgent:
        assert urgent.row("pragma busy_timeout") == {"timeout": 200}
    for database in (first, second, third):
        database.close()
