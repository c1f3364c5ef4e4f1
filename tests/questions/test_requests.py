"""Every command and tool that takes an issue accepts all the ways in which people name one."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

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
    *(
        "",
        "#",
        "0",
        "#0",
        "007",
        "#007",
        "-5",
        "4 2",
        "##42",
        "42#",
        "²",
        "٤٢",
        "1" * 16,
        "linkbarn#42",
        "/linkbarn#42",
    ),
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


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_every_entry_point_accepts_every_way_to_name_an_issue(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, entry_point: str
) -> None:
    ended = {name: ENTRY_POINTS[entry_point](call, store, name, monkeypatch) for name in [*THIS_REPOSITORY, "48"]}
    assert {name: result.err for name, result in ended.items() if result.code} == {}
    other_issue, *answers = stable_data(ended.pop("48")), *map(stable_data, ended.values())
    assert dict(zip(THIS_REPOSITORY, answers, strict=True)) == dict.fromkeys(THIS_REPOSITORY, answers[0])
    assert other_issue != answers[0]


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


@pytest.mark.parametrize("name", ["0", "x", "42x", "octo-org/linkbarn"])
def test_an_invalid_issue_is_reported_with_valid_examples(store: Path, call: Run, name: str) -> None:
    for command in (("context", "--issue", name, "--store", str(store)), ("references", "--number", name)):
        ended = call(*command)
        assert (ended.code, ended.out) == (2, "")
        assert f"{name!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address" in ended.err


# -- the parser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THIS_REPOSITORY)
def test_every_way_to_name_an_issue_is_parsed(name: str) -> None:
    issue_found = parse_issue(name)
    assert issue_found is not None
    assert (issue_found.number, issue_found.repo.lower()) == (42, REPO if "/" in name else "")


@pytest.mark.parametrize("name", NO_ISSUE)
def test_text_that_names_no_issue_stays_text(name: str) -> None:
    assert parse_issue(name) is None
    assert not any(isinstance(key, int) for key in keys_of(name))


def test_a_page_that_looks_like_an_issue_of_another_repository_is_tried_before_the_number() -> None:
    assert keys_of("docs/setup.md#42") == ["docs/setup.md#42", 42]
    assert keys_of("docs/setup.md#42", REPO) == ["docs/setup.md#42"]
    assert keys_of("#42") == [42, "42", "#42"]
    assert keys_of("#zebra") == ["zebra", "#zebra"]
    assert keys_of("octo-org/linkbarn#42", REPO.upper()) == ["octo-org/linkbarn#42", 42]


def test_an_issue_belongs_to_its_own_or_to_an_unknown_repository() -> None:
    assert [Issue(42, repo).within(own_repo) for repo in ("", REPO) for own_repo in ("", REPO)] == [42] * 4


@pytest.mark.parametrize("piece", ["a/b#", "https://a/", "https://a/b/c/issues/1", "#", "1", "a.", "-"])
def test_a_very_long_name_is_parsed_quickly(piece: str) -> None:
    begun = perf_counter()
    parse_issue(piece * 100_000)
    keys_of(piece * 100_000)
    assert perf_counter() - begun < 1


# -- the MCP server reads any branch -------------------------------------------------------------------------------

PROGRAM = """
import sys
from bot.cli.main import main
sys.exit(main(["mcp", *sys.argv[1:]]))
"""


def test_the_mcp_server_reads_the_branch_given_by_its_option(tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "octocat/hello.git")
    commit(bare, {"README.md": ("100644", b"# Hello\n")}, "refs/heads/main")
    with BranchStore(str(bare), "elsewhere") as branch:
        memory = Memory(branch).open()
        memory.stage(Changes(records=(issue(7, 0, "zebra"),)))
        memory.commit("test")
    subprocess.run(["git", "clone", "--quiet", "--single-branch", bare, tmp_path / "checkout"], check=True)
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "search_memories", "arguments": {"query": "zebra"}}},
    ]  # fmt: skip
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(root)!r})\n{PROGRAM}",
        "--memory-branch",
        "elsewhere",
    ]
    with subprocess.Popen(command, cwd=tmp_path / "checkout", stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("".join(f"{json.dumps(each)}\n" for each in messages))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
    assert [hit["id"] for hit in answers[1]["result"]["structuredContent"]["hits"]] == [7]
