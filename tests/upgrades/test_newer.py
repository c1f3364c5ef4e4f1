"""A memory written by a newer program, at every entry point: one clear line, and nothing is read, written or posted."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

import pytest

from bot.cli.main import parser
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import TOOLS_BY_NAME, answer
from bot.mcp.tools import ToolContext
from bot.memory.manifest import FORMAT, FORMATS
from tests.acceptance.stage import Stage
from tests.cli.program_result import ProgramResult, Run
from tests.local_cache.test_local_memory import clone
from tests.server.harness import ServerHarness
from tests.upgrades import old_branch

LINE = (
    "the memory has format 2, which a newer Precedent wrote; this one reads up to 1; "
    "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
)
SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "search": ("sessions",),
    "smart-search": ("sessions",),
    "what": (),
    "related": ("auth.py",),
    "show": ("14",),
    "context": ("--branch",),
    "context --issue": ("--issue", "14"),
    "answer": ("14",),
    "check": (__file__,),
    "digest": (),
    "outcomes": (),
    "import": (str(SAMPLE),),
    "backtest": (),
    "calibrate": (),
    "learn": (),
}
ELSEWHERE = {"doctor", "mcp", "ss", "try"}
"""Commands tested elsewhere, here or in their own module; and an alias."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory with an empty cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def store(sample_store: Path, tmp_path: Path, call: Run) -> Path:
    """A folder with the sample's memory, searched once, and then written by a newer program."""
    folder = Path(shutil.copytree(sample_store, tmp_path / "store"))
    assert call("search", "sessions", "--store", folder).code == 0
    set_format(folder / "manifest.json")
    return folder


def set_format(manifest: Path, number: object = FORMAT + 1) -> None:
    content = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.with_suffix(".new").write_text(json.dumps(content | {"format": number}), encoding="utf-8")
    manifest.with_suffix(".new").replace(manifest)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_refused(result: ProgramResult, command: str) -> None:
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [f"precedent {command}: {LINE}"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_command_on_a_store_of_a_newer_format_fails_with_the_line(command: str, store: Path, call: Run) -> None:
    before = contents(store)
    name = command.split(maxsplit=1)[0]
    for more in ((), ("--json",) if name != "context" else ("--format", "json")):
        check_refused(call(name, *ARGUMENTS[command], "--store", store, *more), name)
    assert contents(store) == before


def test_every_command_that_takes_a_store_is_covered_here() -> None:
    commands = next(each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    with_store = {
        name
        for name, command_parser in commands.choices.items()
        if any("--store" in a.option_strings for a in command_parser._actions)
    }
    assert with_store - ELSEWHERE == {command.split()[0] for command in ARGUMENTS} - ELSEWHERE


def test_the_doctor_reports_a_newer_format_as_the_only_problem(store: Path, call: Run) -> None:
    before = contents(store)
    result = call("doctor", "--store", store, "--json")
    (problem,) = [each for each in result.data["findings"] if each["level"] in ("error", "warning")]
    assert (result.code, f"{problem['says']}; {problem['remedy']}") == (2, LINE)
    assert contents(store) == before


@pytest.mark.slow
@pytest.mark.parametrize("number", ["2", -1, 0, None, True, 1.5, [1], 10**30])
def test_a_format_that_no_version_writes_is_refused_too(number: object, store: Path, call: Run) -> None:
    set_format(store / "manifest.json", number)
    before = contents(store)
    for command in (("search", "sessions"), ("import", SAMPLE)):
        result = call(*command, "--store", store)
        assert (result.code, result.out) == (2, "")
        (line,) = result.err.splitlines()
        assert line.startswith(f"precedent {command[0]}: the memory has format ")
        assert "which no version of Precedent writes; this one reads up to 1; set the branch back" in line
    assert contents(store) == before


@pytest.mark.parametrize("tool", TOOLS_BY_NAME)
def test_each_tool_for_agents_answers_with_the_line_as_an_error(tool: str, store: Path) -> None:
    arguments = {
        name: {"id": "14", "number": 14}.get(name, "sessions")
        for name in TOOLS_BY_NAME[tool].parameters.get("required", ())
    }
    result = answer(ToolContext(MemoryOptions(store, store=store)), tool, arguments)
    assert (result.failed, result.text, result.data) == (True, LINE, {})


# The branch of a repository


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A repository with a memory and an answered issue, whose branch a newer program has written since."""
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert stage.act("issues", "opened", number) == 0
    write_newer_format(stage)
    return stage


def write_newer_format(stage: Stage) -> None:
    content = json.loads(old_branch.git(stage, "show", f"{old_branch.BRANCH}:manifest.json")) | {"format": FORMAT + 1}
    stage.git.commit("octo-org/hello-world", "manifest.json", json.dumps(content), f"refs/heads/{old_branch.BRANCH}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", ["event", "comment", "schedule", "rebuild", "backtest", "digest", "catch-up", "answer", "dry run"]
)
def test_the_action_writes_nothing_and_posts_nothing(run: str, stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    stage.github.clock.advance(300)
    before, comments_before = old_branch.tip(stage), old_branch.count_comments(stage)
    comment = stage.github.comment(3, "octocat", "/precedent search sessions")
    stage.github.mark()
    stage.git.mark()
    code = {
        "event": lambda: stage.act("issues", "edited", 3),
        "comment": lambda: stage.act("issue_comment", "created", 3, comment),
        "schedule": lambda: stage.act("schedule"),
        "answer": lambda: stage.act("workflow_dispatch", inputs={"run": "answer", "issue": "3"}),
        "dry run": lambda: stage.act("issues", "edited", 3, inputs={"dry-run": "true"}),
    }.get(run, lambda: stage.act("workflow_dispatch", inputs={"run": run}))()
    assert code == 2
    errors = [line for line in capfd.readouterr().out.splitlines() if line.startswith("::error::")]
    assert errors == [f"::error::{LINE}"]
    assert stage.summary.read_text(encoding="utf-8").count("a newer Precedent wrote") == 1
    assert (old_branch.tip(stage), old_branch.count_comments(stage)) == (before, comments_before)
    assert (stage.git.pushes, stage.github.writes) == (0, 0)
    assert stage.outputs()["spoke"] == "false"


@pytest.mark.slow
def test_the_missed_event_is_handled_once_the_newer_program_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    number = stage.github.open_issue("hubot", "Nobody stays logged in", "Since #1.")
    assert stage.act("issues", "opened", number) == 2
    monkeypatch.setitem(FORMATS, FORMAT + 1, "a later one")
    assert stage.act("schedule") == 0
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_a_command_in_a_checkout_fails_with_the_line_after_an_older_fetch(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Run
) -> None:
    now = old_branch.tip(stage)
    old_branch.git(stage, "update-ref", f"refs/heads/{old_branch.BRANCH}", f"{now}^")
    stage.git.commit("octo-org/hello-world", "README.md", "# Hello\n")
    monkeypatch.chdir(clone(str(stage.bare), tmp_path / "checkout"))
    assert call("search", "sessions").code == 0
    old_branch.git(stage, "update-ref", f"refs/heads/{old_branch.BRANCH}", now)
    check_refused(call("search", "sessions", "--refresh"), "search")
    check_refused(call("show", "1", "--refresh"), "show")
    old_branch.git(stage, "update-ref", f"refs/heads/{old_branch.BRANCH}", f"{now}^")
    assert call("search", "sessions", "--refresh").code == 0


@pytest.mark.slow
def test_the_server_refuses_a_repository_with_a_newer_memory_and_serves_the_others(tmp_path: Path) -> None:
    harness = ServerHarness(tmp_path)
    try:
        old, new = (harness.project(f"octo-org/{name}", "PostgreSQL") for name in ("old", "new"))
        harness.github.tenants.install("octo-org", ["octo-org/old", "octo-org/new"])
        for project in (old, new):
            harness.ask(project)
        harness.settle()
        harness.git.commit("octo-org/new", "manifest.json", '{"format": 2}', f"refs/heads/{old_branch.BRANCH}")
        issues = [(project, harness.ask(project)) for project in (old, new)]
        harness.settle()
        rows = [harness.row(*each) for each in issues]
        assert [row.state for row in rows] == ["done", "dead"]
        assert rows[1].reason == LINE
        assert [len(harness.comments(*each)) for each in issues] == [1, 0]
    finally:
        harness.close()
