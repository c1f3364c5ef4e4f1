"""Tenants stay apart, also when a repository changes at any request of a run: the issue is answered once, and nobody
else's is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.server.model import RepositoryKey
from tests.examples import share
from tests.fakes.payloads import EventfulProject
from tests.server.harness import ServerHarness

pytestmark = pytest.mark.slow

SEEN = "the App is no longer installed there, or cannot see this repository"
SUSPENDED = "the App's installation is suspended there"
APP, FIRST = "octo-org/app", "octo-org/first"
PROMISE = 130
"""Seconds after which the next run posts a comment that another run promised and did not post."""


@dataclass
class Scene:
    """A server with a repository, one of whose issues waits for an answer, and perhaps an issue of a stranger."""

    harness: ServerHarness
    ours: EventfulProject
    number: int
    repository: RepositoryKey
    stranger: tuple[EventfulProject, int] | None = None

    @property
    def comments(self) -> list[str]:
        return self.harness.comments(self.ours, self.number)

    def settle_later(self) -> None:
        """Do all runs of the next ten minutes."""
        for _ in range(5):
            self.harness.settle()
            self.harness.pass_time(PROMISE)


def scene(folder: Path) -> Scene:
    harness = ServerHarness(folder)
    ours = harness.project(APP, "PostgreSQL")
    harness.github.tenants.install("octo-org", [APP, FIRST])
    return Scene(harness, ours, harness.ask(ours), harness.repository(ours))


def interrupted_scenes(folder: Path, change: Callable[[Scene], object]) -> Iterator[Scene]:
    """Yield a scene for each request of a run; ``change`` happens just before that request is answered."""
    uncut, requests = scene(folder / "whole"), list[str]()
    uncut.harness.on_request = requests.append
    uncut.harness.run(uncut.repository)
    uncut.harness.close()
    assert len(uncut.comments) == 1
    for position, request in share(enumerate(requests), 2):
        cut, seen = scene(folder / f"cut-{position}"), list[str]()

        def interrupt(request: str, cut: Scene = cut, seen: list[str] = seen, position: int = position) -> None:
            seen.append(request)
            if len(seen) == position + 1:
                change(cut)

        cut.harness.on_request = interrupt
        cut.harness.run(cut.repository)
        cut.harness.on_request = lambda request: None
        print(f"cut at {position}, {request}: {cut.harness.states(cut.repository)}")
        assert len(seen) > position
        yield cut
        assert (cut.harness.token_misuses(), cut.harness.github.violations) == ([], [])
        cut.harness.close()


def check_return(cut: Scene) -> None:
    """Deliver the events of the return and the issue once more; it is answered once."""
    cut.harness.deliver_last()
    cut.harness.deliver_opened(cut.ours, cut.number)
    cut.settle_later()
    assert len(cut.comments) == 1


@pytest.mark.night
@pytest.mark.parametrize("way", ["uninstall", "remove"])
def test_an_app_that_is_removed_posts_nothing_more_and_its_data_is_deleted(tmp_path: Path, way: str) -> None:
    def change(cut: Scene) -> None:
        tenants, number = cut.harness.github.tenants, cut.repository.installation
        tenants.uninstall(number) if way == "uninstall" else tenants.remove(number, [APP])

    comment_counts = []
    for cut in interrupted_scenes(tmp_path, change):
        comment_counts.append(len(cut.comments))
        cut.harness.settle()
        assert len(cut.comments) == comment_counts[-1]
        assert cut.harness.states(cut.repository) == [("dropped", SEEN)] or comment_counts[-1]
        cut.harness.deliver_last()
        cut.harness.settle()
        assert (cut.harness.cloned_repositories(), cut.harness.env.installations.repositories()) == (set(), [])
        tenants = cut.harness.github.tenants
        tenants.install("octo-org", [APP]) if way == "uninstall" else tenants.add(cut.repository.installation, [APP])
        check_return(cut)
    assert comment_counts[0] == 0
    assert comment_counts == sorted(comment_counts)


@pytest.mark.night
def test_a_suspended_app_posts_nothing_until_it_is_unsuspended(tmp_path: Path) -> None:
    for cut in interrupted_scenes(
        tmp_path, lambda cut: cut.harness.github.tenants.suspend(cut.repository.installation)
    ):
        comment_count = len(cut.comments)
        cut.harness.settle()
        assert len(cut.comments) == comment_count
        assert cut.harness.states(cut.repository) == [("dropped", SUSPENDED)] or comment_count
        assert [row.repository for row in cut.harness.env.installations.repositories()] == [cut.repository]
        cut.harness.github.tenants.unsuspend(cut.repository.installation)
        check_return(cut)


@pytest.mark.night
@pytest.mark.parametrize("private", [True, False])
def test_a_renamed_repository_is_answered_once_and_its_namesake_never(tmp_path: Path, *, private: bool) -> None:
    """No event tells of the new name, and somebody else takes the old one at once."""

    def change(cut: Scene) -> None:
        cut.harness.rename(cut.ours, "renamed")
        namesake = cut.harness.project(APP, "Redis", private=private)
        cut.stranger = namesake, namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")

    for cut in interrupted_scenes(tmp_path, change):
        cut.settle_later()
        assert (len(cut.comments), "PostgreSQL" in "".join(cut.comments)) == (1, True)
        assert cut.stranger
        assert cut.harness.comments(*cut.stranger) == []
        assert not [file for file in (cut.harness.git.folder / f"{APP}.git" / "refs").rglob("*") if file.is_file()]
        assert [state for state, _ in cut.harness.states(cut.repository)] == ["done"]
        assert cut.harness.env.installations.repository(cut.repository).name in ("octo-org/renamed", APP)


@pytest.mark.night
def test_a_transferred_repository_is_answered_once_in_its_new_account(tmp_path: Path) -> None:
    def change(cut: Scene) -> None:
        cut.harness.transfer(cut.ours, "octocat", cut.harness.github.tenants.install("octocat"))
        cut.harness.deliver_last()

    for cut in interrupted_scenes(tmp_path, change):
        cut.settle_later()
        there = cut.harness.repository(cut.ours)
        assert there != cut.repository
        cut.harness.deliver_opened(cut.ours, cut.number)
        cut.settle_later()
        assert len(cut.comments) == 1
        assert [row.repository for row in cut.harness.env.installations.repositories()] == [there]
        assert cut.harness.cloned_repositories() == {there.text}


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


def test_a_transfer_to_an_account_without_the_app_drops_the_delivery(
    harness: ServerHarness, project: EventfulProject
) -> None:
    number, repository = harness.ask(project), harness.repository(project)
    harness.transfer(project, "octocat")
    harness.settle()
    assert (harness.comments(project, number), harness.states(repository)) == ([], [("dropped", SEEN)])
