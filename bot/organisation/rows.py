"""A thread of an organisation as a row of the engine's table, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict
from urllib.parse import quote

from bot.domain.bounds import MAX_NAME, MAX_TITLE
from bot.domain.card import name_of
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.organisation import OrganisationThread
from bot.domain.post import OrganisationKey
from bot.domain.thread import Outcome
from bot.domain.thread_json import parse_key, stamp, storable, time_or_none

MAX_THREAD_TERMS = 4_000
"""Most terms kept of one thread."""

MAX_TERM_CHARS = 200
"""Longer terms are dropped; the analyser's are shorter."""

MAX_SIGNALS = 200
MAX_TEXT_CHARS = 4_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER_LIMIT = 2**53


class ThreadRow(TypedDict):
    """A row: what the engine searches and compares, and the rest as JSON in ``document``."""

    key: str
    repository: int
    revision: int
    created: int
    terms: str
    document: str


def row_of(thread: OrganisationThread) -> ThreadRow:
    """Its row. A thread that is gone keeps only its key and revision: without terms, no search finds it."""
    return ThreadRow(
        key=row_key(thread.key),
        repository=thread.repository,
        revision=thread.revision,
        created=milliseconds(thread.created_at),
        terms="" if thread.is_gone else " ".join(plain_terms(thread.terms)[:MAX_THREAD_TERMS]),
        document="" if thread.is_gone else json.dumps(_document(thread), separators=(",", ":")),
    )


def thread_of(row: Mapping[str, Any]) -> OrganisationThread | None:
    """The thread of a row, None for a damaged one."""
    try:
        return _thread(row, json.loads(row["document"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def row_key(key: OrganisationKey) -> str:
    return f"{int(key.repository)}/{literal(name_of(key.thread))}"


def literal(text: str) -> str:
    """The text in letters, digits and ``-_.~%`` alone, so that it may stand between the quotes of a condition."""
    return quote(text, safe="", errors="surrogatepass")


def plain_terms(terms: Iterable[str]) -> list[str]:
    """The terms that a whitespace tokenizer keeps as they are."""
    return [
        term for term in terms if 0 < len(term) <= MAX_TERM_CHARS and term.split() == [term] and storable(term) == term
    ]


def milliseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _document(thread: OrganisationThread) -> dict[str, object]:
    fields = {
        "id": thread.id,
        "name": thread.name,
        "kind": thread.kind.value,
        "title": thread.title[:MAX_TITLE],
        "author": thread.author,
        "created_at": stamp(thread.created_at),
        "closed_at": stamp(thread.closed_at),
        "state_reason": thread.state_reason,
        "errors": thread.errors[:MAX_SIGNALS],
        "files": thread.files[:MAX_SIGNALS],
        "names": thread.names[:MAX_SIGNALS],
        "outcome": _outcome_fields(thread.outcome),
        "url": thread.url,
    }
    return {name: value for name, value in fields.items() if value}


def _outcome_fields(outcome: Outcome) -> dict[str, object]:
    fields = {
        "kind": outcome.kind.value if outcome.kind is not OutcomeKind.UNKNOWN else "",
        "comment": outcome.comment,
        "comment_id": outcome.comment_id,
        "quote": outcome.quote[:MAX_TEXT_CHARS],
        "author": outcome.author,
        "role": outcome.role,
        "at": stamp(outcome.at),
        "fix": outcome.fix,
        "claimed": outcome.claimed,
        "release": outcome.release,
        "duplicate_of": outcome.duplicate_of,
        "evidence": outcome.evidence[:MAX_SIGNALS],
        "confidence": outcome.confidence,
    }
    return {name: value for name, value in fields.items() if value is not None and value not in ("", ())}


def _thread(row: Mapping[str, Any], fields: Mapping[str, Any]) -> OrganisationThread:
    return OrganisationThread(
        repository=int(row["repository"]),
        id=parse_key(fields["id"]),
        revision=int(row["revision"]),
        name=_text(fields, "name", MAX_NAME),
        kind=Kind(fields["kind"]),
        title=_text(fields, "title", MAX_TITLE),
        author=_text(fields, "author", MAX_NAME),
        created_at=time_or_none(fields.get("created_at")) or _EPOCH,
        closed_at=time_or_none(fields.get("closed_at")),
        state_reason=_text(fields, "state_reason", MAX_NAME),
        terms=tuple(str(row["terms"]).split()),
        errors=_texts(fields, "errors"),
        files=_texts(fields, "files"),
        names=_texts(fields, "names"),
        outcome=_outcome(fields.get("outcome") or {}),
        url=_text(fields, "url", MAX_TEXT_CHARS),
    )


def _outcome(fields: Mapping[str, Any]) -> Outcome:
    kind = fields.get("kind")
    duplicate = fields.get("duplicate_of")
    return Outcome(
        kind=OutcomeKind(kind) if kind else OutcomeKind.UNKNOWN,
        comment=_number(fields.get("comment")),
        comment_id=_number(fields.get("comment_id")),
        quote=_text(fields, "quote", MAX_TEXT_CHARS),
        author=_text(fields, "author", MAX_NAME) or None,
        role=_text(fields, "role", MAX_NAME) or None,
        at=time_or_none(fields.get("at")),
        fix=_text(fields, "fix", MAX_NAME) or None,
        claimed=_text(fields, "claimed", MAX_NAME) or None,
        release=_text(fields, "release", MAX_NAME) or None,
        duplicate_of=parse_key(duplicate) if duplicate else None,
        evidence=_texts(fields, "evidence"),
        confidence=min(1.0, max(0.0, float(fields.get("confidence") or 0.0))),
    )


def _text(fields: Mapping[str, Any], name: str, most: int) -> str:
    return storable(fields.get(name))[:most]


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(storable(each)[:MAX_TEXT_CHARS] for each in fields.get(name) or () if isinstance(each, str))[
        :MAX_SIGNALS
    ]


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < _NUMBER_LIMIT else None
