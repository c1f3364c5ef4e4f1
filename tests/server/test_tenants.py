"""Tenants do not meet: repositories of one name, renames, transfers, and an App that is taken away in the middle."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.server.model import RepositoryKey
from tests.server.town import Town

PROMISE = timedelta(seconds=200)
"""After which a promise to speak that nobody kept is kept by whoever comes next."""

SEEN = "the App is not installed there any more, or may not see this repository"


@pytest.mark.slow
def test_two_repositories_of_one_name_have_nothing_in_common(town: Town) -> None:
    ours, theirs = town.project("octo-org/app", "PostgreSQL"), town.project("octocat/app", "Redis")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.github.tenants.install("octocat", ["octocat/app"])
    numbers = [(project, town.ask(project)) for project in (ours, theirs, ours, theirs)]
    town.settle()
    said = [town.comments(project, number) for project, number in numbers]
    assert [len(each) for each in said] == [1] * 4
    assert ["PostgreSQL" in each[0] for each in said] == [True, False] * 2
    assert ["Redis" in each[0] for each in said] == [False, True] * 2
    assert "octocat/app" not in said[0][0]


@pytest.mark.slow
def test_what_was_queued_before_a_rename_goes_to_the_renamed_one_not_to_its_namesake(town: Town) -> None:
    ours = town.project("octo-org/app", "PostgreSQL")
    number = town.github.tenants.install("octo-org", ["octo-org/app"])
    first = town.ask(ours)
    town.settle()
    second = town.ask(ours)
    town.rename(ours, "renamed")
    namesake = town.project("octo-org/app", "Redis")
    strange = namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")
    town.here.tokens.forget()
    town.settle()
    assert [len(town.comments(ours, each)) for each in (first, second)] == [1, 1]
    assert "PostgreSQL" in town.comments(ours, second)[0]
    assert town.comments(namesake, strange) == []
    assert town.here.register.repository(RepositoryKey(number, ours.repo.id)).name == "octo-org/renamed"


@pytest.mark.slow
def test_a_token_that_names_the_old_name_does_not_reach_the_namesake(town: Town) -> None:
    """The token is kept from before the rename, and no event told of that."""
    ours = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(ours)
    town.settle()
    town.rename(ours, "renamed")
    namesake = town.project("octo-org/app", "Redis")
    namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")
    late = town.ask(ours)
    town.settle()
    assert (len(town.comments(ours, late)), town.comments(namesake, 2)) == (1, [])


@pytest.mark.slow
def test_a_transferred_repository_takes_its_memory_along(town: Town) -> None:
    ours = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    taker = town.github.tenants.install("octocat")
    town.ask(ours)
    town.settle()
    queued = town.ask(ours)
    town.transfer(ours, "octocat", taker)
    town.add_results()
    town.settle()
    later = town.ask(ours)
    town.settle()
    assert [len(town.comments(ours, each)) for each in (2, queued, later)] == [1, 1, 1]
    assert [row.repository for row in town.here.register.repositories()] == [RepositoryKey(taker, ours.repo.id)]
    assert town.kept() == {f"{taker}-{ours.repo.id}"}


def test_a_transfer_to_whom_the_app_knows_nothing_of_ends_it(town: Town) -> None:
    ours = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/first"])
    number, repository = town.ask(ours), town.repository(ours)
    town.transfer(ours, "octocat")
    town.settle()
    assert (town.comments(ours, number), town.states(repository)) == ([], [("dropped", SEEN)])


@pytest.mark.slow
def test_a_suspended_app_says_nothing_and_catches_up_when_it_may_again(town: Town) -> None:
    ours = town.project("octo-org/app", "PostgreSQL")
    installation = town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(ours)
    town.settle()
    number = town.ask(ours)
    town.github.tenants.suspend(installation)
    town.add_results()
    town.settle()
    assert town.comments(ours, number) == []
    town.github.tenants.unsuspend(installation)
    town.add_results()
    town.settle()
    town.tell(ours, number)
    town.settle()
    assert len(town.comments(ours, number)) == 1
