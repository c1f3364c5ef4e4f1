"""Handles one event from start to finish. Read this first.

event → what changed → memory → the answers → memory is pushed → the comments
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.domain.changes import Changes, StandingComment, threads_to_redo
from bot.domain.thread import Kind, Thread
from bot.github.events import Event
from bot.github.updates import tombstone
from bot.pipeline.clusters import LINK_SECONDS, link_threads
from bot.pipeline.discussions import with_discussions
from bot.pipeline.eligibility import answers_kind, due_threads
from bot.pipeline.feedback import collect_feedback
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.forget import forget_on_request
from bot.pipeline.learn import LEARN_SECONDS, is_due, learn_from_memory, read_with_model
from bot.pipeline.outbox import CommentPlan, promise, standing_comment
from bot.pipeline.plan import plan_comments
from bot.pipeline.publish import CommentResult, promise_replies, publish_comment, publish_replies
from bot.pipeline.release_notices import plan_notices, publish_notices
from bot.pipeline.renewal import (
    answer_after,
    look_for_releases,
    plan_renewals,
    promise_renewals,
    publish_renewals,
    queue_renewals,
    standing_reply,
)
from bot.pipeline.replies import prepare_replies
from bot.pipeline.requests import find_requests
from bot.pipeline.run_context import RunContext, RunState
from bot.sources.pages import PAGE_EVENTS, refresh_pages


def handle_event(event: Event, run: RunContext) -> list[CommentResult]:
    """Handle one event. Returns, for each thread that was due an answer, what was posted or why nothing was."""
    memory, mode = run.memory, run.settings.mode
    run.on_stage("look")
    state = with_discussions(fetch_changes(event, run), run)
    run.on_stage("remember")
    _remember(state, run)
    run.on_stage("ask")
    requests, forgotten = forget_on_request(find_requests(state, run), state, run)
    if forgotten:  # our comments were deleted
        state = replace(state, answers=memory.state.answers(state.answers))
    replies = prepare_replies(requests, run)
    state = replace(state, requested=promise_replies(replies, run))
    memory.stage(Changes(requests=state.requested))
    run.on_stage("plan")
    plans = plan_comments(_threads_to_answer(state, run), state, run)
    look_for_releases(event, run)
    queue_renewals(event, run)
    renewals = plan_renewals(plans, state, run)
    plans += renewals.plans
    memory.stage(Changes(renewed=tuple(renewals.settled)))
    memory.stage(Changes(answers=tuple(promise(plan, run.now, mode) for plan in plans)))
    standing = [standing_comment(plan, run.now) for plan in plans if mode == "comment" or plan.takes_out]
    standing += [*(standing_reply(reply, run) for reply in replies), *promise_renewals(renewals, run)]
    memory.stage(Changes(standing=tuple(filter(None, standing))))
    notices = plan_notices(event, state, run)
    run.on_stage("push")
    memory.commit(_commit_message(event))
    if memory.is_outdated:
        replies, renewals.replies, notices = [], [], []
    if state.is_first:
        _note_first_run(run)
    run.on_stage("say")
    plans = _defer_taken(plans, run)
    results = [_publish(plan, run) for plan in plans]
    _store_failures(results, run)
    _store_discussion_answers(plans, results, run)
    run.on_stage("reply")
    replied = [*forgotten, *publish_replies(replies, run)]
    renewed = publish_renewals(renewals, plans, results, run)
    return [*results, *replied, *renewed, *publish_notices(notices, run)]


def _publish(plan: CommentPlan, run: RunContext) -> CommentResult:
    words = run.renderer.for_thread(plan.thread).words
    return publish_comment(plan, run.comments_on(plan.thread.id), run.own, run.settings.mode, words)


def _remember(state: RunState, run: RunContext) -> None:
    """Stage what changed; maintenance adds readers' feedback and pages. Then learn, if due; maintenance also looks for
    clusters."""
    memory, event, updates = run.memory, state.event, state.updates
    settled = tuple(state.updated_answers.values())
    memory.stage(Changes(updates.records, settled, cursor=updates.cursor, discussions=state.discussions))
    if event.is_maintenance:
        memory.stage(Changes(answers=collect_feedback(memory, run.forge, run.now)))
    if event.is_maintenance or event.name in PAGE_EVENTS or not memory.state.manifest.pages:
        memory.stage(refresh_pages(run.pages, memory.state, memory.state.manifest.pages, run.now, run.note))
    if event.is_maintenance:
        read_with_model(run)
    if is_due(memory, calm=event.is_maintenance):
        learn_from_memory(run, LEARN_SECONDS)
    if event.is_maintenance:
        link_threads(memory, run.now, run.clock.seconds, LINK_SECONDS)


def _note_first_run(run: RunContext) -> None:
    are = "would be" if run.is_dry else "are now"
    count = run.memory.state.manifest.threads
    run.note(
        "There was no memory to continue from, so the history was read from its beginning: "
        f"{count:,} issues, pull requests and pages {are} on the branch {run.settings.branch}."
    )


def _defer_taken(plans: Iterable[CommentPlan], run: RunContext) -> list[CommentPlan]:
    """The plans after the push. If two runs promised the same answer at once, only one of them posts it."""
    memory, waits = run.memory, "another run that began meanwhile answers it"
    taken = memory.taken | {key for key, reply in memory.taken_comments if not reply}
    is_left = [memory.is_outdated or p.thread.id in taken for p in plans]
    return [replace(p, waits=waits, fault=None) if left else p for p, left in zip(plans, is_left, strict=True)]


def _threads_to_answer(state: RunState, run: RunContext) -> list[Thread]:
    """The threads to answer now: the event's own first, then changed threads and those waiting for an answer."""
    changed = (record for record in state.updates.records if isinstance(record, Thread))
    keys = [record.id for record in changed if answers_kind(record.kind, run.settings)]
    keys += [*state.from_history, *run.memory.state.manifest.pending, *threads_to_redo(state.requested)]
    keys += [state.event.number] if state.event.number and not state.event.is_of_discussion else []
    current = run.memory.whole_records(dict.fromkeys(keys)).values()
    waiting = due_threads((record for record in current if isinstance(record, Thread)), state)
    return sorted(waiting, key=lambda thread: (thread.id != state.event.number, thread.created_at))


def _store_failures(results: Iterable[CommentResult], run: RunContext) -> None:
    """Store the outcome of failed comments: refused ones are given up, a later run retries the others."""
    failed = {result.id: result for result in results if result.is_refused or result.error}
    answers = []
    for key, answer in run.memory.state.answers(failed).items():
        state = "silent" if failed[key].is_refused else answer.state
        answers.append(replace(answer, state=state, reason=failed[key].reason, trying_since=None, revised_at=run.now))
    gone = tuple(
        tombstone(key, result.gone, run.now) for key, result in failed.items() if result.gone and isinstance(key, int)
    )
    unposted = tuple(
        StandingComment(answer.id, run.now) for answer in answers if answer.state == "silent" and not answer.comment_id
    )
    if answers:
        run.memory.stage(Changes(answers=tuple(answers), records=gone, standing=unposted))
        run.memory.commit("Take back what could not be said")


def _store_discussion_answers(plans: Sequence[CommentPlan], results: Sequence[CommentResult], run: RunContext) -> None:
    """Store the outcome of comments in discussions at once. GitHub does not say which of them were deleted, so a
    missing comment is noticed later only if its id is known."""
    answers = []
    for plan, result in zip(plans, results, strict=True):
        is_written = result.action in ("created", "updated", "withdrawn")
        if plan.thread.kind is Kind.DISCUSSION and not plan.renews and is_written:
            answers += answer_after(plan, result, run)
    if answers:
        run.memory.stage(Changes(answers=tuple(answers)))
        run.memory.commit("Keep what was said in discussions")


def _commit_message(event: Event) -> str:
    what = f"{event.name} {event.action}".strip()
    return f"Remember {what} of {event.number}" if event.number else f"Remember {what}"
