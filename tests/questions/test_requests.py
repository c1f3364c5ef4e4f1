"""Every command and tool that takes an issue accepts all the ways in which people name one."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.cli.commands.mcp import tool_context
from bot.cli.parser import parse
from bot.domain.changes import Changes
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.questions.requests import Issue, keys_of, parse_issue
from tests.cli.program_result import ProgramResult, Run
from tests.memory.remotes import bare_repository, commit
from tests.memory.samples import issue
from tests.reading.linear_time import assert_linear_time

REPO = "octo-org/linkbarn"
THIS_REPOSITORY = [
    "42",
    "#42",
    " #42 ",
    "octo-org/linkbarn#42",
    "Octo-Org/Linkbarn#42",
    "https://github.com/octo-org/linkbarn/issues/42",
    "https://github.com/octo-org/linkbarn/issues/42#issuecomment-17",
    "https://git.example.com:8443/octo-org/linkbarn/pull/42/files?w=1",
    "HTTPS://GitHub.com/octo-org/linkbarn/issues/42/",
    "github.com/octo-org/linkbarn/issues/42",
]
OTHER_REPOSITORY = ["octocat/hello#42", "https://github.com/octocat/hello/issues/42"]
NO_ISSUE = [
    *("", "#", "0", "#0", "007", "#007", "-5", "4 2", "##42", "42#", "²", "٤٢", "1" * 16),
    *("linkbarn#42", "/linkbarn#42"),
    *("octo-org/linkbarn#", "octo-org/linkbarn/42", "https://github.com/octo-org/linkbarn", "github.com/issues/42"),
    *("https://github.com/octo-org/linkbarn/issues/42x", "https://github.com/octo-org/linkbarn/wiki/42", "see #42"),
]


@pytest.fixture(scope="module")
def store(sample_store: Path) -> Path:
    return sample_store


# -- every entry point ---------------------------------------------------------------------------------------------

EntryPoint = Callable[[Run, Path, str, pytest.MonkeyPatch], ProgramResult]


def by_command(*command: str, repo: bool = False) -> EntryPoint:
    options = ("--repo", REPO) if repo else ()

    def run(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> ProgramResult:
        return call(*(name if word == "NAME" else word for word in command), "--store", store, *options)

    return run


def references(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> ProgramResult:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"As in #42 and #7.")))
    return call("references", "--repo", REPO, f"--number={name}")


def by_tool(tool: Any, parameter: str) -> EntryPoint:
    def run(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> ProgramResult:
        result = answer(ToolContext(MemoryOptions(store, store=store, repo=REPO)), tool, {parameter: name})
        return ProgramResult(2 if result.failed else 0, "" if result.failed else json.dumps(result.data), result.text)

    return run


ENTRY_POINTS: dict[str, EntryPoint] = {
    "show": by_command("show", "NAME", "--json"),
    "answer": by_command("answer", "NAME", "--json", repo=True),
    "outcomes": by_command("outcomes", "--ids", "NAME", "--json", repo=True),
    "context": by_command("context", "--issue", "NAME", "--json", "--as-of", "2026-02-19T12:00Z"),
    "references": references,
    "get_conversation": by_tool("get_conversation", "id"),
    "issue_context": by_tool("issue_context", "number"),
}
TIMINGS = ("ms",)


def stable_data(ended: ProgramResult) -> Any:
    data = json.loads(ended.out or "null")
    return {key: value for key, value in data.items() if key not in TIMINGS} if isinstance(data, dict) else data


@pytest.mark.slow
def test_every_entry_point_accepts_every_way_to_name_an_issue(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for entry_point, run in ENTRY_POINTS.items():
        ended = {name: run(call, store, name, monkeypatch) for name in [*THIS_REPOSITORY, "48"]}
        assert {name: result.err for name, result in ended.items() if result.code} == {}, entry_point
        other_issue, *answers = stable_data(ended.pop("48")), *map(stable_data, ended.values())
        assert dict(zip(THIS_REPOSITORY, answers, strict=True)) == dict.fromkeys(THIS_REPOSITORY, answers[0]), (
            entry_point
        )
        assert other_issue != answers[0], entry_point


@pytest.mark.parametrize("name", OTHER_REPOSITORY)
@pytest.mark.parametrize("entry_point", ["answer", "outcomes", "references", "get_conversation", "issue_context"])
def test_an_issue_of_another_repository_is_not_mistaken_for_one_of_this(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, entry_point: str, name: str
) -> None:
    ended = ENTRY_POINTS[entry_point](call, store, name, monkeypatch)
    if entry_point == "get_conversation":
        assert ended.data["found"] is False
        return
    assert (ended.code, ended.err.strip().count("\n")) == (2, 0)
    message = "octocat/hello#42 is not an issue of octo-org/linkbarn: name its repository"
    assert ("no thread " if entry_point == "outcomes" else message) in ended.err


def test_an_invalid_issue_is_reported_with_valid_examples(store: Path, call: Run) -> None:
    for name in ["0", "x", "42x", "octo-org/linkbarn"]:
        for command in (("context", "--issue", name, "--store", str(store)), ("references", "--number", name)):
            ended = call(*command)
            assert (ended.code, ended.out) == (2, ""), name
            assert f"{name!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address" in ended.err, name


# -- the parser ----------------------------------------------------------------------------------------------------


def test_every_way_to_name_an_issue_is_parsed() -> None:
    for name in THIS_REPOSITORY:
        issue_found = parse_issue(name)
        assert issue_found is not None, name
        assert (issue_found.number, issue_found.repo.lower()) == (42, REPO if "/" in name else ""), name


def test_text_that_names_no_issue_stays_text() -> None:
    for name in NO_ISSUE:
        assert parse_issue(name) is None, name
        assert not any(isinstance(key, int) for key in keys_of(name)), name


def test_a_page_that_looks_like_an_issue_of_another_repository_is_tried_before_the_number() -> None:
    assert keys_of("docs/setup.md#42") == ["docs/setup.md#42", 42]
    assert keys_of("docs/setup.md#42", REPO) == ["docs/setup.md#42"]
    assert keys_of("#42") == [42, "42", "#42"]
    assert keys_of("#zebra") == ["zebra", "#zebra"]
    assert keys_of("octo-org/linkbarn#42", REPO.upper()) == ["octo-org/linkbarn#42", 42]


def test_an_issue_belongs_to_its_own_or_to_an_unknown_repository() -> None:
    assert [Issue(42, repo).within(own_repo) for repo in ("", REPO) for own_repo in ("", REPO)] == [42] * 4


def test_a_very_long_name_is_parsed_in_linear_time() -> None:
    pieces = ["a/b#", "https://a/", "https://a/b/c/issues/1", "#", "1", "a.", "-"]
    assert_linear_time(lambda text: (parse_issue(text), keys_of(text)), *pieces)


# -- the MCP server reads any branch -------------------------------------------------------------------------------


def test_the_mcp_server_reads_the_branch_given_by_its_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = bare_repository(tmp_path / "octocat/hello.git")
    commit(bare, {"README.md": ("100644", b"# Hello\n")}, "refs/heads/main")
    with BranchStore(str(bare), "elsewhere") as branch:
        memory = Memory(branch).open()
        memory.stage(Changes(records=(issue(7, 0, "zebra"),)))
        memory.commit("test")
    subprocess.run(["git", "clone", "--quiet", "--single-branch", bare, tmp_path / "checkout"], check=True)
    monkeypatch.chdir(tmp_path / "checkout")
    tools = tool_context(parse(["mcp", "--memory-branch", "elsewhere"]))
    assert [hit["id"] for hit in answer(tools, "search_memories", {"query": "zebra"}).data["hits"]] == [7]
