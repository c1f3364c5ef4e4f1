"""An issue is named in any of the ways that people write one down, to every command and tool that takes one."""

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
from tests.cli.console import Ended, Run
from tests.memory.remotes import bare_repository, commit
from tests.memory.samples import issue

REPO = "octo-org/linkbarn"
HERE = [
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
ELSEWHERE = ["octocat/hello#42", "https://github.com/octocat/hello/issues/42"]
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


# -- every door ----------------------------------------------------------------------------------------------------

Door = Callable[[Run, Path, str, pytest.MonkeyPatch], Ended]


def typed(*command: str, repo: bool = False) -> Door:
    more = ("--repo", REPO) if repo else ()

    def run(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> Ended:
        return call(*(name if word == "NAME" else word for word in command), "--store", store, *more)

    return run


def references(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> Ended:
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"As in #42 and #7.")))
    return call("references", "--repo", REPO, f"--number={name}")


def told(tool: Any, parameter: str) -> Door:
    def run(call: Run, store: Path, name: str, patch: pytest.MonkeyPatch) -> Ended:
        found = answer(ToolContext(MemoryOptions(store, store=store, repo=REPO)), tool, {parameter: name})
        return Ended(2 if found.failed else 0, "" if found.failed else json.dumps(found.data), found.text)

    return run


DOORS: dict[str, Door] = {
    "show": typed("show", "NAME", "--json"),
    "answer": typed("answer", "NAME", "--json", repo=True),
    "outcomes": typed("outcomes", "--ids", "NAME", "--json", repo=True),
    "context": typed("context", "--issue", "NAME", "--json", "--as-of", "2026-02-19T12:00Z"),
    "references": references,
    "get_conversation": told("get_conversation", "id"),
    "issue_context": told("issue_context", "number"),
}
SHARED_TIMES = ("ms",)


def plain(ended: Ended) -> Any:
    data = json.loads(ended.out or "null")
    return {key: value for key, value in data.items() if key not in SHARED_TIMES} if isinstance(data, dict) else data


@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_an_issue_however_it_is_named(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    ended = {name: DOORS[door](call, store, name, monkeypatch) for name in [*HERE, "48"]}
    assert {name: one.err for name, one in ended.items() if one.code} == {}
    other, *answers = plain(ended.pop("48")), *map(plain, ended.values())
    assert dict(zip(HERE, answers, strict=True)) == dict.fromkeys(HERE, answers[0])
    assert other != answers[0]


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("door", ["answer", "outcomes", "references", "get_conversation", "issue_context"])
def test_an_issue_of_another_repository_is_not_taken_for_one_of_this(
    store: Path, call: Run, monkeypatch: pytest.MonkeyPatch, door: str, name: str
) -> None:
    ended = DOORS[door](call, store, name, monkeypatch)
    if door == "get_conversation":
        assert ended.data["found"] is False
        return
    assert (ended.code, ended.err.strip().count("\n")) == (2, 0)
    said = "octocat/hello#42 is not an issue of octo-org/linkbarn: name its repository"
    assert ("no thread " if door == "outcomes" else said) in ended.err


@pytest.mark.parametrize("name", ["0", "x", "42x", "octo-org/linkbarn"])
def test_what_is_no_issue_is_told_with_what_would_be_one(store: Path, call: Run, name: str) -> None:
    for command in (("context", "--issue", name, "--store", str(store)), ("references", "--number", name)):
        ended = call(*command)
        assert (ended.code, ended.out) == (2, "")
        assert f"{name!r} is not an issue such as 42, #42, OWNER/NAME#42 or its address" in ended.err


# -- the parser ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HERE)
def test_what_names_an_issue_is_read(name: str) -> None:
    found = parse_issue(name)
    assert found is not None
    assert (found.number, found.repo.lower()) == (42, REPO if "/" in name else "")


@pytest.mark.parametrize("name", NO_ISSUE)
def test_what_names_no_issue_is_a_name(name: str) -> None:
    assert parse_issue(name) is None
    assert not any(isinstance(key, int) for key in keys_of(name))


def test_a_page_that_looks_like_an_issue_elsewhere_goes_before_the_number() -> None:
    assert keys_of("docs/setup.md#42") == ["docs/setup.md#42", 42]
    assert keys_of("docs/setup.md#42", REPO) == ["docs/setup.md#42"]
    assert keys_of("#42") == [42, "42", "#42"]
    assert keys_of("#zebra") == ["zebra", "#zebra"]
    assert keys_of("octo-org/linkbarn#42", REPO.upper()) == ["octo-org/linkbarn#42", 42]


def test_an_issue_is_within_its_own_repository_and_where_nobody_knows_which_it_is() -> None:
    assert [Issue(42, repo).within(here) for repo in ("", REPO) for here in ("", REPO)] == [42] * 4


@pytest.mark.parametrize("piece", ["a/b#", "https://a/", "https://a/b/c/issues/1", "#", "1", "a.", "-"])
def test_a_name_of_any_length_is_read_in_no_time(piece: str) -> None:
    begun = perf_counter()
    parse_issue(piece * 100_000)
    keys_of(piece * 100_000)
    assert perf_counter() - begun < 1


# -- the server of tools looks at any branch -----------------------------------------------------------------------

ASK = """
import sys
from bot.cli.main import main
sys.exit(main(["mcp", *sys.argv[1:]]))
"""


def test_the_server_of_tools_takes_the_branch_that_it_is_told(tmp_path: Path) -> None:
    bare = bare_repository(tmp_path / "octocat/hello.git")
    commit(bare, {"README.md": ("100644", b"# Hello\n")}, "refs/heads/main")
    with BranchStore(str(bare), "elsewhere") as branch:
        memory = Memory(branch).open()
        memory.stage(Changes(records=(issue(7, 0, "zebra"),)))
        memory.commit("test")
    subprocess.run(["git", "clone", "--quiet", "--single-branch", bare, tmp_path / "checkout"], check=True)
    asked = [
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
        f"import sys; sys.path.insert(0, {str(root)!r})\n{ASK}",
        "--memory-branch",
        "elsewhere",
    ]
    with subprocess.Popen(command, cwd=tmp_path / "checkout", stdin=-1, stdout=-1, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("".join(f"{json.dumps(each)}\n" for each in asked))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
    assert [hit["id"] for hit in answers[1]["result"]["structuredContent"]["hits"]] == [7]
