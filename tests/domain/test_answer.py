"""What a comment shows of other threads, and whether it quotes what was taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.answer import CondensedTurn, Context, Match, Mention, has_false_quotes, quoted_in, threads_in
from bot.domain.change_state import number_of
from bot.domain.post import Post
from bot.domain.thread import Decision, Message, Outcome, OutcomeKind, Record, Thread, ThreadId, Tombstone, text_id

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def later(minutes: int) -> datetime:
    return NOW + timedelta(minutes=minutes)


COMMENTS = tuple(Message("hubot", "MEMBER", later(n), f"Comment {n}.", n) for n in range(1, 5))
THREAD = Thread(5, "Login loop", "It loops.", "octocat", NOW, comments=COMMENTS)
MENTION = Mention(
    5,
    "Login loop",
    outcome=Outcome(OutcomeKind.FIXED, quote="Comment 1.", at=later(1), fix="#57"),
    decisions=(Decision("Comment 2.", "hubot", "MEMBER", later(2)),),
    chain=(3, 4),
)
CONTEXT = Context(
    mentioned=(MENTION, Mention(8, missing="no record")),
    also_mentioned=(Mention(9, "Another", outcome=Outcome(duplicate_of=10)),),
    seen_before=(Match(11, "Like it", 0.8, "closed", NOW),),
    open_now=(Match(12, "Open", 0.7, "open", NOW),),
)


def test_a_comment_shows_threads_and_what_led_to_them_or_ended_them() -> None:
    assert threads_in(CONTEXT) == (5, 3, 4, 57, 8, 9, 10, 11, 12)


@pytest.mark.parametrize(("ref", "number"), [("#57", 57), ("57", None), ("#", None), ("", None), ("#5a", None)])
def test_a_fix_may_be_a_pull_request(ref: str, number: int | None) -> None:
    assert number_of(ref) == number
    assert number_of("abcdef1") is None


@pytest.mark.parametrize(
    ("mention", "expected"),
    [
        (MENTION, {"Login loop", "Comment 1.", "Comment 2."}),
        (replace(MENTION, outcome=Outcome(), decisions=()), {"Login loop"}),
        (
            replace(MENTION, conversation=(CondensedTurn("hubot", "MEMBER", later(4), "Comm"),)),
            {"Login loop", "Comment 1.", "Comment 2.", "Comment 4."},
        ),
    ],
)
def test_quoted_messages_are_known_by_their_marks(mention: Mention, expected: set[str]) -> None:
    marks = quoted_in(Context(mentioned=(mention,)), {5: THREAD})
    assert set(marks) == set(map(text_id, expected))
    assert all(len(each) == 8 for each in marks)


@pytest.mark.parametrize(
    ("records", "is_false"),
    [
        ({5: THREAD}, False),
        ({5: replace(THREAD, comments=(*COMMENTS, replace(COMMENTS[0], text="More.")))}, False),
        ({5: replace(THREAD, comments=COMMENTS[:2])}, False),
        ({5: replace(THREAD, comments=[comment.shortened(9).shortened(4) for comment in COMMENTS])}, False),
        ({5: replace(THREAD, comments=COMMENTS[1:])}, True),
        ({5: replace(THREAD, comments=(replace(COMMENTS[0], text="Comment 1"), *COMMENTS[1:]))}, True),
        ({5: replace(THREAD, title="Login loops")}, True),
        ({5: Tombstone(5, NOW)}, True),
        ({}, True),
    ],
)
def test_a_comment_has_false_quotes_if_a_message_that_it_quotes_is_gone(
    records: dict[ThreadId, Record], is_false: bool
) -> None:
    quotes = quoted_in(Context(mentioned=(MENTION,)), {5: THREAD})
    standing = Post(7, "said", NOW, content="f", shows=(5,), quotes=quotes)
    assert has_false_quotes(standing, records) is is_false
