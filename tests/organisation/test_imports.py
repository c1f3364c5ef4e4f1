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
    process = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert process.stderr == ""
    return process.stdout.split()


@pytest.mark.slow
def test_other_modules_do_not_load_the_engine() -> None:
    modules = "bot.cli.main, bot.cli.commands.search, bot.mcp.server, bot.server.work.worker, bot.server.web"
    modules += ", bot.cli.commands.serve, bot.action.main, bot.pipeline.handle, bot.organisation, bot.organisation.rows"
    assert loaded_libraries(f"import {modules}, bot.recall.candidates") == []


@pytest.mark.slow
def test_the_engine_is_loaded_by_its_own_module_and_writes_nothing_else_to_the_output(tmp_path: Path) -> None:
    """Lance warns when it overwrites a table that does not exist yet."""
    code = (
        f"from bot.organisation.lance import open_candidates\nwith open_candidates({str(tmp_path)!r}, '17') as index:\n"
        " make = index._database.create_table('x', schema=__import__('pyarrow').schema([]), mode='overwrite')\n"
        " index._wait(make, 60)"
    )
    assert loaded_libraries(code) == list(ENGINE)
