"""The command line in this process, and the sample's memory, for the tests of any package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program_result import ProgramResult, Run

SAMPLE = Path(__file__).parents[2] / "sample/history.jsonl"


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the memory of the sample's repository. Tests only read it."""
    from bot.cli.main import main

    folder = tmp_path_factory.mktemp("sample") / "store"
    assert main(["import", str(SAMPLE), "--store", str(folder), "--repo", "octo-org/linkbarn", "--json"]) == 0
    return folder


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
