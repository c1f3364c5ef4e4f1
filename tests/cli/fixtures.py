"""The command line in this process, and the sample's memory, for the tests of any package."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program_result import ProgramResult, Run

SAMPLE = Path(__file__).parents[2] / "sample/history.jsonl"


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """The folder of this name, built by the first worker that needs it and then read by all."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"once-{name}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            build(folder / name)
            (folder / "done").touch()
    return folder / name


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the memory of the sample's repository. Tests only read it."""

    def import_sample(folder: Path) -> None:
        from bot.cli.main import main

        assert main(["import", str(SAMPLE), "--store", str(folder), "--repo", "octo-org/linkbarn", "--json"]) == 0

    return built_once(tmp_path_factory, "sample", import_sample)


@pytest.fixture(scope="session")
def sample_remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository with the sample's memory on its branch. Tests copy it."""
    from bot.domain.changes import Changes
    from bot.memory.branch_store import BranchStore
    from bot.memory.memory import Memory
    from bot.sources.archive_file import read_archive
    from tests.memory.remotes import bare_repository, commit

    def remember_sample(folder: Path) -> None:
        commit(bare_repository(folder), {"README.md": ("100644", b"# Linkbarn\n")}, "refs/heads/main")
        with BranchStore(str(folder), "precedent") as branch:
            memory = Memory(branch, repo="octo-org/linkbarn").open()
            memory.stage(Changes(records=tuple(read_archive(SAMPLE))))
            memory.commit("sample")

    return built_once(tmp_path_factory, "remote.git", remember_sample)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives a function that runs a command in this process."""

    def run_command(*arguments: str | Path) -> ProgramResult:
        from bot.cli.main import main

        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        output = capsys.readouterr()
        return ProgramResult(code, output.out, output.err)

    return run_command
