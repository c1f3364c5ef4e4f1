"""What was removed is gone, and what belongs to another repository is never fetched, stored or shown."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from bot.action.main import run
from bot.memory.branch_store import MAX_GROWTH, BranchStore
from tests.acceptance.stage import REPOSITORY, Stage

pytestmark = pytest.mark.slow

SECRET = "zebrafinch"
OTHER = "octo-org/private"
BEFORE = "2025-07-15T10:00:00Z"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    return empty_stage


def act(stage: Stage, event: str, action: str | None = None, number: int | None = None, **inputs: str) -> None:
    stage.github.clock.advance(120)
    assert stage.act(event, action, number, None, inputs) == 0


def files(stage: Stage, repository: Path | None = None) -> bytes:
    """The names and contents of all files at the tip of the memory branch."""
    return objects(repository or stage.bare, "--no-walk")


def history(stage: Stage) -> bytes:
    """Every object that a clone of the branch fetches."""
    return objects(stage.bare)


def objects(repository: Path, *options: str) -> bytes:
    """The names and contents of objects of the memory branch."""
    git = ["git", "-C", str(repository)]
    listing = [*git, "rev-list", "--objects", *options, "precedent"]
    listed = subprocess.run(listing, check=True, capture_output=True).stdout
    oids = b"".join(line.split()[0] + b"\n" for line in listed.splitlines())
    return listed + subprocess.run([*git, "cat-file", "--batch"], input=oids, check=True, capture_output=True).stdout


def remember_secret(stage: Stage) -> int:
    """An issue with a decision, and the number of one with a secret, in memory."""
    stage.github.open_issue("monalisa", "Where should sessions live?", "In files.", at=BEFORE)
    number = stage.github.open_issue("hubot", f"My {SECRET}", f"The {SECRET} of a person.")
    stage.github.comment(number, "hubot", f"Once more: {SECRET}.")
    act(stage, "schedule")
    assert SECRET.encode() in files(stage)
    assert SECRET in str(stage.memory().records([number]))
    return number


def run_on_event(stage: Stage) -> None:
    """The event is in the file already: its issue is gone."""
    stage.github.clock.advance(120)
    assert run(stage.environment("issues"), datetime.fromisoformat(stage.github.clock.now), write_gap=0) == 0


def test_a_deleted_issue_leaves_the_tip_and_with_the_next_squash_the_history(stage: Stage) -> None:
    number = remember_secret(stage)
    stage.github.write_event(stage.folder / "event.json", "issues", "deleted", number)
    stage.github.delete_issue(number)
    run_on_event(stage)
    assert SECRET not in str(stage.memory().records([number]))
    act(stage, "workflow_dispatch", run="rebuild")
    assert SECRET.encode() not in files(stage)
    assert SECRET.encode() in history(stage)
    url, limit = f"{stage.git.url}/{REPOSITORY}.git", replace(MAX_GROWTH, commits=1)
    with BranchStore(url, "precedent", stage.git.token, limit=limit) as store:
        store.write(store.open(), {"x": b"y"}, "Squash")
    assert SECRET.encode() not in history(stage)


def test_a_transferred_issue_is_gone_from_memory(stage: Stage) -> None:
    number = remember_secret(stage)
    stage.github.write_event(stage.folder / "event.json", "issues", "transferred", number)
    stage.github.transfer(number, stage.github.add_project(OTHER))
    run_on_event(stage)
    assert SECRET not in str(stage.memory().records([number]))


def test_an_issue_of_another_repository_is_never_fetched_stored_or_shown(stage: Stage) -> None:
    other = stage.github.add_project(OTHER)
    hidden = other.open_issue("monalisa", f"Our {SECRET}", f"The {SECRET} is 12345.", at=BEFORE)
    other.close(hidden, "monalisa", at="2025-07-16T10:00:00Z")
    stage.github.open_issue("monalisa", "Where should sessions live?", "In files.", at=BEFORE)
    site, api = stage.git.url, stage.github.url
    references = (
        f"{OTHER}#{hidden}", f"{site}/{OTHER}/issues/{hidden}", f"https://github.com/{OTHER}/issues/{hidden}",
        f"{api}/repos/{OTHER}/issues/{hidden}", f"../private/issues/{hidden}", f"octo-org/../{OTHER}#{hidden}",
    )  # fmt: skip
    number = stage.github.open_issue("hubot", "Logged out", "As in " + ", ".join(references))
    act(stage, "issues", "opened", number)
    comment = stage.github.comment(number, "hubot", f"/precedent context {OTHER}#{hidden}")
    stage.github.clock.advance(120)
    assert stage.act("issue_comment", "created", number, comment) == 0
    assert SECRET.encode() not in history(stage)
    assert SECRET not in "\n".join(stage.comments(number))
    assert SECRET not in stage.summary.read_text(encoding="utf-8")
    assert stage.github.violations == []


def test_two_repositories_on_one_server_know_nothing_of_each_other(stage: Stage) -> None:
    """Each memory is in its own repository; equal issue numbers elsewhere cause no mix-up."""
    other = stage.github.add_project(OTHER)
    bare = stage.git.create(OTHER)
    other.open_issue("monalisa", f"Our {SECRET}", f"The {SECRET} is 12345.", at=BEFORE)
    stage.github.open_issue("monalisa", "Where should sessions live?", "In files.", at=BEFORE)
    act(stage, "schedule")
    environment = stage.environment("schedule") | {"GITHUB_REPOSITORY": OTHER}
    assert run(environment, datetime.fromisoformat(stage.github.clock.now), write_gap=0) == 0
    assert SECRET.encode() not in files(stage)
    assert b"sessions" in files(stage)
    assert SECRET.encode() in files(stage, repository=bare)
    assert b"sessions" not in files(stage, repository=bare)
