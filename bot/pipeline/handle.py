"""Handles one event from start to finish. Read this first.

event → what changed → memory → what is worth saying → memory is durable → the comment
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.changes import Changes, Request, StandingComment, redo
from bot.domain.thread import Kind, Thread
from bot.github.events import CALM, Event
from bot.github.updates import tombstone
from bot.pipeline.eligibility import due
from bot.pipeline.feedback import collect
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.forget import forget_on_request
from bot.pipeline.learn import EVENT_SECONDS, is_due, learn_from_memory
from bot.pipeline.outbox import CommentPlan, promise, standing_comment
from bot.pipeline.plan import plan_comments
from bot.pipeline.publish import CommentResult, promise_replies, publish_comment, publish_replies
from bot.pipeline.renewal import look_for_releases, plan_renewals, promise_renewals, promised_reply, publish_renewals
from bot.pipeline.replies import ReplyPlan, prepare_replies, without_idle
from bot.pipeline.requests import find_requests
from bot.pipeline.run_context import RunContext, RunState
from bot.sources.pages import EVENTS, fresh_pages


def handle_event(event: Event, bot: RunContext) -> list[CommentResult]:
    """Handle one event. Returns what was said, or why nothing was, for each thread that was due an answer."""
    bot.watch("look")
    state, mode = fetch_changes(event, bot), bot.settings.mode
    bot.watch("remember")
    _remember(state, bot)
    bot.watch("ask")
    requests, forgotten = forget_on_request(find_requests(state, bot), state, bot)
    if forgotten:  # comments of ours were deleted
        state = replace(state, said=bot.memory.state.answers(state.said))
    replies = prepare_replies(requests, bot)
    state = replace(state, requested=promise_replies(replies, bot))
    bot.memory.stage(Changes(requests=_stored_requests(state.requested, refresh=False)))
    bot.watch("plan")
    plans = plan_comments(_due(state, bot), state, bot)
    replies = without_idle(replies, {plan.thread.id for plan in plans if plan.is_idle})
    look_for_releases(event, bot)
    again = plan_renewals(plans, state, bot)
    plans += again.plans
    bot.memory.stage(
        Changes(requests=_stored_requests(promise_replies(replies, bot), refresh=True), renewed=tuple(again.settled))
    )
    bot.memory.stage(Changes(answers=tuple(promise(p, bot.now, mode) for p in plans)))
    bot.memory.stage(Changes(standing=(*_standing(plans, replies, bot), *promise_renewals(again, bot))))
    bot.watch("push")
    bot.memory.commit(_message(event))
    if bot.memory.is_outdated:
        replies, again.replies = [], []
    if state.is_first:
        _tell_beginning(bot)
    bot.watch("say")
    plans = _still_ours(plans, bot)
    told = [publish_comment(p, bot.forge, bot.own, mode, bot.renderer.words) for p in plans]
    _release(told, bot)
    bot.watch("reply")
    replied = [*forgotten, *publish_replies(replies, bot)]
    return [*told, *replied, *publish_renewals(again, plans, told, bot)]


def _remember(state: RunState, bot: RunContext) -> None:
    """Stage what changed; in a run that nobody waits for (`CALM`), readers' feedback too. Then learn, if due."""
    memory, event, news = bot.memory, state.event, state.updates
    memory.stage(Changes(records=news.records, answers=tuple(state.settled.values()), cursor=news.cursor))
    if event.name in CALM:
        memory.stage(Changes(answers=collect(memory, bot.forge, bot.now)))
    if event.name in EVENTS or not memory.state.manifest.pages:
        memory.stage(fresh_pages(bot.pages, memory.state, memory.state.manifest.pages, bot.now, bot.note))
    if is_due(memory, calm=event.name in CALM):
        learn_from_memory(bot, EVENT_SECONDS)


def _standing(
    plans: Iterable[CommentPlan], replies: Iterable[ReplyPlan], bot: RunContext
) -> tuple[StandingComment, ...]:
    """What is to be known of the comments that will stand, so that they stay true."""
    on_threads = (standing_comment(plan, bot.now) for plan in plans if bot.settings.mode == "comment")
    return tuple(one for one in (*on_threads, *(promised_reply(each, bot) for each in replies)) if one)


def _stored_requests(stored_requests: Iterable[Request], *, refresh: bool) -> tuple[Request, ...]:
    """Those for a new answer, or all others: whether ``refresh`` gets a reply is known when the answer is."""
    return tuple(stored for stored in stored_requests if (stored.name == "refresh") is refresh)


def _tell_beginning(bot: RunContext) -> None:
    why, are = "There was no memory to go on from", "would be" if bot.is_dry else "are now"
    count = bot.memory.state.manifest.threads
    held = f"{count:,} issues, pull requests and pages {are} on the branch {bot.settings.branch}"
    bot.note(f"{why}, so the history was read from its beginning: {held}.")


def _still_ours(plans: Iterable[CommentPlan], bot: RunContext) -> list[CommentPlan]:
    """The plans as they are once memory is written: of two runs that promised an answer at once, one gives it."""
    memory, waits = bot.memory, "another run that began meanwhile answers it"
    taken = memory.taken | {key for key, reply in memory.taken_comments if not reply}
    is_left = [memory.is_outdated or p.thread.id in taken for p in plans]
    return [replace(p, waits=waits, fault=None) if left else p for p, left in zip(plans, is_left, strict=True)]


def _due(state: RunState, bot: RunContext) -> list[Thread]:
    """The threads to answer now, the event's own first: the news, the event's, and those that wait for an answer."""
    pulls = {one.id for one in state.updates.records if isinstance(one, Thread) and one.kind is Kind.PULL}
    news = (one.id for one in state.updates.records if bot.settings.pulls or one.id not in pulls)
    keys = [*news, *state.late, *bot.memory.state.manifest.pending, *redo(state.requested)]
    keys += [state.event.number] if state.event.number else []
    current = bot.memory.records(dict.fromkeys(keys)).values()
    waiting = due((record for record in current if isinstance(record, Thread)), state)
    return sorted(waiting, key=lambda thread: (thread.id != state.event.number, thread.created_at))


def _release(told: Iterable[CommentResult], bot: RunContext) -> None:
    """What could not be said: taken back where GitHub takes no comment, else left to whichever run comes next."""
    failed = {spoken.id: spoken for spoken in told if spoken.is_refused or spoken.error}
    outcomes = []
    for key, said in bot.memory.state.answers(failed).items():
        state = "silent" if failed[key].is_refused else said.state
        outcomes.append(replace(said, state=state, reason=failed[key].reason, trying_since=None))
    lost = tuple(tombstone(key, s.gone, bot.now) for key, s in failed.items() if s.gone and isinstance(key, int))
    unsaid = tuple(StandingComment(one.id, bot.now) for one in outcomes if one.state == "silent" and not one.comment_id)
    if outcomes:
        bot.memory.stage(Changes(answers=tuple(outcomes), records=lost, standing=unsaid))
        bot.memory.commit("Take back what could not be said")


def _message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
