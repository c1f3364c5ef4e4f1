"""A digest's line as a card: whatever it holds, what cannot be read is left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

from bot.card import Card, CardId, Ending, Ruling
from bot.reading.proof import settled

Item = TypeVar("Item")

_LARGEST = 2**53
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_LIST = 200
_MAX_TEXT = 4_000
_MAX_NAME = 200
_KINDS = frozenset({"issue", "pull", "page", "session"})


def name_of(key: CardId) -> str:
    """What a thread is called in the file: ``#42``, ``=ABC-123``."""
    return f"#{key}" if isinstance(key, int) else f"={key}"


def key_of(name: str) -> CardId:
    """The inverse of `name_of`."""
    return int(name[1:]) if name[:1] == "#" else name[1:]


def card_of(line: str) -> Card | None:
    """The card of a digest, None where it is damaged."""
    try:
        fields = json.loads(line)
        return _card(fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _card(fields: Mapping[str, Any]) -> Card:
    created = _time(fields["created_at"]) or _LONG_AGO
    kind = _text(fields.get("kind"))
    return Card(
        id=_key(fields["id"]),
        kind=kind if kind in _KINDS else "issue",
        title=_text(fields.get("title")),
        author=_text(fields.get("author")),
        state="closed" if fields.get("state") == "closed" else "open",
        created_at=created,
        updated_at=_time(fields.get("updated_at")) or created,
        closed_at=_time(fields.get("closed_at")),
        state_reason=_text(fields.get("state_reason")),
        labels=_texts(fields, "labels"),
        turn_count=_number(fields.get("turn_count")) or 1,
        summary=_text(fields.get("summary")),
        keywords=_texts(fields, "keywords"),
        files=_texts(fields, "files"),
        decisions=_each(fields, "decisions", _ruling),
        errors=_texts(fields, "errors"),
        ending=_ending(fields.get("outcome")),
        references=_each(fields, "references", _reference),
        duplicate_of=_duplicate(fields),
        merged_at=_time(fields.get("merged_at")),
    )


def proven(card: Card, is_merged: bool | None) -> Card:
    """The card, knowing whether the change that its ending names was merged; None: nobody knows."""
    ending = card.ending
    told = settled(ending.kind, ending.fix, ending.claimed, is_merged)
    if told is None:
        return card
    kind, fix, claimed = told
    release = ending.release if fix else ""
    return card._replace(ending=ending._replace(kind=kind, fix=fix, claimed=claimed, release=release))


def _key(value: Any) -> CardId:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST:
        return value
    if isinstance(value, str) and 0 < len(value) <= _MAX_NAME:
        return _text(value)
    raise ValueError("no id")


def _text(value: Any) -> str:
    return value[:_MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else 0


def _time(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    return tuple(filter(None, map(_text, value[:_MAX_LIST]))) if isinstance(value, list) else ()


def _each(fields: Mapping[str, Any], name: str, read: Callable[[Any], Item | None]) -> tuple[Item, ...]:
    value = fields.get(name)
    found = map(read, value[:_MAX_LIST]) if isinstance(value, list) else ()
    return tuple(item for item in found if item is not None)


def _ruling(value: Any) -> Ruling | None:
    if not isinstance(value, dict) or not _text(value.get("text")):
        return None
    author, role = _text(value.get("author")), _text(value.get("role"))
    return Ruling(_text(value["text"]), author, role, _time(value.get("at")), _number(value.get("comment_id")) or None)


def _reference(value: Any) -> int | None:
    is_here = isinstance(value, dict) and not value.get("owner") and not value.get("kind")
    return _number(value.get("number")) or None if is_here else None


def _ending(value: Any) -> Ending:
    if not isinstance(value, dict):
        return Ending()
    return Ending(
        kind=_text(value.get("kind")) or "unknown",
        quote=_text(value.get("quote")),
        fix=_text(value.get("fix")),
        claimed=_text(value.get("claimed")),
        release=_text(value.get("release")),
        author=_text(value.get("author")),
        role=_text(value.get("role")),
        at=_time(value.get("at")),
        comment_id=_number(value.get("comment_id")) or None,
    )


def _duplicate(fields: Mapping[str, Any]) -> CardId | None:
    outcome = fields.get("outcome")
    for value in (fields.get("duplicate_of"), outcome.get("duplicate_of") if isinstance(outcome, dict) else None):
        with suppress(ValueError):
            return _key(value)
    return None
