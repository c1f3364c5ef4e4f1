"""A secret that somebody wrote and took back: what memory still holds of it, and how to get rid of it."""

from __future__ import annotations

import subprocess

import pytest

from tests.acceptance.stage import Stage
from tests.threats.test_private import act, files, history

pytestmark = pytest.mark.slow

TEXT, COMMENT, OTHER = "zebrafinch", "goldcrest", "nuthatch"


def test_edited_or_deleted_text_is_gone_and_deleting_the_branch_erases_history(empty_stage: Stage) -> None:
    stage, github = empty_stage, empty_stage.github
    number = github.open_issue("hubot", "Where should sessions live?", f"The key is {TEXT}.")
    edited = github.comment(number, "hubot", f"The key is {COMMENT}.")
    deleted = github.comment(number, "hubot", f"The key is {OTHER}.")
    act(stage, "schedule")
    assert all(word.encode() in files(stage) for word in (TEXT, COMMENT, OTHER))
    github.edit_issue(number, body="The key is hidden.")
    github.edit_comment(edited, "The key is hidden.")
    github.delete_comment(deleted)
    act(stage, "issues", "edited", number)
    assert not any(word.encode() in files(stage) for word in (TEXT, COMMENT, OTHER))
    assert all(word.encode() in history(stage) for word in (TEXT, COMMENT, OTHER))
    subprocess.run(["git", "-C", str(stage.bare), "update-ref", "-d", "refs/heads/precedent"], check=True)
    act(stage, "workflow_dispatch", run="rebuild")
    assert not any(word.encode() in history(stage) for word in (TEXT, COMMENT, OTHER))
    assert stage.memory().state.manifest.threads == 1
