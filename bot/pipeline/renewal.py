"""Keeps comments true: when a run learns that a thread in a comment changed, it works the comment out again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.comment.marker import fingerprint
from bot.domain.answer import Context, has_false_quotes, quoted_in, shown_in
from bot.domain.changes import AnswerRecord, Changes, CommentKey, Renewal, Request, StandingComment
from bot.domain.thread import Kind, Record, Thread, ThreadId, text_mark
from bot.github.errors import ForgeError, Gone
from bot.github.events import Event
from bot.github.fixes import due_fixes
from bot.github.threads import OwnComment, own_comment
from bot.pipeline.outbox import (
    DELETED,
    EDITED,
    WITHDRAWN_FINGERPRINT,
    CommentPlan,
    is_unedited,
    promise,
    standing_comment,
)
from bot.pipeline.plan import plan_again
from bot.pipeline.publish import CommentResult, update, with_write_error, withdraw
from bot.pipeline.replies import SEARCH_REQUESTS, ReplyPlan, plan_search
from bot.pipeline.requests import request_of
from bot.pipeline.run_context import RunContext, RunState, is_in_progress

MAX_RELEASES = 4
"""Fixes whose release one run looks up again, the least recently checked first."""

MAX_RENEWALS = 10
"""Comments that one run works out again, besides those the event names. Later runs take the others."""


@dataclass(slots=True)
class Renewals:
    """The renewals of one run: what is ``owed`` for each comment, the ``plans`` and ``replies`` to carry out, and the
    renewals ``settled`` without a change, because the comment is still true or gone. Those ``put_off`` wait for a run
    that may post."""

    owed: dict[CommentKey, list[Renewal]] = field(default_factory=dict)
    plans: list[CommentPlan] = field(default_factory=list)
    replies: list[RenewedReply] = field(default_factory=list)
    settled: list[Renewal] = field(default_factory=list)
    put_off: list[Renewal] = field(default_factory=list)

    def settle(self, comment_key: CommentKey) -> None:
        self.settled += self.owed.get(comment_key, [])


def queue_renewals(event: Event, run: RunContext) -> None:
    """Queue the comments on the event's threads to be worked out again, as another repository changed; or all comments
    that show other repositories, if it is not known what changed there."""
    owed: list[ThreadId] = [*event.numbers]
    if run.checks_others:
        commented = run.memory.state.every_thread_comments()
        owed += [linked.id for linked in commented if any(comment.others for comment in linked.comments)]
    if owed:
        run.memory.stage(Changes(owed=tuple(Renewal(key, 0, key, run.now) for key in owed)))


def plan_renewals(planned: Iterable[CommentPlan], state: RunState, run: RunContext) -> Renewals:
    """Work out again the comments that are owed a renewal, besides those ``planned`` anyway: first those on the event's
    own threads, then those with the oldest change.

    A run that may not post only removes what may no longer be shown, and only from comments that show other
    repositories. Comments that the event does not name are checked only in a calm run, as they stay owed.
    """
    renewals, event = Renewals(), state.event
    named = [Renewal(number, 0, number, run.now) for number in event.numbers]  # memory may have had no room for them
    for renewal in () if state.limit or run.is_dry else (*run.memory.state.manifest.owed, *named):
        renewals.owed.setdefault(renewal.comment_key, []).append(renewal)
    own = renewals.owed.keys() & {(number, 0) for number in (event.number, *event.numbers) if number}
    if not run.may_post:
        looked_at = renewals.owed.keys() if run.checks_others or event.is_maintenance else own
        shown = run.memory.state.thread_comments({key for key, _ in looked_at})
        others = {comment.comment_key for linked in shown.values() for comment in linked.comments if comment.others}
        renewals.owed = {key: owed for key, owed in renewals.owed.items() if key in looked_at and key in others}
    covered = {(plan.thread.id, 0): plan for plan in planned if _covers(plan, run)}
    comment_keys = [comment_key for comment_key in renewals.owed if comment_key not in covered]
    comment_keys.sort(key=lambda comment_key: comment_key not in own)
    del comment_keys[MAX_RENEWALS + len(own) :]
    if comment_keys:
        run.memory.state.prefetch(dict.fromkeys(key for key, _ in comment_keys))
    for comment_key in comment_keys:
        _plan_renewal(comment_key, renewals, state, run)
    for comment_key in renewals.owed.keys() & {comment_key for comment_key, plan in covered.items() if plan.is_idle}:
        renewals.settle(comment_key)
    return renewals


def _covers(plan: CommentPlan, run: RunContext) -> bool:
    """Whether the plan brings the comment up to date. A plan that waits, or is only shown, does not."""
    return plan.renews or (run.may_post and not (plan.is_skipped or plan.waits or plan.fault))


def _plan_renewal(comment_key: CommentKey, renewals: Renewals, state: RunState, run: RunContext) -> None:
    key, reply = comment_key
    thread, linked = run.memory.whole_records([key]).get(key), run.memory.state.thread_comments([key]).get(key)
    stood = next((comment for comment in linked.comments if comment.reply == reply), None) if linked else None
    if stood and isinstance(thread, Thread) and not reply:
        changed = frozenset(renewal.about for renewal in renewals.owed[comment_key])
        plan = plan_again(thread, changed, state, run)
        if plan is None:
            renewals.settle(comment_key)
        elif run.may_post or plan.takes_out or plan.waits:
            renewals.plans.append(plan)
        else:
            renewals.put_off += renewals.owed[comment_key]
        return
    stored = next((request for request in run.memory.requests([key]).get(key, ()) if request.comment_id == reply), None)
    if (stood and is_in_progress(stood.trying_since, run.now)) or (
        stored and is_reply_in_progress(stored, thread, run)
    ):
        return
    renewed = recompute_reply(thread, stored, stood, run) if stood and stored and isinstance(thread, Thread) else None
    renewals.replies += [renewed] if renewed else []
    if renewed is None:
        renewals.settle(comment_key)


def promise_renewals(renewals: Renewals, run: RunContext) -> list[StandingComment]:
    """The records of the replies to renew, stored before they are renewed."""
    return [replace(renewed.stood, at=run.now, trying_since=run.now) for renewed in renewals.replies]


def publish_renewals(
    renewals: Renewals, plans: Sequence[CommentPlan], results: Sequence[CommentResult], run: RunContext
) -> list[CommentResult]:
    """Renew the replies, and store the outcome of all renewals; ``results`` belong to ``plans``, which include those
    planned anyway. A renewal that failed or was put off is still owed; if there are more than one run works out, the
    others come first."""
    replies = [renewed for renewed in renewals.replies if renewed.stood.comment_key not in run.memory.taken_comments]
    replied = [renew_reply(renewed, run) for renewed in replies]
    done, answers, standing = list[Renewal](), list[AnswerRecord](), list[StandingComment]()
    undone = [*renewals.put_off]
    for plan, result in zip(plans, results, strict=True):
        owed = renewals.owed.get((plan.thread.id, 0), []) if _covers(plan, run) else []
        undone += owed if result.error and not result.is_refused else []
        if owed and not result.is_undone:
            done += owed
            answers += answer_after(plan, result, run)
            standing += filter(None, [standing_comment(plan, run.now, is_written=True)])
    for renewed, result in zip(replies, replied, strict=True):
        owed = renewals.owed[renewed.stood.comment_key]
        undone += owed if result.error and not result.is_refused else []
        if not result.is_undone:
            done += owed
            standing.append(reply_after_renewal(renewed, result, run))
    late = tuple(replace(renewal, at=run.now) for renewal in undone) if len(renewals.owed) > MAX_RENEWALS else ()
    if done or late:
        run.memory.stage(Changes(answers=tuple(answers), standing=tuple(standing), owed=late, renewed=tuple(done)))
        run.memory.commit("Keep which comments were brought up to date")
    return replied


def answer_after(plan: CommentPlan, result: CommentResult, run: RunContext) -> list[AnswerRecord]:
    """The answer to store once its comment is written, if that adds anything to the promise."""
    answer = promise(plan, run.now, run.settings.mode)
    if answer.state != "pending" or result.is_refused:
        return []
    state = "removed" if result.reason == DELETED else "said" if plan.text else "withdrawn"
    comment_id = result.comment.id if result.comment else answer.comment_id
    return [replace(answer, state=state, comment_id=comment_id, trying_since=None)]


def look_for_releases(event: Event, run: RunContext) -> None:
    """Look again for the release of each fix shown without one: every day, and when a release is published."""
    if run.settings.releases.notify == "off":
        return
    if run.settings.mode != "comment" or run.muted or not (event.is_maintenance or event.name == "release"):
        return
    unreleased = {fix.id: fix for fix in run.memory.state.every_fix() if fix.commit and not fix.release}
    due = (
        unreleased
        if event.name == "release"
        else due_fixes({key: fix.named for key, fix in unreleased.items()}, unreleased, run.now)
    )
    shown = [unreleased[key] for key, linked in run.memory.state.thread_comments(due).items() if linked.shown_in]
    oldest = sorted(shown, key=lambda fix: fix.looked_at)[:MAX_RELEASES]
    for previous in oldest:
        fix = run.fixes.find(previous.id, previous.named, previous, run.now)
        if fix and not run.fixes.fault:  # one for which GitHub failed stays due, for a notice too
            run.memory.stage(Changes(fixes=(fix,)))


@dataclass(frozen=True, slots=True)
class RenewedReply:
    """A reply worked out again. ``text`` is empty for a withdrawal; ``stood`` is what memory knows of the old reply;
    ``is_false`` says that the old one quotes something that its author took back."""

    thread: Thread
    stored: Request
    stood: StandingComment
    is_false: bool
    context: Context = field(default_factory=Context)
    text: str = ""

    @property
    def content(self) -> str:
        return fingerprint(self.context) if self.text else WITHDRAWN_FINGERPRINT


def is_reply_in_progress(stored: Request, thread: Record | None, run: RunContext) -> bool:
    """Whether another run may be writing the reply now: it was just promised and is not there yet."""
    if stored.state != "pending" or not is_in_progress(stored.trying_since, run.now) or not isinstance(thread, Thread):
        return False
    try:
        return _find_reply(stored, thread, run) is None
    except ForgeError:
        return True


def recompute_reply(thread: Thread, stored: Request, stood: StandingComment, run: RunContext) -> RenewedReply | None:
    """Work out the reply to a request again; None if it stays as it is. It never shows a thread it did not show before.

    A reply that needs no search of memory stays as long as the request does.
    """
    renewed = RenewedReply(thread, stored, stood, has_false_quotes(stood, run.memory.records(stood.shows)))
    request = request_of(thread, stored.comment_id, run)
    if request and stored.name not in SEARCH_REQUESTS:
        return None
    if request and request.name == stored.name:
        plan = plan_search(request, run, frozenset(stood.shows))
        renewed = replace(renewed, context=plan.context, text=plan.text)
    return None if renewed.content == stood.content and not renewed.is_false else renewed


def renew_reply(renewed: RenewedReply, run: RunContext) -> CommentResult:
    """Update or withdraw the reply. One that a person edited is left alone, unless it is false."""
    thread, forge = renewed.thread, run.comments_on(renewed.thread.id)
    why = "the reply shows an issue that changed"
    result = CommentResult(thread.id, thread.title, "silent", why, renewed.context, renewed.text, renews=True)
    result = replace(result, reply=renewed.stood.reply)
    try:
        mine = _find_reply(renewed.stored, thread, run)
        if mine is None:
            return replace(result, reason=DELETED)
        if renewed.text and not (renewed.is_false and not is_unedited(mine)):
            return update(result, mine, forge, must_match=renewed.is_false)
        return withdraw(result, mine, forge, run.renderer.for_thread(thread).words, is_false=renewed.is_false)
    except ForgeError as error:
        return with_write_error(result, error)


def reply_after_renewal(renewed: RenewedReply, result: CommentResult, run: RunContext) -> StandingComment:
    """The record of the reply after its renewal."""
    stood = renewed.stood
    if result.reason == EDITED:
        return replace(stood, at=run.now, trying_since=None)
    if not renewed.text or result.reason == DELETED or result.action == "withdrawn":
        return StandingComment(stood.id, run.now, stood.reply)
    return _with_shown_threads(
        StandingComment(stood.id, run.now, stood.reply, renewed.content), renewed.thread, renewed.context, run
    )


def standing_reply(plan: ReplyPlan, run: RunContext) -> StandingComment | None:
    """The record of a new reply; None if there is none."""
    request = plan.request
    if not plan.text or plan.waits or run.settings.mode != "comment":
        return None
    new = StandingComment(request.thread.id, run.now, request.key, fingerprint(plan.context))
    return _with_shown_threads(new, request.thread, plan.context, run)


def _with_shown_threads(new: StandingComment, thread: Thread, context: Context, run: RunContext) -> StandingComment:
    """Fill in what the reply shows, including its own thread, as it quotes the request."""
    shows = shown_in(context)
    asked = [comment.mark for comment in thread.comments if comment.id == new.reply]
    asked = asked or [text_mark(thread.title), text_mark(thread.body)]
    quotes = {*asked, *quoted_in(context, run.memory.records(shows))}
    return replace(new, shows=tuple(dict.fromkeys((*shows, thread.id))), quotes=tuple(sorted(quotes)))


def _find_reply(stored: Request, thread: Thread, run: RunContext) -> OwnComment | None:
    try:
        if stored.reply_id and thread.kind is not Kind.DISCUSSION:
            comments = [run.forge.comment(stored.reply_id)]
        else:
            comments = run.comments_on(thread.id).comments(thread.id) if isinstance(thread.id, int) else []
    except Gone:
        return None
    return next(
        (own_comment(comment) for comment in comments if run.own.reply_target(comment) == stored.comment_id), None
    )
