"""What happens to a repository in the middle of a run, at any of its requests: it is answered once, nobody else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.server.model import RepositoryKey
from tests.examples import share
from tests.fakes.payloads import EventfulProject
from tests.server.town import Town

pytestmark = pytest.mark.slow

SEEN = "the App is not installed there any more, or may not see this repository"
SUSPENDED = "the App's installation is suspended there"
APP, FIRST = "octo-org/app", "octo-org/first"
PROMISE = 130
"""Seconds after which a promise to speak that nobody kept is kept by whoever comes next."""


@dataclass
class Scene:
    """A town, a repository in it about one issue of which something waits, and what else came up."""

    town: Town
    ours: EventfulProject
    number: int
    repository: RepositoryKey
    stranger: tuple[EventfulProject, int] | None = None

    @property
    def said(self) -> list[str]:
        return self.town.comments(self.ours, self.number)

    def later(self) -> None:
        """All runs of the next ten minutes."""
        for _ in range(5):
            self.town.settle()
            self.town.pass_time(PROMISE)


def scene(folder: Path) -> Scene:
    town = Town(folder)
    ours = town.project(APP, "PostgreSQL")
    town.github.tenants.install("octo-org", [APP, FIRST])
    return Scene(town, ours, town.ask(ours), town.repository(ours))


def cuts(folder: Path, change: Callable[[Scene], object]) -> Iterator[Scene]:
    """One scene for each request of a run, in which ``change`` happens just before that request is answered."""
    whole, asked = scene(folder / "whole"), list[str]()
    whole.town.asked = asked.append
    whole.town.run(whole.repository)
    whole.town.close()
    assert len(whole.said) == 1
    for place, request in share(enumerate(asked), 2):
        cut, seen = scene(folder / f"cut-{place}"), list[str]()

        def told(request: str, cut: Scene = cut, seen: list[str] = seen, place: int = place) -> None:
            seen.append(request)
            if len(seen) == place + 1:
                change(cut)

        cut.town.asked = told
        cut.town.run(cut.repository)
        cut.town.asked = lambda request: None
        print(f"cut at {place}, {request}: {cut.town.states(cut.repository)}")
        assert len(seen) > place
        yield cut
        assert (cut.town.trespasses(), cut.town.github.violations) == ([], [])
        cut.town.close()


def comes_back(cut: Scene) -> None:
    """What GitHub tells of the return is heard, the issue told of again, and answered once."""
    cut.town.add_results()
    cut.town.tell(cut.ours, cut.number)
    cut.later()
    assert len(cut.said) == 1


@pytest.mark.parametrize("way", ["uninstall", "remove"])
def test_an_app_that_is_taken_away_says_nothing_after_it_and_what_it_kept_goes(tmp_path: Path, way: str) -> None:
    def change(cut: Scene) -> None:
        tenants, number = cut.town.github.tenants, cut.repository.installation
        tenants.uninstall(number) if way == "uninstall" else tenants.remove(number, [APP])

    spoke = []
    for cut in cuts(tmp_path, change):
        spoke.append(len(cut.said))
        cut.town.settle()
        assert len(cut.said) == spoke[-1]
        assert cut.town.states(cut.repository) == [("dropped", SEEN)] or spoke[-1]
        cut.town.add_results()
        cut.town.settle()
        assert (cut.town.kept(), cut.town.here.register.repositories()) == (set(), [])
        tenants = cut.town.github.tenants
        tenants.install("octo-org", [APP]) if way == "uninstall" else tenants.add(cut.repository.installation, [APP])
        comes_back(cut)
    assert spoke[0] == 0
    assert spoke == sorted(spoke)


def test_an_app_that_is_suspended_says_nothing_until_it_may_again(tmp_path: Path) -> None:
    for cut in cuts(tmp_path, lambda cut: cut.town.github.tenants.suspend(cut.repository.installation)):
        spoke = len(cut.said)
        cut.town.settle()
        assert len(cut.said) == spoke
        assert cut.town.states(cut.repository) == [("dropped", SUSPENDED)] or spoke
        assert [row.repository for row in cut.town.here.register.repositories()] == [cut.repository]
        cut.town.github.tenants.unsuspend(cut.repository.installation)
        comes_back(cut)


@pytest.mark.parametrize("private", [True, False])
def test_one_that_gets_another_name_is_answered_once_and_its_namesake_never(tmp_path: Path, *, private: bool) -> None:
    """Nobody is told of the new name, and the old one is somebody else's at once."""

    def change(cut: Scene) -> None:
        cut.town.rename(cut.ours, "renamed")
        namesake = cut.town.project(APP, "Redis", private=private)
        cut.stranger = namesake, namesake.open_issue("monalisa", "Which session store?", "What did we decide in #1?")

    for cut in cuts(tmp_path, change):
        cut.later()
        assert (len(cut.said), "PostgreSQL" in "".join(cut.said)) == (1, True)
        assert cut.stranger
        assert cut.town.comments(*cut.stranger) == []
        assert not [file for file in (cut.town.git.folder / f"{APP}.git" / "refs").rglob("*") if file.is_file()]
        assert [state for state, _ in cut.town.states(cut.repository)] == ["done"]
        assert cut.town.here.register.repository(cut.repository).name in ("octo-org/renamed", APP)


def test_one_that_goes_to_another_account_is_answered_there_once(tmp_path: Path) -> None:
    def change(cut: Scene) -> None:
        cut.town.transfer(cut.ours, "octocat", cut.town.github.tenants.install("octocat"))
        cut.town.add_results()

    for cut in cuts(tmp_path, change):
        cut.later()
        there = cut.town.repository(cut.ours)
        assert there != cut.repository
        cut.town.tell(cut.ours, cut.number)
        cut.later()
        assert len(cut.said) == 1
        assert [row.repository for row in cut.town.here.register.repositories()] == [there]
        assert cut.town.kept() == {there.text}
