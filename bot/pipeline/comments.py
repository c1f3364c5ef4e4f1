"""The comment on a thread: which threads get one, what memory has for it, and what stands there already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.comment.marker import fingerprint, seal
from bot.domain.answer import Context, OrganisationMatch, Silent, has_false_quotes, quoted_in, threads_in
from bot.domain.changes import Changes, is_off, threads_to_redo, threads_to_refresh
from bot.domain.post import Post
from bot.domain.thread import Thread, ThreadId
from bot.github.errors import ForgeError, Gone
from bot.github.fixes import due_fixes
from bot.github.threads import OwnComment
from bot.github.updates import tombstone
from bot.pipeline.draft import NOT_VISIBLE, QUOTE_CHANGED, SWITCHED_OFF, Draft, is_unedited
from bot.pipeline.eligibility import answers_kind, is_due, question_hash, reason_to_pass
from bot.pipeline.fetch import fetch_missing
from bot.pipeline.open_pulls import add_open_pulls, visible_pulls
from bot.pipeline.reconcile import find_own, find_promised
from bot.pipeline.room import Room, Settlement
from bot.pipeline.tools import DAILY_LIMIT_REACHED, Facts, Tools, is_being_posted
from bot.questions.comment import comment_on
from bot.recall.answer import named_changes, recall, with_endings
from bot.recall.mentions import MAX_FULL_MENTIONS, referenced_numbers
from bot.recall.open_pulls import with_pulls

OTHER_RUN_POSTING = "another run is writing the comment"
RUN_LIMIT_REACHED = "the limit of answers for one run is reached; the next run continues"

MAX_ANSWERS = 5
"""Maximum number of issues that one run answers. The next run takes the others."""


class Comments(Room):
    """The comments on the threads that are due one."""

    answers_events = True

    def plan(self) -> list[Draft]:
        return plan_comments(threads_to_answer(self.facts, self.run), self.facts, self.run)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Remember that a thread is gone which refused its comment."""
        gone = [(draft.thread.id, result.gone) for draft, _, result in settlements if result.gone]
        records = tuple(tombstone(key, why, self.run.now) for key, why in gone if isinstance(key, int))
        if records:
            self.run.memory.stage(Changes(records=records))


def threads_to_answer(facts: Facts, run: Tools) -> list[Thread]:
    """The threads to answer now: the event's own first, then changed threads and those waiting for an answer."""
    changed = (record for record in facts.updates.records if isinstance(record, Thread))
    keys = [record.id for record in changed if answers_kind(record.kind, run.settings)]
    keys += [*facts.fresh_ids, *run.memory.state.manifest.pending, *threads_to_redo(facts.requested)]
    keys += [facts.event.number] if facts.event.number and not facts.event.is_of_discussion else []
    current = run.memory.whole_records(dict.fromkeys(keys)).values()
    waiting = [record for record in current if isinstance(record, Thread) and is_due(record, facts)]
    return sorted(waiting, key=lambda thread: (thread.id != facts.event.number, thread.created_at))


def plan_comments(threads: list[Thread], facts: Facts, run: Tools) -> list[Draft]:
    """Plan the comment on each thread, within the limits of one run and of 24 hours."""
    drafts = list[Draft]()
    for thread in threads:
        is_full = sum(not other.is_skipped for other in drafts) >= MAX_ANSWERS
        waits = facts.limit or run.permit.waits or (RUN_LIMIT_REACHED if is_full else "")
        planned = draft_comment(thread, facts, run, waits)
        if planned.is_new and not planned.is_counted and not facts.take_new_post():
            planned = replace(planned, waits=DAILY_LIMIT_REACHED)
        drafts.append(planned)
    return add_open_pulls(drafts, run)


def draft_comment(thread: Thread, facts: Facts, run: Tools, waits: str = "") -> Draft:
    """Plan the comment on one thread. ``waits``: why this run leaves it to a later one."""
    stored = before = _stored_comment(thread, facts, run)
    reason = _reason_to_pass(thread, stored, facts, run)
    if stored and not reason and thread.id in threads_to_refresh(facts.requested):
        # a deletion by a person no longer counts, and the promise is a new answer
        before = replace(stored, state="removed", comment_id=None)
    base = Draft(thread, Silent(reason), question=question_hash(thread, run.address), before=before)
    if reason or waits:
        return replace(base, is_skipped=bool(reason), waits="" if reason else waits)
    try:
        planned = _add_own_comment(_add_answer(base, run), facts, run)
        if planned.is_new and stored and is_being_posted(stored, facts.now) and not _was_deleted(stored, run):
            return replace(base, before=stored, waits=OTHER_RUN_POSTING)
    except Gone as error:  # this thread is gone; gone ones in the comment are just left out
        return _without_thread(base, error, run)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)
    return planned


def _stored_comment(thread: Thread, facts: Facts, run: Tools) -> Post | None:
    return facts.comments.get(thread.id) or run.memory.state.comments([thread.id]).get(thread.id)


def _without_thread(base: Draft, gone: Gone, run: Tools) -> Draft:
    if not gone.certain:
        return replace(base, waits=NOT_VISIBLE)
    if isinstance(base.thread.id, int):
        run.memory.stage(Changes(records=(tombstone(base.thread.id, gone, run.now),)))
    return replace(base, answer=Silent("it is not there any more"), is_skipped=True)


def _reason_to_pass(thread: Thread, before: Post | None, facts: Facts, run: Tools) -> str:
    """Why this thread is left alone, "" if it is not. A run by hand answers a closed thread too. Commands work on
    closed and locked threads: they may change the existing comment, and ``refresh`` and ``on`` may create one. No other
    setting or state yields to any of them."""
    is_requested = thread.id in threads_to_refresh(facts.requested)
    if before and before.comment_id and not is_requested:
        unfinished = run.memory.requests([thread.id]).get(thread.id, ()) if before.state == "pending" else ()
        is_requested = thread.id in threads_to_redo((*facts.requested, *unfinished))
    if is_requested or facts.is_by_hand(thread):
        thread = replace(thread, state="open", locked=thread.locked and not is_requested)
    return reason_to_pass(thread, run.settings)


def _referenced_issues(thread: Thread, run: Tools) -> list[int]:
    newest = thread.id if isinstance(thread.id, int) else 0
    return [number for number in referenced_numbers(thread, run.address)[:MAX_FULL_MENTIONS] if number <= newest]


def draft_again(thread: Thread, changed: frozenset[ThreadId], facts: Facts, run: Tools) -> Draft | None:
    """Work out a comment again because threads in it ``changed``. Its other threads stay, even if less similar now.

    None if the comment is still true, which is decided without asking GitHub, or does not exist: none is created.
    """
    before = _stored_comment(thread, facts, run)
    if before is None:
        return None
    base = Draft(thread, Silent(""), question=before.question, before=before, renews=True)
    if is_being_posted(before, facts.now):
        return replace(base, waits=OTHER_RUN_POSTING)
    try:
        planned = _add_answer(base, run, frozenset(before.shows) - changed)
        if before.content == planned.content and before.state == "said" and not planned.must_match:
            return None
        planned = _add_own_comment(planned, facts, run)
        return planned if planned.own or planned.removed else None
    except Gone as error:
        return _without_thread(base, error, run)
    except ForgeError as error:
        return replace(base, waits=str(error), fault=error)


def _add_answer(base: Draft, run: Tools, kept: frozenset[ThreadId] = frozenset()) -> Draft:
    """The plan with its answer and the sealed comment. Threads in ``kept`` always count as similar."""
    thread, before, memory = base.thread, base.before, run.memory
    is_false = before is not None and has_false_quotes(before, memory.records(before.shows))
    if is_off(memory.requests([thread.id]).get(thread.id, ())):
        return replace(base, answer=Silent(SWITCHED_OFF), is_false=is_false or _shows_disallowed(base))
    if not base.renews:
        fetch_missing(_referenced_issues(thread, run), run, f"mentioned in issue {thread.id}")
    context = _recall_context(thread, run, kept, looks_again=not base.renews)
    if before:
        context = with_pulls(context, visible_pulls(before.pulls, thread, run), thread)
    others = _organisation_matches(base, context, run)
    context = replace(context, organisation=others[: run.settings.organisation.results])
    base = replace(base, is_false=is_false or _shows_disallowed(base, others))
    rendered = comment_on(thread, context, run.renderer, run.settings.mentions)
    if isinstance(rendered.answer, Silent):
        return replace(base, answer=rendered.answer)
    if rendered.problem:
        run.note(rendered.problem)
    context = rendered.answer.context
    quotes = quoted_in(context, memory.records(threads_in(context)))
    return replace(base, answer=rendered.answer, text=seal(rendered.text, fingerprint(context)), quotes=quotes)


def _organisation_matches(base: Draft, context: Context, run: Tools) -> tuple[OrganisationMatch, ...]:
    """The threads of other repositories to show with the context; in a renewal only if some are shown already."""
    kept = base.before.others if base.before else ()
    if not (run.organisation and run.settings.organisation.results) or (base.renews and not kept):
        return ()
    try:
        return run.organisation.find(base.thread, context, kept)
    except Gone as error:  # another thread is gone, not this one
        raise ForgeError(error.cause, error.remedy) from error


def _shows_disallowed(base: Draft, allowed: Iterable[OrganisationMatch] = ()) -> bool:
    """Whether the existing comment shows a thread of another repository that is not among the allowed ones."""
    return base.before is not None and not {other.key for other in allowed}.issuperset(base.before.others)


def _recall_context(thread: Thread, run: Tools, kept: frozenset[ThreadId], *, looks_again: bool) -> Context:
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


def _add_own_comment(planned: Draft, facts: Facts, run: Tools) -> Draft:
    """The plan with our existing comment. One that a person edited is not changed, but a false one is withdrawn."""
    own, removed = _find_own(planned, planned.text, facts, run)
    result = replace(planned, own=own, removed=removed)
    if planned.is_false and own and not is_unedited(own):
        return replace(result, answer=Silent(QUOTE_CHANGED), text="")
    return result


def _find_own(planned: Draft, text: str, facts: Facts, run: Tools) -> tuple[OwnComment | None, bool]:
    """Our comment on the thread, and whether a person deleted it. Looks for it only if there is something to write."""
    key, before = planned.thread.id, planned.before
    own = facts.updates.own.get(key)
    if own or not isinstance(key, int):
        return own, False
    if key in threads_to_refresh(facts.requested):
        return find_own(key, run), False
    if before and before.state == "removed":
        return None, True
    if not run.permit.allows(planned) or not (text or (before and before.comment_id)):
        return None, False
    if before and before.content and (before.state == "pending" or not before.comment_id):
        own, was_deleted = find_promised(key, before.at, run.comments_on(key), run.own)
        return own, was_deleted or (own is None and before.comment_id is not None)
    if key in facts.updates.own:
        return None, False
    own = find_own(key, run)
    return own, own is None and before is not None and before.comment_id is not None


def _was_deleted(post: Post, run: Tools) -> bool:
    """Whether the promised comment was posted and then deleted, so that no other run is about to post it."""
    return isinstance(post.id, int) and find_promised(post.id, post.at, run.comments_on(post.id), run.own)[1]
