"""What was missed is found: lost deliveries, repositories that lag behind, places, lanes without a ticket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from bot.github.app import App
from bot.server.health import APP as APP_PULSE
from bot.server.house import PLACES
from bot.server.lagging import DAY, MINUTE, QUARTER, QUARTERS, Lagging
from bot.server.lagging import MOST as MOST_LANES
from bot.server.lost import MOST, PULSE, TRIES
from bot.server.nouns import Arrival, Grant, Instant, Lane, Told
from bot.server.receive import Rules, receive
from bot.server.sweep import Sweep, Swept
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.fakes.state import from_epoch
from tests.github.keys import key_pair
from tests.server.places import APP, Places, places

HELLO, OTHER = "octocat/hello-world", "octocat/other"
HOUR = 60 * MINUTE


@dataclass(frozen=True)
class Chosen:
    """The options that a sweep needs."""

    api_url: str
    app_id: int = APP
    keep_days: int = 30


@dataclass
class Door:
    """Where deliveries come in: kept in the ledger, or answered with an error while it is ``shut``."""

    here: Places
    shut: int = 0
    heard: list[str] = field(default_factory=list)

    def __call__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Sent:
        self.heard.append(headers["X-Github-Delivery"])
        if self.shut:
            return Sent(self.shut, {}, b"")
        given = {name.lower().encode(): value.encode() for name, value in headers.items()}
        rules = Rules(APP, (self.here.github.hooks.secret.encode(),), "precedent[bot]")
        found = receive(method, given, body, rules, self.here.clock.now, "request")
        if isinstance(found, Arrival):
            self.here.ledger.put([found])
        return Sent(202, {}, b"")


@pytest.fixture
def here(github: FakeGitHub) -> Iterator[Places]:
    github.add_project(OTHER)
    found = places(github)
    yield found
    found.api.close()


@pytest.fixture
def door(here: Places) -> Iterator[Door]:
    found = Door(here)
    listener = Listener(found)
    here.github.hooks.url = f"{listener.url}/webhook"
    yield found
    listener.stop()


def sweep(here: Places, after: int = 0, api: App | None = None) -> Swept:
    """One sweep, so many milliseconds later; returns when all it asked for has come."""
    here.clock.now += after
    before = len(here.github.hooks.deliveries)
    swept = Sweep(api or here.api, here.ledger, here.tickets, Chosen(here.github.url)).once(here.clock.now)
    deadline = time.monotonic() + 10
    while len(here.github.hooks.deliveries) < before + swept.redelivered and time.monotonic() < deadline:
        time.sleep(0.01)
    return swept


def opened(here: Places, count: int = 1) -> None:
    for _ in range(count):
        number = here.github.open_issue("octocat", "Crash")
        here.github.tenants.deliver(here.github, "issues", "opened", number)


def known_at(here: Places, lane: Lane, cursor: Instant) -> None:
    """The lane has read so far."""
    here.register.seen(lane, HELLO, private=False)
    here.arrive(lane)
    work = here.begin(lane)
    here.ledger.end(work, [], Told(cursor=cursor))
    here.ledger.drop([each.seq for each in work.deliveries], "for the test")


# -- lost deliveries -----------------------------------------------------------------------------------------------


def test_deliveries_that_failed_come_back_in_the_order_in_which_they_were_made(here: Places, door: Door) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    door.shut = 503
    opened(here, 3)
    door.shut = 0
    assert sweep(here, 2 * MINUTE).redelivered == 3
    found = [row for row in here.rows(lane) if row.event.name == "issues"]
    assert sorted(row.event.number or 0 for row in found) == [1, 2, 3]
    assert sweep(here, 15 * MINUTE).redelivered == 0


def test_what_was_taken_is_not_asked_for_again(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    opened(here, 2)
    assert sweep(here, 2 * MINUTE) == Swept(caught_up=1)
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
    assert last.notes == (f"deliveries that were asked for and never came: {guid}",)
    assert [sweep(here, 15 * MINUTE) for _ in range(3)] == [Swept()] * 3


def test_two_sweeps_close_to_each_other_ask_once(here: Places, door: Door) -> None:
    here.github.tenants.install("octocat", [HELLO])
    door.shut = 500
    opened(here)
    assert [sweep(here, 2 * MINUTE).redelivered, sweep(here, MINUTE).redelivered] == [1, 0]


def test_more_than_a_sweep_asks_for_is_left_to_the_next_one(here: Places) -> None:
    here.github.validate = False
    here.github.tenants.install("octocat", [HELLO])
    opened(here, MOST + 10)
    first = sweep(here, 2 * MINUTE)
    assert (first.redelivered, len(first.notes)) == (MOST, 1)
    sweep(here, 6 * MINUTE)
    every = {each.guid for each in here.github.hooks.deliveries}
    again = {each.guid for each in here.github.hooks.deliveries if each.redelivery}
    assert (len(every), again) == (MOST + 11, every)


def test_a_limit_ends_the_asking_and_nothing_is_forgotten(here: Places, door: Door) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    door.shut = 503
    opened(here, 3)
    door.shut = 0
    here.github.faults.add("POST /app/hook/deliveries/*", "secondary403", after=1)
    first = sweep(here, 2 * MINUTE)
    assert first.redelivered == 1
    assert "rate limit" in first.notes[0]
    assert sweep(here, 15 * MINUTE).redelivered == 2
    assert len([row for row in here.rows(lane) if row.event.name == "issues"]) == 3


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
    (day,) = {row.id.rpartition("-")[2] for row in fresh.rows(Lane(number, here.github.repo.id))}
    assert [row.id for row in fresh.rows(Lane(number, here.github.repo.id))] == [
        f"{APP}:catch-up-{number}-{here.github.repo.id}-{cause}-{day}" for cause in ("first", "found")
    ]
    fresh.api.close()


def test_what_was_answered_and_dropped_is_not_taken_for_lost(here: Places, door: Door) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.ledger.drop([row.seq for row in here.rows(lane)], "for the test")
    here.github.tenants.deliver(here.github, "push")  # to no branch at all
    assert here.github.hooks.deliveries[-1].status == 202
    assert sweep(here, 2 * MINUTE) == Swept()
    assert here.waiting(lane) == []


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
    here.ledger.pulse(PULSE, {"until": "x", "owed": "[1]"})
    assert sweep(here).notes == ()


# -- repositories that lag behind ------------------------------------------------------------------------------------


def test_a_repository_whose_news_we_missed_is_caught_up_once(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    known_at(here, lane, here.clock.now - HOUR)
    sweep(here)
    here.github.open_issue("octocat", "Crash")
    assert (sweep(here).caught_up, here.waiting(lane)[-1]) == (1, "catch-up")
    assert sweep(here, 15 * MINUTE).caught_up == 0
    here.ledger.drop([row.seq for row in here.rows(lane)], "for the test")
    assert sweep(here, 15 * MINUTE).caught_up == 0


@pytest.mark.parametrize(("behind", "expected"), [(0, 0), (4 * MINUTE, 0), (6 * MINUTE, 1)])
def test_what_is_on_its_way_is_given_five_minutes(here: Places, behind: int, expected: int) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    here.github.open_issue("octocat", "Crash")
    newest = round(time.time() * 1000)
    known_at(here, lane, newest - behind)
    assert sweep(here).caught_up == expected


def test_a_lane_that_has_something_to_do_is_not_asked_about(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.open_issue("octocat", "Crash")
    here.arrive(lane)
    assert sweep(here).caught_up == 0


def test_a_repository_that_may_not_be_seen_any_more_is_known_to_be_gone(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    lane = Lane(number, here.github.repo.id)
    known_at(here, lane, 1)
    sweep(here)
    here.github.tenants.remove(number, [HELLO])
    here.ledger.drop([row.seq for row in here.rows(lane)], "for the test")
    sweep(here, HOUR)
    assert lane not in [row.lane for row in here.register.lanes()]


def test_a_limit_makes_the_lanes_of_that_installation_wait(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.faults.add("GET /repos/octocat/hello-world/issues", "primary403", times=None)
    sweep(here)
    here.arrive(lane)
    assert here.ledger.begin("ticket", lane, here.clock.now) is None


def test_lanes_are_asked_about_in_turn(here: Places) -> None:
    asked: list[Lane] = []
    lanes = [Lane(5, number) for number in range(1, MOST_LANES + 51)]
    for lane in lanes:
        known_at(here, lane, 1)

    class Tokens:
        def grant(self, lane: Lane, now: Instant) -> Grant:
            return Grant(lane, "token")

    def newest(grant: Grant) -> Instant:
        asked.append(grant.lane)
        return 0

    for _ in range(2):
        Lagging(here.ledger, Tokens(), newest, APP).look(here.clock.now)  # type: ignore[arg-type]
    assert asked == [*lanes, *lanes[:50]]


# -- the daily look -------------------------------------------------------------------------------------------------


def test_each_lane_is_looked_at_once_a_day_at_a_time_of_its_own(here: Places) -> None:
    lanes = [Lane(5, number) for number in (100, 101, 150)]
    here.know(*lanes)
    lagging = Sweep(here.api, here.ledger, here.tickets, Chosen(here.github.url))._lagging
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
    here.know(Lane(5, 100))
    lagging = Sweep(here.api, here.ledger, here.tickets, Chosen(here.github.url))._lagging
    begins = here.clock.now // DAY * DAY + (100 % QUARTERS) * QUARTER
    assert [lagging.remind(begins + after * QUARTER) for after in (-1, 3, 4)] == [0, 1, 0]


# -- places, tickets, ourselves ---------------------------------------------------------------------------------------


def test_repositories_that_nobody_told_us_of_are_found_once_a_day(here: Places) -> None:
    here.github.tenants.lose = True
    number = here.github.tenants.install("octocat", [HELLO])
    lane, other = Lane(number, here.github.repo.id), Lane(number, here.github.world.names[OTHER])
    here.github.hooks.deliveries.clear()
    assert (sweep(here).caught_up, here.waiting(lane)) == (1, ["catch-up"])
    assert here.register.lane(lane).name == HELLO
    here.github.tenants.add(number, [OTHER])
    here.github.hooks.deliveries.clear()
    assert (sweep(here, 2 * HOUR).caught_up, here.waiting(other)) == (0, [])
    here.ledger.pulse(PLACES, {"day": 0})
    assert (sweep(here).caught_up, here.waiting(other)) == (1, ["catch-up"])


def test_an_installation_that_went_unnoticed_is_noticed(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(lane)
    here.github.tenants.uninstall(lane.installation)
    here.github.hooks.deliveries.clear()
    here.ledger.pulse(PLACES, {"day": 0})
    sweep(here)
    assert (here.register.lanes(), here.waiting(lane)) == ([], [])


def test_a_list_that_lacks_an_installation_is_not_believed(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(lane)
    here.ledger.pulse(PLACES, {"day": 0})
    app = here.github.apps.known[APP]

    class Silent(App):
        def installations(self):  # type: ignore[no-untyped-def]
            return iter(())

    with Silent(APP, key_pair()[0], here.github.url) as api:
        sweep(here, api=api)
    assert [row.lane for row in here.register.lanes()] == [lane]
    assert "issues" in here.waiting(lane)
    assert lane.installation in app.installations


def test_a_suspended_installation_is_left_in_peace(here: Places) -> None:
    lane = Lane(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.open_issue("octocat", "Crash")
    here.github.tenants.suspend(lane.installation)
    here.github.hooks.deliveries.clear()
    assert sweep(here) == Swept()
    assert here.register.state(lane.installation) == "suspended"
    assert [row.lane for row in here.register.lanes()] == [lane]


def test_a_lane_that_lost_its_ticket_gets_another(here: Places) -> None:
    here.arrive(Lane(5, 50))
    here.tickets.cancel([row.id for row in here.rows(Lane(5, 50))])
    assert here.tickets.live() == frozenset()
    assert [sweep(here, after).mended for after in (MINUTE // 2, MINUTE, MINUTE)] == [0, 1, 0]


def test_what_is_old_is_purged(here: Places) -> None:
    here.arrive(Lane(5, 50))
    here.ledger.drop([row.seq for row in here.rows(Lane(5, 50))], "for the test")
    assert sweep(here, 29 * DAY).purged == 0
    assert sweep(here, 2 * DAY).purged >= 1


def test_the_sweep_says_who_we_are_and_how_our_clock_stands(here: Places) -> None:
    here.github.ahead = 90
    sweep(here)
    assert here.ledger.pulses()[APP_PULSE][1] == {"slug": "precedent", "ahead": 90, "fault": ""}


def test_a_key_that_is_refused_is_told_and_the_rest_is_done(here: Places) -> None:
    sweep(here)
    here.arrive(Lane(5, 50))
    here.tickets.cancel([row.id for row in here.rows(Lane(5, 50))])
    with App(APP, key_pair("other")[0], here.github.url) as api:
        swept = sweep(here, 2 * MINUTE, api)
    note = here.ledger.pulses()[APP_PULSE][1]
    assert note["slug"] == "precedent"
    assert "its private key" in str(note["fault"])
    assert swept.mended == 1
    assert len(swept.notes) == 2
    assert sweep(here, MINUTE).notes == ()
    assert here.ledger.pulses()[APP_PULSE][1]["fault"] == ""


def test_a_github_that_is_down_is_noted(here: Places) -> None:
    here.github.faults.add("*", "5xx", times=None)
    swept = sweep(here)
    assert len(swept.notes) == 3
    assert all("502" in note for note in swept.notes)
