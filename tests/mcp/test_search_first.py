"""The rule to search first: its right example, as the skill and the server give it, works at every door."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.cli.commands.skill import SKILL_FILE
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import INSTRUCTIONS, ToolContext
from tests.cli.program_result import Run

ROOT = Path(__file__).resolve().parents[2]
SKILL = " ".join((ROOT / "skills" / SKILL_FILE).read_text(encoding="utf-8").split())
NUMBER = 14
FACTS = ("2025-07-22", "octocat", "Redis lost every session on restart", "PostgreSQL", "#17")
"""What the right answer says about the issue."""


def right_example(text: str) -> str:
    match = re.search(r"- Wrong: (.+?)\s- Right: (.+?since #17\.\")", text, re.DOTALL)
    assert match is not None
    assert match[1].startswith('answering "Nothing was decided about that')
    return match[2]


def test_the_skill_and_the_server_give_the_same_answer() -> None:
    (from_skill, from_server) = (right_example(text).partition("then answer ")[2] for text in (SKILL, INSTRUCTIONS))
    assert from_skill == from_server
    assert [fact for fact in (f"#{NUMBER}: ", *FACTS) if fact not in from_skill] == []


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_commands_of_the_right_example_find_its_answer(
    sample_store: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    search, show = (words.split() for words in re.findall(r"`precedent (.+?)`", right_example(SKILL)))
    found, shown = (call(*words, "--store", sample_store, *options) for words in (search, show))
    first = found.data[0]["id"] if options else int(found.out.split("\t")[0])
    assert (search[0], show, first) == ("search", ["show", str(NUMBER)], NUMBER)
    assert [fact for fact in FACTS if fact not in shown.out] == []
    smart = call("ss", *search[1:], "--store", sample_store, *options)
    assert (smart.data["hits"][0]["id"] if options else int(smart.out.split("\t")[0])) == NUMBER


def test_the_tools_of_the_right_example_find_its_answer(sample_store: Path, tmp_path: Path) -> None:
    tools = ToolContext(MemoryOptions(tmp_path, store=sample_store))
    calls = re.findall(r"(\w+) with (\w+) (\"[^\"]+\"|\d+)", right_example(INSTRUCTIONS))
    found, shown = (answer(tools, tool, {name: json.loads(value)}) for tool, name, value in calls)
    assert found.data["hits"][0]["id"] == shown.data["thread"]["id"] == NUMBER
    for text in (shown.text, json.dumps(shown.data)):
        assert [fact for fact in FACTS if fact not in text] == []
    smart = answer(tools, "memory_smart_search", {"query": json.loads(calls[0][2])})
    assert smart.data["hits"][0]["id"] == NUMBER
