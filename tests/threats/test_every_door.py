"""One walk through every command and every tool: nothing of a hidden account is shown, and nothing of a stranger's
text, or of a forged memory, controls a terminal or passes for a line of ours."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.cli.commands import COMMANDS
from bot.cli.main import main
from bot.comment.prompt import DATA_NOTICE
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import TOOLS, ToolContext
from tests.cli.test_output import SCHEMAS, validator
from tests.threats.walked_memory import CANARY, FILE, HIDDEN, NUMBERS, QUIET_THREADS, SECRET, hostile_store, quiet_store

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
OWN_STYLE = re.compile("\x1b\\[[0-9;]*m|\x1b\\]8;[^\x1b\x07]*(?:\x1b\\\\|\x07)")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
WORDS = ("login", "loop")
NOT_OF_A_MEMORY = {
    "init": "writes our own files", "doctor": "of a setup", "try": "writes the page of backtest", "action": "a run",
    "mcp": "walked as tools", "skill": "prints our own page", "completion": "prints our own script",
    "import": "prints counts", "learn": "prints figures", "calibrate": "prints figures", "eval": "prints figures",
    "references": "reads stdin alone", "serve": "a server", "worker": "a server", "deliveries": "of a server",
    "repos": "of a server", "org": "lists repositories; its index is read by search --org",
}  # fmt: skip
"""Commands that show nothing of a memory, and why."""


class Door(NamedTuple):
    """A call of a command; ``{key}`` stands for each thread. ``has_lines``: each of its lines is ours."""

    words: tuple[str, ...]
    has_lines: bool = True


DOORS: dict[str, tuple[Door, ...]] = {
    "search": (Door(("search", *WORDS, "--limit", "100", "--expand")), Door(("search", *WORDS, "--limit", "100"))),
    "smart-search": (Door(("smart-search", *WORDS, "--limit", "50")),),
    "what": (Door(("what",)),),
    "related": (Door(("related", FILE)),),
    "show": (Door(("show", "{key}", "--full")),),
    "check": (Door(("check", "draft.md")), Door(("check", "draft.md", "--comment"), has_lines=False)),
    "context": tuple(
        Door(("context", *scope, "--format", form, "--as-of", "2026-06-02T09:00Z"), has_lines=False)
        for scope in (("--issue", "{key}"), ("--participant", "octocat"), ("--branch",))
        for form in ("xml", "markdown")
    ),
    "digest": (Door(("digest", "--since", "2026-05-01", "--limit", "100", "--html", "page.html")),),
    "answer": (Door(("answer", "{key}"), has_lines=False),),
    "outcomes": (Door(("outcomes",)),),
    "backtest": (Door(("backtest", "--html", "page.html"), has_lines=False),),
}
CALLS: dict[str, dict[str, object]] = {
    "memory_smart_search": {"query": "login loop", "limit": 50},
    "memory_what": {},
    "search_memories": {"query": "login loop", "limit": 50, "expand": True},
    "get_conversation": {"id": "{key}"},
    "issue_context": {"number": "{key}"},
    "check_draft": {"title": "Login loop", "body": "The login loops, as in #1 and #11."},
}


def test_every_command_and_every_tool_is_walked() -> None:
    assert DOORS.keys() | NOT_OF_A_MEMORY.keys() == COMMANDS.keys()
    assert not DOORS.keys() & NOT_OF_A_MEMORY.keys()
    assert CALLS.keys() == {tool.__name__ for tool in TOOLS}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Shown(NamedTuple):
    """What a door showed, and whether each line of it is ours."""

    door: str
    text: str
    has_lines: bool


def run(words: tuple[str, ...], out: io.StringIO) -> str:
    """What a command prints and the page that it writes, without our own colours."""
    page, err = Path("page.html"), io.StringIO()
    page.unlink(missing_ok=True)
    with redirect_stdout(out), redirect_stderr(err):
        main(words)
    assert "Traceback" not in err.getvalue()
    written = page.read_text(encoding="utf-8") if page.exists() else ""
    return OWN_STYLE.sub("", f"{out.getvalue()}\n{err.getvalue()}") + written


def walk_commands(store: Path, keys: list[int]) -> Iterator[Shown]:
    for doors in DOORS.values():
        for door in doors:
            for key in keys if "{key}" in door.words else [0]:
                words = (*(word.format(key=key) for word in door.words), "--store", str(store))
                yield Shown(" ".join(words), run(words, io.StringIO()), door.has_lines)
                yield Shown(f"{' '.join(words)} in a terminal", run(words, Terminal()), door.has_lines)
                if "--format" not in words and "--comment" not in words:
                    yield Shown(f"{' '.join(words)} --json", run((*words, "--json"), io.StringIO()), has_lines=False)


def walk_tools(store: Path, keys: list[int]) -> Iterator[tuple[str, str, str]]:
    """Each call, its text, and its data as JSON."""
    tools = ToolContext(MemoryOptions(Path.cwd(), store=store))
    for name, arguments in CALLS.items():
        for key in keys if "{key}" in arguments.values() else [0]:
            given = {parameter: key if value == "{key}" else value for parameter, value in arguments.items()}
            result = answer(tools, name, given)
            assert not result.failed, result.text
            yield f"{name} {key or ''}", result.text, json.dumps(result.data, ensure_ascii=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "draft.md").write_text("Login loop\n\nThe login loops, as in #1 and #11.\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def test_nothing_of_a_hidden_account_leaves_through_any_door(folder: Path) -> None:
    store = quiet_store(folder / "store")
    keys = [thread.id for thread in QUIET_THREADS if isinstance(thread.id, int)]
    shown = [(door.door, door.text) for door in walk_commands(store, keys)]
    shown += [(door, text + data) for door, text, data in walk_tools(store, keys)]
    assert sum("ogin loop" in text for _, text in shown) > len(shown) / 2
    told = {door: word for door, text in shown for word in (HIDDEN, SECRET) if word.casefold() in text.casefold()}
    assert told == {}


def test_no_field_of_a_forged_memory_controls_a_terminal_or_passes_for_one_of_our_lines(folder: Path) -> None:
    store, fields = hostile_store(folder / "store")
    assert len(fields) >= 48
    keys = [*NUMBERS]
    problems = dict[str, str]()
    for door, text, has_lines in walk_commands(store, keys):
        if found := CONTROL.search(text):
            problems[door] = repr(text[max(0, found.start() - 60) : found.end() + 20])
        if has_lines and re.search(rf"^{CANARY}", text, re.MULTILINE):
            problems[door] = "a line that is not ours"
        if door.endswith("--json") and (SCHEMAS / f"{door.partition(' ')[0]}.v1.json").exists():
            data, _ = json.JSONDecoder().raw_decode(text)
            if errors := [error.message for error in validator(door.partition(" ")[0]).iter_errors(data)]:
                problems[door] = errors[0]
    for door, text, data in walk_tools(store, keys):
        ours, _, quoted = text.partition("<repository-memory>")
        assert not quoted or ET.fromstring(f"<repository-memory>{quoted}").tag
        unmarked = [line for line in ours.split("\n") if not line.startswith("    ") and CANARY in QUOTED.sub("", line)]
        if unmarked or CONTROL.search(text + json.dumps(json.loads(data), ensure_ascii=False)):
            problems[door] = str(unmarked)
        assert CANARY not in text or DATA_NOTICE in text
    assert problems == {}
