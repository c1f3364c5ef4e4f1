"""Tenants stay apart: equal names, renames, transfers, and an App that is suspended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.server.model import RepositoryKey
from tests.server.harness import ServerHarness

PROMISE = timedelta(seconds=200)
"""After which the next run posts a comment that another run promised and did not post."""

SEEN = "the App is no longer installed there, or cannot see this repository"


@pytest.mark.slow
def test_repositories_of_the_same_name_in_two_accounts_share_nothing(harness: ServerHarness) -> None:
    ours, theirs = harness.project("octo-org/app", "PostgreSQL"), harness.project("octocat/app", "Redis")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    harness.github.tenants.install("octocat", ["octocat/app"])
    asked = [(project, harness.ask(project)) for project in (ours, theirs, ours, theirs)]
    harness.settle()
    comments = [harness.comments(project, number) for project, number in asked]
    assert [len(each) for each in comments] == [1] * 4
    assert ["PostgreSQL" in each[0] for each in comments] == [True, False] * 2
    assert ["Redis" in each[0] for each in comments] == [False, True] * 2
    assert "octocat/app" not in comments[0][0]


@pytest.mark.slow
def test_a_delivery_queued_before_a_rename_does_not_reach_the_namesake(harness: ServerHarness) -> None:
    ours = harness.project("octo-org/app", "PostgreSQL")
    number = harness.github.tenants.install("octo-org", ["octo-org/app"])
    first = harness.ask(ours)
    harness.settle()
    second = harness.ask(ours)
    harness.rename(ours, "renamed")
    namesake = harness.project("octo-org/app", "Redis")
    foreign_issue = namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")
    harness.env.tokens.forget()
    harness.settle()
    assert [len(harness.comments(ours, each)) for each in (first, second)] == [1, 1]
    assert "PostgreSQL" in harness.comments(ours, second)[0]
    assert harness.comments(namesake, foreign_issue) == []
    assert harness.env.register.repository(RepositoryKey(number, ours.repo.id)).name == "octo-org/renamed"


@pytest.mark.slow
def test_a_token_from_before_a_rename_does_not_reach_the_namesake(harness: ServerHarness) -> None:
    """The token is older than the rename, of which no event told."""
    ours = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    harness.ask(ours)
    harness.settle()
    harness.rename(ours, "renamed")
    namesake = harness.project("octo-org/app", "Redis")
    namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")
    late = harness.ask(ours)
    harness.settle()
    assert (len(harness.comments(ours, late)), harness.comments(namesake, 2)) == (1, [])


@pytest.mark.slow
def test_a_transferred_repository_takes_its_memory_along(harness: ServerHarness) -> None:
    ours = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    new_installation = harness.github.tenants.install("octocat")
    harness.ask(ours)
    harness.settle()
    queued = harness.ask(ours)
    harness.transfer(ours, "octocat", new_installation)
    harness.deliver_last()
    harness.settle()
    later = harness.ask(ours)
    harness.settle()
    assert [len(harness.comments(ours, each)) for each in (2, queued, later)] == [1, 1, 1]
    assert [row.repository for row in harness.env.register.repositories()] == [
        RepositoryKey(new_installation, ours.repo.id)
    ]
    assert harness.cloned_repositories() == {f"{new_installation}-{ours.repo.id}"}


def test_a_transfer_to_an_account_without_the_app_drops_the_delivery(harness: ServerHarness) -> None:
    ours = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/first"])
    number, repository = harness.ask(ours), harness.repository(ours)
    harness.transfer(ours, "octocat")
    harness.settle()
    assert (harness.comments(ours, number), harness.states(repository)) == ([], [("dropped", SEEN)])


@pytest.mark.slow
def test_a_suspended_app_posts_nothing_and_catches_up_afterwards(harness: ServerHarness) -> None:
    ours = harness.project("octo-org/app", "PostgreSQL")
    installation = harness.github.tenants.install("octo-org", ["octo-org/app"])
    harness.ask(ours)
    harness.settle()
    number = harness.ask(ours)
    harness.github.tenants.suspend(installation)
    harness.deliver_last()
    harness.settle()
    assert harness.comments(ours, number) == []
    harness.github.tenants.unsuspend(installation)
    harness.deliver_last()
    harness.settle()
    harness.deliver_opened(ours, number)
    harness.settle()
    assert len(harness.comments(ours, number)) == 1
