"""Reads and writes a thread as JSON, the format of archives and records."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from bot.domain.bounds import MAX_NAME, MAX_TITLE
from bot.domain.kinds import Kind
from bot.domain.roles import known_role
from bot.domain.secrets import mask_secrets
from bot.domain.shape import one_word
from bot.domain.thread import GHOST, Message, Thread, ThreadId, TimelineEvent

Item = TypeVar("Item")

ANSWERED = "answered"
"""The event, and the closing reason, of a discussion in which an answer is marked."""

KEPT_EVENTS = frozenset(
    {
        ANSWERED,
        "closed",
        "reopened",
        "referenced",
        "cross-referenced",
        "marked_as_duplicate",
        "unmarked_as_duplicate",
        "transferred",
    }
)
MAX_TEXT = 65_536
"""Characters stored of one message, GitHub's own limit."""

MAX_THREAD_CHARS = 1_000_000
"""Characters stored of a whole thread; in longer ones the messages in the middle are shortened to MAX_MIDDLE_TEXT."""

MAX_MIDDLE_TEXT = 1_000

MAX_MESSAGES = 10_000
"""Comments stored of one thread, and as many events; GitHub allows 2,500 comments. Those in the middle are left out."""

MAX_LABELS = 100
"""GitHub's own limit for one issue."""

_NUMBER_LIMIT = 2**53
"""Numbers below this are exact in every program that reads JSON."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_GITHUB_KINDS = {kind.value: kind for kind in Kind if kind.is_on_github}

MIN_TIME, MAX_TIME = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""The bounds of a valid time."""

MAX_AHEAD = timedelta(minutes=5)
"""How far a stored time may be ahead of the forge's clock."""


class TimeLimit(NamedTuple):
    """The latest time that a memory may hold: ``at_hand`` by this machine's clock. What is later is compared with
    ``exact``, which may ask the forge."""

    at_hand: datetime
    exact: Callable[[], datetime]


NO_LIMIT = TimeLimit(MAX_TIME, lambda: MAX_TIME)

_limit: ContextVar[TimeLimit] = ContextVar("limit", default=NO_LIMIT)


class FutureTime(ValueError):
    """A time that has not come yet: whoever stored it wanted it to count as newer than anything that will happen."""


@contextmanager
def no_time_after(limit: TimeLimit) -> Iterator[None]:
    """A block in which `parse_time` refuses later times: for what is read from a memory, to which others can push."""
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def storable(text: object) -> str:
    """A string that can be stored as UTF-8: NUL and lone surrogates become U+FFFD, anything but text becomes ""."""
    return _UNSTORABLE.sub("�", str(text)) if text and isinstance(text, str | int | float) else ""


def storable_text(text: object) -> str:
    """A text from outside, of any length, as it is stored: storable, and with secrets masked."""
    return mask_secrets(storable(text))


def thread_from_archive(fields: Mapping[str, Any]) -> Thread:
    """A thread from one line of an archive (the same format as a record).

    Ids may be numbers or strings, bodies and authors null, labels names or objects with a name. Raises KeyError,
    TypeError or ValueError when the id or a time is missing or a field has the wrong type.
    """
    fields = _require_object(fields)
    events = _ending_events(fields)
    thread = Thread(
        id=parse_key(fields["id"]),
        kind=Kind(fields.get("kind") or ("pull" if fields.get("pull") else "issue")),
        title=_require_text(fields.get("title"))[:MAX_TITLE],
        body=_require_text(fields.get("body"))[:MAX_TEXT],
        author=_name(fields.get("author")) or GHOST,
        role=known_role(fields.get("author_association")),
        is_bot=bool(fields.get("is_bot")) or _name(fields.get("author")).endswith("[bot]"),
        created_at=parse_time(fields["created_at"]),
        updated_at=time_or_none(fields.get("updated_at")),
        state="closed" if fields.get("state") == "closed" else "open",
        state_reason=one_word(fields.get("state_reason")) or None,
        closed_at=time_or_none(fields.get("closed_at")),
        closed_by=_name(fields.get("closed_by")) or _last_closer(events),
        locked=bool(fields.get("locked")),
        draft=bool(fields.get("draft")),
        merged_at=time_or_none(fields.get("merged_at")) or _merged_at(fields),
        labels=_labels(fields),
        comments=_ends(sorted(map(_message, _list(fields, "comments")), key=lambda m: (m.created_at, m.id or 0))),
        events=events,
        deciders=_logins(fields, "deciders"),
        merge_bots=_logins(fields, "merge_bots"),
        release_bots=_logins(fields, "release_bots"),
        assignees=_logins(fields, "assignees"),
    )
    return limit_size(thread)


def limit_size(thread: Thread) -> Thread:
    """The thread within MAX_THREAD_CHARS: long conversations keep their beginning and end in full."""
    total = len(thread.body) + sum(len(c.text) for c in thread.comments)
    if total <= MAX_THREAD_CHARS:
        return thread
    room = (MAX_THREAD_CHARS - len(thread.body)) // 2
    keep, used, indexes = set[int](), 0, list(range(len(thread.comments)))
    for index in sorted(indexes, key=lambda i: min(i, len(indexes) - 1 - i)):
        used += len(thread.comments[index].text)
        if used > room:
            break
        keep.add(index)
    middle = min(MAX_MIDDLE_TEXT, max(0, room) // max(1, len(indexes)))
    return replace(
        thread,
        comments=tuple(c if i in keep else c.shortened(middle) for i, c in enumerate(thread.comments)),
    )


_STORED_NAMES: dict[type, dict[str, str]] = {
    Thread: {"role": "author_association"},
    Message: {"role": "association", "text": "body"},
    TimelineEvent: {"name": "event"},
}
"""The names of fields that differ in an archive."""


def archive_fields(value: Thread | Message | TimelineEvent) -> dict[str, object]:
    """The thread, or a part of it, in the format of an archive, without empty fields."""
    names = _STORED_NAMES[type(value)]
    values = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return without_defaults({names.get(name, name): _stored_value(name, item) for name, item in values.items()})


def _stored_value(name: str, value: Any) -> object:
    if name == "reactions":
        return dict(value)
    if isinstance(value, tuple):
        return [_stored_value("", item) for item in value]
    if isinstance(value, datetime):
        return stamp(value)
    return archive_fields(value) if type(value) in _STORED_NAMES else value


def without_defaults(values: dict[str, object]) -> dict[str, object]:
    """The values without those that are None, False or empty."""
    return {name: value for name, value in values.items() if value not in (None, False, "", [], {})}


def _message(fields: Mapping[str, Any]) -> Message:
    fields = _require_object(fields)
    created = parse_time(fields["created_at"])
    updated = time_or_none(fields.get("updated_at"))
    author = _name(fields.get("author")) or GHOST
    return Message(
        id=parse_number(fields.get("id")),
        author=author,
        role=known_role(fields.get("association")),
        is_bot=bool(fields.get("is_bot")) or author.endswith("[bot]"),
        created_at=created,
        updated_at=updated if updated != created else None,
        text=_require_text(fields.get("body"))[:MAX_TEXT],
        reactions=_reactions(fields),
        whole_text_id=_name(fields.get("whole_text_id")),
    )


def _ending_events(fields: Mapping[str, Any]) -> tuple[TimelineEvent, ...]:
    """The events of a thread that was closed at least once; those of others are not needed."""
    events = sorted(_events(fields), key=lambda event: (event.at, event.name, str(event.source or "")))
    was_closed = fields.get("state") == "closed" or any(event.name == "closed" for event in events)
    return _ends(events) if was_closed else ()


def _events(fields: Mapping[str, Any]) -> list[TimelineEvent]:
    events = []
    for event in map(_require_object, [*_list(fields, "events"), *_list(fields, "xrefs")]):
        if event.get("event") not in KEPT_EVENTS:
            continue
        source = event.get("source", event.get("from"))
        kind = event.get("source_kind", event.get("type"))
        events.append(
            TimelineEvent(
                name=event["event"],
                at=parse_time(event.get("at") or event["date"]),
                actor=_name(event.get("actor")) or GHOST,
                commit=one_word(event.get("commit")) or None,
                source=parse_key(source) if source is not None else None,
                source_kind=_GITHUB_KINDS.get(kind),
                comment=parse_number(event.get("comment")),
                merged_at=time_or_none(event.get("merged_at")),
                closes=event.get("closes") is True,
            )
        )
    return events


def _merged_at(fields: Mapping[str, Any]) -> datetime | None:
    """When it was merged, from an archive that has this only as an event."""
    events = (event for event in map(_require_object, _list(fields, "events")) if event.get("event") == "merged")
    return next((parse_time(event.get("at") or event["date"]) for event in events), None)


def _last_closer(events: tuple[TimelineEvent, ...]) -> str | None:
    return next((event.actor for event in reversed(events) if event.name == "closed" and event.actor != GHOST), None)


def _reactions(fields: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    counts = {
        _name(name): parse_number(count) for name, count in _require_object(fields.get("reactions") or {}).items()
    }
    return tuple(sorted((name, count) for name, count in counts.items() if count))[:MAX_LABELS]


def _ends(items: Sequence[Item]) -> tuple[Item, ...]:
    """The first and the last items, MAX_MESSAGES together."""
    half = MAX_MESSAGES // 2
    return tuple(items) if len(items) <= MAX_MESSAGES else (*items[:half], *items[-half:])


def _labels(fields: Mapping[str, Any]) -> tuple[str, ...]:
    names = (label["name"] if isinstance(label, Mapping) else label for label in _list(fields, "labels"))
    return tuple(name for name in map(_name, names) if name)[:MAX_LABELS]


def _logins(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Logins, or accounts of the REST API."""
    logins = (each.get("login") if isinstance(each, Mapping) else each for each in _list(fields, name))
    return tuple(login for login in map(_name, logins) if login)[:MAX_LABELS]


def _name(value: object) -> str:
    return _require_text(value)[:MAX_NAME]


def _require_text(value: object) -> str:
    if value is None or isinstance(value, str | int | float):
        return storable_text(value)
    raise ValueError(f"not a string: {type(value).__name__}")


def _require_object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"not an object: {type(value).__name__}")
    return value


def _list(fields: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = fields.get(name) or ()
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} is not a list")
    return value


def parse_number(value: object) -> int | None:
    """A whole number from 1 to 2^53, None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _NUMBER_LIMIT else None


def parse_key(value: object) -> ThreadId:
    """A thread id from outside: a number from 1 to 2^53 or a name of at most 200 characters, else ValueError."""
    number = parse_number(value)
    if number is not None:
        return number
    if not isinstance(value, str) or value == "":
        raise ValueError("an id is a number from 1 to 2^53 or a name")
    return _name(value)


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, ``2015-01-01T00:00:00Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def parse_time(value: object) -> datetime:
    """Parse an ISO 8601 time into UTC, which is also assumed without a zone. Raises ValueError for anything else.

    Times before 1970 or after 9000 are refused, so that adding to a time or subtracting from it is safe; FutureTime for
    one that `no_time_after` excludes.
    """
    if not isinstance(value, str):
        raise ValueError(f"not a time: {type(value).__name__}")
    moment = datetime.fromisoformat(value)
    if not moment.tzinfo:
        moment = moment.replace(tzinfo=UTC)
    if not MIN_TIME <= moment <= MAX_TIME:
        raise ValueError(f"not a time: {value!r:.40}")
    limit = _limit.get()
    if moment > limit.at_hand and moment > limit.exact():
        raise FutureTime(f"not a time yet: {value!r:.40}")
    return moment.astimezone(UTC)


def time_or_none(value: object) -> datetime | None:
    """Like `parse_time`, but None for an empty value."""
    return parse_time(value) if value else None
