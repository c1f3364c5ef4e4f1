"""A memory that a newer program wrote: commands and tools answer with one clear line, and change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from bot.memory.folder_store import FolderStore
from bot.memory.manifest import FORMAT
from bot.memory.memory import Memory
from tests.cli.program_result import Run
from tests.memory.samples import issue, remember

LINE = (
    "the memory has format 3, which a newer Precedent wrote; this one reads only 2; "
    "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
)


@pytest.fixture
def store(tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a memory, searched once, and then written by a newer program."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "store"
    remember(Memory(FolderStore(folder)).open(), issue(14))
    assert call("search", "fails", "--store", folder).code == 0
    content = json.loads((folder / "manifest.json").read_text(encoding="utf-8")) | {"format": FORMAT + 1}
    (folder / "manifest.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("search", ["fails"]),
        ("search", ["fails", "--json"]),
        ("show", ["14"]),
        ("context", ["--issue", "14", "--format", "json"]),
        ("answer", ["14"]),
        ("import", ["sample/history.jsonl"]),
        ("learn", []),
    ],
)
def test_a_command_on_a_store_of_a_newer_format_fails_with_the_line(
    command: str, options: list[str], store: Path, call: Run
) -> None:
    before = contents(store)
    result = call(command, *options, "--store", store)
    assert (result.code, result.out, result.err) == (2, "", f"precedent {command}: {LINE}\n")
    assert contents(store) == before


def test_a_tool_for_agents_answers_with_the_line_as_an_error(store: Path) -> None:
    result = answer(ToolContext(MemoryOptions(store, store=store)), "memory_what", {})
    assert (result.failed, result.text, result.data) == (True, LINE, {})
