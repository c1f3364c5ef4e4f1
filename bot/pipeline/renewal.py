"""Comments that stand are kept true: worked out again in the run that learns that a thread which they show changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.comment.marker import fingerprint
from bot.domain.answer import Context, has_false_quotes, mark, quoted_in, shown_in
from bot.domain.changes import AnswerRecord, Changes, CommentKey, Renewal, Request, StandingComment
from bot.domain.thread import Record, Thread
from bot.github.errors import CannotComment, ForgeError, Gone, Invalid
from bot.github.events import CALM, Event
from bot.github.fixes import wanted
from bot.github.threads import OwnComment, own_comment
from bot.pipeline.outbox import DELETED, EDITED, NOTHING, CommentPlan, is_ours, promise, standing_comment
from bot.pipeline.plan import plan_again
from bot.pipeline.publish import CommentResult, unsaid, update, withdraw
from bot.pipeline.replies import LOOKED, ReplyPlan, looked_up
from bot.pipeline.requests import request_of
from bot.pipeline.run_context import RunContext, RunState, is_at_it

MAX_RELEASES = 4
"""Fixes whose release one run looks for again, the longest not looked for first."""

MAX_RENEWALS = 10
"""Comments that one run works out again; the next runs take the others."""


@dataclass(slots=True)
class Renewals:
    """What one run does about what is owed to comments that stand: ``plans`` and ``replies`` that are to be carried
    out, and what a look ``settled``, as it was ``owed`` to a comment that says what is so, or is gone."""

    owed: dict[CommentKey, list[Renewal]] = field(default_factory=dict)
    plans: list[CommentPlan] = field(default_factory=list)
    replies: list[RenewedReply] = field(default_factory=list)
    settled: list[Renewal] = field(default_factory=list)

    def settle(self, comment_key: CommentKey) -> None:
        self.settled += self.owed.get(comment_key, [])


def plan_renewals(planned: Iterable[CommentPlan], state: RunState, run: RunContext) -> Renewals:
    """What stands and has to be worked out again, oldest change first, beside what is ``planned`` anyway."""
    found = Renewals()
    for one in run.memory.owed if run.settings.mode == "comment" and not (run.muted or state.limit) else ():
        found.owed.setdefault(one.comment_key, []).append(one)
    covered = {(plan.thread.id, 0): plan for plan in planned if not (plan.passed or plan.waits or plan.fault)}
    comment_keys = [comment_key for comment_key in found.owed if comment_key not in covered][:MAX_RENEWALS]
    if comment_keys:
        run.memory.prefetch(dict.fromkeys(key for key, _ in comment_keys))
    for comment_key in comment_keys:
        _work_out(comment_key, found, state, run)
    for comment_key in found.owed.keys() & {comment_key for comment_key, plan in covered.items() if plan.is_idle}:
        found.settle(comment_key)
    return found


def _work_out(comment_key: CommentKey, found: Renewals, state: RunState, run: RunContext) -> None:
    key, reply = comment_key
    thread, linked = run.memory.records([key]).get(key), run.memory.thread_comments([key]).get(key)
    stood = next((one for one in linked.comments if one.reply == reply), None) if linked else None
    if stood and isinstance(thread, Thread) and not reply:
        changed = frozenset(one.about for one in found.owed[comment_key])
        plan = plan_again(thread, changed, state, run)
        found.plans += [plan] if plan else []
        if plan is None:
            found.settle(comment_key)
        return
    stored = next((one for one in run.memory.requests([key]).get(key, ()) if one.comment_id == reply), None)
    if (stood and is_at_it(stood.trying_since, run.now)) or (stored and is_being_replied(stored, thread, run)):
        return
    again = reply_again(thread, stored, stood, run) if stood and stored and isinstance(thread, Thread) else None
    found.replies += [again] if again else []
    if again is None:
        found.settle(comment_key)


def promise_renewals(found: Renewals, run: RunContext) -> list[StandingComment]:
    """What memory keeps of the replies to be renewed, before they are."""
    return [replace(again.stood, at=run.now, trying_since=run.now) for again in found.replies]


def publish_renewals(
    found: Renewals, plans: Sequence[CommentPlan], told: Sequence[CommentResult], run: RunContext
) -> list[CommentResult]:
    """Renew the replies, and keep what came of it all; ``told`` is what came of ``plans``, those planned anyway among
    them. What failed is owed still."""
    mine = [again for again in found.replies if again.stood.comment_key not in run.memory.taken_comments]
    replied = [renew_reply(again, run) for again in mine]
    done, said, standing = list[Renewal](), list[AnswerRecord](), list[StandingComment]()
    for plan, spoken in zip(plans, told, strict=True):
        if plan.thread.id in {comment_key[0] for comment_key in found.owed if not comment_key[1]} and _is_done(spoken):
            done += found.owed[plan.thread.id, 0]
            said += _kept(plan, spoken, run)
            standing += [one for one in [standing_comment(plan, run.now, is_written=True)] if one]
    for again, spoken in zip(mine, replied, strict=True):
        if _is_done(spoken):
            done += found.owed[again.stood.comment_key]
            standing.append(stands(again, spoken, run))
    if done:
        run.memory.stage(Changes(answers=tuple(said), standing=tuple(standing), renewed=tuple(done)))
        run.memory.commit("Keep which comments were brought up to date")
    return replied


def _is_done(spoken: CommentResult) -> bool:
    return spoken.is_refused or not (spoken.error or spoken.is_owed)


def _kept(plan: CommentPlan, spoken: CommentResult, run: RunContext) -> list[AnswerRecord]:
    """What was said, once it is known to stand."""
    said = promise(plan, run.now, run.settings.mode)
    if said.state != "pending" or spoken.is_refused:
        return []
    state = "removed" if spoken.reason == DELETED else "said" if plan.text else "withdrawn"
    comment_id = spoken.comment.id if spoken.comment else said.comment_id
    return [replace(said, state=state, comment_id=comment_id, trying_since=None)]


def look_for_releases(event: Event, run: RunContext) -> None:
    """Look again for the releases of fixes that comments show without one: every day, and as one was published."""
    if run.settings.mode != "comment" or run.muted or (event.name not in CALM and event.name != "release"):
        return
    known = {fix.id: fix for fix in run.memory.every_fix() if fix.commit and not fix.release}
    due = known if event.name == "release" else wanted({key: fix.ref for key, fix in known.items()}, known, run.now)
    shown = [known[key] for key, linked in run.memory.thread_comments(due).items() if linked.shown_in]
    oldest = sorted(shown, key=lambda fix: fix.looked_at)[:MAX_RELEASES]
    found = [run.fixes.find(fix.id, fix.ref, fix, run.now) for fix in oldest]
    run.memory.stage(Changes(fixes=tuple(fix for fix in found if fix)))


@dataclass(frozen=True, slots=True)
class RenewedReply:
    """A reply as it is to stand. ``text``: empty where it is taken back; ``stood``: what memory knows of it, that
    ``is_false`` where it quotes what was taken back."""

    thread: Thread
    stored: Request
    stood: StandingComment
    is_false: bool
    context: Context = field(default_factory=Context)
    text: str = ""

    @property
    def content(self) -> str:
        return fingerprint(self.context) if self.text else NOTHING


def is_being_replied(stored: Request, thread: Record | None, run: RunContext) -> bool:
    """Whether another run may be writing the reply at this moment, as it was promised just now and does not stand."""
    if stored.state != "pending" or not is_at_it(stored.trying_since, run.now) or not isinstance(thread, Thread):
        return False
    try:
        return _standing(stored, thread, run) is None
    except ForgeError:
        return True


def reply_again(thread: Thread, stored: Request, stood: StandingComment, run: RunContext) -> RenewedReply | None:
    """The reply to a request worked out again; None where it stays as it is. What did not come of a look into memory
    stays as long as the request does; no thread is told of that was not before."""
    again = RenewedReply(thread, stored, stood, has_false_quotes(stood, run.memory.records(stood.shows)))
    request = request_of(thread, stored.comment_id, run)
    if request and stored.name not in LOOKED:
        return None
    if request and request.name == stored.name:
        plan = looked_up(request, run, frozenset(stood.shows))
        again = replace(again, context=plan.context, text=plan.text)
    return None if again.content == stood.content and not again.is_false else again


def renew_reply(again: RenewedReply, run: RunContext) -> CommentResult:
    """Have the reply stand as it is to; one that a person edited is left alone, unless it is false."""
    thread, forge = again.thread, run.forge
    told = CommentResult(
        thread.id, thread.title, "silent", "the reply shows an issue that changed", again.context, again.text
    )
    told = replace(told, renews=True)
    try:
        mine = _standing(again.stored, thread, run)
        if mine is None:
            return replace(told, reason=DELETED)
        if again.text and not (again.is_false and not is_ours(mine)):
            return update(told, mine, forge, must_match=again.is_false)
        return withdraw(told, mine, forge, run.renderer.words, is_false=again.is_false)
    except CannotComment as error:
        return replace(told, reason=str(error), is_refused=True)
    except ForgeError as error:
        return replace(unsaid(told, error), is_refused=isinstance(error, Invalid))


def stands(again: RenewedReply, told: CommentResult, run: RunContext) -> StandingComment:
    """What is to be known of the reply after that."""
    stood = again.stood
    if told.reason == EDITED:
        return replace(stood, at=run.now)
    if not again.text or told.reason == DELETED or told.action == "withdrawn":
        return StandingComment(stood.id, run.now, stood.reply)
    return _shows(StandingComment(stood.id, run.now, stood.reply, again.content), again.thread, again.context, run)


def promised_reply(plan: ReplyPlan, run: RunContext) -> StandingComment | None:
    """What is to be known of a new reply; None where none is to be written."""
    request = plan.request
    if not plan.text or plan.waits or run.settings.mode != "comment":
        return None
    new = StandingComment(request.thread.id, run.now, request.key, fingerprint(plan.context))
    return _shows(new, request.thread, plan.context, run)


def _shows(new: StandingComment, thread: Thread, context: Context, run: RunContext) -> StandingComment:
    """A reply shows its own thread too: it quotes what was asked there."""
    shows = shown_in(context)
    asked = [comment.text for comment in thread.comments if comment.id == new.reply] or [thread.title, thread.body]
    quotes = {*map(mark, asked), *quoted_in(context, run.memory.records(shows))}
    return replace(new, shows=tuple(dict.fromkeys((*shows, thread.id))), quotes=tuple(sorted(quotes)))


def _standing(stored: Request, thread: Thread, run: RunContext) -> OwnComment | None:
    try:
        if stored.reply_id:
            found = [run.forge.comment(stored.reply_id)]
        else:
            found = run.forge.comments(thread.id) if isinstance(thread.id, int) else []
    except Gone:
        return None
    return next((own_comment(each) for each in found if run.own.replied(each) == stored.comment_id), None)
