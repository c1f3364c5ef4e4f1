"""A thread of an organisation as a row of the engine's table, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict
from urllib.parse import quote

from bot.domain.card import name_of
from bot.domain.organisation import OrganisationThread
from bot.domain.post import OrganisationKey
from bot.domain.thread_json import storable
from bot.memory.codec import DAMAGE, decode, encode

MAX_THREAD_TERMS = 4_000
"""Most terms kept of one thread."""

MAX_TERM_CHARS = 200
"""Longer terms are dropped; the analyser's are shorter."""

_COLUMNS = ("repository", "revision", "terms")
"""The fields that are columns of their own."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    document = {name: value for name, value in encode(thread).items() if name not in _COLUMNS}
    return ThreadRow(
        key=row_key(thread.key),
        repository=thread.repository,
        revision=thread.revision,
        created=milliseconds(thread.created_at),
        terms="" if thread.is_gone else " ".join(plain_terms(thread.terms)[:MAX_THREAD_TERMS]),
        document="" if thread.is_gone else json.dumps(document, separators=(",", ":")),
    )


def thread_of(row: Mapping[str, Any]) -> OrganisationThread | None:
    """The thread of a row, None for a damaged one."""
    try:
        columns = {"repository": int(row["repository"]), "revision": int(row["revision"])}
        return decode(OrganisationThread, json.loads(row["document"]), **columns, terms=tuple(row["terms"].split()))
    except (*DAMAGE, RecursionError):
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
