"""A sweep as a whole: places that nobody told us of, lanes without a ticket, who we are, and what is old."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.github.app import App
from bot.server.health import APP as APP_PULSE
from bot.server.installation_events import PLACES
from bot.server.model import RepositoryKey
from bot.server.resync import DAY, MINUTE, ResyncResult
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair
from tests.server.places import APP, HELLO, HOUR, OTHER, Places, known_at, places, sweep


@pytest.fixture
def here(github: FakeGitHub) -> Iterator[Places]:
    github.add_project(OTHER)
    found = places(github)
    yield found
    found.api.close()


def test_repositories_that_nobody_told_us_of_are_found_once_a_day(here: Places) -> None:
    here.github.tenants.lose = True
    number = here.github.tenants.install("octocat", [HELLO])
    lane, other = RepositoryKey(number, here.github.repo.id), RepositoryKey(number, here.github.world.names[OTHER])
    here.github.hooks.deliveries.clear()
    assert (sweep(here).caught_up, here.waiting(lane)) == (1, ["catch-up"])
    assert here.register.lane(lane).name == HELLO
    here.github.tenants.add(number, [OTHER])
    here.github.hooks.deliveries.clear()
    later = min(2 * HOUR, DAY - 1 - here.clock.now % DAY)  # the test may run shortly before midnight
    assert (sweep(here, later).caught_up, here.waiting(other)) == (0, [])
    here.inbox.heartbeat(PLACES, {"day": 0})
    assert (sweep(here).caught_up, here.waiting(other)) == (1, ["catch-up"])


def test_what_changes_while_all_are_listed_is_looked_at_next(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    here.github.tenants.lose = True
    here.github.tenants.install("octocat", [HELLO])
    listed = here.api.installations

    def meanwhile() -> object:
        here.clock.now += 1
        here.inbox.heartbeat(PLACES, {"day": 0})
        return listed()

    monkeypatch.setattr(here.api, "installations", meanwhile)
    sweep(here)
    assert here.inbox.heartbeats()[PLACES][1] == {"day": 0}
    monkeypatch.undo()
    sweep(here)
    assert here.inbox.heartbeats()[PLACES][1] != {"day": 0}


def test_an_installation_that_went_unnoticed_is_noticed(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(lane)
    here.github.tenants.uninstall(lane.installation)
    here.github.hooks.deliveries.clear()
    here.inbox.heartbeat(PLACES, {"day": 0})
    sweep(here)
    assert (here.register.lanes(), here.waiting(lane)) == ([], [])


def test_a_list_that_lacks_an_installation_is_not_believed(here: Places) -> None:
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(lane)
    here.inbox.heartbeat(PLACES, {"day": 0})
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
    lane = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, lane, 1)
    here.github.open_issue("octocat", "Crash")
    here.github.tenants.suspend(lane.installation)
    here.github.hooks.deliveries.clear()
    assert sweep(here) == ResyncResult()
    assert here.register.state(lane.installation) == "suspended"
    assert [row.lane for row in here.register.lanes()] == [lane]


def test_a_lane_that_lost_its_ticket_gets_another(here: Places) -> None:
    here.arrive(RepositoryKey(5, 50))
    here.inbox.tickets.cancel([row.id for row in here.rows(RepositoryKey(5, 50))])
    assert not here.inbox.tickets.live()
    assert [sweep(here, after).mended for after in (MINUTE // 2, MINUTE, MINUTE)] == [0, 1, 0]


def test_what_is_old_is_purged(here: Places) -> None:
    here.arrive(RepositoryKey(5, 50))
    here.inbox.drop([row.seq for row in here.rows(RepositoryKey(5, 50))], "for the test")
    assert sweep(here, 29 * DAY).purged == 0
    assert sweep(here, 2 * DAY).purged >= 1


def test_the_sweep_says_who_we_are_and_how_our_clock_stands(here: Places) -> None:
    here.github.ahead = 90
    sweep(here)
    assert here.inbox.heartbeats()[APP_PULSE][1] == {"slug": "precedent", "ahead": 90, "fault": ""}


def test_a_key_that_is_refused_is_told_and_the_rest_is_done(here: Places) -> None:
    sweep(here)
    here.arrive(RepositoryKey(5, 50))
    here.inbox.tickets.cancel([row.id for row in here.rows(RepositoryKey(5, 50))])
    with App(APP, key_pair("other")[0], here.github.url) as api:
        swept = sweep(here, 2 * MINUTE, api)
    note = here.inbox.heartbeats()[APP_PULSE][1]
    assert note["slug"] == "precedent"
    assert "its private key" in str(note["fault"])
    assert swept.mended == 1
    assert len(swept.notes) == 2
    assert sweep(here, MINUTE).notes == ()
    assert here.inbox.heartbeats()[APP_PULSE][1]["fault"] == ""


def test_a_github_that_is_down_is_noted(here: Places) -> None:
    here.github.faults.add("*", "5xx", times=None)
    swept = sweep(here)
    assert len(swept.notes) == 3
    assert all("502" in note for note in swept.notes)
