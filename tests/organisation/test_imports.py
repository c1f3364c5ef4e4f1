"""What loads the engine, which takes seconds and 150 MB: nothing but opening an index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ENGINE = ("lancedb", "pyarrow")


def loaded(code: str) -> list[str]:
    """The engine's libraries that a new process has loaded after this."""
    told = f"{code}\nimport sys; print(*[name for name in {ENGINE} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    "modules",
    [
        "bot.cli.main, bot.cli.commands.search, bot.mcp.server",
        "bot.server.worker, bot.server.web, bot.cli.commands.serve",
        "bot.action.main, bot.pipeline.handle, bot.organisation, bot.organisation.rows, bot.recall.candidates",
    ],
)
def test_the_engine_is_not_loaded_by(modules: str) -> None:
    assert loaded(f"import {modules}") == []


def test_the_engine_is_loaded_by_its_own_module() -> None:
    assert loaded("import bot.organisation.lance") == list(ENGINE)


def test_the_engine_writes_nothing_of_its_own_between_the_lines_of_a_log(tmp_path: Path) -> None:
    """Lance warns of a table that it overwrites before there is one."""
    code = (
        f"from bot.organisation.lance import open_candidates\nwith open_candidates({str(tmp_path)!r}, '17') as index:\n"
        " make = index._database.create_table('x', schema=__import__('pyarrow').schema([]), mode='overwrite')\n"
        " index._wait(make, 60)"
    )
    made = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
