"""Deliveries that nobody took come back, each asked for a few times and no more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.server.model import RepositoryKey
from bot.server.resync import LOST, MINUTE, MOST_REQUESTED, TRIES, ResyncResult
from tests.fakes.github import FakeGitHub
from tests.fakes.state import from_epoch
from tests.server.places import APP, Door, Places, opened, places, sweep

HELLO = "octocat/hello-world"
HOUR = 60 * MINUTE


@pytest.fixture
def here(github: FakeGitHub) -> Iterator[Places]:
    found = places(github)
    yield found
    found.api.close()


@pytest.fixture
def door(here: Places) -> Iterator[Door]:
    found = Door(here)
    listener = found.open()
    yield found
    listener.stop()


def test_deliveries_that_failed_come_back(here: Places, door: Door) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    door.shut = 503
    opened(here, 3)
    door.shut = 0
    assert sweep(here, 2 * MINUTE).redelivered == 3
    found = [row for row in here.rows(repository) if row.event.name == "issues"]
    assert sorted(row.event.number or 0 for row in found) == [1, 2, 3]
    assert sweep(here, 15 * MINUTE).redelivered == 0


def test_what_was_taken_is_not_asked_for_again(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    opened(here, 2)
    assert sweep(here, 2 * MINUTE) == ResyncResult(caught_up=1)
    assert len(door.heard) == 3


def test_a_delivery_whose_answer_was_lost_is_not_asked_for_again(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    opened(here)
    here.github.hooks.deliveries[-1].status = 504
    assert sweep(here, 2 * MINUTE).redelivered == 0


def test_what_is_under_way_is_left_alone_for_a_minute(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    sweep(here)
    door.shut = 503
    opened(here)
    assert sweep(here, MINUTE // 2).redelivered == 0
    assert sweep(here, MINUTE).redelivered == 1


def test_a_delivery_that_never_comes_is_asked_for_three_times_and_then_noted(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    sweep(here)
    door.shut = 500
    opened(here)
    guid = here.github.hooks.deliveries[-1].guid
    asked = [sweep(here, 15 * MINUTE).redelivered for _ in range(TRIES)]
    last = sweep(here, 15 * MINUTE)
    assert (asked, last.redelivered) == ([1] * TRIES, 0)
    assert last.notes == (f"deliveries that were requested again but never arrived: {guid}",)
    assert [sweep(here, 15 * MINUTE) for _ in range(3)] == [ResyncResult()] * 3


def test_two_sweeps_close_to_each_other_ask_once(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    door.shut = 500
    opened(here)
    assert [sweep(here, 2 * MINUTE).redelivered, sweep(here, MINUTE).redelivered] == [1, 0]


@pytest.mark.slow
def test_more_than_a_sweep_asks_for_is_left_to_the_next_one(here: Places) -> None:
    here.github.validate = False
    here.github.tenants.install("octocat", [HELLO])
    opened(here, MOST_REQUESTED + 10)
    first = sweep(here, 2 * MINUTE)
    assert (first.redelivered, len(first.notes)) == (MOST_REQUESTED, 1)
    sweep(here, 6 * MINUTE)
    every = {each.guid for each in here.github.hooks.deliveries}
    again = {each.guid for each in here.github.hooks.deliveries if each.redelivery}
    assert (len(every), again) == (MOST_REQUESTED + 11, every)


def test_a_limit_ends_the_asking_and_nothing_is_forgotten(here: Places, door: Door) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    door.shut = 503
    opened(here, 3)
    door.shut = 0
    here.github.faults.add("POST /app/hook/deliveries/*", "secondary403", after=1)
    first = sweep(here, 2 * MINUTE)
    assert first.redelivered == 1
    assert "rate limit" in first.notes[0]
    assert sweep(here, 15 * MINUTE).redelivered == 2
    assert len([row for row in here.rows(repository) if row.event.name == "issues"]) == 3


def test_one_that_github_does_not_have_any_more_does_not_hold_up_the_others(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    sweep(here)
    door.shut = 503
    opened(here, 2)
    here.github.faults.add("POST /app/hook/deliveries/*", "404")
    assert sweep(here, 2 * MINUTE).redelivered == 1
    assert len(sweep(here, 15 * MINUTE).notes) == 1


def test_with_a_new_database_every_repository_that_was_active_is_looked_at(here: Places, door: Door) -> None:
    number = here.github.tenants.install("octocat", [HELLO])
    opened(here, 2)
    fresh = places(here.github)
    here.github.apps.known[APP].installations[number] = [here.github.repo.id]
    here.github.apps.known[APP].accounts[number] = here.github.repo.owner
    swept = sweep(fresh, 2 * MINUTE)
    assert swept.redelivered == 0
    (day,) = {row.id.rpartition("-")[2] for row in fresh.rows(RepositoryKey(number, here.github.repo.id))}
    assert [row.id for row in fresh.rows(RepositoryKey(number, here.github.repo.id))] == [
        f"{APP}:catch-up-{number}-{here.github.repo.id}-{cause}-{day}" for cause in ("first", "found")
    ]
    fresh.api.close()


def test_what_was_answered_and_dropped_is_not_taken_for_lost(here: Places, door: Door) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.inbox.drop([row.seq for row in here.rows(repository)], "for the test")
    here.github.tenants.deliver(here.github, "push")  # to no branch at all
    assert here.github.hooks.deliveries[-1].status == 202
    assert sweep(here, 2 * MINUTE) == ResyncResult()
    assert here.waiting(repository) == []


def test_a_delivery_that_is_listed_late_is_found(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    door.shut = 503
    opened(here)
    late = here.github.hooks.deliveries.pop()
    late.at = from_epoch(here.github.clock.epoch - 5 * 60)
    assert sweep(here, 2 * MINUTE).redelivered == 0
    here.github.hooks.deliveries.append(late)
    assert sweep(here, MINUTE).redelivered == 1


def test_what_could_not_be_asked_for_is_asked_for_however_old_it_is(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    sweep(here)
    door.shut = 503
    opened(here)
    here.github.clock.now = from_epoch(here.github.clock.epoch + 3600)
    opened(here)
    here.github.faults.add("POST /app/hook/deliveries/*", "secondary403")
    assert [sweep(here, HOUR + 2 * MINUTE).redelivered, sweep(here, 15 * MINUTE).redelivered] == [0, 2]


def test_what_a_former_version_kept_does_not_end_the_sweep(here: Places) -> None:
    here.inbox.heartbeat(LOST, {"until": "x", "owed": "[1]"})
    assert sweep(here).notes == ()
