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


def handle_event(event: Event, run: RunContext) -> list[CommentResult]:
    """Handle one event. Returns what was said, or why nothing was, for each thread that was due an answer."""
    run.on_stage("look")
    state, mode = fetch_changes(event, run), run.settings.mode
    run.on_stage("remember")
    _remember(state, run)
    run.on_stage("ask")
    requests, forgotten = forget_on_request(find_requests(state, run), state, run)
    if forgotten:  # comments of ours were deleted
        state = replace(state, said=run.memory.answers(state.said))
    replies = prepare_replies(requests, run)
    state = replace(state, requested=promise_replies(replies, run))
    run.memory.stage(Changes(requests=_stored_requests(state.requested, refresh=False)))
    run.on_stage("plan")
    plans = plan_comments(_due(state, run), state, run)
    replies = without_idle(replies, {plan.thread.id for plan in plans if plan.is_idle})
    look_for_releases(event, run)
    again = plan_renewals(plans, state, run)
    plans += again.plans
    run.memory.stage(
        Changes(requests=_stored_requests(promise_replies(replies, run), refresh=True), renewed=tuple(again.settled))
    )
    run.memory.stage(Changes(answers=tuple(promise(p, run.now, mode) for p in plans)))
    run.memory.stage(Changes(standing=(*_standing(plans, replies, run), *promise_renewals(again, run))))
    run.on_stage("push")
    run.memory.commit(_message(event))
    if run.memory.is_outdated:
        replies, again.replies = [], []
    if state.is_first:
        _tell_beginning(run)
    run.on_stage("say")
    plans = _still_ours(plans, run)
    told = [publish_comment(p, run.forge, run.own, mode, run.renderer.words) for p in plans]
    _release(told, run)
    run.on_stage("reply")
    replied = [*forgotten, *publish_replies(replies, run)]
    return [*told, *replied, *publish_renewals(again, plans, told, run)]


def _remember(state: RunState, run: RunContext) -> None:
    """Stage what changed; in a run that nobody waits for (`CALM`), readers' feedback too. Then learn, if due."""
    memory, event, news = run.memory, state.event, state.updates
    memory.stage(Changes(records=news.records, answers=tuple(state.settled.values()), cursor=news.cursor))
    if event.name in CALM:
        memory.stage(Changes(answers=collect(memory, run.forge, run.now)))
    if event.name in EVENTS or not memory.pages:
        memory.stage(fresh_pages(run.pages, memory, memory.pages, run.now, run.note))
    if is_due(memory, calm=event.name in CALM):
        learn_from_memory(run, EVENT_SECONDS)


def _standing(
    plans: Iterable[CommentPlan], replies: Iterable[ReplyPlan], run: RunContext
) -> tuple[StandingComment, ...]:
    """What is to be known of the comments that will stand, so that they stay true."""
    on_threads = (standing_comment(plan, run.now) for plan in plans if run.settings.mode == "comment")
    return tuple(one for one in (*on_threads, *(promised_reply(each, run) for each in replies)) if one)


def _stored_requests(stored_requests: Iterable[Request], *, refresh: bool) -> tuple[Request, ...]:
    """Those for a new answer, or all others: whether ``refresh`` gets a reply is known when the answer is."""
    return tuple(stored for stored in stored_requests if (stored.name == "refresh") is refresh)


def _tell_beginning(run: RunContext) -> None:
    why, are = "There was no memory to go on from", "would be" if run.is_dry else "are now"
    held = f"{run.memory.size:,} issues, pull requests and pages {are} on the branch {run.settings.branch}"
    run.note(f"{why}, so the history was read from its beginning: {held}.")


def _still_ours(plans: Iterable[CommentPlan], run: RunContext) -> list[CommentPlan]:
    """The plans as they are once memory is written: of two runs that promised an answer at once, one gives it."""
    memory, waits = run.memory, "another run that began meanwhile answers it"
    taken = memory.taken | {key for key, reply in memory.taken_comments if not reply}
    is_left = [memory.is_outdated or p.thread.id in taken for p in plans]
    return [replace(p, waits=waits, fault=None) if left else p for p, left in zip(plans, is_left, strict=True)]


def _due(state: RunState, run: RunContext) -> list[Thread]:
    """The threads to answer now, the event's own first: the news, the event's, and those that wait for an answer."""
    pulls = {one.id for one in state.updates.records if isinstance(one, Thread) and one.kind is Kind.PULL}
    news = (one.id for one in state.updates.records if run.settings.pulls or one.id not in pulls)
    keys = [*news, *state.late, *run.memory.pending, *redo(state.requested)]
    keys += [state.event.number] if state.event.number else []
    current = run.memory.records(dict.fromkeys(keys)).values()
    waiting = due((record for record in current if isinstance(record, Thread)), state)
    return sorted(waiting, key=lambda thread: (thread.id != state.event.number, thread.created_at))


def _release(told: Iterable[CommentResult], run: RunContext) -> None:
    """What could not be said: taken back where GitHub takes no comment, else left to whichever run comes next."""
    failed = {spoken.id: spoken for spoken in told if spoken.is_refused or spoken.error}
    outcomes = []
    for key, said in run.memory.answers(failed).items():
        state = "silent" if failed[key].is_refused else said.state
        outcomes.append(replace(said, state=state, reason=failed[key].reason, trying_since=None))
    lost = tuple(tombstone(key, s.gone, run.now) for key, s in failed.items() if s.gone and isinstance(key, int))
    unsaid = tuple(StandingComment(one.id, run.now) for one in outcomes if one.state == "silent" and not one.comment_id)
    if outcomes:
        run.memory.stage(Changes(answers=tuple(outcomes), records=lost, standing=unsaid))
        run.memory.commit("Take back what could not be said")


def _message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
