"""What a draft does to what stands: a post is written once, updated, withdrawn or left alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.comment.marker import fingerprint, marker, seal
from bot.domain.answer import Context, Match, Silent, Speak
from bot.domain.post import Post, notice_slot, reply_slot
from bot.domain.thread import Thread
from bot.github.client import GitHubClient
from bot.github.errors import Unreachable
from bot.github.threads import OwnComment, OwnCommentRule, own_comment
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.draft import DELETED, EDITED, SAME, SWITCHED_OFF, WITHDRAWN_FINGERPRINT, Action, Draft, next_step
from bot.pipeline.handle import still_ours
from bot.pipeline.permit import Permit
from bot.pipeline.reconcile import CommentResult, find_own, find_promised, reconcile
from bot.settings.schema import Settings
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import tools_for

BOT = "github-actions[bot]"
REPO = "octocat/hello-world"
OWN = OwnCommentRule(BOT, marker())
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
CONTEXT = Context(seen_before=(Match(1, "Login loop", 0.8, "closed", NOW),))
OTHER = Context(seen_before=(Match(2, "Logged out", 0.7, "closed", NOW),))


def text_of(context: Context) -> str:
    return seal(f"{marker()}\nSeen before: {context.seen_before[0].title}", fingerprint(context))


TEXT = text_of(CONTEXT)
THREAD = Thread(7, "Crash", "It crashes.", "octocat", NOW)
POST = "POST /repos/*/issues/*/comments"
PATCH = "PATCH /repos/*/issues/comments/*"


class PlannedIssue:
    """Issue 1 on the fake GitHub, and drafts of comments on it."""

    def __init__(self, github: FakeGitHub, folder: Path) -> None:
        self.github = github
        self.number = github.open_issue("octocat", "Crash", "It crashes.")
        self.client = GitHubClient(github.url, github.token, REPO, write_gap=0)
        self.thread = Thread(self.number, "Crash", "It crashes.", "octocat", NOW)
        self.tools = tools_for(github, Memory(FolderStore(folder)), forge=self.client)

    def plan(self, context: Context | None = CONTEXT, standing: str | None = None) -> Draft:
        """A draft with this context. With ``standing``, our comment with this text exists already."""
        answer, text = (Speak(context), text_of(context)) if context else (Silent("nothing is close"), "")
        plan = Draft(self.thread, answer, text=text, question="q")
        if standing is None:
            return plan
        comment_id = self.github.comment(self.number, BOT, standing)
        return replace(plan, own=own_comment(self.github.shapes.comment(self.github.comment_by_id(comment_id))))

    def post(self, plan: Draft, mode: str = "comment") -> tuple[str, str]:
        result = self.result(plan, mode)
        return result.action, result.reason

    def result(self, plan: Draft, mode: str = "comment") -> CommentResult:
        return reconcile(plan, replace(self.tools, settings=replace(Settings(), mode=mode)))

    @property
    def texts(self) -> list[str]:
        return [comment.body for comment in self.github.comments_by(BOT, self.number)]


@pytest.fixture
def issue(github: FakeGitHub, tmp_path: Path) -> PlannedIssue:
    return PlannedIssue(github, tmp_path)


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


def test_an_outdated_comment_is_withdrawn(issue: PlannedIssue) -> None:
    assert issue.post(issue.plan(None, TEXT)) == ("withdrawn", "nothing is close")
    (comment,) = issue.github.comments_by(BOT, issue.number)
    assert comment.body.startswith(f"{marker()}\n<sub>")
    assert issue.client.writes == 1


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
    result = issue.result(replace(issue.plan(), waits="no answer", fault=fault))
    assert (result.action, result.error) == ("failed", fault)
    assert issue.github.requests == []


def test_only_postponed_plans_are_owed(issue: PlannedIssue) -> None:
    plans = (issue.plan(), replace(issue.plan(), waits="later"), replace(issue.plan(None), is_skipped=True))
    assert [issue.result(plan).is_owed for plan in plans] == [False, True, False]
    fault = replace(issue.plan(), waits="no answer", fault=Unreachable("no answer"))
    assert issue.result(fault).is_owed


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
    assert issue.post(posted, "summary") == ("silent", SAME)


def test_threads_from_other_sources_get_no_comments(issue: PlannedIssue) -> None:
    assert issue.post(replace(issue.plan(), thread=replace(issue.thread, id="ABC-1")))[0] == "silent"


def test_a_post_whose_response_was_lost_is_looked_up_and_not_repeated(issue: PlannedIssue) -> None:
    issue.github.faults.add(POST, "dup")
    assert issue.post(issue.plan())[0] == "created"
    assert issue.texts == [TEXT]


def test_a_post_that_never_arrived_fails_once(issue: PlannedIssue) -> None:
    issue.github.faults.add(POST, "drop")
    result = issue.result(issue.plan())
    assert (result.action, type(result.error), issue.texts) == ("failed", Unreachable, [])
    assert [request.method for request in issue.github.requests] == ["POST", "GET"]


def test_an_update_that_never_arrived_fails_once(issue: PlannedIssue) -> None:
    issue.github.faults.add(PATCH, "drop")
    assert issue.post(issue.plan(OTHER, TEXT))[0] == "failed"
    assert issue.texts == [TEXT]


def test_a_permanent_refusal_by_github_is_not_a_failure(issue: PlannedIssue) -> None:
    issue.github.lock(issue.number)
    result = issue.result(issue.plan())
    assert (result.action, result.is_refused, result.error) == ("silent", True, None)
    issue.github.delete_issue(issue.number)
    result = issue.result(issue.plan())
    assert (result.action, result.is_refused, result.error) == ("silent", True, None)


# -- finding our comment -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_oldest_comment_is_found_on_any_page(issue: PlannedIssue) -> None:
    for count in range(220):
        issue.github.comment(issue.number, "hubot", f"{count}")
    assert find_own(issue.number, issue.tools) is None
    comment_ids = [issue.github.comment(issue.number, BOT, TEXT) for _ in range(2)]
    own = find_own(issue.number, issue.tools)
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


# -- the table: what should stand, what stands, and the step ----------------------------------------------------------

FALSE = {"renews": True, "is_false": True}
DRAFTS = {
    "text": Draft(THREAD, Speak(CONTEXT), text=TEXT),
    "none": Draft(THREAD, Silent("nothing is close")),
    "text, renew only": Draft(THREAD, Speak(CONTEXT), text=TEXT, renews=True),
    "none, renew only": Draft(THREAD, Silent("nothing is close"), renews=True),
    "text, take out": Draft(THREAD, Speak(CONTEXT), text=TEXT, **FALSE),
    "none, take out": Draft(THREAD, Silent("nothing is close"), **FALSE),
}
OTHER_WORDS = seal(f"{marker()}\nThe same facts in other words", fingerprint(CONTEXT))
STANDING = {
    "nothing": None,
    "deleted": None,
    "the same": TEXT,
    "other words": OTHER_WORDS,
    "other facts": text_of(OTHER),
    "withdrawn": seal(f"{marker()}\ngone", WITHDRAWN_FINGERPRINT),
    "edited": TEXT.replace("loop", "trouble"),
}
C, U, W = (Action.CREATE, ""), (Action.UPDATE, ""), (Action.WITHDRAW, "")
SAYS, OURS, GONE, IDLE = ((Action.LEAVE, why) for why in (SAME, EDITED, DELETED, ""))
TABLE = {  # nothing, deleted, the same, other words, other facts, withdrawn, edited by a person
    "text": (C, GONE, SAYS, SAYS, U, U, OURS),
    "none": (IDLE, GONE, W, W, W, IDLE, IDLE),
    "text, renew only": (GONE, GONE, SAYS, SAYS, U, U, OURS),
    "none, renew only": (GONE, GONE, W, W, W, IDLE, OURS),
    "text, take out": (GONE, GONE, SAYS, U, U, U, W),
    "none, take out": (GONE, GONE, W, W, W, IDLE, W),
}


@pytest.mark.parametrize(
    ("draft", "standing", "step"),
    [(draft, standing, step) for draft, row in TABLE.items() for standing, step in zip(STANDING, row, strict=True)],
)
def test_the_step_that_makes_a_draft_stand(draft: str, standing: str, step: tuple[Action, str]) -> None:
    text, is_deleted = STANDING[standing], standing == "deleted"
    own = None if text is None else OwnComment(5, text)
    assert next_step(replace(DRAFTS[draft], removed=is_deleted, own=own)) == step


@pytest.mark.parametrize("standing", STANDING)
@pytest.mark.parametrize("slot", ["", reply_slot(77), notice_slot("#57")])
def test_a_step_leads_to_a_state_that_needs_no_other(standing: str, slot: str) -> None:
    for draft in DRAFTS.values():
        own = None if (text := STANDING[standing]) is None else OwnComment(5, text)
        step = next_step(replace(draft, slot=slot, own=own))
        if step.action is Action.LEAVE or (step.action is Action.WITHDRAW and draft.text):  # what it said was false
            continue
        written = STANDING["withdrawn"] if step.action is Action.WITHDRAW else draft.text
        assert next_step(replace(draft, slot=slot, own=OwnComment(5, written or ""))).action is Action.LEAVE


def test_what_another_run_promised_meanwhile_is_left_to_it(issue: PlannedIssue) -> None:
    """A comment waits until that run has posted it; a reply or a notice is no longer this run's."""
    memory = issue.tools.memory
    drafts = [replace(issue.plan(), slot=slot) for slot in ("", reply_slot(77), notice_slot("#57"))]
    assert still_ours(drafts, issue.tools) == drafts
    memory.taken = {draft.key for draft in drafts}
    (left,) = still_ours(drafts, issue.tools)
    assert (left.slot, left.is_left, issue.result(left).is_owed) == ("", True, True)
    memory.taken, memory.taken_requests = set(), {77}
    assert [draft.slot for draft in still_ours(drafts, issue.tools)] == ["", notice_slot("#57")]
    memory.is_outdated = True
    assert [draft.is_left for draft in still_ours(drafts, issue.tools)] == [True]


@pytest.mark.parametrize("slot", [reply_slot(77), notice_slot("#57")])
@pytest.mark.parametrize("state", ["missing", "standing", "deleted"])
def test_a_post_that_a_dead_run_promised_is_looked_for_before_it_is_written(
    issue: PlannedIssue, slot: str, state: str
) -> None:
    text = seal(f"{marker(slot=slot)}\nReleased.", "f" * 16)
    if state != "missing":
        posted = issue.github.comment(issue.number, BOT, text, at=NOW)
        if state == "deleted":
            issue.github.delete_comment(posted, at=NOW + timedelta(minutes=1))
    before = Post(issue.number, "pending", NOW - timedelta(minutes=5), slot, content="f" * 16)
    result = issue.result(Draft(issue.thread, Silent("it is due"), slot, text, before=before))
    created = "replied" if slot == reply_slot(77) else "created"
    assert result.action == {"missing": created, "standing": "unchanged", "deleted": "silent"}[state]
    assert len(issue.texts) == (0 if state == "deleted" else 1)


def test_a_run_that_may_not_post_leaves_every_post_to_a_later_one(issue: PlannedIssue) -> None:
    muted, free = Permit(writes=True, waits="the settings are invalid"), Permit(writes=True)
    false = replace(issue.plan(None, TEXT), **FALSE)
    for draft in (issue.plan(), replace(issue.plan(), slot=notice_slot("#57"))):
        assert muted.restrict(draft).waits == "the settings are invalid"
        assert free.restrict(draft) == draft
    assert muted.restrict(false) == false, "it takes out what may no longer be shown"


def test_a_dry_run_takes_nothing_out_either(issue: PlannedIssue) -> None:
    false = replace(issue.plan(None, TEXT), **FALSE)
    for is_dry, action in ((True, "silent"), (False, "withdrawn")):
        issue.tools.memory.is_dry = is_dry
        assert reconcile(false, issue.tools).action == action
        assert (issue.texts == [TEXT]) is is_dry
