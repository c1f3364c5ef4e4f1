"""The digest from the Action: by hand and by schedule, in the job summary and as a page, without writing to GitHub."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.stage import DECISION, Stage, summary, with_past

HOSTILE = "@octocat </details><img src=x> [x](https://evil.example) #1"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A repository whose memory has a decision, and an open duplicate of a closed issue with a hostile title."""
    return empty_stage.begin(with_past, repeat_hostile)


def repeat_hostile(stage: Stage) -> None:
    number = stage.github.open_issue("hubot", HOSTILE, "Duplicate of #2, but for the screen.")
    stage.deliver("issues", "opened", number)
    stage.github.clock.advance(60)


def digest_page(stage: Stage) -> Path:
    return stage.folder / ".precedent" / "digest.html"


@pytest.mark.parametrize("event", [pytest.param("workflow_dispatch", marks=pytest.mark.slow), "schedule"])
def test_a_digest_is_in_the_summary_and_in_a_page_and_nothing_is_written(stage: Stage, event: str) -> None:
    before = stage.memory().state.base.snapshot.revision
    stage.deliver(event, run="digest", since="1y")
    text = summary(stage)
    assert "From 5 January 2025 to 5 January 2026: 2 decisions were made and 1 open issue repeats a closed one." in text
    assert f"> {DECISION}" in text.replace("\u200b", "")
    assert "The digest page is " in text
    assert "<h1>What to look at</h1>" in digest_page(stage).read_text(encoding="utf-8")
    assert stage.github.recent == [], "it makes no request"
    assert stage.memory().state.base.snapshot.revision == before


@pytest.mark.slow
def test_text_by_strangers_is_harmless_in_summary_and_page(stage: Stage) -> None:
    stage.deliver("workflow_dispatch", run="digest")
    for text in (summary(stage), digest_page(stage).read_text(encoding="utf-8")):
        assert "<img" not in text
        assert "</details>" not in text
    assert "@octocat" not in summary(stage)
    assert "](https://evil" not in summary(stage)


@pytest.mark.slow
def test_neither_a_usual_scheduled_run_nor_an_event_makes_a_digest(stage: Stage) -> None:
    assert stage.act("schedule") == 0
    assert stage.act("issues", "edited", 3, inputs={"run": "digest"}) == 0
    assert not digest_page(stage).exists()


def test_an_invalid_age_of_the_digest_is_an_error(stage: Stage, capfd: pytest.CaptureFixture[str]) -> None:
    for since in ("yesterday", "2026-01-01", "9999y"):
        assert stage.act("schedule", inputs={"run": "digest", "since": since}) == 2
    assert 'input "since" must be an age in days, weeks, months or years' in capfd.readouterr().out


def test_the_digest_of_an_empty_repository_says_so(empty_stage: Stage) -> None:
    empty_stage.deliver("schedule", run="digest")
    assert "nothing to look at in 0 threads." in summary(empty_stage)
