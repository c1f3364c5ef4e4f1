"""The command line in this process, and the sample's memory, for the tests of any package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console import Ended, Run

SAMPLE = Path(__file__).parents[2] / "sample/history.jsonl"


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the memory of the sample's repository, which is only read."""
    from bot.cli.main import main

    folder = tmp_path_factory.mktemp("sample") / "store"
    assert main(["import", str(SAMPLE), "--store", str(folder), "--repo", "octo-org/linkbarn", "--json"]) == 0
    return folder


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives a function that runs a command in this process."""

    def inside(*arguments: str | Path) -> Ended:
        from bot.cli.main import main

        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

    return inside
