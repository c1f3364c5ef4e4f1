"""Fetches all changes since the last run, not just the event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.domain.changes import AnswerRecord, Changes
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import parse_time
from bot.errors import UserError
from bot.github.errors import ForgeError, Gone, RateLimited, Unauthorised, Unreachable
from bot.github.events import Event
from bot.github.updates import OVERLAP, PAGES, KnownIssues, Updates, catch_up, read_thread, tombstone
from bot.memory.memory import is_shown
from bot.pipeline.backfill import FIRST_SECONDS, Deadline, backfill
from bot.pipeline.outbox import settle
from bot.pipeline.requests import unread_requests
from bot.pipeline.run_context import RunContext, RunState

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fetch_changes(event: Event, run: RunContext) -> RunState:
    """What changed since the last run, whatever the event says, and what memory knew of it before."""
    hinted = [event.number] if event.number else []
    memory = run.memory.open(hinted)
    is_first = memory.cursor is None
    late = _read_history(run, None) if is_first else ()
    since = memory.cursor - OVERLAP if memory.cursor else None
    listed, complete = _listed(event, since, run)
    if not complete:
        run.note("Much changed since the last run: it was read as history.")
        listed, late = [], _read_history(run, since)
    ids = list(dict.fromkeys([*(issue["number"] for issue in listed), *hinted, *memory.pending, *late]))
    memory.prefetch(ids)
    held, said = dict(memory.records(ids)), dict(memory.answers(ids))
    known = replace(_known(held, said, memory.requests(ids)), touched=_touched(event))
    found = [issue for issue in listed if _is_wanted(issue, held, run)]
    news = catch_up(run.forge, run.own, known, found, since)
    if news.complete:  # pull requests move the cursor too, as they are in the list that it asks for
        news = replace(news, cursor=max((parse_time(issue["updated_at"]) for issue in listed), default=None))
    if event.number and (event.forgets or not news.limited):  # what is gone is in no later list
        news = _with_hint(news, event, held, {issue["number"] for issue in listed}, run)
    news = _with_unread(news, held, run)
    if news.limited:
        run.report_fault(news.limited)
        run.note("Not all that changed could be read.")
    elif news.fault:
        run.report_fault(news.fault)
    settled = settle(said, news.own, run.now - run.within)
    state = RunState(
        event, news, run.now, run.place, said | settled, settled, late, is_first=is_first, within=run.within
    )
    return replace(state, limit=str(news.limited or ""))


def _known(
    held: Mapping[ThreadId, Record], said: Mapping[ThreadId, AnswerRecord], asked: Iterable[ThreadId]
) -> KnownIssues:
    """What memory knows of threads, and of our comments on them. Where people ``asked`` for something, replies may
    stand, also to comments that are gone by now."""
    stands = {key: 1 for key, one in said.items() if one.state in ("said", "withdrawn")}
    promised = frozenset(key for key, one in said.items() if one.state == "pending" and one.text_hash)
    return KnownIssues(held, stands, frozenset(asked), promised)


def _touched(event: Event) -> frozenset[ThreadId]:
    """The thread of which the event says what no list shows: that a comment was edited, maybe as it was being read."""
    is_edit = (event.name, event.action) == ("issue_comment", "edited")
    return frozenset([event.number]) if is_edit and event.number else frozenset()


def _is_wanted(issue: Mapping[str, Any], held: Mapping[ThreadId, Record], run: RunContext) -> bool:
    """Whether a listed thread is read: of pull requests that nobody wants, those that an issue has pointed at."""
    return run.settings.pulls or not issue.get("pull_request") or isinstance(held.get(issue["number"]), Thread)


def _read_history(run: RunContext, since: datetime | None) -> tuple[ThreadId, ...]:
    """Read history for a while: before the first answer, and when more changed than is read one by one.

    Returns the threads of it that are still fresh. A limit or an outage ends it; what was read is kept, and the event
    is looked at all the same.
    """
    reading = run.memory.reading
    is_next = reading is not None and reading.upto is not None and since is not None and since <= reading.upto
    pace = Deadline(run.clock, run.now, FIRST_SECONDS, within=run.within)
    read = backfill(
        run.memory, run.history, pace, since, partial(unread_requests, run=run), reading if is_next else None
    )
    if read.stopped:
        run.forge.apply_limit(read.stopped)
    if isinstance(read.stopped, RateLimited) and not read.stopped.is_secondary:  # of GraphQL's points, not of requests
        run.report_fault(read.stopped)
    elif read.stopped and not isinstance(read.stopped, Unreachable):
        raise read.stopped
    if not read.complete:
        why = "" if isinstance(read.stopped, RateLimited) else f" ({read.why})"  # a limit is told by itself
        run.note(f"Not all of the history is read yet{why}: the next runs go on, or start one with run: rebuild.")
    found = run.memory.entries(read.seen)
    return tuple(key for key, entry in found.items() if entry.created_at > run.now - run.within)


def _listed(event: Event, since: datetime | None, run: RunContext) -> tuple[list[dict[str, Any]], bool]:
    """What changed since then, and whether that is all. Where it cannot be had, what the event says is gone is
    remembered all the same, as it is in no later list."""
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
    """What stays of the event's thread. What is held of it bears GitHub's time, which may be ahead of the runner's."""
    at = max(run.now, held.revised_at) if held else run.now
    return Tombstone(number, at, event.action, event.moved_to)


def _with_hint(
    news: Updates, event: Event, held: Mapping[ThreadId, Record], listed: Collection[int], run: RunContext
) -> Updates:
    """The news with the event's own thread, which the list may not show yet or no longer."""
    number = event.number
    assert number is not None
    if event.forgets:
        gone = _gone(event, number, held.get(number), run)
        return replace(news, records=(*(r for r in news.records if r.id != number), gone))
    if (event.is_pull and not run.settings.pulls) or any(r.id == number for r in news.records):
        return news
    if number in held:
        return news if number in listed or not is_shown(number, run.memory) else _with_look(news, event, number, run)
    try:
        thread, own, issue = read_thread(run.forge, run.own, number, fresh=event.may_be_answered)
    except Gone as error:
        return _without_hint(news, event, error, run)
    except ForgeError as error:
        _look_again(event, error, run)
        return replace(news, fault=news.fault or error)
    if issue.get("pull_request") and not run.settings.pulls:
        return news
    return replace(news, records=(*news.records, thread), own={**news.own, number: own})


def _with_look(news: Updates, event: Event, number: int, run: RunContext) -> Updates:
    try:
        run.forge.issue(number)
    except Gone as error:
        return _without_hint(news, event, error, run)
    except ForgeError as error:
        return replace(news, fault=news.fault or error)
    return news


def _without_hint(news: Updates, event: Event, gone: Gone, run: RunContext) -> Updates:
    number = event.number
    assert number is not None
    if event.name == "workflow_dispatch":
        raise UserError(f"issue {number} cannot be answered: {gone}; give the number of an issue of this repository")
    if gone.certain:
        return replace(news, records=(*news.records, tombstone(number, gone, run.now)))
    run.note(f"Issue {number} cannot be seen now, and was left as it is: {gone}")
    if is_shown(number, run.memory):
        run.memory.stage(Changes(unseen=(Tombstone(number, run.now, "unseen"),)))
    _look_again(event, gone, run)
    return news


def _look_again(event: Event, why: ForgeError, run: RunContext) -> None:
    """Promise an answer on a thread that cannot be read now: no list may ever show it again, as when GitHub took its
    author for a spammer, and the event comes but once."""
    if event.number and event.may_be_answered and not run.memory.answers([event.number]):
        run.memory.stage(
            Changes(answers=(AnswerRecord(event.number, "pending", run.now, f"it could not be read: {why}"),))
        )


def _with_unread(news: Updates, held: Mapping[ThreadId, Record], run: RunContext) -> Updates:
    fetched = {record.id for record in news.records}
    for number in run.memory.pending:
        if news.fault or not isinstance(number, int) or number in held or number in fetched:
            continue
        try:
            thread, own, issue = read_thread(run.forge, run.own, number)
        except Gone as error:
            if error.certain:
                news = replace(news, records=(*news.records, tombstone(number, error, run.now)))
        except ForgeError as error:
            news = replace(news, fault=error)
        else:
            if run.settings.pulls or not issue.get("pull_request"):
                news = replace(news, records=(*news.records, thread), own={**news.own, number: own})
    return news


def fetch_missing(numbers: Iterable[int], run: RunContext, why: str) -> None:
    """Fetch once what memory does not hold; what cannot be had stays unknown. ``why`` it is wanted, for the notes."""
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
            if isinstance(error, Gone):  # what only cannot be seen now comes back as soon as it can be
                fetched.append(
                    tombstone(number, error, run.now) if error.certain else Tombstone(number, EPOCH, "unseen")
                )
            run.note(f"Issue {number}, {why}, could not be read: {error}")
    if fetched:
        run.memory.stage(Changes(records=tuple(fetched)))
