"""Keeps comments true: each is worked out again in the run that learns that a thread in it changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.comment.marker import fingerprint
from bot.domain.answer import Context, has_false_quotes, mark, quoted_in, shown_in
from bot.domain.changes import AnswerRecord, Changes, CommentKey, Renewal, Request, StandingComment
from bot.domain.thread import Kind, Record, Thread, ThreadId
from bot.github.errors import ForgeError, Gone
from bot.github.events import CALM, Event
from bot.github.fixes import wanted
from bot.github.threads import OwnComment, own_comment
from bot.pipeline.outbox import DELETED, EDITED, NOTHING, CommentPlan, is_ours, promise, standing_comment
from bot.pipeline.plan import plan_again
from bot.pipeline.publish import CommentResult, unwritten, update, withdraw
from bot.pipeline.replies import LOOKED, ReplyPlan, looked_up
from bot.pipeline.requests import request_of
from bot.pipeline.run_context import RunContext, RunState, is_at_it

MAX_RELEASES = 4
"""Fixes whose release one run looks for again, the one not looked for the longest first."""

MAX_RENEWALS = 10
"""Comments that one run works out again, besides those that the event names. Later runs take the others."""


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


def owe_renewal(event: Event, run: RunContext) -> None:
    """Note that the comments on the event's threads are to be worked out again, as another repository changed; or all
    that show other repositories, if nobody knows what changed there."""
    owed: list[ThreadId] = [*event.numbers]
    if run.checks_others:
        every = run.memory.state.every_thread_comments()
        owed += [linked.id for linked in every if any(one.others for one in linked.comments)]
    if owed:
        run.memory.stage(Changes(owed=tuple(Renewal(key, 0, key, run.now) for key in owed)))


def plan_renewals(planned: Iterable[CommentPlan], state: RunState, run: RunContext) -> Renewals:
    """Work out again the comments that are owed a renewal, besides those ``planned`` anyway: first those on the event's
    own threads, then those whose change is the oldest.

    In a run that may not post, only what may not be shown any more is taken out, and only out of comments that show
    other repositories. Those that the event does not name are looked at only in a calm run, as they stay owed.
    """
    found, event = Renewals(), state.event
    named = [Renewal(number, 0, number, run.now) for number in event.numbers]  # memory may have had no room for them
    for one in () if state.limit or run.is_dry else (*run.memory.state.manifest.owed, *named):
        found.owed.setdefault(one.comment_key, []).append(one)
    own = found.owed.keys() & {(number, 0) for number in (event.number, *event.numbers) if number}
    if not run.may_post:
        looked_at = found.owed.keys() if run.checks_others or event.name in CALM else own
        shown = run.memory.state.thread_comments({key for key, _ in looked_at})
        others = {one.comment_key for linked in shown.values() for one in linked.comments if one.others}
        found.owed = {key: owed for key, owed in found.owed.items() if key in looked_at and key in others}
    covered = {(plan.thread.id, 0): plan for plan in planned if _covers(plan, run)}
    comment_keys = [comment_key for comment_key in found.owed if comment_key not in covered]
    comment_keys.sort(key=lambda comment_key: comment_key not in own)
    del comment_keys[MAX_RENEWALS + len(own) :]
    if comment_keys:
        run.memory.state.prefetch(dict.fromkeys(key for key, _ in comment_keys))
    for comment_key in comment_keys:
        _work_out(comment_key, found, state, run)
    for comment_key in found.owed.keys() & {comment_key for comment_key, plan in covered.items() if plan.is_idle}:
        found.settle(comment_key)
    return found


def _covers(plan: CommentPlan, run: RunContext) -> bool:
    """Whether the plan brings the comment up to date. One that a run only shows, or that waits, does not."""
    return plan.renews or (run.may_post and not (plan.passed or plan.waits or plan.fault))


def _work_out(comment_key: CommentKey, found: Renewals, state: RunState, run: RunContext) -> None:
    key, reply = comment_key
    thread, linked = run.memory.records([key]).get(key), run.memory.state.thread_comments([key]).get(key)
    stood = next((one for one in linked.comments if one.reply == reply), None) if linked else None
    if stood and isinstance(thread, Thread) and not reply:
        changed = frozenset(one.about for one in found.owed[comment_key])
        plan = plan_again(thread, changed, state, run)
        if plan is None:
            found.settle(comment_key)
        elif run.may_post or plan.takes_out or plan.waits:
            found.plans.append(plan)
        else:
            found.put_off += found.owed[comment_key]
        return
    stored = next((one for one in run.memory.requests([key]).get(key, ()) if one.comment_id == reply), None)
    if (stood and is_at_it(stood.trying_since, run.now)) or (stored and is_being_replied(stored, thread, run)):
        return
    again = reply_again(thread, stored, stood, run) if stood and stored and isinstance(thread, Thread) else None
    found.replies += [again] if again else []
    if again is None:
        found.settle(comment_key)


def promise_renewals(found: Renewals, run: RunContext) -> list[StandingComment]:
    """What memory keeps of the replies to renew, stored before they are renewed."""
    return [replace(again.stood, at=run.now, trying_since=run.now) for again in found.replies]


def publish_renewals(
    found: Renewals, plans: Sequence[CommentPlan], results: Sequence[CommentResult], run: RunContext
) -> list[CommentResult]:
    """Renew the replies, and store what became of all renewals; ``results`` belong to ``plans``, which include those
    planned anyway. One that failed or was put off is still owed; where more are than one run works out, the others come
    first."""
    mine = [again for again in found.replies if again.stood.comment_key not in run.memory.taken_comments]
    replied = [renew_reply(again, run) for again in mine]
    done, answers, standing = list[Renewal](), list[AnswerRecord](), list[StandingComment]()
    undone = [*found.put_off]
    for plan, result in zip(plans, results, strict=True):
        owed = found.owed.get((plan.thread.id, 0), []) if _covers(plan, run) else []
        undone += owed if result.error and not result.is_refused else []
        if owed and not result.is_undone:
            done += owed
            answers += answer_after(plan, result, run)
            standing += filter(None, [standing_comment(plan, run.now, is_written=True)])
    for again, result in zip(mine, replied, strict=True):
        owed = found.owed[again.stood.comment_key]
        undone += owed if result.error and not result.is_refused else []
        if not result.is_undone:
            done += owed
            standing.append(stands(again, result, run))
    late = tuple(replace(one, at=run.now) for one in undone) if len(found.owed) > MAX_RENEWALS else ()
    if done or late:
        run.memory.stage(Changes(answers=tuple(answers), standing=tuple(standing), owed=late, renewed=tuple(done)))
        run.memory.commit("Keep which comments were brought up to date")
    return replied


def answer_after(plan: CommentPlan, result: CommentResult, run: RunContext) -> list[AnswerRecord]:
    """What memory keeps of an answer once its comment was written, if that is more than the promise."""
    answer = promise(plan, run.now, run.settings.mode)
    if answer.state != "pending" or result.is_refused:
        return []
    state = "removed" if result.reason == DELETED else "said" if plan.text else "withdrawn"
    comment_id = result.comment.id if result.comment else answer.comment_id
    return [replace(answer, state=state, comment_id=comment_id, trying_since=None)]


def look_for_releases(event: Event, run: RunContext) -> None:
    """Look again for the releases of fixes shown without one: every day, and when a release is published."""
    if run.settings.releases.notify == "off":
        return
    if run.settings.mode != "comment" or run.muted or (event.name not in CALM and event.name != "release"):
        return
    known = {fix.id: fix for fix in run.memory.state.every_fix() if fix.commit and not fix.release}
    due = known if event.name == "release" else wanted({key: fix.ref for key, fix in known.items()}, known, run.now)
    shown = [known[key] for key, linked in run.memory.state.thread_comments(due).items() if linked.shown_in]
    oldest = sorted(shown, key=lambda fix: fix.looked_at)[:MAX_RELEASES]
    for old in oldest:
        fix = run.fixes.find(old.id, old.ref, old, run.now)
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
        return fingerprint(self.context) if self.text else NOTHING


def is_being_replied(stored: Request, thread: Record | None, run: RunContext) -> bool:
    """Whether another run may be writing the reply now: it was promised a moment ago and is not there yet."""
    if stored.state != "pending" or not is_at_it(stored.trying_since, run.now) or not isinstance(thread, Thread):
        return False
    try:
        return _standing(stored, thread, run) is None
    except ForgeError:
        return True


def reply_again(thread: Thread, stored: Request, stood: StandingComment, run: RunContext) -> RenewedReply | None:
    """Work out the reply to a request again; None if it stays as it is. It shows no thread that it did not show before.

    A reply that needs no search of memory stays as long as the request does.
    """
    again = RenewedReply(thread, stored, stood, has_false_quotes(stood, run.memory.records(stood.shows)))
    request = request_of(thread, stored.comment_id, run)
    if request and stored.name not in LOOKED:
        return None
    if request and request.name == stored.name:
        plan = looked_up(request, run, frozenset(stood.shows))
        again = replace(again, context=plan.context, text=plan.text)
    return None if again.content == stood.content and not again.is_false else again


def renew_reply(again: RenewedReply, run: RunContext) -> CommentResult:
    """Update or withdraw the reply. One that a person edited is left alone, unless it is false."""
    thread, forge = again.thread, run.comments_on(again.thread.id)
    why = "the reply shows an issue that changed"
    result = CommentResult(thread.id, thread.title, "silent", why, again.context, again.text, renews=True)
    result = replace(result, reply=again.stood.reply)
    try:
        mine = _standing(again.stored, thread, run)
        if mine is None:
            return replace(result, reason=DELETED)
        if again.text and not (again.is_false and not is_ours(mine)):
            return update(result, mine, forge, must_match=again.is_false)
        return withdraw(result, mine, forge, run.renderer.words, is_false=again.is_false)
    except ForgeError as error:
        return unwritten(result, error)


def stands(again: RenewedReply, result: CommentResult, run: RunContext) -> StandingComment:
    """What memory keeps of the reply after its renewal."""
    stood = again.stood
    if result.reason == EDITED:
        return replace(stood, at=run.now)
    if not again.text or result.reason == DELETED or result.action == "withdrawn":
        return StandingComment(stood.id, run.now, stood.reply)
    return _shows(StandingComment(stood.id, run.now, stood.reply, again.content), again.thread, again.context, run)


def promised_reply(plan: ReplyPlan, run: RunContext) -> StandingComment | None:
    """What memory keeps of a new reply; None if there is none."""
    request = plan.request
    if not plan.text or plan.waits or run.settings.mode != "comment":
        return None
    new = StandingComment(request.thread.id, run.now, request.key, fingerprint(plan.context))
    return _shows(new, request.thread, plan.context, run)


def _shows(new: StandingComment, thread: Thread, context: Context, run: RunContext) -> StandingComment:
    """Fill in what the reply shows: its own thread too, as it quotes the request."""
    shows = shown_in(context)
    asked = [comment.text for comment in thread.comments if comment.id == new.reply] or [thread.title, thread.body]
    quotes = {*map(mark, asked), *quoted_in(context, run.memory.records(shows))}
    return replace(new, shows=tuple(dict.fromkeys((*shows, thread.id))), quotes=tuple(sorted(quotes)))


def _standing(stored: Request, thread: Thread, run: RunContext) -> OwnComment | None:
    try:
        if stored.reply_id and thread.kind is not Kind.DISCUSSION:
            found = [run.forge.comment(stored.reply_id)]
        else:
            found = run.comments_on(thread.id).comments(thread.id) if isinstance(thread.id, int) else []
    except Gone:
        return None
    return next((own_comment(each) for each in found if run.own.replied(each) == stored.comment_id), None)
