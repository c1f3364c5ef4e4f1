"""Only a change that closed an issue is shown as its fix, and announced: over the Action, and over an archive."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.acceptance.closings import Closing, archive_lines, closings, play
from tests.acceptance.stage import Stage, with_memory

CLOSINGS = closings()
SETTINGS = "comment:\n  daily_limit: 500\nreleases:\n  notify: comment\n"


def with_closings(stage: Stage) -> None:
    github = stage.github
    github.set_permission("octocat", "write")
    github.add_commit("Begin", "octocat", at="2025-11-01T10:00:00Z")
    github.add_release("v2.2.0", at="2025-11-01T10:00:00Z")
    stage.configure(SETTINGS)
    assert stage.act("schedule") == 0
    for index, closing in enumerate(CLOSINGS):
        assert play(github, index, closing)


def number_of(stage: Stage, index: int) -> int:
    title = f"Sessions of kind {index} are lost"
    return next(issue.number for issue in stage.github.repo.issues.values() if issue.title == title)


@pytest.mark.slow
@pytest.mark.parametrize("reads_history", [False, pytest.param(True, marks=pytest.mark.night)])
def test_only_what_closed_an_issue_is_shown_as_its_fix(empty_stage: Stage, *, reads_history: bool) -> None:
    """The history is read in bulk, where GitHub says what closed an issue; or with the events of each issue."""
    stage = empty_stage
    with_closings(stage)
    if reads_history:
        stage.deliver("schedule", after=40 * 24 * 3600)
    else:
        for index in range(len(CLOSINGS)):
            stage.deliver("issues", "closed", number_of(stage, index), after=5)
    shown: dict[str, bool] = {}
    for index, closing in enumerate(CLOSINGS):
        number = number_of(stage, index)
        asked = stage.github.open_issue("hubot", "Everybody is logged out", f"As in #{number}, but worse.")
        stage.deliver("issues", "opened", asked, after=5)
        (text,) = stage.comments(asked)
        shown[closing.name] = re.search(r"\*\*fixed", text) is not None
    expected = {closing.name: closing.is_fixed for closing in CLOSINGS}
    assert len(expected) == len(CLOSINGS) >= 60
    assert {name: is_fixed for name, is_fixed in shown.items() if is_fixed != expected[name]} == {}


@pytest.mark.slow
def test_only_reporters_of_what_was_fixed_are_notified(empty_stage: Stage) -> None:
    stage = empty_stage.begin(with_closings, with_memory)
    stage.github.clock.advance(24 * 3600)
    stage.github.add_release("v2.3.0")
    stage.deliver("release", "published", after=600)
    for _ in range(6):
        stage.deliver("schedule", after=24 * 3600)
    notified = {closing.name: bool(stage.comments(number_of(stage, i))) for i, closing in enumerate(CLOSINGS)}
    expected = {closing.name: closing.is_fixed for closing in CLOSINGS}
    assert {name: is_told for name, is_told in notified.items() if is_told != expected[name]} == {}


def test_an_archive_tells_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for index, closing in enumerate(CLOSINGS) for line in archive_lines(index, closing)]
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    store = str(tmp_path / "store")
    repo = ["--repo", "octo-org/hello-world"]
    assert main(["import", str(archive), "--store", store, "--no-learn", *repo]) == 0
    capsys.readouterr()
    assert main(["outcomes", "--store", store, "--json", *repo]) == 0
    kinds = {row["id"]: row["outcome"]["kind"] for row in json.loads(capsys.readouterr().out)}
    found = {closing.name: kinds[2 * index + 1000] == "fixed" for index, closing in enumerate(CLOSINGS)}
    assert {name: is_fixed for name, is_fixed in found.items() if is_fixed != _is_known(name)} == {}


def _is_known(name: str) -> bool:
    closing: Closing = next(each for each in CLOSINGS if each.name == name)
    return closing.is_fixed and not closing.needs_github
