"""Publishing: one comment, posted once, updated, withdrawn or left alone; and the answer record that is stored."""

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
    SWITCHED_OFF,
    WITHDRAWN_FINGERPRINT,
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


class PlannedIssue:
    """Issue 1 on the fake GitHub, and plans for comments on it."""

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github
        self.number = github.open_issue("octocat", "Crash", "It crashes.")
        self.client = GitHubClient(github.url, github.token, "octocat/hello-world", write_gap=0)
        self.thread = Thread(self.number, "Crash", "It crashes.", "octocat", NOW)

    def plan(self, context: Context | None = CONTEXT, standing: str | None = None) -> CommentPlan:
        """A plan with this context. With ``standing``, our comment with this text exists already."""
        answer, text = (Speak(context), text_of(context)) if context else (Silent("nothing is close"), "")
        plan = CommentPlan(self.thread, answer, text, "q")
        if standing is None:
            return plan
        comment_id = self.github.comment(self.number, BOT, standing)
        return replace(plan, own=own_comment(self.github.shapes.comment(self.github.comment_by_id(comment_id))))

    def post(self, plan: CommentPlan, mode: str = "comment") -> tuple[str, str]:
        result = publish_comment(plan, self.client, OWN, mode)
        return result.action, result.reason

    @property
    def texts(self) -> list[str]:
        return [comment.body for comment in self.github.comments_by(BOT, self.number)]


@pytest.fixture
def issue(github: FakeGitHub) -> Iterator[PlannedIssue]:
    return PlannedIssue(github)


# -- posting -------------------------------------------------------------------------------------------------------


def test_a_comment_is_posted_if_there_is_none(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan()) == ("created", "memory has something to show")
    assert (issue.texts, issue.client.reads) == ([TEXT], 0)


def test_nothing_is_posted_if_nothing_is_relevant(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(None)) == ("silent", "nothing is close")
    assert issue.github.requests == []


def test_an_unchanged_comment_is_not_written_again(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(standing=TEXT)) == ("unchanged", "the comment already says that")
    assert issue.github.requests == []


def test_new_content_replaces_the_comment(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(OTHER, TEXT))[0] == "updated"
    assert issue.texts == [text_of(OTHER)]


def test_an_outdated_comment_is_withdrawn_and_folded(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(None, TEXT)) == ("withdrawn", "nothing is close")
    (comment,) = issue.github.comments_by(BOT, issue.number)
    assert comment.body.startswith(f"{marker()}\n<sub>")
    assert comment.minimized == "OUTDATED"
    assert issue.client.writes == 2


def test_switching_off_withdraws_the_comment_once_and_says_so(issue: PlannedIssue) -> None:
    off = replace(issue.plan(None, TEXT), answer=Silent(SWITCHED_OFF))
    assert issue.post(off) == ("withdrawn", SWITCHED_OFF)
    (comment,) = issue.github.comments_by(BOT, issue.number)
    assert "no longer applies" not in comment.body
    assert "switched notes off here" in comment.body
    issue.github.mark()
    repeated = replace(off, own=OwnComment(comment.id, comment.body))
    assert (issue.post(repeated)[0], issue.github.writes) == ("silent", 0)


def test_a_withdrawn_comment_is_not_withdrawn_again(issue: PlannedIssue) -> None:
    issue.post(issue.plan(None, TEXT))
    (comment,) = issue.github.comments_by(BOT, issue.number)
    issue.github.mark()
    repeated = replace(issue.plan(None), own=OwnComment(comment.id, comment.body))
    assert issue.post(repeated)[0] == "silent"
    assert issue.github.writes == 0
    assert issue.post(replace(issue.plan(), own=OwnComment(comment.id, comment.body)))[0] == "updated"
    assert issue.github.comment_by_id(comment.id).minimized is None


def test_a_comment_that_cannot_be_folded_is_still_withdrawn(issue: PlannedIssue) -> None:
    issue.github.faults.add("POST /graphql", "drop")
    action, reason = issue.post(issue.plan(None, TEXT))
    assert (action, reason) == ("withdrawn", "nothing is close (it could not be folded)")


@pytest.mark.parametrize("edited", [TEXT.replace("loop", "trouble"), f"{marker()}\nMine now", TEXT + "PS: see the FAQ"])
@pytest.mark.parametrize("context", [OTHER, None])
def test_a_comment_edited_by_a_person_is_left_alone(issue: PlannedIssue, edited: str, context: Context | None) -> None:
    action, reason = issue.post(issue.plan(context, edited))
    assert (action, reason) == (("unchanged", EDITED) if context else ("silent", "nothing is close"))
    assert issue.texts == [edited]


def test_a_comment_deleted_by_a_person_is_not_posted_again(issue: PlannedIssue) -> None:
    assert issue.post(replace(issue.plan(), removed=True)) == ("silent", DELETED)
    for context in (OTHER, None):
        plan = issue.plan(context, TEXT)
        assert plan.own is not None
        issue.github.delete_comment(plan.own.id)
        assert issue.post(plan)[0] == "silent"
    assert issue.texts == []


def test_postponed_and_skipped_plans_write_nothing(issue: PlannedIssue) -> None:
    assert issue.post(replace(issue.plan(OTHER, TEXT), waits="later")) == ("silent", "later")
    assert issue.post(replace(issue.plan(None, TEXT), is_skipped=True)) == ("silent", "nothing is close")
    fault = Unreachable("no answer")
    result = publish_comment(replace(issue.plan(), waits="no answer", fault=fault), issue.client, OWN, "comment")
    assert (result.action, result.error) == ("failed", fault)
    assert issue.github.requests == []


def test_only_postponed_plans_are_owed(issue: PlannedIssue) -> None:
    plans = (issue.plan(), replace(issue.plan(), waits="later"), replace(issue.plan(None), is_skipped=True))
    assert [publish_comment(plan, issue.client, OWN, "comment").is_owed for plan in plans] == [False, True, False]
    fault = replace(issue.plan(), waits="no answer", fault=Unreachable("no answer"))
    assert publish_comment(fault, issue.client, OWN, "comment").is_owed


def test_summary_mode_posts_nothing(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(), "summary")[0] == "would say"
    assert issue.post(issue.plan(None, TEXT), "summary")[0] == "silent"
    assert issue.github.requests == []


def test_summary_mode_reports_only_what_would_be_posted(issue: PlannedIssue) -> None:
    plan = issue.plan(OTHER, TEXT)
    assert issue.post(plan, "summary")[0] == "would say"
    assert issue.post(replace(issue.plan(), removed=True), "summary") == ("silent", DELETED)
    assert issue.post(issue.plan(OTHER, f"{marker()}\nMine now"), "summary") == ("silent", EDITED)
    posted = replace(plan, own=replace(plan.own, text=plan.text)) if plan.own else plan
    assert issue.post(posted, "summary") == ("silent", "the comment already says that")


def test_threads_from_other_sources_get_no_comments(issue: PlannedIssue) -> None:
    assert issue.post(replace(issue.plan(), thread=replace(issue.thread, id="ABC-1")))[0] == "silent"


def test_a_post_whose_response_was_lost_is_looked_up_and_not_repeated(issue: PlannedIssue) -> None:
    issue.github.faults.add(POST, "dup")
    assert issue.post(issue.plan())[0] == "created"
    assert issue.texts == [TEXT]


def test_a_post_that_never_arrived_fails_once(issue: PlannedIssue) -> None:
    issue.github.faults.add(POST, "drop")
    result = publish_comment(issue.plan(), issue.client, OWN, "comment")
    assert (result.action, type(result.error), issue.texts) == ("failed", Unreachable, [])
    assert [request.method for request in issue.github.requests] == ["POST", "GET"]


def test_an_update_that_never_arrived_fails_once(issue: PlannedIssue) -> None:
    issue.github.faults.add(PATCH, "drop")
    assert issue.post(issue.plan(OTHER, TEXT))[0] == "failed"
    assert issue.texts == [TEXT]


def test_a_permanent_refusal_by_github_is_not_a_failure(issue: PlannedIssue) -> None:
    issue.github.lock(issue.number)
    result = publish_comment(issue.plan(), issue.client, OWN, "comment")
    assert (result.action, result.is_refused, result.error) == ("silent", True, None)
    issue.github.delete_issue(issue.number)
    result = publish_comment(issue.plan(), issue.client, OWN, "comment")
    assert (result.action, result.is_refused, result.error) == ("silent", True, None)


# -- finding our comment -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_oldest_comment_is_found_on_any_page(issue: PlannedIssue) -> None:
    for count in range(220):
        issue.github.comment(issue.number, "hubot", f"{count}")
    assert find_own(issue.number, issue.client, OWN) is None
    comment_ids = [issue.github.comment(issue.number, BOT, TEXT) for _ in range(2)]
    own = find_own(issue.number, issue.client, OWN)
    assert own is not None
    assert own.id == comment_ids[0]
    promised, was_deleted = find_promised(issue.number, NOW, issue.client, OWN)
    assert (promised and promised.id, was_deleted) == (comment_ids[0], False)


def test_a_deleted_promised_comment_is_distinguished_from_one_never_posted(issue: PlannedIssue) -> None:
    before = issue.github.comment(issue.number, "hubot", "Oops")
    issue.github.delete_comment(before, at="2026-01-05T11:00:00Z")
    promised = NOW + timedelta(seconds=20, microseconds=500)
    assert find_promised(issue.number, promised, issue.client, OWN) == (None, False)
    comment_id = issue.github.comment(issue.number, BOT, TEXT, at=promised)
    issue.github.delete_comment(comment_id, at=promised)
    assert find_promised(issue.number, promised, issue.client, OWN) == (None, True)


# -- storing the answer --------------------------------------------------------------------------------------------

THREAD = Thread(7, "Crash", "It crashes.", "octocat", NOW)
SPEAKING_PLAN = CommentPlan(THREAD, Speak(CONTEXT), TEXT, "q")
SILENT_PLAN = CommentPlan(THREAD, Silent("nothing is close"), question="q")
POSTED = OwnComment(5, TEXT)
WITHDRAWN = OwnComment(5, seal(f"{marker()}\ngone", WITHDRAWN_FINGERPRINT))
EDITED_COMMENT = OwnComment(5, TEXT.replace("loop", "trouble"))
SAID = AnswerRecord(7, "said", NOW - timedelta(hours=2), "", fingerprint(CONTEXT), 5, ((1, 0.8),), "q")
PENDING = replace(SAID, state="pending", comment_id=None)


def promised_fields(plan: CommentPlan, mode: str = "comment") -> tuple[str, str, int | None, str]:
    record = promise(plan, NOW, mode)
    return record.state, record.text_hash, record.comment_id, record.question


def test_a_comment_to_be_written_is_promised_first() -> None:
    content = fingerprint(CONTEXT)
    assert promised_fields(SPEAKING_PLAN) == ("pending", content, None, "q")
    assert promised_fields(replace(SPEAKING_PLAN, own=WITHDRAWN)) == ("pending", content, 5, "q")
    assert promised_fields(replace(SILENT_PLAN, own=POSTED)) == ("pending", WITHDRAWN_FINGERPRINT, 5, "q")


def test_a_plan_that_needs_no_writing_is_settled_at_once() -> None:
    assert promised_fields(replace(SPEAKING_PLAN, own=POSTED))[0] == "said"
    assert promised_fields(replace(SPEAKING_PLAN, own=EDITED_COMMENT))[0] == "said"
    assert promised_fields(replace(SILENT_PLAN, own=WITHDRAWN))[0] == "withdrawn"
    assert promised_fields(SILENT_PLAN) == ("silent", "", None, "q")
    assert promised_fields(replace(SPEAKING_PLAN, removed=True)) == ("removed", "", None, "q")


def test_summary_mode_makes_no_promise() -> None:
    assert promised_fields(SPEAKING_PLAN, "summary") == ("silent", "", None, "q")
    assert promised_fields(replace(SPEAKING_PLAN, own=POSTED), "summary") == ("silent", "", 5, "q")


def test_a_postponed_plan_stays_promised_even_if_a_comment_is_there() -> None:
    waiting = replace(SPEAKING_PLAN, text="", waits="later", before=SAID)
    assert promised_fields(waiting) == ("pending", "", 5, "")
    assert settle_answers({7: promise(waiting, NOW, "comment")}, {7: POSTED}, NOW - timedelta(days=1)) == {}


def test_a_skipped_thread_keeps_its_answer() -> None:
    skipped = replace(SILENT_PLAN, is_skipped=True)
    assert promise(replace(skipped, before=SAID), NOW, "comment") == SAID
    assert promised_fields(skipped) == ("silent", "", None, "")
    assert promised_fields(replace(skipped, before=PENDING)) == ("silent", "", None, "")


def test_the_same_answer_again_changes_nothing_not_even_its_time() -> None:
    assert promise(replace(SPEAKING_PLAN, own=POSTED, before=SAID), NOW, "comment") == SAID
    silent = promise(SILENT_PLAN, NOW, "comment")
    assert promise(replace(SILENT_PLAN, before=silent), NOW + timedelta(hours=1), "comment") == silent


def test_a_renewed_promise_keeps_its_date_and_is_tried_again() -> None:
    renewed = promise(
        replace(SPEAKING_PLAN, before=replace(PENDING, text_hash="x", reason="no answer")), NOW, "comment"
    )
    assert (renewed.at, renewed.trying_since, renewed.reason) == (PENDING.at, NOW, "")


@pytest.mark.parametrize(
    ("before", "standing", "state"),
    [
        (PENDING, POSTED, "said"),
        (PENDING, EDITED_COMMENT, "said"),
        (PENDING, WITHDRAWN, ""),
        (replace(PENDING, text_hash=WITHDRAWN_FINGERPRINT, comment_id=5), WITHDRAWN, "withdrawn"),
        (replace(PENDING, text_hash=WITHDRAWN_FINGERPRINT, comment_id=5), POSTED, ""),
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
def test_how_an_answer_is_settled(before: AnswerRecord, standing: OwnComment | None, state: str) -> None:
    settled = settle_answers({7: before}, {7: standing}, NOW - timedelta(days=1))
    assert {key: answer.state for key, answer in settled.items()} == ({7: state} if state else {})


def test_without_known_comments_only_age_settles_an_answer() -> None:
    old = replace(PENDING, id=8, at=NOW - timedelta(days=2))
    assert list(settle_answers({7: SAID, 8: old}, {}, NOW - timedelta(days=1))) == [8]
