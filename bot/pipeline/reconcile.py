"""Makes what stands on GitHub agree with a draft: one step for each, found by comparing the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.comment.marker import seal
from bot.comment.render import withdrawal_text
from bot.domain.answer import Context, Match
from bot.domain.post import COMMENT, Post
from bot.domain.thread import ThreadId
from bot.domain.thread_json import parse_time
from bot.github.budget import MAX_CLOCK_SKEW
from bot.github.client import Json
from bot.github.discussion_comments import CommentClient
from bot.github.errors import CannotComment, ForgeError, Gone, Invalid, RateLimited, Unreachable
from bot.github.threads import OwnComment, OwnCommentRule, find_post
from bot.github.updates import comments_of
from bot.pipeline.draft import (
    DELETED,
    NOT_VISIBLE,
    SWITCHED_OFF,
    WITHDRAWN_FINGERPRINT,
    Action,
    Draft,
    next_step,
)
from bot.pipeline.tools import Tools, is_in_progress


@dataclass(frozen=True, slots=True)
class CommentResult:
    """The result of a draft. ``action`` is created, updated, unchanged, withdrawn, replied, silent, would say, waits
    (for GitHub's limit to end), or failed.

    ``is_refused``: GitHub will never accept the comment; ``gone``: because the issue no longer exists.
    ``is_owed``: left to a later run, for ``reason``. ``slot``, ``nearest`` and ``renews`` are as in `Draft`.
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
    slot: str = COMMENT

    @property
    def is_undone(self) -> bool:
        """Whether a later run has to finish this."""
        return (self.is_owed or self.error is not None) and not self.is_refused

    @property
    def spoke(self) -> bool:
        return self.action in ("created", "updated", "unchanged", "replied")


def reconcile(draft: Draft, run: Tools, promised: Post | None = None) -> CommentResult:
    """Carry out a draft, as it was ``promised``. If GitHub refuses, the result says why; there is no second attempt."""
    result = CommentResult(draft.thread.id, draft.thread.title, "silent", draft.reason, draft.context, draft.text)
    result = replace(result, is_owed=bool(draft.waits), nearest=draft.nearest, renews=draft.renews, slot=draft.slot)
    if draft.fault:
        return _with_error(result, draft.fault)
    if draft.is_left:
        return result
    if not run.permit.allows(draft):
        return _preview(draft, result)
    try:
        return _take_step(draft, promised, result, run)
    except ForgeError as error:
        return _with_write_error(result, error)


def _preview(draft: Draft, result: CommentResult) -> CommentResult:
    step = next_step(draft)
    if step.action is Action.LEAVE:
        return replace(result, reason=step.why or result.reason)
    return replace(result, action="would say") if draft.text else result


def _take_step(draft: Draft, promised: Post | None, result: CommentResult, run: Tools) -> CommentResult:
    number = draft.thread.id
    if not isinstance(number, int):
        return replace(result, reason="threads from elsewhere have no comments")
    draft = _with_standing(draft, promised, run)
    own = draft.own
    step, forge = next_step(draft), run.comments_on(number)
    match step.action:
        case Action.CREATE:
            return _create(draft, number, result, run)
        case Action.UPDATE if own:
            return _update(result, own, forge)
        case Action.WITHDRAW if own:
            words = run.renderer.for_thread(draft.thread).words
            first_line = own.text.lstrip("\ufeff \t\r\n").partition("\n")[0].rstrip()
            text = withdrawal_text(first_line, words, off=result.reason == SWITCHED_OFF)
            changed = _update(result, own, forge, seal(text, WITHDRAWN_FINGERPRINT))
            return replace(changed, action="withdrawn") if changed.comment else changed
    action = "unchanged" if own and draft.text else "silent"
    return replace(result, action=action, reason=step.why or result.reason, comment=own if draft.text else None)


def _with_standing(draft: Draft, promised: Post | None, run: Tools) -> Draft:
    """The draft with what stands in its slot, unless it is a comment: that was looked for when it was planned. A new
    post is looked for only if an earlier run promised it, or if this run took so long that another may have written it.
    """
    number, before = draft.thread.id, draft.before
    if draft.key.is_comment or draft.removed or not isinstance(number, int):
        return draft
    if before and before.is_promised:
        own, was_removed = find_promised(number, before.at, run.comments_on(number), run.own, draft.slot)
        return replace(draft, own=own, removed=was_removed)
    comment_id = before.comment_id if before else None
    is_late = promised is not None and not is_in_progress(promised.trying_since, run.current_time())
    if not (draft.renews or comment_id or is_late):
        return draft
    own = find_own(number, run, draft.slot, comment_id)
    return replace(draft, own=own, removed=own is None and comment_id is not None)


def _create(draft: Draft, number: int, result: CommentResult, run: Tools) -> CommentResult:
    """Write it. If GitHub's answer is lost, look for it instead of writing it again. Raises ForgeError."""
    action = "replied" if draft.key.is_reply else "created"
    try:
        return replace(result, action=action, comment=run.comments_on(number).create_comment(number, draft.text))
    except Unreachable:
        if own := find_own(number, run, draft.slot):
            return replace(result, action=action, comment=own)
        raise
    except Gone as error:
        if error.certain:
            return replace(result, reason=f"the issue is not there any more ({error})", is_refused=True, gone=error)
        return replace(result, reason=f"{NOT_VISIBLE}: a later run tries again ({error})", is_owed=True)


def _update(result: CommentResult, own: OwnComment, forge: CommentClient, text: str = "") -> CommentResult:
    try:
        return replace(result, action="updated", comment=forge.update_comment(own.id, text or result.text))
    except Gone:
        return replace(result, reason=DELETED)


def _with_error(result: CommentResult, error: ForgeError) -> CommentResult:
    """The result after an error: waiting for the end of a limit, or failed."""
    action = "waits" if isinstance(error, RateLimited) else "failed"
    return replace(result, action=action, reason=str(error), error=error)


def _with_write_error(result: CommentResult, error: ForgeError) -> CommentResult:
    """The result after an error while writing, which may be a refusal."""
    if isinstance(error, CannotComment):
        return replace(result, reason=str(error), is_refused=True)
    return replace(_with_error(result, error), is_refused=isinstance(error, Invalid))


# -- what stands -------------------------------------------------------------------------------------------------------


def find_own(number: int, run: Tools, slot: str = COMMENT, comment_id: int | None = None) -> OwnComment | None:
    """Our oldest post in this slot of a thread. Takes one read for a known ``comment_id`` of an issue, else one for a
    hundred comments. Raises ForgeError."""
    forge = run.comments_on(number)
    if comment_id and forge is run.forge:
        try:
            comments = [run.forge.comment(comment_id)]
        except Gone:
            return None
    else:
        comments = forge.comments(number)
    return find_post(comments, slot, run.own)


def find_promised(
    number: int, promised_at: datetime, forge: CommentClient, own: OwnCommentRule, slot: str = COMMENT
) -> tuple[OwnComment | None, bool]:
    """The post that was promised then, and whether it has been deleted. Raises ForgeError."""
    return find_in(forge.timeline(number), slot, own, promised_at)


def find_in(
    timeline: Sequence[Json], slot: str, own: OwnCommentRule, promised_at: datetime | None
) -> tuple[OwnComment | None, bool]:
    """The post in this slot, and whether one that was promised then (None: not at all) may have been deleted.

    The timeline does not say whose comment was deleted, so any counts as ours: silence is the smaller mistake.
    """
    standing = find_post(comments_of(timeline), slot, own)
    if standing or promised_at is None:
        return standing, False
    gone = [item for item in timeline if item.get("event") == "comment_deleted" and item.get("created_at")]
    since = promised_at.replace(microsecond=0) - MAX_CLOCK_SKEW
    return None, any(parse_time(item["created_at"]) >= since for item in gone)
