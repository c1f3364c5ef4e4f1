"""Installations and the resync over every kind of queue: one process continues where another left off."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.server.installation_events import InstallationEvents, apply_installation_events
from bot.server.model import Delivery, RepositoryKey, RunReport
from bot.server.resync import DAY, MINUTE, ResyncResult
from tests.fakes.github import FakeGitHub
from tests.server.app_environment import (
    APP,
    AppEnvironment,
    DeliveryEndpoint,
    make_environment,
    open_issues,
    receive_sent,
    resync,
    run_resync,
)
from tests.server.queues import Queue

HELLO, OTHER = "octocat/hello-world", "octocat/other"


@pytest.fixture
def env(github: FakeGitHub, queue: Queue) -> Iterator[AppEnvironment]:
    github.add_project(OTHER)
    environment = make_environment(github, queue.inbox)
    yield environment
    environment.api.close()


def process_latest(env: AppEnvironment) -> list[str]:
    """Store and process the latest delivery of GitHub; return the reasons."""
    arrival = receive_sent(env, env.github.hooks.deliveries[-1])
    env.inbox.put([arrival])
    work = env.begin(arrival.repository)
    results = apply_installation_events(work, env.inbox, env.tokens, env.removed_clones.append)
    env.inbox.end(work, results, RunReport())
    return [result.reason for result in results]


def rows(env: AppEnvironment, repository: RepositoryKey, name: str) -> list[Delivery]:
    return [row for row in env.rows(repository) if row.event.name == name]


def test_an_installation_is_added_suspended_and_removed(env: AppEnvironment) -> None:
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (
        RepositoryKey(number, env.github.repo.id),
        RepositoryKey(number, env.github.world.names[OTHER]),
    )
    assert process_latest(env) == ["the App is active: repositories to check: 2"]
    for each in (repository, other):
        work = env.begin(each)
        assert [delivery.event.name for delivery in work.deliveries] == ["catch-up"]
        env.inbox.end(work, [], RunReport(cursor=1))
        env.inbox.installations().store_repository(each, env.tokens.grant(each, env.clock.now).name, private=False)
    env.github.tenants.suspend(number)
    assert process_latest(env) == ["the App is suspended there: deliveries dropped: 2"]
    assert [row.repository for row in env.register.repositories()] == sorted([repository, other])
    env.github.tenants.unsuspend(number)
    assert process_latest(env) == ["the App is active: repositories to check: 2"]
    env.github.tenants.remove(number, [OTHER])
    assert process_latest(env) == ["the App can no longer see this repository: deliveries dropped: 1"]
    env.github.tenants.uninstall(number)
    assert process_latest(env) == ["the App is no longer installed there: deliveries dropped: 1"]
    assert (env.register.repositories(), env.register.state(number)) == ([], "gone")


def test_a_resync_continues_where_another_process_left_off(env: AppEnvironment) -> None:
    endpoint = DeliveryEndpoint(env)
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    listener = endpoint.listen()
    assert run_resync(env, 2 * MINUTE).caught_up == 1
    endpoint.error_status = 503
    open_issues(env, 2)
    assert run_resync(env, 2 * MINUTE).redelivered == 2
    endpoint.error_status = 0
    assert run_resync(env, 15 * MINUTE).redelivered == 2
    assert sorted(row.event.number or 0 for row in rows(env, repository, "issues")) == [1, 2]
    assert run_resync(env, 15 * MINUTE) == ResyncResult()
    listener.stop()


def test_the_daily_run_happens_once_and_old_deliveries_are_purged(env: AppEnvironment) -> None:
    repository = RepositoryKey(env.github.tenants.install("octocat", [HELLO]), env.github.repo.id)
    env.github.hooks.deliveries.clear()
    run_resync(env)
    for _ in range(96):
        env.clock.now += 15 * MINUTE
        resync(env).drift.start_daily_looks(env.clock.now)
    assert len(rows(env, repository, "schedule")) == 1
    env.inbox.drop([row.seq for row in env.rows(repository)], "for the test")
    assert env.inbox.purge(env.clock.now + DAY) >= 2


@pytest.mark.slow
def test_all_repositories_of_a_very_large_account_are_scheduled_once(env: AppEnvironment) -> None:
    repositories = [RepositoryKey(5, number) for number in range(1, 2_502)]
    events = InstallationEvents(env.inbox, env.tokens, env.removed_clones.append, env.clock.now)
    assert events.schedule_catch_up(repositories, f"{APP}:found-1") == len(repositories)
    assert events.schedule_catch_up(repositories, f"{APP}:found-1") == 0
