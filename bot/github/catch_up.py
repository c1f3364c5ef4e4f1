"""What changed since we last looked: at most two reads for the usual event, whatever was lost in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.archive import parse_time
from bot.github.errors import Gone
from bot.github.forge import Reader
from bot.github.threads import Own, OwnComment, archive_message, split_own, thread_of
from bot.model import Record, Thread, ThreadId, Tombstone

Json = Mapping[str, Any]
OVERLAP = timedelta(minutes=5)
"""How far behind the cursor a run looks again: clocks differ, and times are whole seconds."""

PAGES = 3
"""Pages of a hundred changed issues that an event's run reads; a longer backlog is history's job."""


@dataclass(frozen=True, slots=True)
class News:
    """What a look at the forge brought.

    ``own`` holds our comment on each issue of which all comments are known, None where there is none; issues that are
    not in it may or may not have one. ``cursor``: everything that changed before it is in here. ``complete`` is False
    when there is more than one run reads.
    """

    records: tuple[Record, ...] = ()
    own: Mapping[ThreadId, OwnComment | None] = field(default_factory=dict)
    cursor: datetime | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """What memory holds of the listed issues, and those on which a comment of ours stands or was promised."""

    records: Mapping[ThreadId, Record] = field(default_factory=dict)
    spoken: frozenset[ThreadId] = frozenset()


def catch_up(
    reader: Reader, own: Own, known: Known, listed: Sequence[Json], since: datetime | None
) -> News:
    """Read the threads of ``listed`` issues, given what memory knows of them."""
    changed = [issue for issue in listed if _is_news(issue, known)]
    cursor = max((parse_time(issue["updated_at"]) for issue in listed), default=None)
    stream = _stream(reader, changed, since)
    records: list[Record] = []
    ours: dict[ThreadId, OwnComment | None] = {}
    for issue in changed:
        thread, mine = _read(reader, own, issue, known, stream)
        records.append(thread)
        if mine is not None:
            ours[thread.id] = mine[0] if mine else None
    return News(tuple(records), ours, cursor)


def read_thread(reader: Reader, own: Own, number: int) -> tuple[Record, OwnComment | None, Json]:
    """One thread with all its comments, our comment on it, and the issue's JSON. A thread that is gone is a Tombstone."""
    issue = reader.issue(number)
    thread, mine = _read_whole(reader, own, issue)
    return thread, mine[0] if mine else None, issue


def tombstone(number: int, gone: Gone, now: datetime) -> Tombstone:
    """What stays of a thread that GitHub no longer has."""
    return Tombstone(number, now, "transferred" if gone.moved_to else "deleted", gone.moved_to)


def _is_news(issue: Json, known: Known) -> bool:
    """Whether the list shows something that memory does not hold. Times are whole seconds, so equal ones say nothing."""
    held = known.records.get(issue["number"])
    if held is None:
        return True
    updated = parse_time(issue["updated_at"])
    if updated != held.revised_at or not isinstance(held, Thread):
        return updated > held.revised_at
    listed = thread_of(issue, [])
    same = (listed.title, listed.body, listed.state, listed.closed_at, listed.labels, listed.locked) == (
        held.title, held.body, held.state, held.closed_at, held.labels, held.locked,
    )  # fmt: skip
    unseen = int(issue.get("comments") or 0) - len(held.comments)
    return not same or unseen not in ((0, 1) if held.id in known.spoken else (0,))


def _stream(reader: Reader, changed: Sequence[Json], since: datetime | None) -> dict[int, list[Json]] | None:
    """The comments of all changed issues in one read; None where reading them one by one is as cheap."""
    talked = [issue for issue in changed if issue.get("comments")]
    if since is None or len(talked) < 2:
        return None
    found, complete = reader.comments_since(since, PAGES)
    if not complete:
        return None
    stream: dict[int, list[Json]] = {issue["number"]: [] for issue in changed}
    for comment in found:
        number = str(comment.get("issue_url") or "").rpartition("/")[2]
        if number.isdigit() and int(number) in stream:
            stream[int(number)].append(comment)
    return stream


def _read(
    reader: Reader, own: Own, issue: Json, known: Known, stream: Mapping[int, list[Json]] | None
) -> tuple[Thread, list[OwnComment] | None]:
    """The thread, and our comments on it if all its comments are known."""
    held = known.records.get(issue["number"])
    closed_anew = _has_ended(issue) and not _has_ending(issue, held)
    if not issue.get("comments") and not closed_anew:
        return thread_of(issue, [], _old_events(held)), []
    if stream is not None and not closed_anew:
        merged = _merge(own, issue, known, stream[issue["number"]])
        if merged is not None:
            return merged
    return _read_whole(reader, own, issue)


def _merge(
    own: Own, issue: Json, known: Known, news: Sequence[Json]
) -> tuple[Thread, list[OwnComment] | None] | None:
    """What memory holds, with the stream on top; None when comments are missing or were deleted."""
    held = known.records.get(issue["number"])
    old = held.comments if isinstance(held, Thread) else ()
    by_id: dict[int, Json] = {message.id: archive_message(message) for message in old if message.id is not None}
    by_id |= {int(comment["id"]): comment for comment in news}
    others, ours = split_own(by_id.values(), own)
    unseen = int(issue["comments"]) - len(others) - len(ours)
    if unseen == 0:
        return thread_of(issue, others, _old_events(held)), ours
    if unseen == 1 and not ours and issue["number"] in known.spoken:
        return thread_of(issue, others, _old_events(held)), None
    return None


def _read_whole(reader: Reader, own: Own, issue: Json) -> tuple[Thread, list[OwnComment]]:
    if _has_ended(issue):
        items = reader.timeline(issue["number"])
        comments = [{**item, "user": item.get("user") or item.get("actor")} for item in items if is_comment(item)]
        others, ours = split_own(comments, own)
        return thread_of(issue, others, items), ours
    if not issue.get("comments"):
        return thread_of(issue, []), []
    others, ours = split_own(reader.comments(issue["number"]), own)
    return thread_of(issue, others), ours


def _has_ended(issue: Json) -> bool:
    """Whether the issue was ever closed, as far as its own fields tell: then its timeline holds the ending."""
    return issue.get("state") == "closed" or issue.get("state_reason") == "reopened"


def is_comment(item: Json) -> bool:
    """Whether an item of a timeline is a comment."""
    return item.get("event") == "commented" and "id" in item and "created_at" in item


def _has_ending(issue: Json, held: Record | None) -> bool:
    """Whether memory knows this very ending, with the events around it."""
    if not isinstance(held, Thread):
        return False
    closed_at = issue.get("closed_at")
    if not closed_at:
        return held.state_reason == "reopened" and issue.get("state") == "open"
    return held.closed_at == parse_time(closed_at)


def _old_events(held: Record | None) -> list[Json]:
    if not isinstance(held, Thread):
        return []
    return [
        {
            "event": event.name,
            "created_at": event.at.isoformat(),
            "actor": {"login": event.actor},
            "commit_id": event.commit,
            "source": {"issue": {"number": event.source, "pull_request": event.source_kind == "pull"}},
        }
        for event in held.events
    ]
