"""Every command goes by the same remote: in a fork by that of the repository that it was forked from."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.commands.doctor import doctor_options
from bot.cli.commands.init import inspect_checkout
from bot.cli.main import parser
from bot.git.checkout import CheckoutGit, RemoteRepository, remote_of_checkout
from bot.git.checkout import read_worktree as look_at_work
from bot.local_cache.local_memory import MemoryOptions
from bot.local_cache.location import open_memory
from tests.cli.console import Run
from tests.git.test_checkout import git

FORK, ORIGINAL = "git@github.com:octocat/our-hello.git", "https://github.com/octo-org/hello.git"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a fork, which knows the default branch of the fork only."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    top = tmp_path / "checkout"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=topic")
    git(top, "remote", "add", "origin", FORK)
    git(top, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    git(top, "remote", "add", "another", "https://github.com/monalisa/hello.git")
    git(top, "remote", "add", "upstream", ORIGINAL)
    monkeypatch.chdir(top)
    return top


@pytest.mark.parametrize(
    ("removed", "counts"), [((), "upstream"), (("upstream",), "origin"), (("upstream", "origin"), "another")]
)
def test_upstream_counts_before_origin_and_that_before_others(
    checkout: Path, removed: tuple[str, ...], counts: str
) -> None:
    for name in removed:
        git(checkout, "remote", "remove", name)
    assert next(iter(CheckoutGit(checkout).remotes)) == counts
    found = remote_of_checkout(checkout)
    assert isinstance(found, RemoteRepository)
    wanted, _ = doctor_options(parser().parse_args(["doctor"]), {})
    place = inspect_checkout(checkout)
    assert (found.name, place.remote) == (counts, counts)
    assert found.repo == wanted.target.repository == place.repository


def test_in_a_fork_all_commands_look_at_the_repository_that_it_was_forked_from(checkout: Path, call: Run) -> None:
    with open_memory(MemoryOptions(checkout, offline=True)) as place:
        assert ORIGINAL in place.missing
        assert place.missing.endswith("this checkout uses the remote upstream")
    assert look_at_work(checkout).project == "hello"
    assert doctor_options(parser().parse_args(["doctor"]), {})[0].address == ORIGINAL
    shown = call("init", "--json").data
    assert (shown["repository"], shown["remote"], shown["default_branch"]) == ("octo-org/hello", "upstream", "trunk")
    assert "[trunk]" in call("init").out


def test_of_two_default_branches_that_of_the_original_counts(checkout: Path) -> None:
    git(checkout, "symbolic-ref", "refs/remotes/upstream/HEAD", "refs/remotes/upstream/develop")
    assert inspect_checkout(checkout).main == "develop"
