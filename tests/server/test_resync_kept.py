"""The house and the sweep over the queue in each of its forms: what one process leaves, another one goes on with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.server.installation_events import InstallationEvents, apply_installation_events
from bot.server.model import Delivery, RepositoryKey, RunReport
from bot.server.resync import DAY, MINUTE, ResyncResult
from tests.fakes.github import FakeGitHub
from tests.server.places import APP, Door, Places, heard, opened, places, resync, sweep
from tests.server.queues import Queue

HELLO, OTHER = "octocat/hello-world", "octocat/other"


@pytest.fixture
def here(github: FakeGitHub, queue: Queue) -> Iterator[Places]:
    github.add_project(OTHER)
    found = places(github, queue.inbox)
    yield found
    found.api.close()


def hear(here: Places) -> list[str]:
    """What GitHub sent last is stored and worked on; the reasons."""
    arrival = heard(here, here.github.hooks.deliveries[-1])
    here.inbox.put([arrival])
    work = here.begin(arrival.repository)
    results = apply_installation_events(work, here.inbox, here.tokens, here.forgotten.append)
    here.inbox.end(work, results, RunReport())
    return [result.reason for result in results]


def rows(here: Places, repository: RepositoryKey, name: str) -> list[Delivery]:
    return [row for row in here.rows(repository) if row.event.name == name]


def test_an_installation_comes_rests_and_goes(here: Places) -> None:
    number = here.github.tenants.install("octocat", [HELLO, OTHER])
    repository, other = (
        RepositoryKey(number, here.github.repo.id),
        RepositoryKey(number, here.github.world.names[OTHER]),
    )
    assert hear(here) == ["the App is active: repositories to check: 2"]
    for each in (repository, other):
        work = here.begin(each)
        assert [delivery.event.name for delivery in work.deliveries] == ["catch-up"]
        here.inbox.end(work, [], RunReport(cursor=1))
        here.inbox.installations().store_repository(each, here.tokens.grant(each, here.clock.now).name, private=False)
    here.github.tenants.suspend(number)
    assert hear(here) == ["the App is suspended there: deliveries dropped: 2"]
    assert [row.repository for row in here.register.repositories()] == sorted([repository, other])
    here.github.tenants.unsuspend(number)
    assert hear(here) == ["the App is active: repositories to check: 2"]
    here.github.tenants.remove(number, [OTHER])
    assert hear(here) == ["the App may not see this repository any more: deliveries dropped: 1"]
    here.github.tenants.uninstall(number)
    assert hear(here) == ["the App is not installed there any more: deliveries dropped: 1"]
    assert (here.register.repositories(), here.register.state(number)) == ([], "gone")


def test_a_sweep_goes_on_where_another_process_left_off(here: Places) -> None:
    door = Door(here)
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    listener = door.open()
    assert sweep(here, 2 * MINUTE).caught_up == 1
    door.shut = 503
    opened(here, 2)
    assert sweep(here, 2 * MINUTE).redelivered == 2
    door.shut = 0
    assert sweep(here, 15 * MINUTE).redelivered == 2
    assert sorted(row.event.number or 0 for row in rows(here, repository, "issues")) == [1, 2]
    assert sweep(here, 15 * MINUTE) == ResyncResult()
    listener.stop()


def test_the_daily_look_and_the_purge(here: Places) -> None:
    repository = RepositoryKey(here.github.tenants.install("octocat", [HELLO]), here.github.repo.id)
    here.github.hooks.deliveries.clear()
    sweep(here)
    for _ in range(96):
        here.clock.now += 15 * MINUTE
        resync(here).drift.start_daily_looks(here.clock.now)
    assert len(rows(here, repository, "schedule")) == 1
    here.inbox.drop([row.seq for row in here.rows(repository)], "for the test")
    assert here.inbox.purge(here.clock.now + DAY) >= 2


@pytest.mark.slow
def test_an_account_with_very_many_repositories_is_looked_at_as_a_whole(here: Places) -> None:
    repositories = [RepositoryKey(5, number) for number in range(1, 2_502)]
    house = InstallationEvents(here.inbox, here.tokens, here.forgotten.append, here.clock.now)
    assert house.schedule_catch_up(repositories, f"{APP}:found-1") == len(repositories)
    assert house.schedule_catch_up(repositories, f"{APP}:found-1") == 0
