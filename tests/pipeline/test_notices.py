"""A release notice is posted once, even by a run that takes longer than other runs wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.comment.marker import marker
from bot.domain.answer import Silent
from bot.domain.card import Card
from bot.domain.post import Post, notice_slot
from bot.domain.thread import Kind, Thread
from bot.pipeline.backfill import Clock
from bot.pipeline.draft import Draft
from bot.pipeline.notices import FIX_RELEASED
from bot.pipeline.reconcile import reconcile
from bot.pipeline.release_fixes import latest_in_turns
from bot.pipeline.tools import POSTING_WINDOW
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import BOT, REPO, SampleRepository

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TEXT = f"{marker(slot=notice_slot('#57'))}\nReleased in v2.3.0."


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[SampleRepository]:
    with FakeGitHub(REPO) as github:
        yield SampleRepository(github, tmp_path)
        assert github.violations == []


@given(
    st.lists(st.tuples(st.sampled_from(["mallory", "MALLORY", "hubot", "monalisa"]), st.integers(0, 9)), max_size=40)
)
def test_claimed_fixes_by_one_account_delay_nobody_else(closings: list[tuple[str, int]]) -> None:
    """Only so many fixes are looked up in one run: the first ones of this order."""
    cards = [
        Card(number, Kind.ISSUE, "Crash", author, "closed", NOON, NOON, closed_at=NOON + timedelta(hours=hours))
        for number, (author, hours) in enumerate([("defunkt", 0), *closings], 1)
    ]
    order = latest_in_turns(cards)
    assert sorted(card.id for card in order) == [card.id for card in cards]
    accounts = {card.author.casefold() for card in cards}
    assert {card.author.casefold() for card in order[: len(accounts)]} == accounts, "one of each account first"
    mallorys = [card for card in order if card.author.casefold() == "mallory"]
    assert mallorys == sorted(mallorys, key=lambda card: card.closed_at or NOON, reverse=True), "the latest first"


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_run_past_its_posting_window_looks_for_the_notice_before_posting(
    sample: SampleRepository, is_slow: bool
) -> None:
    memory = sample.memory().open()
    try:
        seconds = POSTING_WINDOW.total_seconds() + 1 if is_slow else 1.0
        run = replace(sample.tools(memory), clock=Clock(lambda: seconds, lambda _: None, lambda _: None))
        assert run.current_time() == run.now + timedelta(seconds=seconds)
        thread = memory.records([1])[1]
        assert isinstance(thread, Thread)
        promised = Post(1, "pending", run.now, notice_slot("#57"), release="v2.3.0", trying_since=run.now)
        draft = Draft(thread, Silent(FIX_RELEASED), promised.slot, TEXT, before=promised)
        sample.github.mark()
        assert reconcile(draft, run, promised).action == "created"
        assert sample.github.reads == int(is_slow)
        if is_slow:
            assert reconcile(draft, run, promised).comment
        assert len(sample.github.comments_by(BOT, 1)) == 1
    finally:
        memory.close()
