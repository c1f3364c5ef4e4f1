"""A memory that a newer program wrote, met at every door: one clear line, and nothing is read, written or said."""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

import pytest

from bot.cli.main import parser
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import OFFERED, answer
from bot.mcp.tools import ToolContext
from bot.memory.manifest import FORMAT, FORMATS
from tests.acceptance.stage import Stage
from tests.cli.console import Ended, Run
from tests.local_cache.test_local_memory import clone
from tests.server.town import Town
from tests.upgrades import past

LINE = (
    "the memory has format 2, which a newer Precedent wrote; this one reads up to 1; "
    "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
)
SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
ASKED: dict[str, tuple[str, ...]] = {
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
"""Commands that have a test of their own, here or in their own place; and a name for another one."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person with an empty cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def store(sample_store: Path, tmp_path: Path, call: Run) -> Path:
    """A folder with the sample's memory, searched once, and then written by a newer program."""
    folder = Path(shutil.copytree(sample_store, tmp_path / "store"))
    assert call("search", "sessions", "--store", folder).code == 0
    plant(folder / "manifest.json")
    return folder


def plant(manifest: Path, number: object = FORMAT + 1) -> None:
    told = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.with_suffix(".new").write_text(json.dumps(told | {"format": number}), encoding="utf-8")
    manifest.with_suffix(".new").replace(manifest)


def held(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(ended: Ended, command: str) -> None:
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines() == [f"precedent {command}: {LINE}"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKED)
def test_a_command_on_a_store_of_a_newer_format_ends_with_the_line(command: str, store: Path, call: Run) -> None:
    before = held(store)
    name = command.split(maxsplit=1)[0]
    for more in ((), ("--json",) if name != "context" else ("--format", "json")):
        refused(call(name, *ASKED[command], "--store", store, *more), name)
    assert held(store) == before


def test_each_command_that_takes_a_store_is_asked_here() -> None:
    doors = next(each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    taking = {name for name, one in doors.choices.items() if any("--store" in a.option_strings for a in one._actions)}
    assert taking - ELSEWHERE == {command.split()[0] for command in ASKED} - ELSEWHERE


def test_the_doctor_tells_of_a_newer_format_as_the_one_thing_that_is_wrong(store: Path, call: Run) -> None:
    before = held(store)
    told = call("doctor", "--store", store, "--json")
    (found,) = [each for each in told.data["findings"] if each["level"] in ("error", "warning")]
    assert (told.code, f"{found['says']}; {found['remedy']}") == (2, LINE)
    assert held(store) == before


@pytest.mark.slow
@pytest.mark.parametrize("number", ["2", -1, 0, None, True, 1.5, [1], 10**30])
def test_a_format_that_is_no_number_of_ours_is_refused_too(number: object, store: Path, call: Run) -> None:
    plant(store / "manifest.json", number)
    before = held(store)
    for words in (("search", "sessions"), ("import", SAMPLE)):
        ended = call(*words, "--store", store)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.err.splitlines()
        assert line.startswith(f"precedent {words[0]}: the memory has format ")
        assert "which no version of Precedent writes; this one reads up to 1; set the branch back" in line
    assert held(store) == before


@pytest.mark.parametrize("tool", OFFERED)
def test_each_tool_for_agents_answers_with_the_line_as_an_error(tool: str, store: Path) -> None:
    given = {
        name: {"id": "14", "number": 14}.get(name, "sessions") for name in OFFERED[tool].parameters.get("required", ())
    }
    told = answer(ToolContext(MemoryOptions(store, store=store)), tool, given)
    assert (told.failed, told.text, told.data) == (True, LINE, {})


# The branch of a repository


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A repository with a memory and an answered issue, whose branch a newer program has written since."""
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1, but worse.")
    assert stage.act("issues", "opened", number) == 0
    newer(stage)
    return stage


def newer(stage: Stage) -> None:
    told = json.loads(past.git(stage, "show", f"{past.BRANCH}:manifest.json")) | {"format": FORMAT + 1}
    stage.git.commit("octo-org/hello-world", "manifest.json", json.dumps(told), f"refs/heads/{past.BRANCH}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", ["event", "comment", "schedule", "rebuild", "backtest", "digest", "catch-up", "answer", "dry run"]
)
def test_the_action_writes_nothing_and_says_nothing(run: str, stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    stage.github.clock.advance(300)
    before, stood = past.tip(stage), past.ours(stage)
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
    assert (past.tip(stage), past.ours(stage)) == (before, stood)
    assert (stage.git.pushes, stage.github.writes) == (0, 0)
    assert stage.outputs()["spoke"] == "false"


@pytest.mark.slow
def test_once_the_newer_program_is_there_the_event_is_made_up_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = stage.github.open_issue("hubot", "Nobody stays logged in", "Since #1.")
    assert stage.act("issues", "opened", number) == 2
    monkeypatch.setitem(FORMATS, FORMAT + 1, "a later one")
    assert stage.act("schedule") == 0
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_a_command_in_a_checkout_ends_with_the_line_though_it_was_fetched_before(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Run
) -> None:
    now = past.tip(stage)
    past.git(stage, "update-ref", f"refs/heads/{past.BRANCH}", f"{now}^")
    stage.git.commit("octo-org/hello-world", "README.md", "# Hello\n")
    monkeypatch.chdir(clone(str(stage.bare), tmp_path / "checkout"))
    assert call("search", "sessions").code == 0
    past.git(stage, "update-ref", f"refs/heads/{past.BRANCH}", now)
    refused(call("search", "sessions", "--refresh"), "search")
    refused(call("show", "1", "--refresh"), "show")
    past.git(stage, "update-ref", f"refs/heads/{past.BRANCH}", f"{now}^")
    assert call("search", "sessions", "--refresh").code == 0


@pytest.mark.slow
def test_the_repository_of_a_newer_memory_says_so_and_the_others_go_on(tmp_path: Path) -> None:
    town = Town(tmp_path)
    try:
        old, new = (town.project(f"octo-org/{name}", "PostgreSQL") for name in ("old", "new"))
        town.github.tenants.install("octo-org", ["octo-org/old", "octo-org/new"])
        for project in (old, new):
            town.ask(project)
        town.settle()
        town.git.commit("octo-org/new", "manifest.json", '{"format": 2}', f"refs/heads/{past.BRANCH}")
        told = [(project, town.ask(project)) for project in (old, new)]
        town.settle()
        rows = [town.row(*each) for each in told]
        assert [row.state for row in rows] == ["done", "dead"]
        assert rows[1].reason == LINE
        assert [len(town.comments(*each)) for each in told] == [1, 0]
    finally:
        town.close()
