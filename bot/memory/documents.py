"""From a thread to what the index holds of it: its terms by field, and its entry."""

from __future__ import annotations

from bot.memory.index import Document
from bot.model import Digest, Entry, Thread
from bot.reading.digest import digest as read_digest
from bot.reading.words import body_terms, terms


def document_of(thread: Thread, digest: Digest | None = None) -> Document:
    """The document of a thread; ``digest`` saves reading it again."""
    digest = digest or read_digest(thread)
    return Document(
        entry=entry_of(thread, digest),
        title=terms(thread.title),
        body=body_terms(thread.body),
        notes={
            "decisions": terms("\n".join(decision.text for decision in digest.decisions)),
            "keywords": terms("\n".join(digest.keywords)),
            "files": terms("\n".join(digest.files)),
            "summary": terms(digest.summary),
        },
    )


def entry_of(thread: Thread, digest: Digest) -> Entry:
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
        turn_count=digest.turn_count,
        length=len(thread.title) + len(thread.body),
        duplicate_of=digest.duplicate_of,
    )
