"""What people and agents see of a thread: its card, read from its digest, and what was found in cards.

Named tuples of plain values and nothing else of ours: a search from a shell begins with importing this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

LEAST_PART = 0.5
"""Least part of what is looked for, by the rarity of its words, that something has to hold: of two words the rarer
one. Weak hits are no answer."""

CardId = int | str
"""As `bot.domain.thread.ThreadId`: the number of an issue or pull request, else the text that names a thread."""


class Ruling(NamedTuple):
    """A sentence that states a decision; ``comment_id`` is GitHub's, None where it stands in the opening text."""

    text: str
    author: str
    role: str
    at: datetime | None
    comment_id: int | None = None


class Ending(NamedTuple):
    """How a thread ended: ``kind`` is a value of `bot.domain.thread.OutcomeKind`; ``fix`` a reference (``#12``, a SHA).

    ``claimed`` is one that is not known to be the fix.
    """

    kind: str = "unknown"
    quote: str = ""
    fix: str = ""
    release: str = ""
    author: str = ""
    role: str = ""
    at: datetime | None = None
    comment_id: int | None = None
    claimed: str = ""


class Card(NamedTuple):
    """A thread without its conversation. ``kind`` is issue, pull, page or session; ``state`` open or closed.

    ``references`` are the numbers of this repository that its text names, in order; ``duplicate_of`` the thread that it
    is a duplicate of.
    """

    id: CardId
    kind: str
    title: str
    author: str
    state: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    state_reason: str = ""
    labels: tuple[str, ...] = ()
    turn_count: int = 1
    summary: str = ""
    keywords: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    decisions: tuple[Ruling, ...] = ()
    errors: tuple[str, ...] = ()
    ending: Ending = Ending()
    references: tuple[int, ...] = ()
    duplicate_of: CardId | None = None
    merged_at: datetime | None = None


class CardHit(NamedTuple):
    """A card that a search found.

    ``score`` is in BM25F units (≥ 0). ``part`` in 0..1 is how much of what was looked for the thread holds, by the
    rarity of the words; ``terms`` are the terms of the query that it holds, what adds most first.
    """

    card: Card
    score: float
    part: float
    terms: tuple[str, ...]


class CardLink(NamedTuple):
    """``source`` points at ``target``; ``kind`` is ``reference``, ``duplicate`` (of) or ``fix`` (fixed by)."""

    source: CardId
    target: CardId
    kind: str


class SessionPassage(NamedTuple):
    """A message of a session that a search found. ``type`` is ``user`` or ``assistant``; ``text`` at most 500
    characters around what was looked for; ``session`` names the thread, ``path`` the file that it was read from."""

    session: str
    type: str
    text: str
    at: datetime | None
    score: float
    path: str


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


_LONGEST = 12
"""Characters of ``#`` and a number."""


def settled(kind: str, fix: str, claimed: str, is_merged: bool | None) -> tuple[str, str, str] | None:
    """Kind, fix and claim of an ending, knowing that; None where it makes no difference to them."""
    if is_merged and claimed and kind == "unknown":
        return "fixed", claimed, ""
    if is_merged is False and fix and kind == "fixed":
        return "unknown", "", fix
    return None


def number_of(ref: str | None) -> int | None:
    """The number of this repository in ``#57``; None for a commit and for what stands elsewhere."""
    is_number = ref is not None and ref[:1] == "#" and ref[1:].isdecimal() and len(ref) <= _LONGEST
    return int(ref[1:]) if ref and is_number else None


def is_change(kind: str, state: str, merged_at: object) -> bool | None:
    """Whether a thread is a pull request that was merged; None for what is neither that nor an issue."""
    if kind == "pull":
        return state == "closed" and bool(merged_at)
    return False if kind == "issue" else None


class Worktree(NamedTuple):
    """The signals of a checkout; empty where there is none.

    ``branch`` is empty for a main branch and a detached head. ``messages`` are subjects and bodies of the newest
    commits, newest first, at most five. Paths are relative to the top: ``modified`` in the working tree, ``staged`` in
    the index, ``recent`` those that the newest commits touched. ``is_own`` says whether these commits are the branch's
    own, and not those that it began at. ``project`` is its name and ``language`` what it is made of (``python``), empty
    where nothing tells. ``unused`` says in words which signals could not be had, and why.
    """

    branch: str = ""
    messages: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    is_own: bool = False
    project: str = ""
    language: str = ""
    unused: tuple[str, ...] = ()
