"""The command line and the tools for agents answer the same request alike: what they find, and what they refuse."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ANSWERS, ToolAnswer, ToolContext
from tests.cli.asked import git, working_on_cookies
from tests.cli.console import Ended, Run
from tests.examples import share
from tests.sources.session_lines import ISSUE_AGENT, write

SAID = ("session_id", "type", "timestamp", "content")
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
    """A checkout in which somebody works on cookies, and asks."""
    folder = working_on_cookies(tmp_path / "linkbarn")
    monkeypatch.chdir(folder)
    return folder


def typed(request: dict[str, Any], kind: str) -> list[str]:
    """The request as somebody types it."""
    words = [*request["query"].split(), "--limit", str(request["limit"]), "--state", request["state"]]
    words += ["--kind", kind] if kind != "all" else []
    words += ["--label", request["label"]] if request["label"] else []
    words += ["--since", request["since"]] if request["since"] else []
    return words + (["--expand"] if request["expand"] else [])


def same(ended: Ended, told: ToolAnswer) -> bool:
    """Whether both answered alike; true where something was found."""
    if ended.code == 2:
        assert told.failed, ended.err
        said = ended.err.removeprefix("precedent search: ").replace("give --logs PATH, or ", "").replace("--", "")
        assert told.text == said.strip()
        return False
    assert not told.failed, told.text
    jsonschema.validate(told.data, ANSWERS["search_memories"])
    assert told.data["nothing_relevant"] == (ended.code == 1) == (not ended.data)
    if any("session_id" in one for one in ended.data):
        assert told.data["passages"] == ended.data
        return True
    found = [one for one in ended.data if one["kind"] != "session"]
    sessions = [one for one in ended.data if one["kind"] == "session"]
    said = [(one["id"], *(one["passages"][0][name] for name in ("author", "at", "text"))) for one in sessions]
    assert [tuple(one[name] for name in SAID) for one in told.data["passages"]] == said
    hits = [(one["id"], round(one["score"], 2), one["why"]) for one in found]
    assert [(one["id"], one["score"], one["why"]) for one in told.data["hits"]] == hits
    near = [(link["of"], link["id"], link["why"]) for one in found for link in one.get("linked", ())]
    assert sorted((one["of"], one["id"], one["why"]) for one in told.data["linked"]) == sorted(near)
    return bool(hits)


@pytest.mark.parametrize("names_sources", [True, False], ids=["with sources", "without"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_answered_alike_through_both_doors(
    store: Path, checkout: Path, call: Run, kind: str, names_sources: bool
) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    if names_sources:
        (checkout / ".github").mkdir()
        (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    desk = ToolContext(MemoryOptions(checkout, store=store))
    found = 0
    for request in share(REQUESTS):
        ended = call("search", *typed(request, kind), "--store", store, "--json", "--exit-code")
        found += same(ended, answer(desk, "search_memories", {**request, "kind": kind}))
    assert bool(found) == (kind != "page" and (names_sources or kind != "session"))


def test_sessions_need_no_memory_and_are_counted_as_what_they_are(checkout: Path, call: Run) -> None:
    write(checkout / "state/a.jsonl", *ISSUE_AGENT)
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text('sources: {sessions: ["state"]}\n')
    desk = ToolContext(MemoryOptions(checkout))
    told = answer(desk, "search_memories", {"query": "cookie path", "kind": "session"})
    assert told.data["passages"] == call("search", "cookie", "path", "--kind", "session", "--json").data
    assert told.data["searched"] == 1
    assert told.text.startswith('1 message found for "cookie path": 1 session searched.\n')
    told = answer(desk, "search_memories", {"query": "zebra", "kind": "session"})
    assert told.text == 'Nothing relevant for "zebra": 1 session searched.\n'
    (checkout / ".github/precedent.yml").write_text("sources: [")
    told = answer(desk, "search_memories", {"query": "zebra", "kind": "session"})
    assert told.text.startswith(".github/precedent.yml:1: ")


@pytest.mark.parametrize("branch", ["fix/login-loop", "quantum/zebra", "main"])
def test_what_is_relevant_to_the_work_at_hand_is_so_through_both_doors(
    store: Path, tmp_path: Path, call: Run, branch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    monkeypatch.chdir(folder)
    desk = ToolContext(MemoryOptions(folder, store=store))
    is_relevant = branch.startswith("fix")
    for command, tool, arguments in ((("what",), "memory_what", {}), (("ss",), "memory_smart_search", {"limit": 20})):
        told = answer(desk, tool, arguments).data
        ended = call(*command, "--store", store, "--json", "--exit-code")
        assert (told["nothing_relevant"], ended.code) == (not is_relevant, int(not is_relevant))
        for name in ("hits", "related", "decisions", "tasks", "recent", "used", "unused"):
            found = [[one["id"] if isinstance(one, dict) else one for one in each.get(name, ())]
                     for each in (told, ended.data)]  # fmt: skip
            assert found[0] == found[1]
    for command in (("what",), ("context", "--branch")):
        assert ("Nothing relevant." in call(*command, "--store", store).err) == (not is_relevant)


# -- transcripts that somebody names -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("nowhere", "HERE/nowhere is neither a folder nor a regular file"),
        ("nowhere/*.jsonl", "HERE/nowhere/*.jsonl matches no .jsonl or .log file"),
        ("empty", "HERE/empty matches no .jsonl or .log file"),
        ("notes/map.json", "HERE/notes/map.json matches no .jsonl or .log file"),
        ("link", "HERE/link is a symlink, and is not followed"),
        ("~nobody-of-this-name/logs", "no such account"),
    ],
)
def test_a_name_of_no_transcript_is_a_mistake(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, given: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "logs/a.jsonl", *ISSUE_AGENT)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/map.json").write_text("{}")
    (tmp_path / "link").symlink_to("logs")
    for more in ((), ("--json",), ("--logs", "logs")):
        ended = call("search", "cookie", "--kind", "session", "--logs", given, *more)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"precedent search: --logs {given}: {reason.replace('HERE', str(tmp_path))}\n"


@pytest.mark.parametrize("given", ["logs", "./logs", "../here/logs", "logs/a.jsonl", "l*s/*.jsonl"])
def test_transcripts_are_named_from_where_somebody_stands(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    write(tmp_path / "here/logs/a.jsonl", *ISSUE_AGENT)
    monkeypatch.chdir(tmp_path / "here")
    found = call("search", "cookie", "path", "--kind", "session", "--logs", given, "--json").data
    assert [one["session_id"] for one in found] == ["5b1c"]


@pytest.mark.parametrize("folder", ["logs", "./logs", "../here/logs", "logs/../logs", "lo[g]s", "whole"])
def test_the_context_of_sessions_takes_a_folder_however_it_is_named(
    tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    name = tmp_path / "here" / ("lo[g]s" if "[" in folder else "logs")
    write(name / "a.jsonl", *ISSUE_AGENT)
    monkeypatch.chdir(tmp_path / "here")
    given = str(name) if folder == "whole" else folder
    ended = call("context", "--sessions", given, "--as-of", "2026-03-01T12:00Z", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert "The cookie path changed." in json.dumps(ended.data)
    assert call("context", "--sessions", "nowhere").code == 2
