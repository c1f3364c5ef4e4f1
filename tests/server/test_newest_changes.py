"""A resync asks for what changed with the ETag of the last answer, and misses nothing by it."""

from __future__ import annotations

import pytest

from bot.server import resync as module
from bot.server.model import DAY, MINUTE, Grant, RepositoryKey
from bot.server.resync import NewestChanges, Resync
from tests.fakes.github import FakeGitHub
from tests.server.places import HELLO, OTHER, Places, known_at, resync

QUARTER = 15 * MINUTE


def used(github: FakeGitHub, installation: int) -> int:
    """Requests that counted towards the limit of the installation."""
    token = next(each for each in github.world.tokens.values() if each.installation == installation)
    return github.limits.allowance(token, "core").used


def answers(github: FakeGitHub) -> list[int]:
    """The status of each question about the newest change."""
    return [each.status for each in github.requests if each.path == "/repos/{owner}/{repo}/issues"]


def sweep(here: Places, sweeper: Resync) -> tuple[int, int]:
    """A resync, a quarter of an hour after the last: what was to be caught up, and what it cost the installation."""
    here.clock.now += QUARTER
    here.github.clock.advance(QUARTER // 1000)
    installation = here.register.repositories()[0].repository.installation
    before = used(here.github, installation)
    return sweeper.run(here.clock.now).caught_up, used(here.github, installation) - before


def quiet(here: Places) -> list[RepositoryKey]:
    """Two repositories that have read all there is; the list of installations was read today."""
    numbers = [here.github.world.names[name] for name in (HELLO, OTHER)]
    quarter = next(each for each in range(4, 80) if all((each - number) % 96 in range(4, 80) for number in numbers))
    # Not near midnight, when installations are listed again, nor when the daily looks are due, which go by the number.
    morning = DAY - here.clock.now % DAY + quarter * QUARTER
    here.clock.now += morning
    here.github.clock.advance(morning // 1000)
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repositories = [RepositoryKey(number, here.github.world.names[name]) for name in (HELLO, OTHER)]
    here.github.hooks.deliveries.clear()
    here.github.open_issue("octocat", "Crash")
    for repository in repositories:
        known_at(here, repository, here.clock.now)
    resync(here).run(here.clock.now)
    return repositories


def test_of_ten_quiet_resyncs_those_with_the_same_token_cost_nothing(here: Places) -> None:
    repositories = quiet(here)
    sweeper, asked = resync(here), len(answers(here.github))
    found = [sweep(here, sweeper) for _ in range(10)]
    each = [200, 304, 304, 200, 304, 304, 200, 304, 304, 200]  # a token is used for 40 minutes
    assert answers(here.github)[asked:] == [status for status in each for _ in repositories]
    assert found == [(0, len(repositories) if status == 200 else 0) for status in each]


def test_a_change_after_an_unchanged_answer_is_seen(here: Places) -> None:
    repositories, sweeper = quiet(here), resync(here)
    assert [sweep(here, sweeper)[0] for _ in range(2)] == [0, 0]
    here.github.comment(1, "hubot", "news")
    assert sweep(here, sweeper)[0] == 1
    assert here.waiting(repositories[0])[-1] == "catch-up"
    assert answers(here.github)[-4:] == [304, 304, 200, 304]


def test_the_etag_of_another_token_is_answered_in_full(here: Places) -> None:
    repository = quiet(here)[0]
    newest = NewestChanges(here.github.url)
    first = here.tokens.grant(repository, here.clock.now)
    here.tokens.forget(repository)
    other = here.tokens.grant(repository, here.clock.now)
    assert first.token != other.token
    known = newest(first)
    assert known
    assert [newest(grant) for grant in (first, other, other, first)] == [known] * 4
    assert answers(here.github)[-5:] == [200, 304, 200, 304, 200]


def test_only_so_many_answers_are_remembered(here: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ETAGS_KEPT", 1)
    repositories = quiet(here)
    newest = NewestChanges(here.github.url)
    grants: list[Grant] = [here.tokens.grant(repository, here.clock.now) for repository in repositories]
    for grant in (*grants, *grants, grants[1]):
        newest(grant)
    assert answers(here.github)[-5:] == [200, 200, 200, 200, 304]
