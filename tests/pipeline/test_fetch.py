"""How a run handles issues that it cannot read."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.changes import Changes
from bot.domain.post import Post
from bot.github.events import Event
from bot.memory.paths import record_path
from bot.memory.shards import POSTS
from bot.pipeline.fetch import fetch_changes
from tests.pipeline.sample_repository import SampleRepository


def answer_after_failed_reads(sample: SampleRepository) -> Post:
    """The answer record of issue 3 after a run that does not list it and can read neither its record nor itself."""
    sample.github.clock.advance(3_600)
    sample.github.open_issue("octocat", "Something else")
    fetch(sample, Event("schedule"))
    (sample.folder / "store" / record_path(3)).write_text("{", encoding="utf-8")
    sample.github.clock.advance(3_600)
    sample.github.faults.add("GET */issues/3*", "5xx", None)
    fetch(sample, Event("issues", "opened", 3))
    memory = sample.memory().open()
    answer = memory.state.comments([3])[3]
    memory.close()
    return answer


def fetch(sample: SampleRepository, event: Event) -> None:
    """Fetch what changed and remember it, without answering."""
    memory = sample.memory()
    updates = fetch_changes(event, sample.tools(memory)).updates
    memory.stage(Changes(updates.records, cursor=updates.cursor))
    memory.commit("looked")
    memory.close()


@pytest.mark.parametrize("state", ["said", "removed", "silent", "withdrawn"])
def test_an_unreadable_issue_keeps_its_answer(sample: SampleRepository, state: str) -> None:
    memory = sample.memory().open()
    at = sample.tools(memory).now + timedelta(seconds=1)
    expected = Post(3, state, at, comment_id=77, question="what", content="abc")
    memory.stage(Changes(posts=(expected,)))
    memory.commit("said")
    memory.close()
    assert replace(answer_after_failed_reads(sample), reason="") == expected


def test_an_unreadable_issue_without_an_answer_is_tried_again(sample: SampleRepository) -> None:
    (sample.folder / "store" / POSTS.path(3)).unlink()
    answer = answer_after_failed_reads(sample)
    assert (answer.state, answer.reason.partition(":")[0]) == ("pending", "it could not be read")
