"""An answer that is due is saved with the issue, since a run may end at any moment after it has read history."""

from __future__ import annotations

import pytest

from bot.domain.post import Post
from tests.acceptance.stage import Stage, with_mentions
from tests.marker import find_marker

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 1 is old, 2 is new and refers to it, 3 is new and closed; memory is empty."""
    with_mentions(empty_stage)
    github = empty_stage.github
    github.open_issue("hubot", "Where should sessions live?", "Files are slow.", at="2025-07-15T10:00:00Z")
    github.open_issue("monalisa", "Everybody is logged out", "As in #1, but worse.", at="2026-01-05T09:00:00Z")
    github.open_issue("octocat", "Never mind", "See #1.", at="2026-01-05T10:00:00Z")
    github.close(3, "octocat", at="2026-01-05T10:01:00Z")
    return empty_stage


def test_a_first_run_that_ends_after_reading_history_leaves_its_answers_to_the_next_one(stage: Stage) -> None:
    stage.git.faults.add("POST *git-receive-pack", "secondary403", times=None, after=1)
    assert stage.act("issues", "opened", 2) == 1
    assert stage.comments(2) == []
    states = {key: record.state for key, record in stage.memory().state.comments([1, 2, 3]).items()}
    assert states == {2: "pending", 3: "pending"}
    stage.git.faults.clear()
    stage.github.clock.advance(180)
    assert stage.act("schedule") == 0
    assert [len(stage.comments(number)) for number in (1, 2, 3)] == [0, 1, 0]


def test_after_a_rebuild_new_issues_without_an_answer_get_one(stage: Stage) -> None:
    assert stage.act("workflow_dispatch", inputs={"run": "rebuild"}) == 0
    assert stage.comments(2) == []
    stage.github.clock.advance(180)
    assert stage.act("schedule") == 0
    assert len(stage.comments(2)) == 1
    before = stage.memory().state.comments([2])[2]
    assert stage.act("workflow_dispatch", inputs={"run": "rebuild"}) == 0
    assert stage.memory().state.comments([2])[2] == before
    assert stage.act("schedule") == 0
    assert isinstance(before, Post)
    assert len(stage.comments(2)) == 1


@pytest.mark.night
@pytest.mark.parametrize("task", ["rebuild", "catch-up"])
def test_a_command_whose_run_was_dropped_is_answered_even_if_it_was_read_as_history(stage: Stage, task: str) -> None:
    assert stage.act("schedule") == 0
    command = stage.github.comment(2, "monalisa", "/precedent help")
    for _ in range(301 if task == "catch-up" else 0):  # more than a run reads one by one
        stage.github.open_issue("octocat", "Out of ink", at=stage.github.clock.now)
    stage.github.clock.advance(600)
    stage.github.open_issue("octocat", "Out of paper")  # the cursor moves on, and no later list has the command
    assert stage.act("workflow_dispatch", inputs={"run": task}) == 0
    for _ in range(3):
        stage.github.clock.advance(3_600)
        assert stage.act("schedule") == 0
    assert sum(bool(find_marker(text, reply_to=command)) for text in stage.comments(2)) == 1
