"""Turns a thread into its index document: the terms by field, and the entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from bot.domain.card import message_id
from bot.domain.digest import FOREVER, Digest, IndexEntry
from bot.domain.thread import GHOST, KNOWN_ROLES, Outcome, Thread
from bot.index.protocol import IndexDocument
from bot.reading.analyzer import body_terms, terms
from bot.reading.digest import digest as read_digest
from bot.reading.endings.outcome import outcome as read_outcome
from bot.reading.error_lines import line_terms
from bot.reading.requests import without_requests


def document_of(thread: Thread, digest: Digest | None = None, vector: bytes | None = None) -> IndexDocument:
    """The document of a thread; ``digest`` saves reading it again, ``vector`` as in `IndexDocument`."""
    digest = digest or read_digest(thread)
    notes = {
        "decisions": terms("\n".join(decision.text for decision in digest.decisions)),
        "keywords": terms("\n".join(digest.keywords)),
        "files": terms("\n".join(digest.files)),
        "summary": terms(digest.summary),
    }
    return replace(bare_document(thread, digest.outcome, vector), notes=notes)


def bare_document(thread: Thread, ending: Outcome | None = None, vector: bytes | None = None) -> IndexDocument:
    """A thread's document without notes, enough to find similar threads; ``ending`` saves reading it again."""
    return IndexDocument(
        entry=entry_of(thread, ending or read_outcome(thread)),
        title=terms(thread.title),
        body=[*body_terms(thread.body), *line_terms(thread.title, thread.body)],
        vector=vector,
        has_role=bool(thread.role),
    )


def message_documents(thread: Thread) -> Iterator[IndexDocument]:
    """The documents of the messages of a thread: the opening text, with the title, then the comments.

    Their ids are strings (`message_id`). Nothing depends on who vouches for a message, so none is unvouched.
    """
    messages = [(thread.author, thread.role, thread.created_at, thread.body)]
    messages += [
        (comment.author, comment.role, comment.created_at, without_requests(comment.text))
        for comment in thread.comments
    ]
    for position, (author, role, at, text) in enumerate(messages):
        key = message_id(thread.id, position)
        entry = IndexEntry(key, thread.kind, "", author, thread.state, at, at, role=role)
        yield IndexDocument(entry, () if position else terms(thread.title), terms(text), has_role=False)


def entry_of(thread: Thread, ending: Outcome) -> IndexEntry:
    """The facts that ranking needs without opening the record."""
    return IndexEntry(
        id=thread.id,
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        state=thread.state,
        created_at=thread.created_at,
        updated_at=thread.revised_at,
        labels=thread.labels,
        length=len(thread.title) + len(thread.body),
        duplicate_of=ending.duplicate_of,
        duplicate_at=_duplicate_since(thread, ending),
        state_changes=thread.state_changes,
        unvouched_until=unvouched_until(thread),
    )


def _duplicate_since(thread: Thread, ending: Outcome) -> datetime | None:
    if ending.duplicate_of is None or thread.closed_at is None:
        return None
    return max(thread.closed_at, ending.at or thread.closed_at)


_STATE_CHANGES = frozenset({"closed", "reopened", "marked_as_duplicate"})


def unvouched_until(thread: Thread) -> datetime | None:
    """When another person first vouched for the issue of an unknown author: commented on, closed or reopened it.

    FOREVER if nobody did; None for other kinds of threads, and for authors known in the repository. Closing an issue as
    not planned without a comment does not vouch for it, nor do bots, reactions, or labels, which a form may set.
    Deleted accounts count as one. A closing by an unknown account counts for nobody.
    """
    if not thread.kind.traits.is_suggested or thread.role in KNOWN_ROLES:
        return None
    return min(vouchings(thread), default=FOREVER)


def vouchings(thread: Thread) -> Iterator[datetime]:
    """When other people took part in a thread: commented on it, closed or reopened it."""
    own = thread.author.casefold()
    for comment in thread.comments:
        if not comment.is_bot and comment.author.casefold() != own:
            yield comment.created_at
    for actor, at in _closings_and_reopenings(thread):
        if actor.casefold() not in (own, GHOST) and not actor.endswith("[bot]"):
            yield at


def _closings_and_reopenings(thread: Thread) -> Iterator[tuple[str, datetime]]:
    """Who closed or reopened the thread and when, except for a final closing as not planned.

    Events are stored from the first closing on, so earlier ones count as of then.
    """
    not_planned_at = thread.closed_at if thread.state_reason == "not_planned" else None
    for event in thread.events if thread.state_changes else ():
        if event.name in _STATE_CHANGES and event.at != not_planned_at:
            yield event.actor, max(event.at, thread.state_changes[0])
    closed_at = thread.closed_at
    is_recorded = closed_at and any(event.name == "closed" and event.at >= closed_at for event in thread.events)
    if closed_at and thread.closed_by and not (not_planned_at or is_recorded):
        yield thread.closed_by, closed_at
