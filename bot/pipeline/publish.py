"""Posts, updates or withdraws the comment on an issue, and posts replies, each promised in memory before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.comment.catalogue import Words
from bot.comment.marker import read_seal, seal
from bot.comment.render import withdrawn
from bot.domain.answer import Context, Match
from bot.domain.changes import Changes, Request, StandingComment
from bot.domain.thread import ThreadId
from bot.github.api import Forge
from bot.github.errors import CannotComment, ForgeError, Gone, Invalid, RateLimited, Unreachable
from bot.github.threads import OwnComment, OwnCommentRule, own_comment
from bot.pipeline.outbox import (
    DELETED,
    EDITED,
    NOTHING,
    SWITCHED_OFF,
    UNSEEN,
    CommentPlan,
    is_ours,
    is_same_text,
    look_for,
)
from bot.pipeline.replies import ReplyPlan, react
from bot.pipeline.requests import closed
from bot.pipeline.run_context import RunContext


def promise_replies(plans: Iterable[ReplyPlan], run: RunContext) -> tuple[Request, ...]:
    """What memory keeps of these requests, written before any reply, so that no crash makes one twice or never."""
    kept = []
    for plan in plans:
        stored = plan.stored
        if plan.text and run.settings.mode == "comment":
            stored = replace(stored, trying_since=run.now)
        elif not plan.waits:
            stored = replace(stored, state="done")
        kept.append(stored)
    return tuple(kept)


def publish_replies(plans: Iterable[ReplyPlan], run: RunContext) -> list[CommentResult]:
    """Carry the plans out once memory is written; what another run has taken up meanwhile is left to it.

    What GitHub refuses ends in a reason, and is taken back in memory; after other failures a later run looks whether
    the reply stands, and tries again where it does not.
    """
    mine = [plan for plan in plans if plan.request.key not in run.memory.taken_requests]
    told = [_answered(plan, run) for plan in mine]
    refused = [plan for plan, spoken in zip(mine, told, strict=True) if spoken.is_refused]
    if refused:
        gone = tuple(StandingComment(plan.request.thread.id, run.now, plan.request.key) for plan in refused)
        run.memory.stage(
            Changes(requests=tuple(closed(stored) for stored in promise_replies(refused, run)), standing=gone)
        )
        run.memory.commit("Take back replies that could not be written")
    return told


def _answered(plan: ReplyPlan, run: RunContext) -> CommentResult:
    thread = plan.request.thread
    told = CommentResult(thread.id, thread.title, "silent", plan.reason, plan.context, plan.text)
    told = replace(told, is_owed=bool(plan.waits))
    if plan.fault:
        return unsaid(told, plan.fault)
    if plan.waits:
        return told
    if run.settings.mode != "comment":
        return replace(told, action="would say") if plan.text else told
    try:
        if plan.text:
            told = replace(told, action="replied", comment=_write(plan, run))
    except (CannotComment, Gone) as error:
        return replace(told, reason=str(error), is_refused=True)
    except ForgeError as error:
        return replace(unsaid(told, error), is_refused=isinstance(error, Invalid))
    react(plan.request, "rocket" if plan.good else "confused", run)
    return told


def _write(plan: ReplyPlan, run: RunContext) -> OwnComment:
    """The reply, written once: after a lost answer we look, and never write again."""
    number = plan.request.thread.id
    assert isinstance(number, int)  # threads from elsewhere have no comments in which somebody asks
    try:
        return run.forge.create_comment(number, plan.text)
    except Unreachable:
        for comment in run.forge.comments(number):
            if run.own.replied(comment) == plan.request.key:
                return own_comment(comment)
        raise


@dataclass(frozen=True, slots=True)
class CommentResult:
    """What happened. ``action`` is created, updated, unchanged, withdrawn, replied, silent, would say, waits
    (for a limit of GitHub's to be over), or failed.

    ``is_refused``: GitHub takes no such comment there, now or later; ``gone``: as there is no such issue any more.
    ``is_owed``: it was left to a later run, for ``reason``. ``nearest`` and ``renews``: as in `CommentPlan`.
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

    @property
    def spoke(self) -> bool:
        return self.action in ("created", "updated", "unchanged", "replied")


def publish_comment(
    plan: CommentPlan, forge: Forge, own: OwnCommentRule, mode: str, words: Words | None = None
) -> CommentResult:
    """Carry a plan out. What GitHub refuses ends in a reason or an error, never in a second attempt.

    ``words`` are those of a comment that is taken back, None for the shipped ones.
    """
    told = CommentResult(plan.thread.id, plan.thread.title, "silent", plan.reason, plan.context, plan.text)
    told = replace(told, is_owed=bool(plan.waits), nearest=plan.nearest, renews=plan.renews)
    if plan.fault:
        return unsaid(told, plan.fault)
    if plan.passed or plan.waits:
        return told
    if mode != "comment":
        kept = _kept(plan)
        return replace(told, reason=kept or told.reason, action="would say" if plan.text and not kept else "silent")
    try:
        return _say(plan, told, forge, own, words)
    except CannotComment as error:
        return replace(told, reason=str(error), is_refused=True)
    except ForgeError as error:
        return replace(unsaid(told, error), is_refused=isinstance(error, Invalid))


def _kept(plan: CommentPlan) -> str:
    """Why nothing would be written although there is something to say; "" where there is no such reason."""
    if plan.removed:
        return DELETED
    return _why_left(plan.own, plan.text, plan.must_match) if plan.own and plan.text else ""


def unsaid(told: CommentResult, error: ForgeError) -> CommentResult:
    """What could not be said: after a limit it waits for a later run, all else failed."""
    action = "waits" if isinstance(error, RateLimited) else "failed"
    return replace(told, action=action, reason=str(error), error=error)


def _say(
    plan: CommentPlan, told: CommentResult, forge: Forge, own: OwnCommentRule, words: Words | None
) -> CommentResult:
    number = plan.thread.id
    if not isinstance(number, int):
        return replace(told, reason="threads from elsewhere have no comments")
    if plan.own and plan.text:
        return update(told, plan.own, forge, must_match=plan.must_match)
    if plan.own:
        return withdraw(told, plan.own, forge, words, is_false=plan.is_false)
    if plan.removed:
        return replace(told, reason=DELETED)
    return _create(told, number, forge, own) if plan.is_new else told


def _create(told: CommentResult, number: int, forge: Forge, own: OwnCommentRule) -> CommentResult:
    try:
        return replace(told, action="created", comment=forge.create_comment(number, told.text))
    except Gone as error:
        if error.certain:
            return replace(told, reason=f"the issue is not there any more ({error})", is_refused=True, gone=error)
        return replace(told, reason=f"{UNSEEN}: a later run looks again ({error})", is_owed=True)
    except Unreachable:
        standing = look_for(number, forge, own)
        if standing is None:
            raise
        return replace(told, action="created", comment=standing)


def _why_left(mine: OwnComment, text: str, must_match: bool) -> str:
    """Why our comment stays as it is although this is to be said; "" where it is to be changed."""
    wanted, standing = read_seal(text), read_seal(mine.text)
    if standing is None or not standing.untouched:
        return EDITED
    is_said = is_same_text(mine, text) if must_match else wanted and standing.content == wanted.content
    return "it says that already" if is_said else ""


def update(told: CommentResult, mine: OwnComment, forge: Forge, *, must_match: bool = False) -> CommentResult:
    """Have our comment say ``told.text``, unless a person edited it or it says so already, in the same words where
    these ``must_match``."""
    if left := _why_left(mine, told.text, must_match):
        return replace(told, action="unchanged", reason=left, comment=mine)
    standing = read_seal(mine.text)
    try:
        changed = forge.update_comment(mine.id, told.text)
    except Gone:
        return replace(told, reason=DELETED)
    if standing and standing.content == NOTHING:
        return _folded(replace(told, action="updated", comment=changed), mine, forge, folded=False)
    return replace(told, action="updated", comment=changed)


def withdraw(
    told: CommentResult, mine: OwnComment, forge: Forge, words: Words | None, *, is_false: bool = False
) -> CommentResult:
    """Shrink the comment to one line and fold it; what a person edited stays, unless it ``is_false``."""
    standing = read_seal(mine.text)
    if standing and standing.untouched and standing.content == NOTHING:
        return told
    if not is_ours(mine) and not is_false:
        return replace(told, reason=EDITED) if told.renews else told
    text = withdrawn(_first_line(mine.text), words, off=told.reason == SWITCHED_OFF)
    try:
        changed = forge.update_comment(mine.id, seal(text, NOTHING))
    except Gone:
        return told
    return _folded(replace(told, action="withdrawn", comment=changed), mine, forge, folded=True)


def _folded(told: CommentResult, mine: OwnComment, forge: Forge, *, folded: bool) -> CommentResult:
    """The comment folded as outdated, or unfolded; when that cannot be had, what it says is right all the same."""
    node_id = (told.comment.node_id if told.comment else "") or mine.node_id
    try:
        if node_id:
            forge.fold(node_id, folded=folded)
    except ForgeError:
        return replace(told, reason=f"{told.reason} (it could not be {'folded' if folded else 'unfolded'})")
    return told


def _first_line(text: str) -> str:
    """The marker of a comment of ours."""
    return text.lstrip("\ufeff \t\r\n").partition("\n")[0].rstrip()
