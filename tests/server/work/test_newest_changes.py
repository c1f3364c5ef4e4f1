"""A resync asks for changes with the ETag of the last answer, and misses none."""

from __future__ import annotations

import pytest

from bot.server.model import DAY, MINUTE, Grant, RepositoryKey
from bot.server.storage.github_access import NewestChanges
from bot.server.work.resync import Resync
from tests.fakes.github import FakeGitHub
from tests.server.app_environment import HELLO, OTHER, AppEnvironment, resync, set_cursor

QUARTER = 15 * MINUTE


def requests_used(github: FakeGitHub, installation: int) -> int:
    """Count the requests that used up the limit of the installation."""
    token = next(each for each in github.world.tokens.values() if each.installation == installation)
    return github.limits.allowance(token, "core").used


def statuses(github: FakeGitHub) -> list[int]:
    """Return the status of each request for the newest change."""
    return [each.status for each in github.requests if each.path == "/repos/{owner}/{repo}/issues"]


def resync_later(env: AppEnvironment, resync_task: Resync) -> tuple[int, int]:
    """Resync a quarter of an hour after the last time; return the catch-ups, and the requests it cost."""
    env.clock.now += QUARTER
    env.github.clock.advance(QUARTER // 1000)
    installation = env.installations.repositories()[0].repository.installation
    before = requests_used(env.github, installation)
    return resync_task.run(env.clock.now).caught_up, requests_used(env.github, installation) - before


def quiet_repositories(env: AppEnvironment) -> list[RepositoryKey]:
    """Set up two repositories with all their history read; installations have been listed today."""
    numbers = [env.github.world.names[name] for name in (HELLO, OTHER)]
    quarter = next(each for each in range(4, 80) if all((each - number) % 96 in range(4, 80) for number in numbers))
    # Not near midnight, when installations are listed again, nor when the daily runs are due, which go by the number.
    morning = DAY - env.clock.now % DAY + quarter * QUARTER
    env.clock.now += morning
    env.github.clock.advance(morning // 1000)
    number = env.github.tenants.install("octocat", [HELLO, OTHER])
    repositories = [RepositoryKey(number, env.github.world.names[name]) for name in (HELLO, OTHER)]
    env.github.hooks.deliveries.clear()
    env.github.open_issue("octocat", "Crash")
    for repository in repositories:
        set_cursor(env, repository, env.clock.now)
    resync(env).run(env.clock.now)
    return repositories


@pytest.mark.slow
def test_a_quiet_resync_costs_nothing_while_its_token_stays_the_same(env: AppEnvironment) -> None:
    repositories = quiet_repositories(env)
    resync_task, requests_before = resync(env), len(statuses(env.github))
    results = [resync_later(env, resync_task) for _ in range(7)]
    expected = [200, 304, 304, 200, 304, 304, 200]  # a token is used for 40 minutes
    assert statuses(env.github)[requests_before:] == [status for status in expected for _ in repositories]
    assert results == [(0, len(repositories) if status == 200 else 0) for status in expected]


@pytest.mark.slow
def test_a_resync_finds_a_change_after_an_unchanged_answer(env: AppEnvironment) -> None:
    repositories, resync_task = quiet_repositories(env), resync(env)
    assert [resync_later(env, resync_task)[0] for _ in range(2)] == [0, 0]
    env.github.comment(1, "hubot", "news")
    assert resync_later(env, resync_task)[0] == 1
    assert env.waiting(repositories[0])[-1] == "catch-up"
    assert statuses(env.github)[-4:] == [304, 304, 200, 304]


@pytest.mark.slow
def test_github_answers_the_etag_of_another_token_in_full(env: AppEnvironment) -> None:
    repository = quiet_repositories(env)[0]
    newest = NewestChanges(env.github.url)
    first = env.tokens.grant(repository, env.clock.now)
    env.tokens.forget(repository)
    other = env.tokens.grant(repository, env.clock.now)
    assert first.token != other.token
    newest_change = newest(first)
    assert newest_change
    assert [newest(grant) for grant in (first, other, other, first)] == [newest_change] * 4
    assert statuses(env.github)[-5:] == [200, 304, 200, 304, 200]


@pytest.mark.slow
def test_only_a_limited_number_of_etags_is_kept(env: AppEnvironment) -> None:
    repositories = quiet_repositories(env)
    newest = NewestChanges(env.github.url, 1)
    grants: list[Grant] = [env.tokens.grant(repository, env.clock.now) for repository in repositories]
    for grant in (*grants, *grants, grants[1]):
        newest(grant)
    assert statuses(env.github)[-5:] == [200, 200, 200, 200, 304]
