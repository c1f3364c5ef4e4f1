"""Which runs read the list of discussions, and which of them report that it could not be read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.changes import Changes, DiscussionProgress
from bot.github.errors import Unauthorised
from bot.github.events import Event
from bot.pipeline.discussions import read_discussions
from tests.pipeline.sample_repository import SampleRepository

BEGUN = DiscussionProgress(datetime(2026, 1, 5, tzinfo=UTC))
UNKNOWN, ON, OFF = (Event("schedule", has_discussions=has) for has in (None, True, False))
ISSUE = Event("issues", "opened", 3)


@pytest.mark.parametrize(
    ("event", "progress", "is_read", "is_reported"),
    [
        (UNKNOWN, None, True, False),
        (ON, None, True, True),
        (OFF, None, False, False),
        (UNKNOWN, BEGUN, True, True),
        (ISSUE, BEGUN, True, True),
        (Event("discussion", "created", 9), None, True, True),
        (ISSUE, None, False, False),
        (replace(ISSUE, has_discussions=True), None, False, False),
        (UNKNOWN, replace(BEGUN, is_done=True), False, False),
        (OFF, BEGUN, False, False),
    ],
)
def test_a_failure_to_read_discussions_is_reported_if_there_are_any(
    sample: SampleRepository, event: Event, progress: DiscussionProgress | None, is_read: bool, is_reported: bool
) -> None:
    memory = sample.memory().open()
    if progress:
        memory.stage(Changes(discussions=progress))
    sample.github.world.tokens[sample.github.token].permissions = {"issues": "write"}
    run = sample.tools(memory)
    assert run.now
    sample.github.mark()
    read_discussions(event, run)
    memory.close()
    assert [request.path for request in sample.github.recent] == ["/graphql"] * is_read
    assert any("discussions could be read" in note for note in sample.notes) is is_reported


def test_discussions_are_not_read_once_github_refuses_everything(sample: SampleRepository) -> None:
    memory = sample.memory().open()
    run = sample.tools(memory)
    sample.github.faults.add("GET *", "401")
    with pytest.raises(Unauthorised):
        run.forge.issue(3)
    sample.github.mark()
    read_discussions(ON, run)
    memory.close()
    assert sample.github.recent == []
