"""The command line in this process, for the tests of any package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console import Ended, Run


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
