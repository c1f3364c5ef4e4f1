"""From a thread to what the index holds of it: its terms by field, and its entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from bot.indexed import Digest, Entry
from bot.memory.index import Document
from bot.model import Outcome, Thread
from bot.reading.digest import digest as read_digest
from bot.reading.outcome import outcome as read_outcome
from bot.reading.standing import alone_until
from bot.reading.words import body_terms, terms


def document_of(thread: Thread, digest: Digest | None = None, vectors: Mapping[str, bytes] | None = None) -> Document:
    """The document of a thread; ``digest`` saves reading it again, ``vectors`` are the thread's by arm."""
    digest = digest or read_digest(thread)
    notes = {
        "decisions": terms("\n".join(decision.text for decision in digest.decisions)),
        "keywords": terms("\n".join(digest.keywords)),
        "files": terms("\n".join(digest.files)),
        "summary": terms(digest.summary),
    }
    return replace(bare_document(thread, digest.outcome, vectors), notes=notes)


def bare_document(
    thread: Thread, ending: Outcome | None = None, vectors: Mapping[str, bytes] | None = None
) -> Document:
    """The part of a thread's document by which similar threads are found; ``ending`` saves reading it again."""
    return Document(
        entry=entry_of(thread, ending or read_outcome(thread)),
        title=terms(thread.title),
        body=body_terms(thread.body),
        vectors=vectors or {},
        has_role=bool(thread.role),
    )


def entry_of(thread: Thread, ending: Outcome) -> Entry:
    """What ranking needs to know of a thread without opening its record."""
    return Entry(
        id=thread.id,
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        state=thread.state,
        state_reason=thread.state_reason,
        created_at=thread.created_at,
        updated_at=thread.revised_at,
        closed_at=thread.closed_at,
        labels=thread.labels,
        turn_count=1 + len(thread.comments),
        length=len(thread.title) + len(thread.body),
        duplicate_of=ending.duplicate_of,
        duplicate_at=_duplicate_since(thread, ending),
        flips=thread.flips,
        alone_until=alone_until(thread),
    )


def _duplicate_since(thread: Thread, ending: Outcome) -> datetime | None:
    """When it was closed and said what it is a duplicate of."""
    if ending.duplicate_of is None or thread.closed_at is None:
        return None
    return max(thread.closed_at, ending.at or thread.closed_at)
