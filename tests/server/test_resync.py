"""A sweep: places that nobody told us of, repositories that lag behind, who we are, and what is old."""

from __future__ import annotations

import time

import pytest

from bot.github.app import App
from bot.github.errors import OF_ALL
from bot.server.health import APP as APP_HEARTBEAT
from bot.server.installation_events import PLACES
from bot.server.model import WORKER, Grant, Instant, Priority, RepositoryKey
from bot.server.organisation_changes import OrganisationChanges
from bot.server.organisation_guard import INDEX_UP
from bot.server.resync import DAY, INDEX_LEFT, MINUTE, QUARTER, QUARTERS, DriftCheck, ResyncResult
from bot.server.resync import MOST as MOST_REPOSITORIES
from bot.server.scope import EVERYTHING
from tests.github.keys import key_pair
from tests.server.places import APP, HELLO, HOUR, OTHER, Places, known_at, resync, sweep
from tests.server.queues import keys, leased


def test_repositories_that_nobody_told_us_of_are_found_once_a_day(here: Places) -> None:
    here.github.tenants.lose = True
    number = here.github.tenants.install("octocat", [HELLO])
    repository, other = (
        RepositoryKey(number, here.github.repo.id),
        RepositoryKey(number, here.github.world.names[OTHER]),
    )
    here.github.hooks.deliveries.clear()
    assert (sweep(here).caught_up, here.waiting(repository)) == (1, ["catch-up"])
    assert here.register.repository(repository).name == HELLO
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
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(repository)
    here.github.tenants.uninstall(repository.installation)
    here.github.hooks.deliveries.clear()
    here.inbox.heartbeat(PLACES, {"day": 0})
    sweep(here)
    assert (here.register.repositories(), here.waiting(repository)) == ([], [])


def test_a_list_that_lacks_an_installation_is_not_believed(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    sweep(here)
    here.arrive(repository)
    here.inbox.heartbeat(PLACES, {"day": 0})
    app = here.github.apps.known[APP]

    class Silent(App):
        def installations(self):  # type: ignore[no-untyped-def]
            return iter(())

    with Silent(APP, key_pair()[0], here.github.url) as api:
        sweep(here, api=api)
    assert [row.repository for row in here.register.repositories()] == [repository]
    assert "issues" in here.waiting(repository)
    assert repository.installation in app.installations


def test_a_suspended_installation_is_left_in_peace(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, repository, 1)
    here.github.open_issue("octocat", "Crash")
    here.github.tenants.suspend(repository.installation)
    here.github.hooks.deliveries.clear()
    assert sweep(here) == ResyncResult()
    assert here.register.state(repository.installation) == "suspended"
    assert [row.repository for row in here.register.repositories()] == [repository]


def test_what_a_sweep_finds_has_work_that_comes_after_what_people_wait_for(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    assert sweep(here).caught_up == 1
    assert keys(here.inbox) == {repository.text}
    here.clock.now += 1000
    here.arrive(RepositoryKey(5, 50))
    found = [here.inbox.queue.claim("worker"), here.inbox.queue.claim("worker")]
    assert [(lease.key, lease.priority) for lease in found if lease] == [
        ("5-50", Priority.CHANGE),
        (repository.text, Priority.HISTORY),
    ]


def test_what_is_old_is_purged(here: Places) -> None:
    here.arrive(RepositoryKey(5, 50))
    here.inbox.drop([row.seq for row in here.rows(RepositoryKey(5, 50))], "for the test")
    assert sweep(here, 29 * DAY).purged == 0
    assert sweep(here, 2 * DAY).purged >= 1


def test_the_sweep_says_who_we_are_and_how_our_clock_stands(here: Places) -> None:
    here.github.ahead = 90
    sweep(here)
    assert here.inbox.heartbeats()[APP_HEARTBEAT][1] == {"slug": "precedent", "ahead": 90, "fault": ""}


def test_a_key_that_is_refused_is_told_and_the_rest_is_done(here: Places) -> None:
    sweep(here)
    here.clock.now -= 31 * DAY
    here.arrive(RepositoryKey(5, 50))
    here.inbox.drop([row.seq for row in here.rows(RepositoryKey(5, 50))], "for the test")
    here.clock.now += 31 * DAY
    with App(APP, key_pair("other")[0], here.github.url) as api:
        swept = sweep(here, 2 * MINUTE, api)
    note = here.inbox.heartbeats()[APP_HEARTBEAT][1]
    assert note["slug"] == "precedent"
    assert "its private key" in str(note["fault"])
    assert swept.purged == 1
    assert len(swept.notes) == 2
    assert sweep(here, MINUTE).notes == ()
    assert here.inbox.heartbeats()[APP_HEARTBEAT][1]["fault"] == ""


def test_a_github_that_is_down_is_noted(here: Places) -> None:
    here.github.faults.add("*", "5xx", times=None)
    swept = sweep(here)
    assert len(swept.notes) == 3
    assert all("502" in note for note in swept.notes)


# -- repositories that lag behind


def test_a_repository_whose_news_we_missed_is_caught_up_once(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    known_at(here, repository, here.clock.now - HOUR)
    sweep(here)
    here.github.open_issue("octocat", "Crash")
    assert (sweep(here).caught_up, here.waiting(repository)[-1]) == (1, "catch-up")
    assert sweep(here, 15 * MINUTE).caught_up == 0
    here.inbox.drop([row.seq for row in here.rows(repository)], "for the test")
    assert sweep(here, 15 * MINUTE).caught_up == 0


def test_one_that_gets_on_is_sent_on_and_one_that_does_not_is_not(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    known_at(here, repository, here.clock.now - 3 * HOUR)
    sweep(here)
    here.github.open_issue("octocat", "Crash")
    for cursor, expected in ((3, 1), (2, 1), (2, 0)):
        known_at(here, repository, here.clock.now - cursor * HOUR)
        here.inbox.drop([row.seq for row in here.rows(repository)], "for the test")
        assert (cursor, sweep(here).caught_up) == (cursor, expected)


@pytest.mark.parametrize(("behind", "expected"), [(0, 0), (4 * MINUTE, 0), (6 * MINUTE, 1)])
def test_what_is_on_its_way_is_given_five_minutes(here: Places, behind: int, expected: int) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    here.github.open_issue("octocat", "Crash")
    newest = round(time.time() * 1000)
    known_at(here, repository, newest - behind)
    assert sweep(here).caught_up == expected


def test_a_repository_that_has_something_to_do_is_not_asked_about(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, repository, 1)
    here.github.open_issue("octocat", "Crash")
    here.arrive(repository)
    assert sweep(here).caught_up == 0


def test_a_repository_that_may_not_be_seen_any_more_is_known_to_be_gone(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repository = RepositoryKey(number, here.github.repo.id)
    known_at(here, repository, 1)
    sweep(here)
    here.github.tenants.remove(number, [HELLO])
    here.inbox.drop([row.seq for row in here.rows(repository)], "for the test")
    sweep(here, HOUR)
    assert repository not in [row.repository for row in here.register.repositories()]
    assert here.forgotten == [repository]


def test_a_repository_of_a_suspended_installation_stays_known(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, repository, 1)
    sweep(here)
    here.github.tenants.suspend(repository.installation)
    sweep(here, MINUTE)
    assert [row.repository for row in here.register.repositories()] == [repository]
    assert here.forgotten == []


def test_a_limit_makes_the_repositories_of_that_installation_wait(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    known_at(here, repository, 1)
    here.github.faults.add("GET /repos/octocat/hello-world/issues", "primary403", times=None)
    sweep(here)
    here.arrive(repository)
    until = here.register.paused_until(repository.installation, OF_ALL)
    assert here.inbox.begin(leased(here.inbox, repository)) is None
    here.clock.now = until - 1
    assert here.inbox.queue.claim("worker") is None
    here.clock.now = until
    assert here.begin(repository).deliveries


def test_repositories_are_asked_about_in_turn(here: Places) -> None:
    asked: list[RepositoryKey] = []
    repositories = [RepositoryKey(5, number) for number in range(1, MOST_REPOSITORIES + 51)]
    for repository in repositories:
        known_at(here, repository, 1)

    class Tokens:
        def grant(self, repository: RepositoryKey, now: Instant) -> Grant:
            return Grant(repository, "token")

    def newest(grant: Grant) -> Instant:
        asked.append(grant.repository)
        return 0

    for _ in range(2):
        DriftCheck(here.inbox, Tokens(), newest, APP).check(here.clock.now, print)  # type: ignore[arg-type]
    assert asked == [*repositories, *repositories[:50]]


def test_each_repository_is_looked_at_once_a_day_at_a_time_of_its_own(here: Places) -> None:
    repositories = [RepositoryKey(5, number) for number in (100, 101, 150)]
    here.know(*repositories)
    lagging = resync(here).drift
    begins = here.clock.now // DAY * DAY
    seen = {repository: [] for repository in repositories}  # type: dict[RepositoryKey, list[int]]
    for quarter in range(2 * QUARTERS):
        before = {repository: here.waiting(repository).count("schedule") for repository in repositories}
        lagging.start_daily_looks(begins + quarter * QUARTER)
        for repository in repositories:
            if here.waiting(repository).count("schedule") > before[repository]:
                seen[repository].append(quarter)
    slots = {
        repository: [repository.number % QUARTERS, repository.number % QUARTERS + QUARTERS]
        for repository in repositories
    }
    assert seen == slots


def test_a_late_sweep_still_begins_the_daily_look(here: Places) -> None:
    here.know(RepositoryKey(5, 100))
    lagging = resync(here).drift
    begins = here.clock.now // DAY * DAY + (100 % QUARTERS) * QUARTER
    assert [lagging.start_daily_looks(begins + after * QUARTER) for after in (-1, 3, 4)] == [0, 1, 0]


def test_a_worker_without_an_index_does_not_switch_off_that_of_another(
    here: Places, caplog: pytest.LogCaptureFixture
) -> None:
    changes = OrganisationChanges(here.inbox.database, here.inbox.queue, here.clock)
    changes.align("/srv/index", EVERYTHING)
    here.inbox.heartbeat(f"{WORKER}with", {INDEX_UP: 0})
    here.inbox.heartbeat(f"{WORKER}without", {"busy": 1})
    sweep(here)
    assert changes.backlog() is not None
    assert "set the same --organisation for all" in caplog.text
    caplog.clear()
    sweep(here, INDEX_LEFT - MINUTE)  # all that have it may be restarting
    assert changes.backlog() is not None
    assert "set the same --organisation for all" not in caplog.text
    sweep(here, 2 * MINUTE)
    assert changes.backlog() is None
