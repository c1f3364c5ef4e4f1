"""Posts, updates or withdraws the comment on an issue, and posts replies. Each is promised in memory beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.comment.catalogue import Words
from bot.comment.marker import read_seal, seal
from bot.comment.render import withdrawal_text
from bot.domain.answer import Context, Match
from bot.domain.changes import Changes, Request, StandingComment
from bot.domain.thread import ThreadId
from bot.github.discussion_comments import CommentClient
from bot.github.errors import CannotComment, ForgeError, Gone, Invalid, RateLimited
from bot.github.threads import OwnComment, OwnCommentRule, own_comment
from bot.pipeline.outbox import (
    DELETED,
    EDITED,
    NOT_VISIBLE,
    SWITCHED_OFF,
    WITHDRAWN_FINGERPRINT,
    CommentPlan,
    create_once,
    find_own,
    is_same_text,
    is_unedited,
)
from bot.pipeline.replies import ReplyPlan, react
from bot.pipeline.requests import close_request
from bot.pipeline.run_context import RunContext


def promise_replies(plans: Iterable[ReplyPlan], run: RunContext) -> tuple[Request, ...]:
    """The requests to store before any reply is posted, so that no crash repeats or loses a reply."""

    def stored_request(plan: ReplyPlan) -> Request:
        if plan.text and run.settings.mode == "comment":
            return replace(plan.stored, trying_since=run.now)
        return plan.stored if plan.waits else replace(plan.stored, state="done")

    return tuple(map(stored_request, plans))


def publish_replies(plans: Iterable[ReplyPlan], run: RunContext) -> list[CommentResult]:
    """Post the replies, once memory is pushed. Requests that another run has taken in the meantime are left to it.

    If GitHub refuses a reply, the request is closed. After other failures a later run checks whether the reply exists,
    and tries again if it does not.
    """
    own_plans = [plan for plan in plans if plan.request.key not in run.memory.taken_requests]
    results = [_publish_reply(plan, run) for plan in own_plans]
    refused = [plan for plan, result in zip(own_plans, results, strict=True) if result.is_refused]
    if refused:
        requests = tuple(close_request(stored) for stored in promise_replies(refused, run))
        gone = tuple(StandingComment(plan.request.thread.id, run.now, plan.request.key) for plan in refused)
        run.memory.stage(Changes(requests=requests, standing=gone))
        run.memory.commit("Take back replies that could not be written")
    return results


def _publish_reply(plan: ReplyPlan, run: RunContext) -> CommentResult:
    thread = plan.request.thread
    result = CommentResult(
        thread.id, thread.title, "silent", plan.reason, plan.context, plan.text, is_owed=bool(plan.waits)
    )
    if plan.fault:
        return with_error(result, plan.fault)
    if plan.waits:
        return result
    if run.settings.mode != "comment":
        return replace(result, action="would say") if plan.text else result
    try:
        if plan.text:
            result = replace(result, action="replied", comment=_write_reply(plan, run))
    except Gone as error:
        return replace(result, reason=str(error), is_refused=True)
    except ForgeError as error:
        return with_write_error(result, error)
    react(plan.request, "rocket" if plan.good else "confused", run)
    return result


def _write_reply(plan: ReplyPlan, run: RunContext) -> OwnComment:
    number, key = plan.request.thread.id, plan.request.key
    assert isinstance(number, int)  # nobody comments on threads from elsewhere
    forge = run.comments_on(number)

    def find() -> OwnComment | None:
        return next(
            (own_comment(posted) for posted in forge.comments(number) if run.own.reply_target(posted) == key), None
        )

    return create_once(number, plan.text, forge, find)


@dataclass(frozen=True, slots=True)
class CommentResult:
    """The result of a plan. ``action`` is created, updated, unchanged, withdrawn, replied, silent, would say, waits
    (for GitHub's limit to end), or failed.

    ``is_refused``: GitHub will never accept the comment; ``gone``: because the issue no longer exists.
    ``is_owed``: left to a later run, for ``reason``. ``nearest`` and ``renews`` are as in `CommentPlan`. ``reply``: the
    comment that a renewed reply answers, 0 otherwise.
    """

    id: ThreadId
    title: str
    action: str
    reason: str = ""
    context: Context = field(default_factory=Context)
    text: str = ""
    comment: OwnComment | None = None
    error: ForgeError | None = None
    is_refused: bool = False
    gone: Gone | None = None
    is_owed: bool = False
    nearest: tuple[Match, ...] = ()
    renews: bool = False
    reply: int = 0

    @property
    def is_undone(self) -> bool:
        """Whether a later run has to finish this."""
        return (self.is_owed or self.error is not None) and not self.is_refused

    @property
    def spoke(self) -> bool:
        return self.action in ("created", "updated", "unchanged", "replied")


def publish_comment(
    plan: CommentPlan, forge: CommentClient, own: OwnCommentRule, mode: str, words: Words | None = None
) -> CommentResult:
    """Carry out a plan. If GitHub refuses, the result says why; there is no second attempt.

    ``words`` are the texts of a withdrawn comment, None for the shipped ones.
    """
    result = CommentResult(plan.thread.id, plan.thread.title, "silent", plan.reason, plan.context, plan.text)
    result = replace(result, is_owed=bool(plan.waits), nearest=plan.nearest, renews=plan.renews)
    if plan.fault:
        return with_error(result, plan.fault)
    if plan.is_skipped or plan.waits:
        return result
    if mode != "comment" and not plan.takes_out:
        unchanged = _why_not_written(plan)
        return replace(
            result, reason=unchanged or result.reason, action="would say" if plan.text and not unchanged else "silent"
        )
    try:
        return _post(plan, result, forge, own, words)
    except ForgeError as error:
        return with_write_error(result, error)


def _why_not_written(plan: CommentPlan) -> str:
    if plan.removed:
        return DELETED
    return _why_unchanged(plan.own, plan.text, plan.must_match) if plan.own and plan.text else ""


def with_error(result: CommentResult, error: ForgeError) -> CommentResult:
    """The result after an error: waiting for the end of a limit, or failed."""
    action = "waits" if isinstance(error, RateLimited) else "failed"
    return replace(result, action=action, reason=str(error), error=error)


def with_write_error(result: CommentResult, error: ForgeError) -> CommentResult:
    """The result after an error while writing, which may be a refusal."""
    if isinstance(error, CannotComment):
        return replace(result, reason=str(error), is_refused=True)
    return replace(with_error(result, error), is_refused=isinstance(error, Invalid))


def _post(
    plan: CommentPlan, result: CommentResult, forge: CommentClient, own: OwnCommentRule, words: Words | None
) -> CommentResult:
    number = plan.thread.id
    if not isinstance(number, int):
        return replace(result, reason="threads from elsewhere have no comments")
    if plan.own and plan.text:
        return update(result, plan.own, forge, must_match=plan.must_match)
    if plan.own:
        return withdraw(result, plan.own, forge, words, is_false=plan.is_false)
    if plan.removed:
        return replace(result, reason=DELETED)
    return _create(result, number, forge, own) if plan.is_new else result


def _create(result: CommentResult, number: int, forge: CommentClient, own: OwnCommentRule) -> CommentResult:
    try:
        comment = create_once(number, result.text, forge, lambda: find_own(number, forge, own))
        return replace(result, action="created", comment=comment)
    except Gone as error:
        if error.certain:
            return replace(result, reason=f"the issue is not there any more ({error})", is_refused=True, gone=error)
        return replace(result, reason=f"{NOT_VISIBLE}: a later run tries again ({error})", is_owed=True)


def _why_unchanged(mine: OwnComment, text: str, must_match: bool) -> str:
    """Why our comment need not or must not change to ``text``; "" if it has to change."""
    planned, standing = read_seal(text), read_seal(mine.text)
    if standing is None or not standing.untouched:
        return EDITED
    is_same = is_same_text(mine, text) if must_match else planned and standing.content == planned.content
    return "the comment already says that" if is_same else ""


def update(result: CommentResult, mine: OwnComment, forge: CommentClient, *, must_match: bool = False) -> CommentResult:
    """Change our comment to ``result.text``, unless a person edited it or it already says the same.

    Equal facts count as the same, unless the words ``must_match``.
    """
    if unchanged := _why_unchanged(mine, result.text, must_match):
        return replace(result, action="unchanged", reason=unchanged, comment=mine)
    standing = read_seal(mine.text)
    try:
        result = replace(result, action="updated", comment=forge.update_comment(mine.id, result.text))
    except Gone:
        return replace(result, reason=DELETED)
    return (
        _fold(result, mine, forge, folded=False) if standing and standing.content == WITHDRAWN_FINGERPRINT else result
    )


def withdraw(
    result: CommentResult, mine: OwnComment, forge: CommentClient, words: Words | None, *, is_false: bool = False
) -> CommentResult:
    """Shrink our comment to one line and fold it. One that a person edited stays, unless it ``is_false``."""
    if (standing := read_seal(mine.text)) and standing.untouched and standing.content == WITHDRAWN_FINGERPRINT:
        return result
    if not is_unedited(mine) and not is_false:
        return replace(result, reason=EDITED) if result.renews else result
    first_line = mine.text.lstrip("\ufeff \t\r\n").partition("\n")[0].rstrip()
    text = withdrawal_text(first_line, words, off=result.reason == SWITCHED_OFF)
    try:
        changed = forge.update_comment(mine.id, seal(text, WITHDRAWN_FINGERPRINT))
    except Gone:
        return result
    return _fold(replace(result, action="withdrawn", comment=changed), mine, forge, folded=True)


def _fold(result: CommentResult, mine: OwnComment, forge: CommentClient, *, folded: bool) -> CommentResult:
    """Fold the comment as outdated, or unfold it. A failure is only noted, as the text is right anyway."""
    node_id = (result.comment.node_id if result.comment else "") or mine.node_id
    try:
        if node_id:
            forge.fold(node_id, folded=folded)
    except ForgeError:
        return replace(result, reason=f"{result.reason} (it could not be {'folded' if folded else 'unfolded'})")
    return result
