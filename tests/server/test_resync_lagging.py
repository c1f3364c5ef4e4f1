"""Repositories that lag behind are caught up, and each is looked at once a day."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bot.server.model import Grant, Instant, RepositoryKey
from bot.server.resync import DAY, MINUTE, QUARTER, QUARTERS, DriftCheck
from bot.server.resync import MOST as MOST_LANES
from tests.fakes.github import FakeGitHub
from tests.server.places import APP, HELLO, HOUR, OTHER, Places, known_at, places, resync, sweep


@pytest.fixture
def here(github: FakeGitHub) -> Iterator[Places]:
    github.add_project(OTHER)
    found = places(github)
    yield found
    found.api.close()


def test_a_repository_whose_news_we_missed_is_caught_up_once(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    known_at(here, lane, here.clock.now - HOUR)
    sweep(here)
    here.github.open_issue("octocat", "Crash")
    assert (sweep(here).caught_up, here.waiting(lane)[-1]) == (1, "catch-up")
    assert sweep(here, 15 * MINUTE).caught_up == 0
    here.inbox.drop([row.seq for row in here.rows(lane)], "for the test")
    assert sweep(here, 15 * MINUTE).caught_up == 0


def test_one_that_gets_on_is_sent_on_and_one_that_does_not_is_not(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    known_at(here, lane, here.clock.now - 3 * HOUR)
    sweep(here)
    here.github.open_issue("octocat", "Crash")
    for cursor, expected in ((3, 1), (2, 1), (2, 0)):
        known_at(here, lane, here.clock.now - cursor * HOUR)
        here.inbox.drop([row.seq for row in here.rows(lane)], "for the test")
        assert (cursor, sweep(here).caught_up) == (cursor, expected)


@pytest.mark.parametrize(("behind", "expected"), [(0, 0), (4 * MINUTE, 0), (6 * MINUTE, 1)])
def test_what_is_on_its_way_is_given_five_minutes(here: Places, behind: int, expected: int) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    here.github.open_issue("octocat", "Crash")
    newest = round(time.time() * 1000)
    known_at(here, lane, newest - behind)
    assert sweep(here).caught_up == expected


def test_a_lane_that_has_something_to_do_is_not_asked_about(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.open_issue("octocat", "Crash")
    here.arrive(lane)
    assert sweep(here).caught_up == 0


def test_a_repository_that_may_not_be_seen_any_more_is_known_to_be_gone(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    lane = RepositoryKey(number, here.github.repo.id)
    known_at(here, lane, 1)
    sweep(here)
    here.github.tenants.remove(number, [HELLO])
    here.inbox.drop([row.seq for row in here.rows(lane)], "for the test")
    sweep(here, HOUR)
    assert lane not in [row.lane for row in here.register.lanes()]
    assert here.forgotten == [lane]


def test_a_repository_of_a_suspended_installation_stays_known(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    sweep(here)
    here.github.tenants.suspend(lane.installation)
    sweep(here, MINUTE)
    assert [row.lane for row in here.register.lanes()] == [lane]
    assert here.forgotten == []


def test_a_limit_makes_the_lanes_of_that_installation_wait(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.faults.add("GET /repos/octocat/hello-world/issues", "primary403", times=None)
    sweep(here)
    here.arrive(lane)
    assert here.inbox.begin("ticket", lane, here.clock.now) is None


def test_lanes_are_asked_about_in_turn(here: Places) -> None:
    asked: list[RepositoryKey] = []
    lanes = [RepositoryKey(5, number) for number in range(1, MOST_LANES + 51)]
    for lane in lanes:
        known_at(here, lane, 1)

    class Tokens:
        def grant(self, lane: RepositoryKey, now: Instant) -> Grant:
            return Grant(lane, "token")

    def newest(grant: Grant) -> Instant:
        asked.append(grant.lane)
        return 0

    for _ in range(2):
        DriftCheck(here.inbox, Tokens(), newest, APP).look(here.clock.now, print)  # type: ignore[arg-type]
    assert asked == [*lanes, *lanes[:50]]


def test_each_lane_is_looked_at_once_a_day_at_a_time_of_its_own(here: Places) -> None:
    lanes = [RepositoryKey(5, number) for number in (100, 101, 150)]
    here.know(*lanes)
    lagging = resync(here)._drift
    begins = here.clock.now // DAY * DAY
    seen = {lane: [] for lane in lanes}  # type: dict[Lane, list[int]]
    for quarter in range(2 * QUARTERS):
        before = {lane: here.waiting(lane).count("schedule") for lane in lanes}
        lagging.remind(begins + quarter * QUARTER)
        for lane in lanes:
            if here.waiting(lane).count("schedule") > before[lane]:
                seen[lane].append(quarter)
    slots = {lane: [lane.repository % QUARTERS, lane.repository % QUARTERS + QUARTERS] for lane in lanes}
    assert seen == slots


def test_a_late_sweep_still_begins_the_daily_look(here: Places) -> None:
    here.know(RepositoryKey(5, 100))
    lagging = resync(here)._drift
    begins = here.clock.now // DAY * DAY + (100 % QUARTERS) * QUARTER
    assert [lagging.remind(begins + after * QUARTER) for after in (-1, 3, 4)] == [0, 1, 0]
