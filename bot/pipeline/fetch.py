"""Fetches all changes since the last run, not just the event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.domain.changes import AnswerRecord, Changes
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import parse_time
from bot.errors import UserError
from bot.github.errors import ForgeError, Gone, RateLimited, Unauthorised, Unreachable
from bot.github.events import Event
from bot.github.updates import OVERLAP, PAGES, KnownIssues, Updates, catch_up, read_thread, tombstone
from bot.pipeline.backfill import Deadline, backfill
from bot.pipeline.discussions import one_discussion
from bot.pipeline.eligibility import answers_kind
from bot.pipeline.outbox import settle
from bot.pipeline.requests import unread_requests
from bot.pipeline.run_context import RunContext, RunState
from bot.settings.schema import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fetch_changes(event: Event, run: RunContext) -> RunState:
    """Read everything that changed since the last run, whatever the event says, and what memory knew of it."""
    hinted = [event.number] if event.number else []
    memory = run.memory.open(hinted)
    is_first = memory.state.manifest.cursor is None
    late = _read_history(run, None) if is_first else ()
    since = memory.state.manifest.cursor - OVERLAP if memory.state.manifest.cursor else None
    listed, complete = _listed(event, since, run)
    if not complete:
        run.note("Much changed since the last run, so it was read as history.")
        listed, late = [], _read_history(run, since)
    ids = list(dict.fromkeys([*(issue["number"] for issue in listed), *hinted, *memory.state.manifest.pending, *late]))
    memory.state.prefetch(ids)
    held, answers = dict(memory.records(ids)), dict(memory.state.answers(ids))
    noticed = (key for key, linked in memory.state.thread_comments(ids).items() if linked.notices)
    known = replace(_known(held, answers, [*memory.requests(ids), *noticed]), touched=_touched(event))
    found = [issue for issue in listed if _is_wanted(issue, held, run)]
    updates = catch_up(run.forge, run.own, known, found, since)
    if updates.complete:  # pull requests move the cursor too: they are in the same list
        updates = replace(updates, cursor=max((parse_time(issue["updated_at"]) for issue in listed), default=None))
    if event.number and (event.forgets or not updates.limited):  # what is gone is in no later list
        updates = _with_hint(updates, event, held, {issue["number"] for issue in listed}, run)
    updates = _with_unread(updates, held, run)
    if updates.limited:
        run.report_fault(updates.limited)
        run.note("Not all that changed could be read.")
    elif updates.fault:
        run.report_fault(updates.fault)
    settled = settle(answers, updates.own, run.now - run.within)
    return RunState(
        event,
        updates,
        run.now,
        run.place,
        answers | settled,
        settled,
        late,
        is_first=is_first,
        within=run.within,
        limit=str(updates.limited or ""),
    )


def _known(
    held: Mapping[ThreadId, Record], answers: Mapping[ThreadId, AnswerRecord], asked: Iterable[ThreadId]
) -> KnownIssues:
    """What memory knows of threads and of our comments on them. If people ``asked`` for something there, or were
    notified of a release, we may have other comments there, even replies to comments that are gone by now."""
    stands = {key: 1 for key, one in answers.items() if one.state in ("said", "withdrawn")}
    promised = frozenset(key for key, one in answers.items() if one.state == "pending" and one.text_hash)
    return KnownIssues(held, stands, frozenset(asked), promised)


def _touched(event: Event) -> frozenset[ThreadId]:
    """The thread whose comment was edited or deleted. The list does not show an edit, nor a deletion if another comment
    followed within the same second."""
    may_be_unlisted = event.name == "issue_comment" and event.action in ("edited", "deleted")
    return frozenset([event.number]) if may_be_unlisted and event.number else frozenset()


def _is_wanted(issue: Mapping[str, Any], held: Mapping[ThreadId, Record], run: RunContext) -> bool:
    """Whether to read a listed thread: pull requests only by setting, or if an issue has referred to them, or if one
    of our comments shows them."""
    if run.settings.pulls or not issue.get("pull_request") or isinstance(held.get(issue["number"]), Thread):
        return True
    return run.memory.state.is_shown(issue["number"])


def _read_history(run: RunContext, since: datetime | None) -> tuple[ThreadId, ...]:
    """Read history for a while: before the first answer, and when too much changed to read it one by one.

    Returns the threads read that are still fresh. A limit or an outage ends the reading; what was read is kept, and the
    event is handled all the same.
    """
    reading = run.memory.state.manifest.reading
    is_next = reading is not None and reading.upto is not None and since is not None and since <= reading.upto
    pace = Deadline(run.clock, run.now, run.reading_seconds, within=run.within)
    read = backfill(
        run.memory, run.history, pace, since, partial(unread_requests, run=run), reading if is_next else None
    )
    run.on_history(read)
    if read.stopped:
        run.forge.apply_limit(read.stopped)
    if isinstance(read.stopped, RateLimited) and not read.stopped.is_secondary:  # of GraphQL's points, not of requests
        run.report_fault(read.stopped)
    elif read.stopped and not isinstance(read.stopped, Unreachable):
        raise read.stopped
    if not read.complete:
        why = "" if isinstance(read.stopped, RateLimited) else f" ({read.why})"  # a limit is reported separately
        run.note(f"Not all of the history is read yet{why}: the next runs go on, or start one with run: rebuild.")
    found = run.memory.entries(read.seen)
    return tuple(key for key, entry in found.items() if entry.created_at > run.now - run.within)


def _listed(event: Event, since: datetime | None, run: RunContext) -> tuple[list[dict[str, Any]], bool]:
    """The threads that changed since then, and whether that is all. If the list cannot be read, a thread that the event
    says is gone is remembered as gone all the same, as no later list has it."""
    try:
        return run.forge.issues_since(since, PAGES) if since else ([], True)
    except ForgeError:
        number = event.number
        if event.forgets and number:
            held = run.memory.records([number])
            run.memory.stage(Changes(records=(_gone(event, number, held.get(number), run),)))
            run.memory.commit(f"Forget {number}")
        raise


def _gone(event: Event, number: int, held: Record | None, run: RunContext) -> Tombstone:
    """The tombstone of the event's thread, no older than its record, whose time may be ahead of the runner's clock."""
    at = max(run.now, held.revised_at) if held else run.now
    return Tombstone(number, at, event.action, event.moved_to)


def _with_hint(
    updates: Updates, event: Event, held: Mapping[ThreadId, Record], listed: Collection[int], run: RunContext
) -> Updates:
    """The updates with the event's own thread, which may be missing from the list."""
    number = event.number
    assert number is not None
    if event.forgets:
        gone = _gone(event, number, held.get(number), run)
        return replace(updates, records=(*(r for r in updates.records if r.id != number), gone))
    if event.is_of_discussion:  # which this API does not have
        return updates
    if (event.is_pull and not run.settings.pulls) or any(r.id == number for r in updates.records):
        return updates
    if number in held:
        if _is_discussion_to_answer(held[number], event, run.settings):
            return updates
        return (
            updates
            if number in listed or not run.memory.state.is_shown(number)
            else _with_look(updates, event, number, run)
        )
    try:
        return _with_thread(updates, number, run, fresh=event.may_be_answered)
    except Gone as error:
        return _without_hint(updates, event, error, run)
    except ForgeError as error:
        _look_again(event, error, run)
        return replace(updates, fault=updates.fault or error)


def _is_discussion_to_answer(held: Record, event: Event, settings: Settings) -> bool:
    """Whether somebody started this run by hand for a discussion. Raises UserError if those are not answered."""
    if event.name != "workflow_dispatch" or not isinstance(held, Thread) or held.kind is not Kind.DISCUSSION:
        return False
    if not answers_kind(held.kind, settings):
        told = f"{held.id} is a discussion, and those are answered only with discussions.answer: true"
        raise UserError(f"{told}; give the number of an issue")
    return True


def _with_thread(updates: Updates, number: int, run: RunContext, *, fresh: bool = False) -> Updates:
    """The updates with this thread as GitHub has it now, unless it is an unwanted pull request. Raises ForgeError."""
    thread, own, issue = read_thread(run.forge, run.own, number, fresh=fresh)
    if issue.get("pull_request") and not run.settings.pulls:
        return updates
    return replace(updates, records=(*updates.records, thread), own={**updates.own, number: own})


def _with_look(updates: Updates, event: Event, number: int, run: RunContext) -> Updates:
    try:
        run.forge.issue(number)
    except Gone as error:
        return _without_hint(updates, event, error, run)
    except ForgeError as error:
        return replace(updates, fault=updates.fault or error)
    return updates


def _without_hint(updates: Updates, event: Event, gone: Gone, run: RunContext) -> Updates:
    number = event.number
    assert number is not None
    if event.name == "workflow_dispatch":
        raise UserError(f"issue {number} cannot be answered: {gone}; give the number of an issue of this repository")
    if gone.certain:
        return replace(updates, records=(*updates.records, tombstone(number, gone, run.now)))
    run.note(f"Issue {number} cannot be seen now, and was left as it is: {gone}")
    if run.memory.state.is_shown(number):
        run.memory.stage(Changes(unseen=(Tombstone(number, run.now, "unseen"),)))
    _look_again(event, gone, run)
    return updates


def _look_again(event: Event, why: ForgeError, run: RunContext) -> None:
    """Promise an answer on a thread that cannot be read now. No list may ever show it again, for example while GitHub
    holds its author for a spammer, and the event comes only once."""
    if event.number and event.may_be_answered and not run.memory.state.answers([event.number]):
        promise = AnswerRecord(event.number, "pending", run.now, f"it could not be read: {why}")
        run.memory.stage(Changes(answers=(promise,)))


def _with_unread(updates: Updates, held: Mapping[ThreadId, Record], run: RunContext) -> Updates:
    fetched = {record.id for record in updates.records}
    for number in run.memory.state.manifest.pending:
        if updates.fault or not isinstance(number, int) or number in held or number in fetched:
            continue
        try:
            updates = _with_thread(updates, number, run)
        except Gone as error:
            if error.certain:
                updates = replace(updates, records=(*updates.records, tombstone(number, error, run.now)))
        except ForgeError as error:
            updates = replace(updates, fault=error)
    return updates


def fetch_missing(numbers: Iterable[int], run: RunContext, why: str) -> None:
    """Fetch each thread that memory lacks, once; one that cannot be read stays unknown. ``why`` is for the notes."""
    wanted = list(numbers)
    held = run.memory.records(wanted)
    fetched: list[Record] = []
    for number in wanted:
        if number in held:
            continue
        try:
            fetched.append(read_thread(run.forge, run.own, number)[0])
        except (RateLimited, Unauthorised):
            raise
        except ForgeError as error:
            if discussion := one_discussion(number, run) if isinstance(error, Gone) and not error.certain else None:
                fetched.append(discussion)
                continue
            if isinstance(error, Gone):  # a thread that is only hidden now comes back as soon as it is visible
                fetched.append(
                    tombstone(number, error, run.now) if error.certain else Tombstone(number, EPOCH, "unseen")
                )
            run.note(f"Issue {number}, {why}, could not be read: {error}")
    if fetched:
        run.memory.stage(Changes(records=tuple(fetched)))
