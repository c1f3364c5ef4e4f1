"""Planned comments and their promises, stored before posting so that a later run can fulfil them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.comment.marker import fingerprint, read_seal
from bot.domain.answer import Answer, Context, Match, Silent, Speak, shown_in
from bot.domain.changes import AnswerRecord, StandingComment
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import parse_time
from bot.github.budget import MAX_CLOCK_SKEW
from bot.github.discussion_comments import CommentClient
from bot.github.errors import ForgeError, Unreachable
from bot.github.threads import OwnComment, OwnCommentRule, split_own
from bot.github.updates import comments_of

WITHDRAWN_FINGERPRINT = "0" * 16
"""The fingerprint of a withdrawn comment."""

EDITED = "a person edited the comment: it is left as it is"
SWITCHED_OFF = "somebody switched it off on this issue"
QUOTE_CHANGED = "it quotes words that their author edited or deleted"
NOT_VISIBLE = "it is not visible now"
DELETED = "a person deleted the comment: it is not posted again"


@dataclass(frozen=True, slots=True)
class CommentPlan:
    """The comment planned for a thread. ``text`` is empty for silence.

    ``is_skipped``: the rules leave this thread alone, whatever comment it has. ``waits``: why it is left to a later
    run. ``removed``: a person deleted our comment. ``fault``: the error that kept us from looking. ``renews``: the
    comment is updated because a thread in it changed; none is created. ``quotes`` are the marks of the quoted messages.
    ``standing`` is what memory knows about the existing comment; ``is_false``: it quotes something that its author took
    back, or shows an issue of another repository that may no longer be shown here.
    """

    thread: Thread
    answer: Answer
    text: str = ""
    question: str = ""
    own: OwnComment | None = None
    before: AnswerRecord | None = None
    is_skipped: bool = False
    removed: bool = False
    waits: str = ""
    fault: ForgeError | None = None
    renews: bool = False
    quotes: tuple[str, ...] = ()
    standing: StandingComment | None = None
    is_false: bool = False

    @property
    def context(self) -> Context:
        return self.answer.context if isinstance(self.answer, Speak) else Context()

    @property
    def nearest(self) -> tuple[Match, ...]:
        """The issues most similar to the thread, shown or not."""
        return self.answer.nearest if isinstance(self.answer, Silent) else self.answer.context.nearest

    @property
    def content(self) -> str:
        """The fingerprint of the planned comment."""
        return fingerprint(self.context) if self.text else WITHDRAWN_FINGERPRINT

    @property
    def reason(self) -> str:
        if self.waits:
            return self.waits
        return self.answer.reason if isinstance(self.answer, Silent) else "memory has something to show"

    @property
    def is_new(self) -> bool:
        """Whether it will create a comment."""
        return bool(self.text) and not (self.own or self.removed or self.is_skipped or self.waits or self.renews)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write, or the comment already says it."""
        if self.own is None:
            return not self.text and not self.waits
        return bool(self.standing_state)

    @property
    def standing_state(self) -> str:
        """``said`` or ``withdrawn`` if the existing comment needs no change, else ""."""
        if self.own is None or (self.must_match and is_unedited(self.own) and not is_same_text(self.own, self.text)):
            return ""
        return "" if self.is_false and not is_unedited(self.own) else _standing_state(self.own, self.content)

    @property
    def is_left_alone(self) -> bool:
        """Whether it would renew a comment that does not exist or that a person edited."""
        is_as_edited = self.own is not None and not is_unedited(self.own) and not self.is_false
        return self.renews and not self.removed and (self.own is None or is_as_edited)

    @property
    def must_match(self) -> bool:
        """Whether the text must be equal, not just the facts, because the words differ or may differ."""
        return self.is_false or (self.standing is not None and bool(self.standing.shows) and not self.standing.quotes)

    @property
    def takes_out(self) -> bool:
        """Whether it removes something that may no longer be shown, which is done in every mode."""
        return self.renews and self.is_false

    @property
    def is_counted(self) -> bool:
        """Whether an earlier run promised this comment and counted it."""
        before = self.before
        return before is not None and before.state == "pending" and bool(before.text_hash) and not before.comment_id


def find_own(number: int, forge: CommentClient, own: OwnCommentRule) -> OwnComment | None:
    """Our oldest comment on the issue. Takes one read per hundred comments."""
    ours = split_own(forge.comments(number), own)[1]
    return ours[0] if ours else None


def create_once(number: int, text: str, forge: CommentClient, find: Callable[[], OwnComment | None]) -> OwnComment:
    """Write a comment. If GitHub's answer is lost, ``find`` it instead of writing it again. Raises ForgeError."""
    try:
        return forge.create_comment(number, text)
    except Unreachable:
        if own := find():
            return own
        raise


def find_promised(
    number: int, promised_at: datetime, forge: CommentClient, own: OwnCommentRule
) -> tuple[OwnComment | None, bool]:
    """The comment that was promised then, and whether it has been deleted."""
    items = forge.timeline(number)
    ours = split_own(comments_of(items), own)[1]
    return (ours[0], False) if ours else (None, was_deleted(items, promised_at))


def was_deleted(timeline: Iterable[Mapping[str, Any]], promised_at: datetime) -> bool:
    """Whether a comment that was promised then may have been deleted.

    The timeline does not say whose comment was deleted, so any counts as ours: silence is the smaller mistake.
    """
    gone = [item for item in timeline if item.get("event") == "comment_deleted" and item.get("created_at")]
    return any(parse_time(item["created_at"]) >= promised_at.replace(microsecond=0) - MAX_CLOCK_SKEW for item in gone)


def promise(plan: CommentPlan, now: datetime, mode: str) -> AnswerRecord:
    """The record of an answer, stored before the comment is posted, so that no crash repeats or loses one."""
    before, answer = plan.before, _planned_record(plan, now, mode)
    if before is None:
        return answer
    answer = replace(answer, votes=before.votes)
    if plan.is_skipped and before.state != "pending":
        return before
    kept = replace(answer, at=before.at, revised_at=before.revised_at)
    if kept == before:
        return before
    return replace(kept, revised_at=now) if before.state == answer.state == "pending" else answer


def _planned_record(plan: CommentPlan, now: datetime, mode: str) -> AnswerRecord:
    key, before = plan.thread.id, plan.before
    comment_id = plan.own.id if plan.own else (before.comment_id if before else None)
    if before and plan.is_left_alone:
        return before
    if plan.waits:
        if before and before.state == "pending":
            return AnswerRecord(
                key, "pending", now, plan.waits, before.text_hash, comment_id, trying_since=before.trying_since
            )
        return AnswerRecord(key, "pending", now, plan.waits, comment_id=comment_id)
    if plan.is_skipped:
        return AnswerRecord(key, "silent", now, plan.reason, comment_id=comment_id)
    if plan.removed:
        return AnswerRecord(key, "removed", now, DELETED, comment_id=comment_id, question=plan.question)
    if (mode != "comment" and not plan.takes_out) or not (plan.text or plan.own):
        shown = "it was shown in the job summary only" if plan.text else plan.reason
        return AnswerRecord(key, "silent", now, shown, comment_id=comment_id, question=plan.question)
    matches = tuple((match.id, match.similarity) for match in (*plan.context.seen_before, *plan.context.open_now))
    state = plan.standing_state
    trying_since = None if state else now
    return AnswerRecord(
        key, state or "pending", now, "", plan.content, comment_id, matches, plan.question, trying_since
    )


def standing_comment(plan: CommentPlan, now: datetime, *, is_written: bool = False) -> StandingComment | None:
    """The record of the comment after this plan; None if nothing is new.

    Until the comment ``is_written``, it counts as showing what both the old and the new text show, so that a false
    quote is still found after a crash.
    """
    key, stood = plan.thread.id, plan.standing
    if plan.is_skipped or plan.waits or plan.fault or not isinstance(key, int):
        return None
    new = StandingComment(key, now)
    if plan.text and not plan.removed and (plan.own or plan.is_new):
        pulls = tuple(pull for pull in plan.context.pulls if pull.seen_at)
        others = tuple(other.key for other in plan.context.organisation)
        new = StandingComment(key, now, 0, plan.content, shown_in(plan.context), plan.quotes, None, pulls, others)
    elif plan.own is None and not plan.removed:
        return None
    if plan.is_left_alone or (plan.own and plan.standing_state and stood and stood.content == plan.content):
        return None
    if plan.renews and stood and not is_written and (plan.is_false or not plan.text):
        shows, quotes = (*new.shows, *stood.shows), (*new.quotes, *stood.quotes)
        others = tuple(dict.fromkeys((*stood.others, *new.others)))
        return replace(new, shows=tuple(dict.fromkeys(shows)), quotes=tuple(sorted(set(quotes))), others=others)
    return new if stood or not new.is_gone else None


def settle_answers(
    answers: Mapping[ThreadId, AnswerRecord], standing: Mapping[ThreadId, OwnComment | None], oldest: datetime
) -> dict[ThreadId, AnswerRecord]:
    """Update earlier answers, given our comments: promises kept or expired, comments deleted. Returns the changes.

    A promise from before ``oldest`` is given up.
    """
    settled: dict[ThreadId, AnswerRecord] = {}
    for key, answer in answers.items():
        own = standing.get(key)
        state = _standing_state(own, answer.text_hash) if own and answer.state == "pending" else ""
        if own and state:
            settled[key] = replace(answer, state=state, comment_id=own.id, reason="", trying_since=None)
        elif own is None and key in standing and answer.comment_id and answer.state in ("pending", "said", "withdrawn"):
            settled[key] = replace(answer, state="removed", reason=DELETED, trying_since=None)
        elif answer.state == "pending" and answer.at <= oldest:
            settled[key] = replace(answer, state="silent", reason="it is too late for an answer", trying_since=None)
    return settled


def _standing_state(own: OwnComment, content: str) -> str:
    """``said`` or ``withdrawn`` if the comment needs no change to say ``content``, else ""."""
    standing = read_seal(own.text)
    if standing is None or not standing.untouched:
        return "said"
    if standing.content != content:
        return ""
    return "withdrawn" if content == WITHDRAWN_FINGERPRINT else "said"


def is_unedited(own: OwnComment) -> bool:
    """Whether our comment is as we wrote it."""
    standing = read_seal(own.text)
    return standing is not None and standing.untouched


def is_same_text(own: OwnComment, text: str) -> bool:
    return own.text.replace("\r\n", "\n").strip() == text.strip()
