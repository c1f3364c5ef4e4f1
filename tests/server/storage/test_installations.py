"""What the inbox stores besides deliveries: repositories, installations, counters and heartbeats."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.server.model import RepositoryKey, RepositoryRow, Result, RunReport
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.counters import add_counts, run_counters
from bot.server.storage.database import Database
from bot.server.storage.deliveries import DeliveryFilter
from tests.server.queues import REPOSITORY, Queue, all_done, arrival, begin_work, queue_in_database, take_lease

OTHER = RepositoryKey(7, 71)


def test_counters_grow(queue: Queue) -> None:
    queue.inbox.counters.add({("a", ("x", 'y"')): 1, ("a", ()): 2.5})
    queue.inbox.counters.add({("a", ("x", 'y"')): 2})
    queue.inbox.counters.add({})
    assert queue.inbox.counters.read() == {("a", ("x", 'y"')): 3, ("a", ()): 2.5}


@pytest.mark.postgres
def test_a_run_does_not_wait_for_the_counters_of_another(postgres_url: str, tmp_path: Path) -> None:
    database = Database(postgres_url)
    database.make_tables()
    database.close()
    with queue_in_database(postgres_url, tmp_path) as queue, ThreadPoolExecutor(1) as pool:
        queue.inbox.put([arrival("a"), arrival("b", OTHER)])
        first, second = begin_work(queue.inbox), begin_work(queue.inbox, OTHER)
        queue.inbox.end(first, all_done(first), RunReport())
        queue.inbox.put([arrival("c")])
        third = begin_work(queue.inbox)
        with queue.inbox.database.transaction() as open_transaction:
            add_counts(open_transaction, run_counters(all_done(third), RunReport()))
            ended = pool.submit(queue.inbox.end, second, all_done(second), RunReport())
            assert ended.result(timeout=5)
        with queue.inbox.database.transaction() as open_transaction:
            open_transaction.rows("select * from tallies for update")
            third_ended = pool.submit(queue.inbox.end, third, all_done(third), RunReport())
            assert third_ended.result(timeout=5)
        assert queue.inbox.counters.read()["precedent_runs_total", ("done",)] == 4


def test_totals_are_exact_and_only_grow_while_many_threads_count(queue: Queue) -> None:
    totals, stop = [0.0], threading.Event()
    key = ("a", ("x",))

    def watch() -> None:
        while not stop.is_set():
            totals.append(queue.inbox.counters.read().get(key, 0.0))

    watching = threading.Thread(target=watch)
    watching.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: queue.inbox.counters.add({key: 1, ("b", ()): 0.5}), range(60)))
    stop.set()
    watching.join()
    assert queue.inbox.counters.read() == {key: 60, ("b", ()): 30}
    assert totals == sorted(totals)


def test_a_purge_adds_up_the_counts_and_keeps_the_totals(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    work = begin_work(queue.inbox)
    queue.inbox.end(work, all_done(work), RunReport())
    before = dict(queue.inbox.counters.read())
    queue.inbox.purge(queue.clock() + 1)
    assert queue.inbox.counters.read() == before
    assert queue.inbox.database.rows("select * from tallied") == []


def test_a_run_is_counted_with_its_stages_pushes_and_answers(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b")])
    work = begin_work(queue.inbox)
    first, second = (each.seq for each in work.deliveries)
    results = [
        Result(first, "done", "memory has something to show", said="created"),
        Result(second, "done", "whatever #12 says", said="silent"),
    ]
    queue.inbox.end(work, results, RunReport((("push", 0.3), ("push", 99.0), ("look", 1000.0)), (1, 2, 3)))
    assert queue.inbox.counters.read() == {
        ("precedent_runs_total", ("done",)): 1,
        ("precedent_answers_total", ("created", "memory has something to show")): 1,
        ("precedent_answers_total", ("silent", "other")): 1,
        ("precedent_stage_seconds_bucket", ("push", "0.5")): 1,
        ("precedent_stage_seconds_bucket", ("push", "300.0")): 1,
        ("precedent_stage_seconds_bucket", ("look", "+Inf")): 1,
        ("precedent_stage_seconds_sum", ("push",)): pytest.approx(99.3),
        ("precedent_stage_seconds_sum", ("look",)): 1000,
        ("precedent_stage_seconds_count", ("push",)): 2,
        ("precedent_stage_seconds_count", ("look",)): 1,
        ("precedent_pushes_total", ()): 3,
    }


def test_a_new_heartbeat_replaces_the_last_one(queue: Queue) -> None:
    queue.inbox.heartbeats.store("worker-1", {"jobs": 3, "state": "works"})
    queue.inbox.heartbeats.store("worker-1", {"jobs": 4})
    queue.inbox.heartbeats.store("clock", {"ahead": -2})
    heartbeats = queue.inbox.heartbeats.all()
    assert {name: note for name, (_, note) in heartbeats.items()} == {"worker-1": {"jobs": 4}, "clock": {"ahead": -2}}
    assert all(abs(at - queue.clock()) < 60_000 for at, _ in heartbeats.values())


def test_an_installation_is_active_until_its_state_is_changed(queue: Queue) -> None:
    register, installations = OrganisationRegister(queue.inbox), queue.inbox.installations
    assert installations.state(7) == "active"
    queue.inbox.limits.pause(7, "core", 1)
    assert installations.state(7) == "active"
    register.store_installation(7, "octo-org", "suspended")
    assert installations.state(7) == "suspended"
    register.store_installation(7, "", "active")
    assert installations.state(7) == "active"


def test_a_repository_name_from_github_wins_over_one_from_a_payload(queue: Queue) -> None:
    queue.inbox.put([arrival("a")])
    begin_work(queue.inbox)
    register, installations = OrganisationRegister(queue.inbox), queue.inbox.installations
    assert installations.repository(REPOSITORY) == RepositoryRow(REPOSITORY, "octo-org/hello-world")
    register.store_repository(REPOSITORY, "octo-org/renamed", Visibility.PUBLIC)
    queue.inbox.queue.release("one")
    begin_work(queue.inbox)
    assert installations.repository(REPOSITORY) == RepositoryRow(
        REPOSITORY, "octo-org/renamed", visibility=Visibility.PUBLIC
    )
    assert installations.repository(OTHER) == RepositoryRow(OTHER)


def test_a_repository_remembers_the_reports_of_its_runs(queue: Queue) -> None:
    installations = queue.inbox.installations
    for number, (report, expected) in enumerate(
        [
            (RunReport(pushes=(3, 1), cursor=50, backoff=9), ((1, 3), 50, 9)),
            (RunReport(pushes=(4, 5, 6, 7, 8), cursor=40), ((3, 4, 5, 6, 7, 8), 50, 0)),
        ]
    ):
        queue.inbox.put([arrival(str(number))])
        work = begin_work(queue.inbox)
        queue.inbox.end(work, all_done(work), report)
        row = installations.repository(REPOSITORY)
        assert (row.pushes, row.cursor, row.backoff) == expected
        assert abs(row.last_run - queue.clock()) < 60_000


def test_a_gone_repository_drops_its_deliveries_and_returns_when_it_is_seen_again(queue: Queue) -> None:
    queue.inbox.put([arrival("a"), arrival("b"), arrival("c", OTHER)])
    register, installations = OrganisationRegister(queue.inbox), queue.inbox.installations
    register.store_repository(REPOSITORY, "octo-org/hello-world", Visibility.PRIVATE)
    register.store_repository(OTHER, "octo-org/other", Visibility.PRIVATE)
    register.store_repository(RepositoryKey(7, 0), "", Visibility.PRIVATE)
    assert [row.repository for row in installations.repositories()] == [REPOSITORY, OTHER]
    assert register.mark_gone(REPOSITORY, "the App is no longer installed there") == 2
    assert [row.repository for row in installations.repositories()] == [OTHER]
    assert [(row.state, row.reason) for row in queue.inbox.deliveries(DeliveryFilter(repository=REPOSITORY))] == [
        ("dropped", "the App is no longer installed there")
    ] * 2
    assert queue.inbox.begin(take_lease(queue.inbox, REPOSITORY)) is None
    assert queue.keys() == {OTHER.text}
    register.store_repository(REPOSITORY, "octo-org/hello-world", Visibility.PRIVATE)
    assert [row.repository for row in installations.repositories()] == [REPOSITORY, OTHER]
    assert installations.repositories(active_since=1) == []


def test_rows_that_have_been_gone_for_long_are_purged(queue: Queue) -> None:
    register, installations = OrganisationRegister(queue.inbox), queue.inbox.installations
    register.store_installation(7, "octo-org", "gone")
    register.store_repository(REPOSITORY, "octo-org/hello-world", Visibility.PUBLIC)
    register.store_repository(OTHER, "octo-org/other", Visibility.PUBLIC)
    shown, key = register, OrganisationKey(72, 1)
    for repository in (REPOSITORY, OTHER):
        shown.add_shown(repository, 5, [key])
    register.mark_gone(REPOSITORY, "gone")
    queue.inbox.purge(queue.clock() - 60_000)
    assert (installations.state(7), installations.repository(REPOSITORY).name) == ("gone", "octo-org/hello-world")
    assert shown.filter_shown(REPOSITORY, 5, [key])
    queue.inbox.purge(queue.clock() + 1)
    assert (installations.state(7), installations.repository(REPOSITORY)) == ("active", RepositoryRow(REPOSITORY))
    assert not shown.filter_shown(REPOSITORY, 5, [key])
    assert shown.filter_shown(OTHER, 5, [key])
