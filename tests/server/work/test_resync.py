"""A resync: repositories without an event, repositories that lag behind, the App itself, and old deliveries."""

from __future__ import annotations

import time

import pytest

from bot.github.app import App
from bot.github.errors import EVENT_LIMITS
from bot.server.model import ALL_REPOSITORIES, WORKER_PREFIX, Grant, Instant, Priority, RepositoryKey
from bot.server.organisation.guard import INDEX_UP
from bot.server.storage.heartbeats import APP_HEARTBEAT
from bot.server.storage.outbox import OrganisationChanges
from bot.server.work.installation_events import INSTALLATIONS_HEARTBEAT
from bot.server.work.resync import DAY, INDEX_TIMEOUT, MINUTE, QUARTER_HOUR, QUARTERS_PER_DAY, DriftCheck, ResyncResult
from tests.github.keys import key_pair
from tests.server.app_environment import APP, HELLO, HOUR, OTHER, AppEnvironment, resync, run_resync, set_cursor
from tests.server.queues import drop, keys, take_lease


@pytest.mark.usefixtures("queue")
def test_repositories_without_an_event_are_found_once_a_day(env: AppEnvironment) -> None:
    env.github.tenants.lose = True
    number = env.github.tenants.install("octocat", [HELLO])
    repository, other = RepositoryKey(number, env.github.repo.id), RepositoryKey(number, env.github.world.names[OTHER])
    env.github.hooks.deliveries.clear()
    assert (run_resync(env).caught_up, env.waiting(repository)) == (1, ["catch-up"])
    assert env.installations.repository(repository).name == HELLO
    env.github.tenants.add(number, [OTHER])
    env.github.hooks.deliveries.clear()
    later = min(2 * HOUR, DAY - 1 - env.clock.now % DAY)  # the test may run shortly before midnight
    assert (run_resync(env, later).caught_up, env.waiting(other)) == (0, [])
    env.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
    assert (run_resync(env).caught_up, env.waiting(other)) == (1, ["catch-up"])


def test_a_change_while_installations_are_listed_is_found_by_the_next_resync(env: AppEnvironment) -> None:
    class Changing(App):
        def installations(self):  # type: ignore[no-untyped-def]
            env.clock.now += 1
            env.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
            return super().installations()

    env.github.tenants.lose = True
    env.github.tenants.install("octocat", [HELLO])
    with Changing(APP, key_pair()[0], env.github.url) as api:
        run_resync(env, api=api)
    assert env.inbox.heartbeats.all()[INSTALLATIONS_HEARTBEAT][1] == {"day": 0}
    run_resync(env)
    assert env.inbox.heartbeats.all()[INSTALLATIONS_HEARTBEAT][1] != {"day": 0}


def test_an_uninstall_without_an_event_is_noticed(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    run_resync(env)
    env.arrive(repository)
    env.github.tenants.uninstall(repository.installation)
    env.github.hooks.deliveries.clear()
    env.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
    run_resync(env)
    assert (env.installations.repositories(), env.waiting(repository)) == ([], [])


@pytest.mark.slow
def test_an_installation_missing_from_the_list_is_not_assumed_to_be_gone(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    run_resync(env)
    env.arrive(repository)
    env.inbox.heartbeats.store(INSTALLATIONS_HEARTBEAT, {"day": 0})
    app = env.github.apps.by_id[APP]

    class Silent(App):
        def installations(self):  # type: ignore[no-untyped-def]
            return iter(())

    with Silent(APP, key_pair()[0], env.github.url) as api:
        run_resync(env, api=api)
    assert [row.repository for row in env.installations.repositories()] == [repository]
    assert "issues" in env.waiting(repository)
    assert repository.installation in app.installations


def test_a_suspended_installation_is_left_alone(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    set_cursor(env, repository, 1)
    env.github.open_issue("octocat", "Crash")
    env.github.tenants.suspend(repository.installation)
    env.github.hooks.deliveries.clear()
    assert run_resync(env) == ResyncResult()
    assert env.installations.state(repository.installation) == "suspended"
    assert [row.repository for row in env.installations.repositories()] == [repository]


def test_work_found_by_a_resync_comes_after_work_that_people_wait_for(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    assert run_resync(env).caught_up == 1
    assert keys(env.inbox) == {repository.text}
    env.clock.now += 1000
    env.arrive(RepositoryKey(5, 50))
    leases = [env.inbox.queue.claim("worker"), env.inbox.queue.claim("worker")]
    assert [(lease.key, lease.priority) for lease in leases if lease] == [
        ("5-50", Priority.CHANGE),
        (repository.text, Priority.HISTORY),
    ]


@pytest.mark.usefixtures("queue")
def test_old_deliveries_are_purged(env: AppEnvironment) -> None:
    env.arrive(RepositoryKey(5, 50))
    drop(env.inbox, [row.seq for row in env.rows(RepositoryKey(5, 50))], "for the test")
    assert run_resync(env, 29 * DAY).purged == 0
    assert run_resync(env, 2 * DAY).purged >= 1


def test_a_resync_records_the_name_of_the_app_and_the_error_of_our_clock(env: AppEnvironment) -> None:
    env.github.ahead = 90
    run_resync(env)
    assert env.inbox.heartbeats.all()[APP_HEARTBEAT][1] == {
        "slug": "precedent",
        "ahead": 90,
        "fault": "",
    }


def test_a_refused_private_key_is_reported_and_the_rest_of_the_resync_is_done(env: AppEnvironment) -> None:
    run_resync(env)
    env.clock.now -= 31 * DAY
    env.arrive(RepositoryKey(5, 50))
    drop(env.inbox, [row.seq for row in env.rows(RepositoryKey(5, 50))], "for the test")
    env.clock.now += 31 * DAY
    with App(APP, key_pair("other")[0], env.github.url) as api:
        result = run_resync(env, 2 * MINUTE, api)
    note = env.inbox.heartbeats.all()[APP_HEARTBEAT][1]
    assert note["slug"] == "precedent"
    assert "its private key" in str(note["fault"])
    assert result.purged == 1
    assert len(result.notes) == 2
    assert run_resync(env, MINUTE).notes == ()
    assert env.inbox.heartbeats.all()[APP_HEARTBEAT][1]["fault"] == ""


def test_a_resync_reports_that_github_is_down(env: AppEnvironment) -> None:
    env.github.faults.add("*", "5xx", times=None)
    result = run_resync(env)
    assert len(result.notes) == 3
    assert all("502" in note for note in result.notes)


# -- repositories that lag behind


def test_a_repository_whose_events_were_lost_is_caught_up_once(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    set_cursor(env, repository, env.clock.now - HOUR)
    run_resync(env)
    env.github.open_issue("octocat", "Crash")
    assert (run_resync(env).caught_up, env.waiting(repository)[-1]) == (1, "catch-up")
    assert run_resync(env, 15 * MINUTE).caught_up == 0
    drop(env.inbox, [row.seq for row in env.rows(repository)], "for the test")
    assert run_resync(env, 15 * MINUTE).caught_up == 0


@pytest.mark.slow
def test_catch_up_is_repeated_only_while_the_cursor_advances(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    set_cursor(env, repository, env.clock.now - 3 * HOUR)
    run_resync(env)
    env.github.open_issue("octocat", "Crash")
    for cursor, expected in ((3, 1), (2, 1), (2, 0)):
        set_cursor(env, repository, env.clock.now - cursor * HOUR)
        drop(env.inbox, [row.seq for row in env.rows(repository)], "for the test")
        assert (cursor, run_resync(env).caught_up) == (cursor, expected)


@pytest.mark.parametrize(("behind", "expected"), [(0, 0), (4 * MINUTE, 0), (6 * MINUTE, 1)])
def test_a_recent_change_gets_five_minutes_to_arrive_as_a_delivery(
    env: AppEnvironment, behind: int, expected: int
) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    env.github.open_issue("octocat", "Crash")
    newest = round(time.time() * 1000)
    set_cursor(env, repository, newest - behind)
    assert run_resync(env).caught_up == expected


def test_a_repository_with_waiting_work_is_not_checked_for_drift(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    set_cursor(env, repository, 1)
    env.github.open_issue("octocat", "Crash")
    env.arrive(repository)
    assert run_resync(env).caught_up == 0


def test_a_repository_that_the_app_can_no_longer_see_is_removed(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repository = RepositoryKey(number, env.github.repo.id)
    set_cursor(env, repository, 1)
    run_resync(env)
    env.github.tenants.remove(number, [HELLO])
    drop(env.inbox, [row.seq for row in env.rows(repository)], "for the test")
    run_resync(env, HOUR)
    assert repository not in [row.repository for row in env.installations.repositories()]
    assert env.removed_clones == [repository]


def test_a_rate_limit_during_a_resync_pauses_the_installation(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    set_cursor(env, repository, 1)
    env.github.faults.add("GET /repos/octocat/hello-world/issues", "primary403", times=None)
    run_resync(env)
    env.arrive(repository)
    until = env.inbox.limits.paused_until(repository.installation, EVENT_LIMITS)
    assert env.inbox.begin(take_lease(env.inbox, repository)) is None
    env.clock.now = until - 1
    assert env.inbox.queue.claim("worker") is None
    env.clock.now = until
    assert env.begin(repository).deliveries


def test_repositories_are_checked_for_drift_in_turn(env: AppEnvironment) -> None:
    checked: list[RepositoryKey] = []
    repositories = [RepositoryKey(5, number) for number in range(1, 10)]
    for repository in repositories:
        set_cursor(env, repository, 1)

    class Tokens:
        def grant(self, repository: RepositoryKey, now: Instant) -> Grant:
            return Grant(repository, "token")

    def newest_change(grant: Grant) -> Instant:
        checked.append(grant.repository)
        return 0

    for _ in range(2):
        DriftCheck(env.inbox, Tokens(), newest_change, APP, most=6).check(env.clock.now, print)  # type: ignore[arg-type]
    assert checked == [*repositories, *repositories[:3]]


def test_each_repository_gets_a_daily_run_at_its_own_time(env: AppEnvironment) -> None:
    repositories = [RepositoryKey(5, number) for number in (100, 101, 150)]
    env.add_repositories(*repositories)
    drift, midnight = resync(env).drift, env.clock.now // DAY * DAY
    begun = [drift.start_daily_looks(midnight + quarter * QUARTER_HOUR) for quarter in range(2 * QUARTERS_PER_DAY)]
    slots = [
        repository.number % QUARTERS_PER_DAY + day * QUARTERS_PER_DAY for repository in repositories for day in (0, 1)
    ]
    assert {quarter: count for quarter, count in enumerate(begun) if count} == dict.fromkeys(slots, 1)
    assert [env.waiting(repository).count("schedule") for repository in repositories] == [2, 2, 2]


@pytest.mark.usefixtures("queue")
def test_a_late_resync_still_begins_the_daily_run(env: AppEnvironment) -> None:
    env.add_repositories(RepositoryKey(5, 100))
    drift = resync(env).drift
    due = env.clock.now // DAY * DAY + (100 % QUARTERS_PER_DAY) * QUARTER_HOUR
    assert [drift.start_daily_looks(due + after * QUARTER_HOUR) for after in (-1, 3, 4)] == [0, 1, 0]


def test_a_worker_without_an_index_does_not_switch_off_the_index_of_another(
    env: AppEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    changes = OrganisationChanges(env.inbox.database, env.clock)
    changes.align("/srv/index", ALL_REPOSITORIES)
    env.inbox.heartbeats.store(f"{WORKER_PREFIX}with", {INDEX_UP: 0})
    env.inbox.heartbeats.store(f"{WORKER_PREFIX}without", {"busy": 1})
    run_resync(env)
    assert changes.backlog() is not None
    assert "set the same --organisation for all" in caplog.text
    caplog.clear()
    run_resync(env, INDEX_TIMEOUT - MINUTE)  # all workers that have it may be restarting
    assert changes.backlog() is not None
    assert "set the same --organisation for all" not in caplog.text
    run_resync(env, 2 * MINUTE)
    assert changes.backlog() is None
