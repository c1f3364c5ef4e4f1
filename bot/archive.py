"""The JSON shape of a thread, as archives and records have it, in both directions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bot.model import GHOST, Kind, Message, Thread, ThreadId, TimelineEvent

KEPT_EVENTS = frozenset(
    {"closed", "reopened", "referenced", "cross-referenced", "marked_as_duplicate", "unmarked_as_duplicate", "transferred"}
)
MAX_TEXT = 65_536
"""Characters kept of one message: what GitHub accepts for one."""

MAX_THREAD = 1_000_000
"""Characters kept of a whole thread; beyond it the messages in the middle are shortened to MIDDLE_TEXT."""

MIDDLE_TEXT = 1_000
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: object) -> str:
    """A string that can be stored as UTF-8: NUL and lone surrogates become U+FFFD; None becomes ""."""
    return _UNSTORABLE.sub("�", str(text)) if text else ""


def thread_from_archive(fields: Mapping[str, Any]) -> Thread:
    """A thread from one line of an archive (the same shape as a record).

    Ids may be numbers or strings; bodies and authors may be null. Raises KeyError, TypeError or ValueError when id,
    title or times are missing or malformed.
    """
    events = _ending_events(fields)
    thread = Thread(
        id=parse_key(fields["id"]),
        kind=Kind(fields.get("kind") or ("pull" if fields.get("pull") else "issue")),
        title=clean(fields.get("title"))[:1024],
        body=clean(fields.get("body"))[:MAX_TEXT],
        author=clean(fields.get("author")) or GHOST,
        role=clean(fields.get("author_association")) or "NONE",
        is_bot=bool(fields.get("is_bot")) or clean(fields.get("author")).endswith("[bot]"),
        created_at=parse_time(fields["created_at"]),
        updated_at=_time_or_none(fields.get("updated_at")),
        state="closed" if fields.get("state") == "closed" else "open",
        state_reason=clean(fields.get("state_reason")) or None,
        closed_at=_time_or_none(fields.get("closed_at")),
        closed_by=clean(fields.get("closed_by")) or _last_closer(events),
        locked=bool(fields.get("locked")),
        labels=tuple(clean(label) for label in fields.get("labels") or ()),
        reactions=_reactions(fields),
        comments=tuple(sorted(map(_message, fields.get("comments") or ()), key=lambda m: (m.created_at, m.id or 0))),
        events=events,
    )
    return bounded(thread)


def bounded(thread: Thread) -> Thread:
    """The thread within MAX_THREAD characters: the longest conversations keep their beginning and end in full."""
    total = len(thread.body) + sum(len(c.text) for c in thread.comments)
    if total <= MAX_THREAD:
        return thread
    room = (MAX_THREAD - len(thread.body)) // 2
    keep, used, ends = set[int](), 0, list(range(len(thread.comments)))
    for index in sorted(ends, key=lambda i: min(i, len(ends) - 1 - i)):
        used += len(thread.comments[index].text)
        if used > room:
            break
        keep.add(index)
    middle = max(40, min(MIDDLE_TEXT, room // max(1, len(ends))))
    return replace(
        thread,
        comments=tuple(c if i in keep else replace(c, text=c.text[:middle]) for i, c in enumerate(thread.comments)),
    )


def archive_fields(thread: Thread) -> dict[str, object]:
    """The thread in the shape of an archive; fields with nothing in them are left out."""
    fields: dict[str, object] = {
        "id": thread.id,
        "kind": thread.kind.value,
        "title": thread.title,
        "body": thread.body,
        "author": thread.author,
        "author_association": thread.role,
        "is_bot": thread.is_bot,
        "created_at": stamp(thread.created_at),
        "updated_at": stamp(thread.updated_at),
        "state": thread.state,
        "state_reason": thread.state_reason,
        "closed_at": stamp(thread.closed_at),
        "closed_by": thread.closed_by,
        "locked": thread.locked,
        "labels": list(thread.labels),
        "reactions": dict(thread.reactions),
        "comments": [_message_fields(comment) for comment in thread.comments],
        "events": [_event_fields(event) for event in thread.events],
    }
    return without_defaults(fields)


def _message_fields(message: Message) -> dict[str, object]:
    return without_defaults(
        {
            "id": message.id,
            "author": message.author,
            "association": message.role,
            "is_bot": message.is_bot,
            "created_at": stamp(message.created_at),
            "updated_at": stamp(message.updated_at),
            "body": message.text,
            "reactions": dict(message.reactions),
        }
    )


def _event_fields(event: TimelineEvent) -> dict[str, object]:
    return without_defaults(
        {
            "event": event.name,
            "at": stamp(event.at),
            "actor": event.actor,
            "commit": event.commit,
            "source": event.source,
            "source_kind": event.source_kind.value if event.source_kind else None,
        }
    )


def without_defaults(fields: dict[str, object]) -> dict[str, object]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, False, [], {})}


def _message(fields: Mapping[str, Any]) -> Message:
    created = parse_time(fields["created_at"])
    updated = _time_or_none(fields.get("updated_at"))
    author = clean(fields.get("author")) or GHOST
    number = fields.get("id")
    return Message(
        id=number if isinstance(number, int) else None,
        author=author,
        role=clean(fields.get("association")) or "NONE",
        is_bot=bool(fields.get("is_bot")) or author.endswith("[bot]"),
        created_at=created,
        updated_at=updated if updated != created else None,
        text=clean(fields.get("body"))[:MAX_TEXT],
        reactions=_reactions(fields),
    )


def _ending_events(fields: Mapping[str, Any]) -> tuple[TimelineEvent, ...]:
    """What happened around the thread's endings; nothing for a thread that never ended, as nobody asks then."""
    events = sorted(_events(fields), key=lambda event: (event.at, event.name, str(event.source or "")))
    ended = fields.get("state") == "closed" or any(event.name == "closed" for event in events)
    return tuple(events) if ended else ()


def _events(fields: Mapping[str, Any]) -> list[TimelineEvent]:
    found = []
    for event in [*(fields.get("events") or ()), *(fields.get("xrefs") or ())]:
        if event.get("event") not in KEPT_EVENTS:
            continue
        source = event.get("source", event.get("from"))
        kind = event.get("source_kind", event.get("type"))
        found.append(
            TimelineEvent(
                name=event["event"],
                at=parse_time(event.get("at") or event["date"]),
                actor=clean(event.get("actor")) or GHOST,
                commit=clean(event.get("commit")) or None,
                source=parse_key(source) if source is not None else None,
                source_kind=Kind(kind) if kind in ("issue", "pull") else None,
            )
        )
    return found


def _last_closer(events: tuple[TimelineEvent, ...]) -> str | None:
    return next((event.actor for event in reversed(events) if event.name == "closed" and event.actor != GHOST), None)


def _reactions(fields: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    counts = fields.get("reactions") or {}
    return tuple(sorted((clean(name), int(count)) for name, count in counts.items() if int(count) > 0))


def parse_key(value: object) -> ThreadId:
    """A thread id from outside: a number from 1 to 2^53 or a name of at most 200 characters, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError(f"an id is a number or a name, not {value!r:.40}")
    if isinstance(value, int):
        if not 0 < value < 2**53:
            raise ValueError(f"no such number: {value!r:.40}")
        return value
    return clean(value)[:200]


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, ``2015-01-01T00:00:00Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def parse_time(value: object) -> datetime:
    """An ISO 8601 time (UTC where it names no zone); ValueError when it is none."""
    if not isinstance(value, str):
        raise ValueError(f"not a time: {value!r:.40}")
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _time_or_none(value: object) -> datetime | None:
    return parse_time(value) if value else None
