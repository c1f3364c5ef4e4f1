"""Saying it: one comment, written once, brought up to date, taken back, or left alone; and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.comment.marker import fingerprint, marker, seal
from bot.domain.answer import Context, Match, Silent, Speak
from bot.domain.changes import AnswerRecord
from bot.domain.thread import Thread
from bot.github.client import GitHubClient
from bot.github.errors import Unreachable
from bot.github.threads import OwnComment, OwnCommentRule, own_comment
from bot.pipeline.outbox import (
    DELETED,
    EDITED,
    NOTHING,
    SWITCHED_OFF,
    CommentPlan,
    find_own,
    find_promised,
    promise,
    settle_answers,
)
from bot.pipeline.publish import publish_comment
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub

__all__ = ["github"]

BOT = "github-actions[bot]"
OWN = OwnCommentRule(BOT, marker())
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CONTEXT = Context(seen_before=(Match(1, "Login loop", 0.8, "closed", NOW),))
OTHER = Context(seen_before=(Match(2, "Logged out", 0.7, "closed", NOW),))


def text_of(context: Context) -> str:
    return seal(f"{marker()}\nSeen before: {context.seen_before[0].title}", fingerprint(context))


TEXT = text_of(CONTEXT)
POST = "POST /repos/*/issues/*/comments"
PATCH = "PATCH /repos/*/issues/comments/*"


class Room:
    """An issue (1) on the fake, and plans for it."""

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github
        self.number = github.open_issue("octocat", "Crash", "It crashes.")
        self.client = GitHubClient(github.url, github.token, "octocat/hello-world", write_gap=0)
        self.thread = Thread(self.number, "Crash", "It crashes.", "octocat", NOW)

    def plan(self, context: Context | None = CONTEXT, standing: str | None = None) -> CommentPlan:
        """What would be said; with ``standing`` a comment of ours with this text is there already."""
        answer, text = (Speak(context), text_of(context)) if context else (Silent("nothing is close"), "")
        plan = CommentPlan(self.thread, answer, text, "q")
        if standing is None:
            return plan
        made = self.github.comment(self.number, BOT, standing)
        return replace(plan, own=own_comment(self.github.shapes.comment(self.github.comment_by_id(made))))

    def say(self, plan: CommentPlan, mode: str = "comment") -> tuple[str, str]:
        told = publish_comment(plan, self.client, OWN, mode)
        return told.action, told.reason

    @property
    def texts(self) -> list[str]:
        return [comment.body for comment in self.github.comments_by(BOT, self.number)]


@pytest.fixture
def room(github: FakeGitHub) -> Iterator[Room]:
    return Room(github)


# -- saying --------------------------------------------------------------------------------------------------------


def test_where_nothing_stands_it_is_written(room: Room) -> None:
    assert room.say(room.plan()) == ("created", "memory has something to tell")
    assert (room.texts, room.client.reads) == ([TEXT], 0)


def test_where_there_is_nothing_to_tell_nothing_is_written(room: Room) -> None:
    assert room.say(room.plan(None)) == ("silent", "nothing is close")
    assert room.github.requests == []


def test_what_it_says_already_is_not_written_again(room: Room) -> None:
    assert room.say(room.plan(standing=TEXT)) == ("unchanged", "the comment already says that")
    assert room.github.requests == []


def test_what_is_new_takes_the_place_of_what_stood_there(room: Room) -> None:
    assert room.say(room.plan(OTHER, TEXT))[0] == "updated"
    assert room.texts == [text_of(OTHER)]


def test_what_is_true_no_more_is_taken_back_and_folded(room: Room) -> None:
    assert room.say(room.plan(None, TEXT)) == ("withdrawn", "nothing is close")
    (comment,) = room.github.comments_by(BOT, room.number)
    assert comment.body.startswith(f"{marker()}\n<sub>")
    assert comment.minimized == "OUTDATED"
    assert room.client.writes == 2


def test_what_was_switched_off_is_taken_back_as_such_and_once(room: Room) -> None:
    off = replace(room.plan(None, TEXT), answer=Silent(SWITCHED_OFF))
    assert room.say(off) == ("withdrawn", SWITCHED_OFF)
    (comment,) = room.github.comments_by(BOT, room.number)
    assert "no longer applies" not in comment.body
    assert "switched notes off here" in comment.body
    room.github.mark()
    again = replace(off, own=OwnComment(comment.id, comment.body))
    assert (room.say(again)[0], room.github.writes) == ("silent", 0)


def test_what_was_taken_back_is_not_taken_back_again(room: Room) -> None:
    room.say(room.plan(None, TEXT))
    (comment,) = room.github.comments_by(BOT, room.number)
    room.github.mark()
    again = replace(room.plan(None), own=OwnComment(comment.id, comment.body))
    assert room.say(again)[0] == "silent"
    assert room.github.writes == 0
    assert room.say(replace(room.plan(), own=OwnComment(comment.id, comment.body)))[0] == "updated"
    assert room.github.comment_by_id(comment.id).minimized is None


def test_a_comment_that_cannot_be_folded_is_taken_back_all_the_same(room: Room) -> None:
    room.github.faults.add("POST /graphql", "drop")
    action, reason = room.say(room.plan(None, TEXT))
    assert (action, reason) == ("withdrawn", "nothing is close (it could not be folded)")


@pytest.mark.parametrize("edited", [TEXT.replace("loop", "trouble"), f"{marker()}\nMine now", TEXT + "PS: see the FAQ"])
@pytest.mark.parametrize("context", [OTHER, None])
def test_what_a_person_edited_is_left_as_it_is(room: Room, edited: str, context: Context | None) -> None:
    action, reason = room.say(room.plan(context, edited))
    assert (action, reason) == (("unchanged", EDITED) if context else ("silent", "nothing is close"))
    assert room.texts == [edited]


def test_what_a_person_deleted_is_not_written_again(room: Room) -> None:
    assert room.say(replace(room.plan(), removed=True)) == ("silent", DELETED)
    for context in (OTHER, None):
        plan = room.plan(context, TEXT)
        assert plan.own is not None
        room.github.delete_comment(plan.own.id)
        assert room.say(plan)[0] == "silent"
    assert room.texts == []


def test_what_waits_or_is_passed_by_touches_nothing(room: Room) -> None:
    assert room.say(replace(room.plan(OTHER, TEXT), waits="later")) == ("silent", "later")
    assert room.say(replace(room.plan(None, TEXT), is_skipped=True)) == ("silent", "nothing is close")
    fault = Unreachable("no answer")
    told = publish_comment(replace(room.plan(), waits="no answer", fault=fault), room.client, OWN, "comment")
    assert (told.action, told.error) == ("failed", fault)
    assert room.github.requests == []


def test_only_what_waits_is_owed(room: Room) -> None:
    plans = (room.plan(), replace(room.plan(), waits="later"), replace(room.plan(None), is_skipped=True))
    assert [publish_comment(plan, room.client, OWN, "comment").is_owed for plan in plans] == [False, True, False]
    fault = replace(room.plan(), waits="no answer", fault=Unreachable("no answer"))
    assert publish_comment(fault, room.client, OWN, "comment").is_owed


def test_the_shadow_says_nothing_aloud(room: Room) -> None:
    assert room.say(room.plan(), "summary")[0] == "would say"
    assert room.say(room.plan(None, TEXT), "summary")[0] == "silent"
    assert room.github.requests == []


def test_the_shadow_tells_only_of_what_would_be_written(room: Room) -> None:
    plan = room.plan(OTHER, TEXT)
    assert room.say(plan, "summary")[0] == "would say"
    assert room.say(replace(room.plan(), removed=True), "summary") == ("silent", DELETED)
    assert room.say(room.plan(OTHER, f"{marker()}\nMine now"), "summary") == ("silent", EDITED)
    said = replace(plan, own=replace(plan.own, text=plan.text)) if plan.own else plan
    assert room.say(said, "summary") == ("silent", "the comment already says that")


def test_threads_from_elsewhere_have_no_comments(room: Room) -> None:
    assert room.say(replace(room.plan(), thread=replace(room.thread, id="ABC-1")))[0] == "silent"


def test_a_post_whose_answer_is_lost_is_looked_for_and_not_repeated(room: Room) -> None:
    room.github.faults.add(POST, "dup")
    assert room.say(room.plan())[0] == "created"
    assert room.texts == [TEXT]


def test_a_post_that_never_arrived_fails_once(room: Room) -> None:
    room.github.faults.add(POST, "drop")
    told = publish_comment(room.plan(), room.client, OWN, "comment")
    assert (told.action, type(told.error), room.texts) == ("failed", Unreachable, [])
    assert [request.method for request in room.github.requests] == ["POST", "GET"]


def test_an_update_that_never_arrived_fails_once(room: Room) -> None:
    room.github.faults.add(PATCH, "drop")
    assert room.say(room.plan(OTHER, TEXT))[0] == "failed"
    assert room.texts == [TEXT]


def test_what_github_refuses_for_good_is_no_failure(room: Room) -> None:
    room.github.lock(room.number)
    told = publish_comment(room.plan(), room.client, OWN, "comment")
    assert (told.action, told.is_refused, told.error) == ("silent", True, None)
    room.github.delete_issue(room.number)
    told = publish_comment(room.plan(), room.client, OWN, "comment")
    assert (told.action, told.is_refused, told.error) == ("silent", True, None)


# -- finding -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ours_is_found_on_any_page_and_the_oldest_counts(room: Room) -> None:
    for count in range(220):
        room.github.comment(room.number, "hubot", f"{count}")
    assert find_own(room.number, room.client, OWN) is None
    made = [room.github.comment(room.number, BOT, TEXT) for _ in range(2)]
    found = find_own(room.number, room.client, OWN)
    assert found is not None
    assert found.id == made[0]
    back, gone = find_promised(room.number, NOW, room.client, OWN)
    assert (back and back.id, gone) == (made[0], False)


def test_a_promised_comment_that_was_deleted_is_told_from_one_never_written(room: Room) -> None:
    before = room.github.comment(room.number, "hubot", "Oops")
    room.github.delete_comment(before, at="2026-01-05T11:00:00Z")
    promised = NOW + timedelta(seconds=20, microseconds=500)
    assert find_promised(room.number, promised, room.client, OWN) == (None, False)
    made = room.github.comment(room.number, BOT, TEXT, at=promised)
    room.github.delete_comment(made, at=promised)
    assert find_promised(room.number, promised, room.client, OWN) == (None, True)


# -- keeping -------------------------------------------------------------------------------------------------------

THREAD = Thread(7, "Crash", "It crashes.", "octocat", NOW)
SPEAKS = CommentPlan(THREAD, Speak(CONTEXT), TEXT, "q")
SILENT = CommentPlan(THREAD, Silent("nothing is close"), question="q")
STANDING = OwnComment(5, TEXT)
TAKEN_BACK = OwnComment(5, seal(f"{marker()}\ngone", NOTHING))
TOUCHED = OwnComment(5, TEXT.replace("loop", "trouble"))
SAID = AnswerRecord(7, "said", NOW - timedelta(hours=2), "", fingerprint(CONTEXT), 5, ((1, 0.8),), "q")
PENDING = replace(SAID, state="pending", comment_id=None)


def kept(plan: CommentPlan, mode: str = "comment") -> tuple[str, str, int | None, str]:
    said = promise(plan, NOW, mode)
    return said.state, said.text_hash, said.comment_id, said.question


def test_what_will_be_written_is_promised() -> None:
    content = fingerprint(CONTEXT)
    assert kept(SPEAKS) == ("pending", content, None, "q")
    assert kept(replace(SPEAKS, own=TAKEN_BACK)) == ("pending", content, 5, "q")
    assert kept(replace(SILENT, own=STANDING)) == ("pending", NOTHING, 5, "q")


def test_what_needs_no_writing_is_settled_at_once() -> None:
    assert kept(replace(SPEAKS, own=STANDING))[0] == "said"
    assert kept(replace(SPEAKS, own=TOUCHED))[0] == "said"
    assert kept(replace(SILENT, own=TAKEN_BACK))[0] == "withdrawn"
    assert kept(SILENT) == ("silent", "", None, "q")
    assert kept(replace(SPEAKS, removed=True)) == ("removed", "", None, "q")


def test_what_is_said_in_the_summary_only_is_not_promised() -> None:
    assert kept(SPEAKS, "summary") == ("silent", "", None, "q")
    assert kept(replace(SPEAKS, own=STANDING), "summary") == ("silent", "", 5, "q")


def test_what_waits_stays_promised_whatever_stands() -> None:
    waiting = replace(SPEAKS, text="", waits="later", before=SAID)
    assert kept(waiting) == ("pending", "", 5, "")
    assert settle_answers({7: promise(waiting, NOW, "comment")}, {7: STANDING}, NOW - timedelta(days=1)) == {}


def test_a_thread_that_is_passed_by_keeps_what_was_said() -> None:
    passed = replace(SILENT, is_skipped=True)
    assert promise(replace(passed, before=SAID), NOW, "comment") == SAID
    assert kept(passed) == ("silent", "", None, "")
    assert kept(replace(passed, before=PENDING)) == ("silent", "", None, "")


def test_the_same_again_changes_nothing_not_even_when() -> None:
    assert promise(replace(SPEAKS, own=STANDING, before=SAID), NOW, "comment") == SAID
    silent = promise(SILENT, NOW, "comment")
    assert promise(replace(SILENT, before=silent), NOW + timedelta(hours=1), "comment") == silent


def test_a_promise_that_is_renewed_keeps_its_date_and_is_tried_anew() -> None:
    renewed = promise(replace(SPEAKS, before=replace(PENDING, text_hash="x", reason="no answer")), NOW, "comment")
    assert (renewed.at, renewed.trying_since, renewed.reason) == (PENDING.at, NOW, "")


@pytest.mark.parametrize(
    ("before", "standing", "state"),
    [
        (PENDING, STANDING, "said"),
        (PENDING, TOUCHED, "said"),
        (PENDING, TAKEN_BACK, ""),
        (replace(PENDING, text_hash=NOTHING, comment_id=5), TAKEN_BACK, "withdrawn"),
        (replace(PENDING, text_hash=NOTHING, comment_id=5), STANDING, ""),
        (PENDING, None, ""),
        (replace(PENDING, comment_id=5), None, "removed"),
        (SAID, None, "removed"),
        (replace(SAID, state="withdrawn"), None, "removed"),
        (SAID, STANDING, ""),
        (SAID, TOUCHED, ""),
        (replace(SAID, state="silent"), None, ""),
        (replace(SAID, state="removed"), None, ""),
        (replace(PENDING, at=NOW - timedelta(days=2)), None, "silent"),
        (replace(PENDING, at=NOW - timedelta(days=2)), STANDING, "said"),
    ],
)
def test_what_became_of_an_answer(before: AnswerRecord, standing: OwnComment | None, state: str) -> None:
    settled = settle_answers({7: before}, {7: standing}, NOW - timedelta(days=1))
    assert {key: one.state for key, one in settled.items()} == ({7: state} if state else {})


def test_where_it_is_not_known_what_stands_only_age_settles() -> None:
    old = replace(PENDING, id=8, at=NOW - timedelta(days=2))
    assert list(settle_answers({7: SAID, 8: old}, {}, NOW - timedelta(days=1))) == [8]
