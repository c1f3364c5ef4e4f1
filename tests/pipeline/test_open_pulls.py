"""How many open issues a run looks up for the open pull requests that may fix them."""

from __future__ import annotations

import pytest

from bot.github.events import Event
from bot.pipeline import open_pulls
from bot.pipeline.handle import handle_event
from tests.pipeline.test_replies import BOT, SampleRepository, memory_folder, sample

__all__ = ["memory_folder", "sample"]


@pytest.mark.parametrize("most", [1, 2])
def test_a_run_looks_up_a_limited_number_of_issues(
    sample: SampleRepository, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(open_pulls, "MAX_ISSUES", most)
    for title in ("It crashes", "It hangs"):
        sample.github.open_issue("hubot", title)
    for issue in (4, 5):
        sample.github.add_pull("octocat", "Fix it", f"Fixes #{issue}.", closes=[issue])
    sample.github.clock.advance(60)
    number = sample.github.open_issue("monalisa", "It fails", "As in #4 and #5.")
    memory = sample.memory()
    handle_event(Event("issues", "opened", number), sample.run_context(memory))
    memory.close()
    (comment,) = sample.github.comments_by(BOT, number)
    assert str(comment.body).count("open pull request says that it fixes this") == most
