"""The command line and the tools for agents answer requests alike: they find and refuse the same."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ANSWER_SCHEMAS, ToolAnswer, ToolContext
from tests.cli.checkouts import create_cookie_checkout, git
from tests.cli.program_result import ProgramResult, Run
from tests.examples import share
from tests.sources.session_lines import ISSUE_AGENT, write

PASSAGE_FIELDS = ("session_id", "type", "timestamp", "content")
KINDS = ("all", "issue", "pull", "page", "session")
REQUESTS = [
    {"query": "cookie path", "state": state, "label": label, "expand": expand, "since": "", "limit": 10}
    for state, label, expand in product(("all", "open", "closed"), ("", "bug", "nobody"), (False, True))
]
REQUESTS += [REQUESTS[0] | more for more in ({"query": "quantum zebra"}, {"since": "2026-02-01"}, {"limit": 1})]


@pytest.fixture(scope="module")
def store(sample_store: Path) -> Path:
    return sample_store


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a checkout with work on cookies, and change to it."""
    folder = create_cookie_checkout(tmp_path / "linkbarn")
    monkeypatch.chdir(folder)
    return folder


def command_arguments(request: dict[str, Any], kind: str) -> list[str]:
    """Return the request as arguments of the command line."""
    words = [*request["query"].split(), "--limit", str(request["limit"]), "--state", request["state"]]
    words += ["--kind", kind] if kind != "all" else []
    words += ["--label", request["label"]] if request["label"] else []
    words += ["--since", request["since"]] if request["since"] else []
    return words + (["--expand"] if request["expand"] else [])


def answered_alike(command: ProgramResult, tool_answer: ToolAnswer) -> bool:
    """Check that both answered alike; return whether they found something."""
    if command.code == 2:
        assert tool_answer.failed, command.err
        expected = command.err.removeprefix("precedent search: ").replace("give --logs PATH, or ", "").replace("--", "")
        assert tool_answer.text == expected.strip()
        return False
    assert not tool_answer.failed, tool_answer.text
    jsonschema.validate(tool_answer.data, ANSWER_SCHEMAS["search_memories"])
    assert tool_answer.data["nothing_relevant"] == (command.code == 1) == (not command.data)
    if any("session_id" in item for item in command.data):
        assert tool_answer.data["passages"] == command.data
        return True
    threads = [item for item in command.data if item["kind"] != "session"]
    sessions = [item for item in command.data if item["kind"] == "session"]
    expected = [(item["id"], *(item["passages"][0][name] for name in ("author", "at", "text"))) for item in sessions]
    assert [tuple(item[name] for name in PASSAGE_FIELDS) for item in tool_answer.data["passages"]] == expected
    hits = [(item["id"], round(item["score"], 2), item["why"]) for item in threads]
    assert [(item["id"], item["score"], item["why"]) for item in tool_answer.data["hits"]] == hits
    links = [(link["of"], link["id"], link["why"]) for item in threads for link in item.get("linked", ())]
    assert sorted((item["of"], item["id"], item["why"]) for item in tool_answer.data["linked"]) == sorted(links)
    return bool(hits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names_sources"), [*((kind, True) for kind in KINDS), ("all", False), ("session", False)]
)
def test_the_command_line_and_the_tool_answer_a_search_alike(
    store: Path, checkout: Path, call: Run, kind: str, names_sources: bool
) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    if names_sources:
        (checkout / ".github").mkdir()
        (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    tools = ToolContext(MemoryOptions(checkout, store=store))
    found_count = 0
    for request in share(REQUESTS):
        command = call("search", *command_arguments(request, kind), "--store", store, "--json", "--exit-code")
        found_count += answered_alike(command, answer(tools, "search_memories", {**request, "kind": kind}))
    assert bool(found_count) == (kind != "page" and (names_sources or kind != "session"))


def test_sessions_are_searched_without_a_memory_and_counted_as_sessions(checkout: Path, call: Run) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    tools = ToolContext(MemoryOptions(checkout))
    result = answer(tools, "search_memories", {"query": "cookie path", "kind": "session"})
    assert result.data["passages"] == call("search", "cookie", "path", "--kind", "session", "--json").data
    assert result.data["searched"] == 1
    assert result.text.startswith('1 message found for "cookie path": 1 session searched.\n')
    result = answer(tools, "search_memories", {"query": "zebra", "kind": "session"})
    assert result.text == 'Nothing relevant for "zebra": 1 session searched.\n'
    (checkout / ".github/precedent.yml").write_text("sources: [")
    result = answer(tools, "search_memories", {"query": "zebra", "kind": "session"})
    assert result.text.startswith(".github/precedent.yml:1: ")


@pytest.mark.parametrize("branch", ["fix/login-loop", "quantum/zebra", "main"])
def test_the_command_line_and_the_tools_agree_on_what_is_relevant_to_the_branch(
    store: Path, tmp_path: Path, call: Run, branch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    monkeypatch.chdir(folder)
    tools = ToolContext(MemoryOptions(folder, store=store))
    is_relevant = branch.startswith("fix")
    for command, tool, arguments in ((("what",), "memory_what", {}), (("ss",), "memory_smart_search", {"limit": 20})):
        tool_data = answer(tools, tool, arguments).data
        ended = call(*command, "--store", store, "--json", "--exit-code")
        assert (tool_data["nothing_relevant"], ended.code) == (not is_relevant, int(not is_relevant))
        for name in ("hits", "related", "decisions", "tasks", "recent", "used", "unused"):
            ids = [[item["id"] if isinstance(item, dict) else item for item in each.get(name, ())]
                     for each in (tool_data, ended.data)]  # fmt: skip
            assert ids[0] == ids[1]
    for command in (("what",), ("context", "--branch")):
        assert ("Nothing relevant." in call(*command, "--store", store).err) == (not is_relevant)


# -- paths of transcripts ------------------------------------------------------------------------------------------


def test_a_path_without_transcripts_is_refused(tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        ("nowhere", "HERE/nowhere is neither a folder nor a regular file"),
        ("nowhere/*.jsonl", "HERE/nowhere/*.jsonl matches no .jsonl or .log file"),
        ("empty", "HERE/empty matches no .jsonl or .log file"),
        ("notes/map.json", "HERE/notes/map.json matches no .jsonl or .log file"),
        ("link", "HERE/link is a symlink, and is not followed"),
        ("~nobody-of-this-name/logs", "no such account"),
    ]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "logs/a.jsonl", *ISSUE_AGENT)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/map.json").write_text("{}")
    (tmp_path / "link").symlink_to("logs")
    for (path, reason), options in product(cases, ((), ("--json",), ("--logs", "logs"))):
        ended = call("search", "cookie", "--kind", "session", "--logs", path, *options)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"precedent search: --logs {path}: {reason.replace('HERE', str(tmp_path))}\n"


def test_paths_of_transcripts_are_relative_to_the_current_folder(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("logs", "lo[g]s"):
        write(tmp_path / "here" / name / "a.jsonl", *ISSUE_AGENT)
    monkeypatch.chdir(tmp_path / "here")
    for path in ("logs", "./logs", "../here/logs", "logs/a.jsonl", "logs*/*.jsonl"):
        passages = call("search", "cookie", "path", "--kind", "session", "--logs", path, "--json").data
        assert [passage["session_id"] for passage in passages] == ["5b1c"], path
    for path in ("logs", "./logs", "../here/logs", "logs/../logs", "lo[g]s", tmp_path / "here/logs"):
        ended = call("context", "--sessions", path, "--as-of", "2026-03-01T12:00Z", "--json")
        assert (ended.code, ended.err) == (0, ""), path
        assert "The cookie path changed." in json.dumps(ended.data), path
    assert call("context", "--sessions", "nowhere").code == 2
