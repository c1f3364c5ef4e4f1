"""Reads all changes since the last run, with at most two requests for the usual event.

Each thread is read separately, so one that cannot be read does not stop the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bot.domain.thread import Message, Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import limit_size, parse_time
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Gone, IssuesOff, RateLimited
from bot.github.threads import OwnComment, OwnCommentRule, split_own, thread_of
from bot.github.transport import PER_PAGE

IssueFields = dict[str, Any]
Json = Mapping[str, Any]
OVERLAP = timedelta(minutes=5)
"""How far before the cursor a run reads again: clocks differ, and times are whole seconds."""

MAX_PAGES = 3
"""Pages of a hundred changed issues that a run reads; a longer backlog is read in bulk, as history."""

TOMBSTONE_OFFSET = timedelta(seconds=1)
"""How long after its last listed change a missing thread counts as gone; the true time is unknown."""


@dataclass(frozen=True, slots=True)
class Updates:
    """Changes read from the forge.

    ``own`` has our comment, or None, for each issue whose comments are all known; other issues may have one too.
    Everything that changed before ``cursor`` is included. ``complete`` is False if there is more. ``total`` is the
    expected number of threads, in the first of several batches. ``fault`` is a limit or outage that hid some changes.
    ``listed`` are the numbers of a batch of history; ``unread`` has those whose content could not be read, with the
    time of creation.
    """

    records: tuple[Record, ...] = ()
    own: Mapping[ThreadId, OwnComment | None] = field(default_factory=dict)
    cursor: datetime | None = None
    complete: bool = True
    total: int | None = None
    fault: ForgeError | None = None
    listed: frozenset[int] = frozenset()
    unread: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def limited(self) -> RateLimited | None:
        """The limit that was reached, if any: nothing more may be requested in this run."""
        return self.fault if isinstance(self.fault, RateLimited) else None


class ListedIssue(NamedTuple):
    """An issue as listed: it exists, even if its content cannot be read."""

    number: int
    created_at: datetime
    updated_at: datetime


def read_each(listed: Mapping[ListedIssue, IssueFields], read: Callable[[IssueFields], Record]) -> Updates:
    """Read these issues one by one; the cursor comes after all of them.

    An issue that GitHub calls gone becomes a tombstone; one that the token cannot see is listed as unread. Raises
    ForgeError for faults that do not concern one issue alone.
    """
    records: list[Record] = []
    unread: dict[int, datetime] = {}
    for issue, fields in listed.items():
        try:
            records.append(read(fields))
        except IssuesOff:
            raise
        except Gone as error:
            if error.certain:  # since it was listed
                records.append(tombstone(issue.number, error, issue.updated_at + TOMBSTONE_OFFSET))
            else:
                unread[issue.number] = issue.created_at
    cursor = max((issue.updated_at for issue in listed), default=None)
    return Updates(tuple(records), cursor=cursor, listed=frozenset(issue.number for issue in listed), unread=unread)


@dataclass(frozen=True, slots=True)
class KnownIssues:
    """The stored state of the listed issues, and how many of our comments were seen on each.

    The number of comments proves nothing for issues that are ``unsure``, which may have replies of ours, nor for those
    with a comment that is ``promised`` but not seen yet. Issues that were ``touched`` are always read: a comment may be
    edited, or deleted and followed by another, within the second of the last read.
    """

    records: Mapping[ThreadId, Record] = field(default_factory=dict)
    ours: Mapping[ThreadId, int] = field(default_factory=dict)
    unsure: frozenset[ThreadId] = frozenset()
    promised: frozenset[ThreadId] = frozenset()
    touched: frozenset[ThreadId] = frozenset()


def catch_up(
    reader: GitHubClient, own: OwnCommentRule, known: KnownIssues, listed: Sequence[Json], since: datetime | None
) -> Updates:
    """Read the threads of ``listed`` issues that differ from memory.

    An issue that cannot be read holds the cursor back, so that the next run lists it again; the others are still read.
    """
    changed = [issue for issue in listed if _is_changed(issue, known)]
    records: list[Record] = []
    ours: dict[ThreadId, OwnComment | None] = {}
    unread: list[Json] = []
    fault: ForgeError | None = None
    try:
        stream = _read_stream(reader, changed, since)
    except ForgeError:  # then one by one, if that is still possible
        stream = None
    for issue in changed:
        try:
            thread, own_comments = _read_changed(reader, own, issue, known, stream)
        except ForgeError as error:
            if isinstance(error, Gone) and error.certain:  # since it was listed
                records.append(tombstone(issue["number"], error, parse_time(issue["updated_at"]) + TOMBSTONE_OFFSET))
                continue
            unread.append(issue)
            fault = fault if isinstance(error, Gone) else fault or error
            continue
        records.append(thread)
        if own_comments is not None:
            ours[thread.id] = own_comments[0] if own_comments else None
    cursor = min((parse_time(issue["updated_at"]) for issue in unread or listed[-1:]), default=None)
    return Updates(tuple(records), ours, cursor, not unread, fault=fault)


def read_thread(
    reader: GitHubClient, own: OwnCommentRule, number: int, stored: Record | None, *, fresh: bool = False
) -> tuple[Thread, OwnComment | None, Json]:
    """Read one thread with all its comments, our comment on it, and the issue's JSON. Raises Gone.

    ``stored``: the thread as memory has it. ``fresh``: it was just opened and may not be visible yet.
    """
    issue = reader.issue(number, fresh=fresh)
    thread, own_comments = _read_whole(reader, own, issue, stored)
    return thread, own_comments[0] if own_comments else None, issue


def tombstone(number: int, gone: Gone, now: datetime) -> Tombstone:
    return Tombstone(number, now, "transferred" if gone.moved_to else "deleted", gone.moved_to)


def _is_changed(issue: Json, known: KnownIssues) -> bool:
    """Whether the listed issue differs from memory. Times are whole seconds, so equal times prove nothing."""
    stored = known.records.get(issue["number"])
    if stored is None:
        return True
    updated = parse_time(issue["updated_at"])
    if updated != stored.revised_at or not isinstance(stored, Thread):
        return updated > stored.revised_at
    unseen = int(issue.get("comments") or 0) - len(stored.comments)
    is_unsure = stored.id in known.unsure | known.promised | known.touched
    is_same = _listed_fields(thread_of(issue, [])) == _listed_fields(stored)
    return not is_same or is_unsure or unseen != known.ours.get(stored.id, 0)


def _listed_fields(thread: Thread) -> tuple[object, ...]:
    """What a listing shows of a thread besides times and the number of comments."""
    state = (thread.state, thread.state_reason, thread.closed_at)
    return thread.title, thread.body, *state, thread.labels, thread.locked


def _read_stream(reader: GitHubClient, changed: Sequence[Json], since: datetime | None) -> dict[int, list[Json]] | None:
    """The comments of all changed issues from one list; None if reading them one by one is as cheap."""
    pages = sum(math.ceil(int(issue.get("comments") or 0) / PER_PAGE) for issue in changed)
    if since is None or pages < 2:
        return None
    comments, complete = reader.comments_since(since, MAX_PAGES)
    if not complete:
        return None
    stream: dict[int, list[Json]] = {issue["number"]: [] for issue in changed}
    for comment in comments:
        number = str(comment.get("issue_url") or "").rpartition("/")[2]
        if number.isdecimal() and int(number) in stream:
            stream[int(number)].append(comment)
    return stream


def _read_changed(
    reader: GitHubClient, own: OwnCommentRule, issue: Json, known: KnownIssues, stream: Mapping[int, list[Json]] | None
) -> tuple[Thread, list[OwnComment] | None]:
    """The thread, and our comments on it if all its comments are known."""
    stored = known.records.get(issue["number"])
    is_new_ending = has_ended(issue) and not _has_stored_ending(issue, stored)
    if not issue.get("comments") and not is_new_ending:
        return _as_listed(issue, (), stored), []
    if stream is not None and not is_new_ending:
        merged = _merge(own, issue, known, stream[issue["number"]])
        if merged is not None:
            return merged
    return _read_whole(reader, own, issue, stored)


def _with_known_sources(thread: Thread, stored: Record | None) -> Thread:
    """The thread with the sources of events that GraphQL gave and REST does not, such as of duplicate marks."""
    by_moment = {(event.name, event.at): event for event in (stored.events if isinstance(stored, Thread) else ())}
    events = (
        by_moment.get((event.name, event.at), event) if event.source is None else event for event in thread.events
    )
    return replace(thread, events=tuple(events))


def _merge(
    own: OwnCommentRule, issue: Json, known: KnownIssues, new_comments: Sequence[Json]
) -> tuple[Thread, list[OwnComment] | None] | None:
    """The stored comments updated from the stream; None if comments are missing or were deleted."""
    stored = known.records.get(issue["number"])
    new = {int(comment["id"]): comment for comment in new_comments}
    others, ours = split_own(new.values(), own)
    old = stored.comments if isinstance(stored, Thread) else ()
    kept = [message for message in old if message.id is not None and message.id not in new]
    ours_elsewhere = max(0, known.ours.get(issue["number"], 0) - (len(new) - len(others)))
    is_sure = issue["number"] not in known.unsure and (bool(ours) or issue["number"] not in known.promised)
    if not is_sure or int(issue["comments"]) - len(kept) - len(new) != ours_elsewhere:
        return None
    return _as_listed(issue, [*kept, *thread_of(issue, others).comments], stored), None if ours_elsewhere else ours


def _as_listed(issue: Json, comments: Iterable[Message], stored: Record | None) -> Thread:
    """The listed issue with these comments, and the events that memory has of it."""
    thread, before = thread_of(issue, []), stored if isinstance(stored, Thread) else None
    return limit_size(
        replace(
            thread,
            comments=tuple(sorted(comments, key=lambda message: (message.created_at, message.id or 0))),
            events=before.events if before else (),
            closed_by=thread.closed_by or (before.closed_by if before else None),
        )
    )


def _read_whole(
    reader: GitHubClient, own: OwnCommentRule, issue: Json, stored: Record | None
) -> tuple[Thread, list[OwnComment]]:
    comments: Sequence[Json] = ()
    events: Sequence[Json] = ()
    if has_ended(issue):
        events = reader.timeline(issue["number"])
        comments = comments_of(events)
    elif issue.get("comments"):
        comments = reader.comments(issue["number"])
    others, ours = split_own(comments, own)
    return _with_known_sources(thread_of(issue, others, events), stored), ours


def has_ended(issue: Json) -> bool:
    """Whether its own fields say that the issue was ever closed: then its timeline has the ending."""
    return issue.get("state") == "closed" or issue.get("state_reason") == "reopened"


def comments_of(timeline: Iterable[Json]) -> list[Json]:
    """Return the comments in a timeline, in the shape of the comments API."""
    comments = (item for item in timeline if item.get("event") == "commented" and "id" in item and "created_at" in item)
    return [{**item, "user": item.get("user") or item.get("actor")} for item in comments]


def _has_stored_ending(issue: Json, stored: Record | None) -> bool:
    """Whether memory has this very ending and its events. A reopened issue has no closing date."""
    closed_at = issue.get("closed_at")
    return isinstance(stored, Thread) and bool(closed_at) and stored.closed_at == parse_time(closed_at)
