"""The engine, which takes seconds and 150 MB, is loaded only to open an index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ENGINE = ("lancedb", "pyarrow")


def loaded_libraries(code: str) -> list[str]:
    """Return the libraries of the engine that a new process has loaded after this code."""
    program = f"{code}\nimport sys; print(*[name for name in {ENGINE} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    "modules",
    [
        "bot.cli.main, bot.cli.commands.search, bot.mcp.server",
        "bot.server.worker, bot.server.web, bot.cli.commands.serve",
        "bot.action.main, bot.pipeline.handle, bot.organisation, bot.organisation.rows, bot.recall.candidates",
    ],
)
def test_other_modules_do_not_load_the_engine(modules: str) -> None:
    assert loaded_libraries(f"import {modules}") == []


def test_the_engine_is_loaded_by_its_own_module() -> None:
    assert loaded_libraries("import bot.organisation.lance") == list(ENGINE)


def test_the_engine_writes_nothing_to_the_output(tmp_path: Path) -> None:
    """Lance warns when it overwrites a table that does not exist yet."""
    code = (
        f"from bot.organisation.lance import open_candidates\nwith open_candidates({str(tmp_path)!r}, '17') as index:\n"
        " make = index._database.create_table('x', schema=__import__('pyarrow').schema([]), mode='overwrite')\n"
        " index._wait(make, 60)"
    )
    process = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
