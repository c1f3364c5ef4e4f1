"""Every command uses the same remote: in a fork, that of the original repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cli.commands.doctor import doctor_options
from bot.cli.commands.init import inspect_checkout
from bot.cli.parser import parse
from bot.git.checkout import CheckoutGit, RemoteRepository, remote_of_checkout
from bot.git.checkout import read_worktree as inspect_worktree
from bot.local_cache.local_memory import MemoryOptions
from bot.local_cache.location import open_memory
from tests.cli.program_result import Run
from tests.git.test_checkout import git

FORK, ORIGINAL = "git@github.com:octocat/our-hello.git", "https://github.com/octo-org/hello.git"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a fork that knows only the default branch of the fork."""
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
    ("removed", "expected"), [((), "upstream"), (("upstream",), "origin"), (("upstream", "origin"), "another")]
)
def test_upstream_is_preferred_to_origin_and_origin_to_other_remotes(
    checkout: Path, removed: tuple[str, ...], expected: str
) -> None:
    for name in removed:
        git(checkout, "remote", "remove", name)
    assert next(iter(CheckoutGit(checkout).remotes)) == expected
    remote = remote_of_checkout(checkout)
    assert isinstance(remote, RemoteRepository)
    options, _ = doctor_options(parse(["doctor"]), {})
    facts = inspect_checkout(checkout)
    assert (remote.name, facts.remote) == (expected, expected)
    assert remote.repo == options.target.repository == facts.repository


def test_in_a_fork_all_commands_use_the_original_repository(checkout: Path, call: Run) -> None:
    with open_memory(MemoryOptions(checkout, offline=True)) as memory:
        assert ORIGINAL in memory.missing
        assert memory.missing.endswith("this checkout uses the remote upstream")
    assert inspect_worktree(checkout).project == "hello"
    assert doctor_options(parse(["doctor"]), {})[0].address == ORIGINAL
    data = call("init", "--json").data
    assert (data["repository"], data["remote"], data["default_branch"]) == ("octo-org/hello", "upstream", "trunk")
    assert "[trunk]" in call("init").out


def test_the_default_branch_of_the_original_is_preferred_to_that_of_the_fork(checkout: Path) -> None:
    git(checkout, "symbolic-ref", "refs/remotes/upstream/HEAD", "refs/remotes/upstream/develop")
    assert inspect_checkout(checkout).main == "develop"
