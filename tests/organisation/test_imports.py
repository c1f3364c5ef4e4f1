"""What loads the engine, which takes seconds and 150 MB: nothing but opening an index."""

from __future__ import annotations

import subprocess
import sys

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
