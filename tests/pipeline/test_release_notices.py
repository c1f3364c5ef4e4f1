"""A release notice is posted once, even by a run that takes longer than other runs wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bot.comment.marker import marker, notice_mark
from bot.domain.changes import ReleaseNotice
from bot.domain.thread import Thread
from bot.pipeline.backfill import Clock
from bot.pipeline.release_notices import NoticePlan, publish_notices
from bot.pipeline.run_context import POSTING_WINDOW
from tests.fakes.github import FakeGitHub
from tests.pipeline.test_replies import BOT, REPO, SampleRepository

TEXT = f"{marker(notice=notice_mark('#57'))}\nReleased in v2.3.0."


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[SampleRepository]:
    with FakeGitHub(REPO) as github:
        yield SampleRepository(github, tmp_path)
        assert github.violations == []


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_run_past_its_posting_window_looks_for_the_notice_before_posting(
    sample: SampleRepository, is_slow: bool
) -> None:
    memory = sample.memory().open()
    try:
        seconds = POSTING_WINDOW.total_seconds() + 1 if is_slow else 1.0
        run = replace(sample.run_context(memory), clock=Clock(lambda: seconds, lambda _: None, lambda _: None))
        assert run.current_time() == run.now + timedelta(seconds=seconds)
        thread = memory.records([1])[1]
        assert isinstance(thread, Thread)
        plan = NoticePlan(thread, ReleaseNotice(1, "#57", "v2.3.0", run.now, trying_since=run.now), TEXT)
        sample.github.mark()
        assert [result.action for result in publish_notices([plan], run)] == ["created"]
        assert sample.github.reads == int(is_slow)
        if is_slow:
            (result,) = publish_notices([plan], run)
            assert result.comment
        assert len(sample.github.comments_by(BOT, 1)) == 1
    finally:
        memory.close()
