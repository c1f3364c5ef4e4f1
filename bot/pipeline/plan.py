"""Plans the comments on the threads that are due: recall, decide, render, find our comment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.comment.marker import fingerprint, seal
from bot.domain.answer import Context, OrganisationMatch, Silent, has_false_quotes, quoted_in, shown_in
from bot.domain.changes import AnswerRecord, Changes, StandingComment, is_off, threads_to_redo, threads_to_refresh
from bot.domain.thread import Thread, ThreadId
from bot.github.errors import ForgeError, Gone
from bot.github.fixes import due_fixes
from bot.github.threads import OwnComment
from bot.github.updates import tombstone
from bot.pipeline.eligibility import question_hash, reason_to_pass
from bot.pipeline.fetch import fetch_missing
from bot.pipeline.open_pulls import add_open_pulls, visible_pulls
from bot.pipeline.outbox import (
    NOT_VISIBLE,
    QUOTE_CHANGED,
    SWITCHED_OFF,
    CommentPlan,
    find_own,
    find_promised,
    is_unedited,
)
from bot.pipeline.run_context import DAILY_LIMIT_REACHED, RunContext, RunState, is_being_posted
from bot.questions.comment import comment_on
from bot.recall.answer import named_changes, recall, with_endings
from bot.recall.mentions import referenced_numbers
from bot.recall.open_pulls import with_pulls

OTHER_RUN_POSTING = "another run is writing the comment"
RUN_LIMIT_REACHED = "the limit of answers for one run is reached; the next run continues"

MAX_ANSWERS = 5
"""Maximum number of issues that one run answers. The next run takes the others."""


def plan_comments(threads: list[Thread], state: RunState, run: RunContext) -> list[CommentPlan]:
    """Plan the comment on each thread, within the limits of one run and of 24 hours. Replies come first."""
    new = sum(stored.name == "refresh" and stored.trying_since is not None for stored in state.requested)
    plans: list[CommentPlan] = []
    for thread in threads:
        is_full = sum(not other.is_skipped for other in plans) >= MAX_ANSWERS
        planned = plan(thread, state, run, waits=state.limit or run.muted or (RUN_LIMIT_REACHED if is_full else ""))
        if planned.is_new and not planned.is_counted:
            if run.may_write(new):
                new += 1
            else:
                planned = replace(planned, waits=DAILY_LIMIT_REACHED)
        plans.append(planned)
    return add_open_pulls(plans, run)


def plan(thread: Thread, state: RunState, run: RunContext, waits: str = "") -> CommentPlan:
    """Plan the comment on one thread. ``waits``: why this run leaves it to a later one."""
    answer = before = state.answers.get(thread.id) or run.memory.state.answers([thread.id]).get(thread.id)
    reason = _reason_to_pass(thread, answer, state, run)
    if answer and not reason and thread.id in threads_to_refresh(state.requested):
        # a deletion by a person no longer counts, and the promise is a new answer
        before = replace(answer, state="removed", comment_id=None)
    base = replace(_base_plan(thread, run), answer=Silent(reason), before=before)
    if reason or waits:
        return replace(base, is_skipped=bool(reason), waits="" if reason else waits)
    try:
        planned = _add_own_comment(_add_answer(base, run), state, run)
        if planned.is_new and answer and is_being_posted(answer, state.now) and not _was_deleted(answer, run):
            return replace(base, before=answer, waits=OTHER_RUN_POSTING)
    except Gone as error:  # this thread is gone; gone ones in the comment are just left out
        return _without_thread(base, error, run)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)
    return planned


def _without_thread(base: CommentPlan, gone: Gone, run: RunContext) -> CommentPlan:
    if not gone.certain:
        return replace(base, waits=NOT_VISIBLE)
    if isinstance(base.thread.id, int):
        run.memory.stage(Changes(records=(tombstone(base.thread.id, gone, run.now),)))
    return replace(base, answer=Silent("it is not there any more"), is_skipped=True)


def _reason_to_pass(thread: Thread, before: AnswerRecord | None, state: RunState, run: RunContext) -> str:
    """Why this thread is left alone, "" if it is not. A run by hand answers a closed thread too. Commands work on
    closed and locked threads: they may change the existing comment, and ``refresh`` and ``on`` may create one. No other
    setting or state yields to any of them."""
    is_requested = thread.id in threads_to_refresh(state.requested)
    if before and before.comment_id and not is_requested:
        unfinished = run.memory.requests([thread.id]).get(thread.id, ()) if before.state == "pending" else ()
        is_requested = thread.id in threads_to_redo((*state.requested, *unfinished))
    if is_requested or state.is_by_hand(thread):
        thread = replace(thread, state="open", locked=thread.locked and not is_requested)
    return reason_to_pass(thread, run.settings)


def _referenced_issues(thread: Thread, run: RunContext) -> list[int]:
    newest = thread.id if isinstance(thread.id, int) else 0
    return [
        number for number in referenced_numbers(thread, run.address)[: run.settings.references.max] if number <= newest
    ]


def plan_again(thread: Thread, changed: frozenset[ThreadId], state: RunState, run: RunContext) -> CommentPlan | None:
    """Work out a comment again because threads in it ``changed``. Its other threads stay, even if less similar now.

    None if the comment is still true, which is decided without asking GitHub, or does not exist: none is created.
    """
    before = state.answers.get(thread.id) or run.memory.state.answers([thread.id]).get(thread.id)
    base = replace(_base_plan(thread, run), before=before, renews=True)
    if before:
        base = replace(base, question=before.question)
    if before and is_being_posted(before, state.now):
        return replace(base, waits=OTHER_RUN_POSTING)
    stood = base.standing or StandingComment(thread.id, run.now)
    try:
        planned = _add_answer(base, run, frozenset(stood.shows) - changed)
        is_idle = stood.content == planned.content and before is not None and before.state == "said"
        if is_idle and not planned.must_match:
            return None
        planned = _add_own_comment(planned, state, run)
        return planned if planned.own or planned.removed else None
    except Gone as error:
        return _without_thread(base, error, run)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)


def _base_plan(thread: Thread, run: RunContext) -> CommentPlan:
    linked = run.memory.state.thread_comments([thread.id]).get(thread.id)
    stood = next((comment for comment in linked.comments if not comment.reply), None) if linked else None
    return CommentPlan(thread, Silent(""), question=question_hash(thread, run.address), standing=stood)


def _add_answer(base: CommentPlan, run: RunContext, kept: frozenset[ThreadId] = frozenset()) -> CommentPlan:
    """The plan with its answer and the sealed comment. Threads in ``kept`` always count as similar."""
    thread, memory = base.thread, run.memory
    is_false = base.standing is not None and has_false_quotes(base.standing, memory.records(base.standing.shows))
    if is_off(memory.requests([thread.id]).get(thread.id, ())):
        return replace(base, answer=Silent(SWITCHED_OFF), is_false=is_false or _shows_disallowed(base))
    if not base.renews:
        fetch_missing(_referenced_issues(thread, run), run, f"mentioned in issue {thread.id}")
    context = _recall_context(thread, run, kept, looks_again=not base.renews)
    if base.standing:
        context = with_pulls(context, visible_pulls(base.standing.pulls, thread, run), thread)
    others = _organisation_matches(base, context, run)
    context = replace(context, organisation=others[: run.settings.organisation.results])
    base = replace(base, is_false=is_false or _shows_disallowed(base, others))
    rendered = comment_on(thread, context, run.renderer, run.settings.references)
    if isinstance(rendered.answer, Silent):
        return replace(base, answer=rendered.answer)
    if rendered.problem:
        run.note(rendered.problem)
    context = rendered.answer.context
    quotes = quoted_in(context, memory.records(shown_in(context)))
    return replace(base, answer=rendered.answer, text=seal(rendered.text, fingerprint(context)), quotes=quotes)


def _organisation_matches(base: CommentPlan, context: Context, run: RunContext) -> tuple[OrganisationMatch, ...]:
    """The threads of other repositories to show with the context; in a renewal only if some are shown already."""
    kept = base.standing.others if base.standing else ()
    if not (run.organisation and run.settings.organisation.results) or (base.renews and not kept):
        return ()
    try:
        return run.organisation.find(base.thread, context, kept)
    except Gone as error:  # another thread is gone, not this one
        raise ForgeError(error.cause, error.remedy) from error


def _shows_disallowed(base: CommentPlan, allowed: Iterable[OrganisationMatch] = ()) -> bool:
    """Whether the existing comment shows a thread of another repository that is not among the allowed ones."""
    return base.standing is not None and not {other.key for other in allowed}.issuperset(base.standing.others)


def _recall_context(thread: Thread, run: RunContext, kept: frozenset[ThreadId], *, looks_again: bool) -> Context:
    """What memory knows, with the fixes. Each is looked up once; with ``looks_again`` also later, for its release."""
    context = recall(thread, run.memory, run.settings, run.address, kept=kept)
    named = named_changes(context)
    stored_fixes = run.memory.fixes(named)
    due = due_fixes(named, stored_fixes, run.now)
    if not looks_again:
        due = {key: each for key, each in due.items() if key not in stored_fixes or stored_fixes[key].ref != each.ref}
    lookups = [run.fixes.find(key, each, stored_fixes.get(key), run.now) for key, each in due.items()]
    fixes = tuple(fix for fix in lookups if fix)
    if not fixes:
        return context
    run.memory.stage(Changes(fixes=fixes))
    return with_endings(context, thread, run.memory, run.address)


def _add_own_comment(planned: CommentPlan, state: RunState, run: RunContext) -> CommentPlan:
    """The plan with our existing comment. One that a person edited is not changed, but a false one is withdrawn."""
    own, removed = _find_own(planned, planned.text, state, run)
    result = replace(planned, own=own, removed=removed)
    if planned.is_false and own and not is_unedited(own):
        return replace(result, answer=Silent(QUOTE_CHANGED), text="")
    return result


def _find_own(planned: CommentPlan, text: str, state: RunState, run: RunContext) -> tuple[OwnComment | None, bool]:
    """Our comment on the thread, and whether a person deleted it. Looks for it only if there is something to write."""
    key, before = planned.thread.id, planned.before
    own = state.updates.own.get(key)
    if own or not isinstance(key, int):
        return own, False
    if key in threads_to_refresh(state.requested):
        return find_own(key, run.comments_on(key), run.own), False
    if before and before.state == "removed":
        return None, True
    if (run.settings.mode != "comment" and not planned.takes_out) or not (text or (before and before.comment_id)):
        return None, False
    if before and before.text_hash and (before.state == "pending" or not before.comment_id):
        own, was_deleted = find_promised(key, before.at, run.comments_on(key), run.own)
        return own, was_deleted or (own is None and before.comment_id is not None)
    if key in state.updates.own:
        return None, False
    own = find_own(key, run.comments_on(key), run.own)
    return own, own is None and before is not None and before.comment_id is not None


def _was_deleted(answer: AnswerRecord, run: RunContext) -> bool:
    """Whether the promised comment was posted and then deleted, so that no other run is about to post it."""
    return isinstance(answer.id, int) and find_promised(answer.id, answer.at, run.comments_on(answer.id), run.own)[1]
