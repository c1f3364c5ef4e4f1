"""What is stored of a comment: before it is posted, when it is seen, and how a result changes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.comment.marker import fingerprint, marker, seal
from bot.domain.answer import Context, Match, Silent, Speak
from bot.domain.post import Post, notice_slot, reply_slot
from bot.domain.thread import Kind, Thread
from bot.github.errors import Unreachable
from bot.github.threads import OwnComment
from bot.memory.merge import later_post
from bot.pipeline.draft import DELETED, EDITED, WITHDRAWN_FINGERPRINT, Draft
from bot.pipeline.permit import Permit
from bot.pipeline.promises import promised_post, seen_comments, settled_post
from bot.pipeline.reconcile import CommentResult

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CONTEXT = Context(seen_before=(Match(1, "Login loop", 0.8, "closed", NOW),))
TEXT = seal(f"{marker()}\nSeen before: Login loop", fingerprint(CONTEXT))

THREAD = Thread(7, "Crash", "It crashes.", "octocat", NOW)
SPEAKING = Draft(THREAD, Speak(CONTEXT), text=TEXT, question="q")
SILENT = Draft(THREAD, Silent("nothing is close"), question="q")
POSTED = OwnComment(5, TEXT)
WITHDRAWN = OwnComment(5, seal(f"{marker()}\ngone", WITHDRAWN_FINGERPRINT))
EDITED_COMMENT = OwnComment(5, TEXT.replace("loop", "trouble"))
SAID = Post(
    7, "said", NOW - timedelta(hours=2), comment_id=5, matches=((1, 0.8),), question="q", content=fingerprint(CONTEXT)
)
PENDING = replace(SAID, state="pending", comment_id=None)


def promised(draft: Draft, now: datetime = NOW, mode: str = "comment") -> Post:
    post = promised_post(draft, now, Permit(mode == "comment"))
    assert post is not None
    return post


def promised_fields(draft: Draft, mode: str = "comment") -> tuple[str, str, int | None, str]:
    record = promised(draft, mode=mode)
    return record.state, record.content, record.comment_id, record.question


def test_a_comment_to_be_written_is_promised_first() -> None:
    content = fingerprint(CONTEXT)
    assert promised_fields(SPEAKING) == ("pending", content, None, "q")
    assert promised_fields(replace(SPEAKING, own=WITHDRAWN)) == ("pending", content, 5, "q")
    assert promised_fields(replace(SILENT, own=POSTED)) == ("pending", WITHDRAWN_FINGERPRINT, 5, "q")


def test_a_plan_that_needs_no_writing_is_settled_at_once() -> None:
    assert promised_fields(replace(SPEAKING, own=POSTED))[0] == "said"
    assert promised_fields(replace(SPEAKING, own=EDITED_COMMENT))[0] == "said"
    assert promised_fields(replace(SILENT, own=WITHDRAWN))[0] == "withdrawn"
    assert promised_fields(SILENT) == ("silent", "", None, "q")
    assert promised_fields(replace(SPEAKING, removed=True)) == ("removed", "", None, "q")


def test_summary_mode_makes_no_promise() -> None:
    assert promised_fields(SPEAKING, "summary") == ("silent", "", None, "q")
    assert promised_fields(replace(SPEAKING, own=POSTED), "summary") == ("silent", "", 5, "q")


def test_a_postponed_plan_stays_promised_even_if_a_comment_is_there() -> None:
    waiting = replace(SPEAKING, text="", waits="later", before=SAID)
    assert promised_fields(waiting) == ("pending", "", 5, "")
    assert seen_comments({7: promised(waiting)}, {7: POSTED}, NOW - timedelta(days=1)) == {}


def test_a_skipped_thread_keeps_its_answer() -> None:
    skipped = replace(SILENT, is_skipped=True)
    assert promised(replace(skipped, before=SAID)) == SAID
    assert promised_fields(skipped) == ("silent", "", None, "")


def test_a_skipped_thread_keeps_when_its_comment_was_promised() -> None:
    """A dead run may have posted it, and a person may have deleted it: the timeline tells only since when to look."""
    kept = promised(replace(SILENT, is_skipped=True, before=PENDING))
    assert (kept.state, kept.content, kept.at, kept.revised_at) == ("silent", PENDING.content, PENDING.at, NOW)
    again = promised(replace(SPEAKING, removed=True, before=kept))
    assert (again.state, again.content) == ("removed", "")


def test_the_same_answer_again_changes_nothing_not_even_its_time() -> None:
    assert promised(replace(SPEAKING, own=POSTED, before=SAID)) == SAID
    silent = promised(SILENT)
    assert promised(replace(SILENT, before=silent), NOW + timedelta(hours=1)) == silent


def test_a_renewed_promise_keeps_its_date_and_is_tried_again() -> None:
    renewed = promised(replace(SPEAKING, before=replace(PENDING, content="x", reason="no answer")))
    assert (renewed.at, renewed.trying_since, renewed.reason) == (PENDING.at, NOW, "")


@pytest.mark.parametrize(
    ("before", "standing", "state"),
    [
        (PENDING, POSTED, "said"),
        (PENDING, EDITED_COMMENT, "said"),
        (PENDING, WITHDRAWN, ""),
        (replace(PENDING, content=WITHDRAWN_FINGERPRINT, comment_id=5), WITHDRAWN, "withdrawn"),
        (replace(PENDING, content=WITHDRAWN_FINGERPRINT, comment_id=5), POSTED, ""),
        (PENDING, None, ""),
        (replace(PENDING, comment_id=5), None, "removed"),
        (SAID, None, "removed"),
        (replace(SAID, state="withdrawn"), None, "removed"),
        (SAID, POSTED, ""),
        (SAID, EDITED_COMMENT, ""),
        (replace(SAID, state="silent"), None, ""),
        (replace(SAID, state="removed"), None, ""),
        (replace(PENDING, at=NOW - timedelta(days=2)), None, "silent"),
        (replace(PENDING, at=NOW - timedelta(days=2)), POSTED, "said"),
    ],
)
def test_how_an_answer_is_settled(before: Post, standing: OwnComment | None, state: str) -> None:
    settled = seen_comments({7: before}, {7: standing}, NOW - timedelta(days=1))
    assert {key: answer.state for key, answer in settled.items()} == ({7: state} if state else {})


def test_without_known_comments_only_age_settles_an_answer() -> None:
    old = replace(PENDING, id=8, at=NOW - timedelta(days=2))
    assert list(seen_comments({7: SAID, 8: old}, {}, NOW - timedelta(days=1))) == [8]


# -- what a result changes -------------------------------------------------------------------------------------------

REPLY = Post(7, "said", NOW - timedelta(hours=2), reply_slot(77), content="old", comment_id=5, shows=(1, 2, 7))
RENEWED = Draft(THREAD, Speak(CONTEXT), REPLY.slot, TEXT, before=REPLY, renews=True, shows_too=(7,))


def result_of(draft: Draft, action: str, reason: str = "", **more: object) -> CommentResult:
    return replace(CommentResult(7, "Crash", action, reason, slot=draft.slot), **more)


def settled(draft: Draft, result: CommentResult) -> Post | None:
    return settled_post(draft, promised(draft), result, NOW + timedelta(seconds=9))


def test_a_renewed_reply_counts_as_what_stood_until_it_is_written() -> None:
    promise = promised(RENEWED)
    assert (promise.content, promise.shows, promise.trying_since) == ("old", (1, 2, 7), NOW)
    written = settled(RENEWED, result_of(RENEWED, "updated", comment=POSTED))
    assert written is not None
    assert (written.state, written.content, written.shows) == ("said", fingerprint(CONTEXT), (1, 7))
    assert (written.trying_since, later_post(written, promise)) == (None, written)


@pytest.mark.parametrize(
    ("reason", "state", "shows"), [(EDITED, "said", (1, 2, 7)), (DELETED, "removed", ())], ids=["edited", "deleted"]
)
def test_a_reply_that_a_person_changed_is_left_to_them(reason: str, state: str, shows: tuple[int, ...]) -> None:
    post = settled(RENEWED, result_of(RENEWED, "silent", reason))
    assert post is not None
    assert (post.state, post.shows, post.trying_since) == (state, shows, None)
    assert later_post(post, promised(RENEWED)) == post


def test_a_new_comment_on_an_issue_is_not_stored_again_but_one_in_a_discussion_is() -> None:
    created = result_of(SPEAKING, "created", comment=POSTED)
    assert settled(SPEAKING, created) is None
    discussion = replace(SPEAKING, thread=replace(THREAD, kind=Kind.DISCUSSION))
    post = settled(discussion, created)
    assert post is not None
    assert (post.state, post.comment_id, post.shows) == ("said", 5, (1,))


def test_a_refusal_ends_the_promise_and_an_error_gives_it_back() -> None:
    refused = settled(SPEAKING, result_of(SPEAKING, "silent", "locked", is_refused=True))
    assert refused is not None
    assert (refused.state, refused.reason, refused.shows) == ("silent", "locked", ())
    failed = settled(SPEAKING, result_of(SPEAKING, "failed", "no answer", error=Unreachable("no answer")))
    assert failed is not None
    assert (failed.state, failed.reason, failed.trying_since) == ("pending", "no answer", None)
    for post in (refused, failed):
        assert later_post(post, promised(SPEAKING)) == later_post(promised(SPEAKING), post) == post


def test_a_notice_keeps_when_it_was_first_promised_and_is_settled_once() -> None:
    notice = Post(7, "pending", NOW - timedelta(days=1), notice_slot("#57"), release="v2", shows=(1,), trying_since=NOW)
    draft = Draft(THREAD, Silent("released"), notice.slot, TEXT, before=notice, shows_too=(1,))
    promise = promised(draft)
    assert (promise.at, promise.trying_since, promise.is_promised, promise.release) == (notice.at, NOW, True, "v2")
    post = settled(draft, result_of(draft, "created", comment=POSTED))
    assert post is not None
    assert (post.state, post.comment_id, post.at, post.shows) == ("said", 5, notice.at, (1,))
    assert later_post(post, promise) == later_post(promise, post) == post


def test_nothing_is_promised_for_a_reply_that_waits_has_no_text_or_may_not_be_posted() -> None:
    reply = Draft(THREAD, Speak(CONTEXT), reply_slot(77), TEXT, shows_too=(7,))
    assert promised(reply).shows == (1, 7)
    for draft, mode in (
        (replace(reply, waits="later"), "comment"),
        (replace(reply, text=""), "comment"),
        (reply, "off"),
    ):
        assert promised_post(draft, NOW, Permit(mode == "comment")) is None
