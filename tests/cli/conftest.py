"""The command `try` against the fake GitHub, a folder outside any checkout, and a home without agents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.local_cache.location import open_memory
from tests.agent_folders import AGENT_FOLDERS
from tests.cli.program_result import ProgramResult, Run
from tests.cli.try_runs import REPO, RunTry
from tests.fakes.github import FakeGitHub


@pytest.fixture
def run_try(github: FakeGitHub, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunTry:
    """Gives a function that runs `try` on the fake's repository, in an empty folder with its own cache."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GITHUB_API_URL", github.url)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GH_TOKEN", github.token)
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("PRECEDENT_TOKEN", raising=False)

    def run(*options: str | Path, repo: str = REPO) -> ProgramResult:
        github.mark()
        return call("try", repo, *options)

    return run


@pytest.fixture
def outside_any_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work outside any checkout, with an empty git configuration."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without agents, and an empty cache."""
    for name in AGENT_FOLDERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def store_cache(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with what searches read of the sample's memory, and nothing else."""
    folder = tmp_path_factory.mktemp("sessions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        with open_memory(MemoryOptions(folder, store=sample_store)):
            return folder
