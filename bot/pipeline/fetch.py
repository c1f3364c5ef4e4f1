"""Fetches all changes since the last run, not just the event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.domain.changes import Changes
from bot.domain.post import Post
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import parse_time
from bot.errors import UserError
from bot.github.errors import ForgeError, Gone, IssuesOff, RateLimited, Unauthorised, Unreachable
from bot.github.events import Event
from bot.github.updates import MAX_PAGES, OVERLAP, KnownIssues, Updates, catch_up, read_thread, tombstone
from bot.pipeline.backfill import Deadline, backfill
from bot.pipeline.discussions import read_current
from bot.pipeline.eligibility import answers_kind
from bot.pipeline.promises import seen_comments
from bot.pipeline.requests import unread_requests
from bot.pipeline.tools import Facts, Tools
from bot.settings.schema import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

MAX_HIDDEN_CHECKS = 5
"""Threads hidden by GitHub that a scheduled run asks about, with one read each."""

REMOVAL_PAUSE = 2.0
"""Seconds until GitHub is asked again about a thread that it shows although the event calls it gone: not all of its
servers may know of the removal yet."""


def fetch_changes(event: Event, run: Tools) -> Facts:
    """Read everything that changed since the last run, not just the event's thread, and what memory knew about it."""
    own_ids = [event.number] if event.number else []
    memory = run.memory.open(own_ids)
    is_first = memory.state.manifest.cursor is None
    late = _read_history(run, None) if is_first else ()
    since = memory.state.manifest.cursor - OVERLAP if memory.state.manifest.cursor else None
    listed, complete = _list_changes(event, since, run)
    if not complete:
        listed = []
        if not is_first:  # the first run has just read it as history
            run.note("Too much changed since the last run to list it, so it was read as history.")
            late = _read_history(run, since)
    ids = list(dict.fromkeys([*(issue["number"] for issue in listed), *own_ids, *memory.state.manifest.pending, *late]))
    memory.state.prefetch(ids)
    stored, comments = dict(memory.whole_records(ids)), memory.state.comments(ids)
    more_posts = (
        key for key, thread in memory.state.posts(ids).items() if any(not post.key.is_comment for post in thread.posts)
    )
    known = replace(
        _known_issues(stored, comments, [*memory.requests(ids), *more_posts]), touched=_touched_threads(event)
    )
    to_read = [issue for issue in listed if _is_wanted(issue, stored, run)]
    updates = catch_up(run.forge, run.own, known, to_read, since)
    if updates.complete:  # pull requests move the cursor too: they are in the same list
        updates = replace(updates, cursor=max((parse_time(issue["updated_at"]) for issue in listed), default=None))
    if event.number and (event.forgets or not updates.limited):  # no later list has what is gone
        updates = _with_event_thread(updates, event, stored, {issue["number"] for issue in listed}, run)
    updates = _with_unread(updates, event, stored, run)
    if updates.limited:
        run.report_fault(updates.limited)
        run.note("Not all changes could be read.")
    elif updates.fault:
        run.report_fault(updates.fault)
    settled = seen_comments(comments, updates.own, run.now - run.max_age)
    return Facts(
        event,
        updates,
        run.now,
        run.address,
        comments | settled,
        settled,
        late,
        new_posts_left=run.new_posts_left(),
        is_first=is_first,
        max_age=run.max_age,
        limit=str(updates.limited or ""),
    )


def _known_issues(
    stored: Mapping[ThreadId, Record], comments: Mapping[ThreadId, Post], unsure: Iterable[ThreadId]
) -> KnownIssues:
    """What memory knows about threads and our comments on them. On the ``unsure`` ones we may have replies or notices,
    even replies to comments that are gone by now."""
    stands = {key: 1 for key, post in comments.items() if post.state in ("said", "withdrawn")}
    promised = frozenset(key for key, post in comments.items() if post.state == "pending" and post.content)
    return KnownIssues(stored, stands, frozenset(unsure), promised)


def _touched_threads(event: Event) -> frozenset[ThreadId]:
    """The thread whose comment was edited or deleted. The list does not show an edit, nor a deletion if another comment
    followed within the same second."""
    may_be_unlisted = event.name == "issue_comment" and event.action in ("edited", "deleted")
    return frozenset([event.number]) if may_be_unlisted and event.number else frozenset()


def _is_wanted(issue: Mapping[str, Any], stored: Mapping[ThreadId, Record], run: Tools) -> bool:
    """Whether to read a listed thread: a pull request only if the settings say so, an issue has referred to it, or one
    of our comments shows it."""
    if run.settings.pulls or not issue.get("pull_request") or isinstance(stored.get(issue["number"]), Thread):
        return True
    return run.memory.state.is_shown(issue["number"])


def _read_history(run: Tools, since: datetime | None) -> tuple[ThreadId, ...]:
    """Read history for a while: before the first answer, and when too much changed to read it one by one.

    Returns the threads read that are still fresh. A limit or an outage ends the reading; what was read is kept, and the
    event is still handled.
    """
    reading = run.memory.state.manifest.reading
    is_next = reading is not None and reading.upto is not None and since is not None and since <= reading.upto
    deadline = Deadline(run.clock, run.now, run.reading_seconds, max_age=run.max_age)
    read = backfill(
        run.memory, run.history, deadline, since, partial(unread_requests, run=run), reading if is_next else None
    )
    run.on_history(read)
    if isinstance(read.stopped, RateLimited) and not read.stopped.is_secondary:  # on GraphQL points, not on requests
        run.report_fault(read.stopped)
    elif read.stopped and not isinstance(read.stopped, Unreachable):
        raise read.stopped
    if not read.complete:
        why = "" if isinstance(read.stopped, RateLimited) else f" ({read.why})"  # a limit is reported separately
        run.note(f"Not all of the history is read yet{why}: the next runs continue, or start one with run: rebuild.")
    entries = run.memory.entries(read.seen)
    return tuple(key for key, entry in entries.items() if entry.created_at > run.now - run.max_age)


def _list_changes(event: Event, since: datetime | None, run: Tools) -> tuple[list[dict[str, Any]], bool]:
    """The threads that changed since then, and whether the list is complete. If it cannot be read, GitHub is still
    asked about a thread that the event says is gone, as no later list has it."""
    try:
        return run.forge.issues_since(since, MAX_PAGES) if since else ([], True)
    except ForgeError:
        if event.forgets and event.number:
            read = _with_removal(Updates(), event, run.memory.whole_records([event.number]), run, is_listed=False)
            run.memory.stage(Changes(records=read.records))
            run.memory.commit(f"Remember {event.name} {event.action} of {event.number}")
        raise


def _with_removal(
    updates: Updates, event: Event, stored: Mapping[ThreadId, Record], run: Tools, *, is_listed: bool = True
) -> Updates:
    """The updates with a thread that the event calls gone, as GitHub has it now: anybody who has an old delivery may
    send it again.

    ``is_listed``: the list of changes could be read, so a 404 is about this thread and not about the repository. If
    GitHub does not say, the thread is not shown until it does.
    """
    number = event.number
    assert number is not None
    others = replace(updates, records=tuple(record for record in updates.records if record.id != number))
    try:
        _with_current(others, event, number, run)
        run.forge.pause_requests(REMOVAL_PAUSE)
        return _with_current(others, event, number, run)
    except ForgeError as error:
        if isinstance(error, Gone) and not isinstance(error, IssuesOff) and (error.certain or is_listed):
            return replace(others, records=(*others.records, _tombstone_of(event, number, stored.get(number), run)))
        _hide(number, run)
        return replace(updates, fault=updates.fault or error)


def _with_current(updates: Updates, event: Event, number: int, run: Tools) -> Updates:
    """The updates with the event's thread. Raises ForgeError."""
    if not event.is_of_discussion:
        return _with_thread(updates, number, run)
    return replace(updates, records=(*updates.records, run.discussions.read_one(number)))


def _tombstone_of(event: Event, number: int, stored: Record | None, run: Tools) -> Tombstone:
    """The tombstone of the event's thread, no older than its record, whose time may be ahead of the runner's clock."""
    at = max(run.now, stored.revised_at) if stored else run.now
    return Tombstone(number, at, event.action, event.moved_to)


def _with_event_thread(
    updates: Updates, event: Event, stored: Mapping[ThreadId, Record], listed: Collection[int], run: Tools
) -> Updates:
    """The updates with the event's own thread, which may be missing from the list."""
    number = event.number
    assert number is not None
    if event.forgets:
        return _with_removal(updates, event, stored, run)
    if event.is_of_discussion:  # the REST API has no discussions
        return updates
    if (event.is_pull and not run.settings.pulls) or any(record.id == number for record in updates.records):
        return updates
    if number in stored and (
        _is_discussion_to_answer(stored[number], event, run.settings)
        or number in listed
        or not run.memory.state.is_shown(number)
    ):
        return updates
    try:
        return _with_thread(updates, number, run, fresh=event.may_be_answered)
    except Gone as error:
        return _handle_missing(updates, event, error, run)
    except ForgeError as error:
        _promise_answer(event, error, run)
        return replace(updates, fault=updates.fault or error)


def _is_discussion_to_answer(stored: Record, event: Event, settings: Settings) -> bool:
    """Whether somebody started this run by hand for a discussion. Raises UserError if discussions are not answered."""
    if event.name != "workflow_dispatch" or not isinstance(stored, Thread) or stored.kind is not Kind.DISCUSSION:
        return False
    if not answers_kind(stored.kind, settings):
        cause = f"{stored.id} is a discussion, and those are answered only with discussions.answer: true"
        raise UserError(f"{cause}; give the number of an issue")
    return True


def _with_thread(updates: Updates, number: int, run: Tools, *, fresh: bool = False) -> Updates:
    """The updates with this thread as GitHub has it now, unless it is an unwanted pull request. Raises ForgeError."""
    stored = run.memory.state.records([number]).get(number)
    thread, own, issue = read_thread(run.forge, run.own, number, stored, fresh=fresh)
    if issue.get("pull_request") and not run.settings.pulls:
        return updates
    return replace(updates, records=(*updates.records, thread), own={**updates.own, number: own})


def _handle_missing(updates: Updates, event: Event, gone: Gone, run: Tools) -> Updates:
    number = event.number
    assert number is not None
    if event.name == "workflow_dispatch":
        raise UserError(f"issue {number} cannot be answered: {gone}; give the number of an issue of this repository")
    if gone.certain:
        return replace(updates, records=(*updates.records, tombstone(number, gone, run.now)))
    run.note(f"Issue {number} is not visible now, and was left unchanged: {gone}")
    if run.memory.state.is_shown(number):
        _hide(number, run)
    _promise_answer(event, gone, run)
    return updates


def _hide(number: int, run: Tools) -> None:
    """Show the thread nowhere until GitHub shows it again."""
    run.memory.stage(Changes(hidden_by_github=(Tombstone(number, run.now, "unseen"),)))


def _promise_answer(event: Event, why: ForgeError, run: Tools) -> None:
    """Promise an answer on a thread that cannot be read now. The event comes only once, and perhaps no list ever shows
    the thread, for example while GitHub takes its author for a spammer."""
    if event.number and event.may_be_answered and not run.memory.state.comments([event.number]):
        promise = Post(event.number, "pending", run.now, reason=f"it could not be read: {why}")
        run.memory.stage(Changes(posts=(promise,)))


def _with_unread(updates: Updates, event: Event, stored: Mapping[ThreadId, Record], run: Tools) -> Updates:
    """The updates with promised threads that could not be read so far. A scheduled run also asks about the threads that
    are hidden since lately: GitHub may have been unable to say that they are gone."""
    fetched, manifest = {record.id for record in updates.records}, run.memory.state.manifest
    hidden = manifest.hidden_by_github[-MAX_HIDDEN_CHECKS:] if event.is_maintenance else ()
    for number in (*manifest.pending, *hidden):
        if updates.fault or not isinstance(number, int) or number in stored or number in fetched:
            continue
        try:
            updates = _with_thread(updates, number, run)
        except Gone as error:
            if error.certain:
                updates = replace(updates, records=(*updates.records, tombstone(number, error, run.now)))
        except ForgeError as error:
            updates = replace(updates, fault=error)
    return updates


def fetch_missing(numbers: Iterable[int], run: Tools, why: str) -> None:
    """Fetch each thread that memory lacks, once; if it cannot be read, it stays unknown. ``why`` is for the notes."""
    ids = list(numbers)
    stored = run.memory.whole_records(ids)
    has_discussions = run.memory.state.manifest.discussions is not None
    fetched: list[Record] = []
    for number in ids:
        if number in stored:
            continue
        try:
            fetched.append(
                read_current(number, run) if has_discussions else read_thread(run.forge, run.own, number, None)[0]
            )
        except (RateLimited, Unauthorised):
            raise
        except ForgeError as error:
            if isinstance(error, Gone):  # a thread that is only hidden now comes back as soon as it is visible
                fetched.append(
                    tombstone(number, error, run.now) if error.certain else Tombstone(number, EPOCH, "unseen")
                )
            run.note(f"Issue {number}, {why}, could not be read: {error}")
    if fetched:
        run.memory.stage(Changes(records=tuple(fetched)))
