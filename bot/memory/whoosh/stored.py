"""An entry as the bytes of a column, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from bot.model import Entry, Kind, ThreadId

LEAST_BYTES = 40
"""No packed entry is shorter."""

_NUMBER = (int, float)
_SHAPE: tuple[tuple[type, ...], ...] = (
    (int, str),  # id
    (str,),  # kind
    (str,),  # title
    (str,),  # author
    (str,),  # state
    _NUMBER,  # created_at
    _NUMBER,  # updated_at
    (*_NUMBER, type(None)),  # closed_at
    (str, type(None)),  # state_reason
    (list,),  # labels
    (int,),  # turn_count
    (int,),  # length
    (int, str, type(None)),  # duplicate_of
)


def pack(entry: Entry) -> bytes:
    """One JSON list in UTF-8 (lone surrogates kept), times in seconds since 1970."""
    values = [
        entry.id,
        entry.kind,
        entry.title,
        entry.author,
        entry.state,
        _seconds(entry.created_at),
        _seconds(entry.updated_at),
        entry.closed_at and _seconds(entry.closed_at),
        entry.state_reason,
        entry.labels,
        entry.turn_count,
        entry.length,
        entry.duplicate_of,
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def unpack(data: bytes) -> Entry:
    """The entry that ``pack`` was given. Raises ValueError, OverflowError or RecursionError for other bytes."""
    values = json.loads(str(data, "utf-8", "surrogatepass"))
    if type(values) is not list or len(values) != len(_SHAPE):
        raise ValueError("an entry is damaged")
    if not all(type(value) in allowed for value, allowed in zip(values, _SHAPE, strict=True)):
        raise ValueError("an entry is damaged")
    return _entry(*values)


def _entry(id: ThreadId, kind: str, title: str, author: str, state: str, created_at: float, *rest: Any) -> Entry:
    updated_at, closed_at, state_reason, labels, turn_count, length, duplicate_of = rest
    if not all(type(label) is str for label in labels):
        raise ValueError("an entry is damaged")
    return Entry(
        id,
        Kind(kind),
        title,
        author,
        state,
        _moment(created_at),
        _moment(updated_at),
        None if closed_at is None else _moment(closed_at),
        state_reason,
        tuple(labels),
        turn_count,
        length,
        duplicate_of,
    )


def _seconds(moment: datetime) -> float:
    seconds = moment.timestamp()
    return int(seconds) if seconds.is_integer() else seconds


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
