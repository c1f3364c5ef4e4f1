"""An entry as the bytes of a column, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from bot.indexed import Entry
from bot.model import Kind, ThreadId

LEAST_BYTES = 40
"""No packed entry is shorter."""

_decode = json.JSONDecoder().raw_decode
_KINDS = {kind.value: kind for kind in Kind}
_NUMBER = (int, float)
_TIMES = {*_NUMBER}
_TEXT = {str}
_REMEMBERED = 1 << 13
_MAX_COUNT = 1 << 53
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
    (*_NUMBER, type(None)),  # duplicate_at
    (list,),  # flips
    (*_NUMBER, type(None)),  # alone_until
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
        entry.duplicate_at and _seconds(entry.duplicate_at),
        [_seconds(at) for at in entry.flips],
        entry.alone_until and _seconds(entry.alone_until),
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


@lru_cache(maxsize=_REMEMBERED)
def unpack(data: bytes) -> Entry:
    """The entry that ``pack`` was given. Raises ValueError, KeyError, OverflowError, OSError or RecursionError for
    other bytes."""
    text = str(data, "utf-8", "surrogatepass")
    values, end = _decode(text)
    if end != len(text) or type(values) is not list or len(values) != len(_SHAPE):
        raise ValueError("an entry is damaged")
    if not _is_fit(tuple(map(type, values))):
        raise ValueError("an entry is damaged")
    return _entry(*values)


@lru_cache(maxsize=1024)
def _is_fit(shape: tuple[type, ...]) -> bool:
    return all(kind in allowed for kind, allowed in zip(shape, _SHAPE, strict=True))


def _entry(id: ThreadId, kind: str, title: str, author: str, state: str, created_at: float, *rest: Any) -> Entry:
    updated_at, closed_at, state_reason, labels, turn_count, length, *more = rest
    duplicate_of, duplicate_at, flips, alone_until = more
    if (labels and not {*map(type, labels)} <= _TEXT) or (flips and not {*map(type, flips)} <= _TIMES):
        raise ValueError("an entry is damaged")
    if not (0 <= turn_count < _MAX_COUNT and 0 <= length < _MAX_COUNT):
        raise ValueError("an entry is damaged")
    return Entry(
        id,
        _KINDS[kind],
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
        None if duplicate_at is None else _moment(duplicate_at),
        tuple(map(_moment, flips)),
        None if alone_until is None else _moment(alone_until),
    )


def _seconds(moment: datetime) -> float:
    seconds = moment.timestamp()
    return int(seconds) if seconds.is_integer() else seconds


@lru_cache(maxsize=1 << 12)
def _moment(seconds: float) -> datetime:
    # Remembered, because the last of the flips is when the thread was closed, and often when it was last changed.
    return datetime.fromtimestamp(seconds, UTC)
