"""Turns the threads of a repository's memory into documents of its organisation's index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from bot.domain.changes import FixInfo
from bot.domain.digest import FOREVER
from bot.domain.hosts import GITHUB
from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Kind, Outcome, Record, Thread, ThreadId, Tombstone
from bot.index.document import unvouched_until
from bot.memory.memory import Memory
from bot.reading.analyzer import ANALYSER_VERSION, body_terms, terms
from bot.reading.digest import digest as read_digest
from bot.recall.answer import as_of, known_endings
from bot.recall.other_repositories import TITLE_REPEATS
from bot.recall.reasons import opening

DOCUMENT_VERSION = f"1 {ANALYSER_VERSION}"
"""Changes whenever the same thread may give another document."""

MAX_BODY_TERMS = 400
"""Most distinct terms of an opening text that are indexed, the most frequent first; longer texts are logs."""

MAX_REPEATS = 5
"""Most repetitions of one term of an opening text; more hardly change its score."""

BATCH_SIZE = 200


@dataclass(frozen=True, slots=True)
class MemorySource:
    """The memory that documents are made of.

    ``repository`` is GitHub's number of the repository, ``name`` its "owner/name", ``server`` the web address of its
    GitHub, "" if not known. ``revision``: as in `OrganisationThread`.
    """

    repository: int
    name: str
    revision: int
    server: str = GITHUB


def all_threads(memory: Memory, source: MemorySource) -> Iterator[OrganisationThread]:
    """The documents of all threads, read a thousand at a time."""
    hidden = memory.state.manifest.hidden_by_github
    shown = (record for record in memory.state.every_record() if record.id not in hidden)
    return organisation_threads(shown, memory, source)


def changed_threads(ids: Collection[ThreadId], memory: Memory, source: MemorySource) -> Iterator[OrganisationThread]:
    """The documents of the threads with these ids; those that memory does not have, or does not show, are gone."""
    remaining = iter(ids)
    while batch := list(islice(remaining, BATCH_SIZE)):
        records = memory.whole_records(batch)
        yield from organisation_threads(records.values(), memory, source)
        yield from (_gone_thread(key, source) for key in batch if key not in records)


def organisation_threads(
    records: Iterable[Record], memory: Memory, source: MemorySource
) -> Iterator[OrganisationThread]:
    """The documents of those whole records that other repositories may show.

    A thread that only its author, unknown in the repository, ever stood behind is written as gone: anybody can open
    many such issues, and other repositories would show them. A hidden person may have stood behind it.
    """
    kept = (record for record in records if isinstance(record, Tombstone) or record.kind.traits.is_suggested)
    while batch := list(islice(kept, BATCH_SIZE)):
        vouched = (record for record in batch if isinstance(record, Thread) and is_vouched_for(record))
        shown = {thread.id: thread.without(memory.hidden_people) for thread in vouched}
        endings = {key: read_digest(thread, repo=source.name).outcome for key, thread in shown.items()}
        proven, fixes = known_endings(endings, memory, source.name), memory.fixes(endings)
        for record in batch:
            if thread := shown.get(record.id):
                yield organisation_thread(thread, source, with_release(proven[thread.id], fixes.get(thread.id)))
            else:
                yield _gone_thread(record.id, source)


def with_release(ending: Outcome, fix: FixInfo | None) -> Outcome:
    """The ending with the first release that has its fix according to the forge, as comments name it."""
    current = as_of(fix, None) if fix and fix.ref == ending.fix else None
    return replace(ending, release=current.release) if current and current.release else ending


def is_vouched_for(thread: Thread) -> bool:
    """Whether other repositories may show this thread: somebody known there, or a second person, stood behind it."""
    return not thread.role or unvouched_until(thread) != FOREVER


def organisation_thread(thread: Thread, source: MemorySource, ending: Outcome) -> OrganisationThread:
    """The document of a thread with its proven outcome."""
    signals = opening(thread.title, thread.body)
    return OrganisationThread(
        repository=source.repository,
        id=thread.id,
        revision=source.revision,
        name=source.name,
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        created_at=thread.created_at,
        closed_at=thread.closed_at,
        state_reason=thread.state_reason or "",
        terms=_terms(thread),
        errors=tuple(signals.errors.values()),
        files=signals.files,
        names=signals.names,
        outcome=ending,
        url=f"{source.server}/{source.name}/{thread.kind.traits.path}/{thread.id}" if source.server else "",
    )


def _terms(thread: Thread) -> tuple[str, ...]:
    """The terms of the title, repeated, before those of the opening text."""
    counts = Counter(body_terms(thread.body)).most_common(MAX_BODY_TERMS)
    body = [term for term, count in counts for _ in range(min(count, MAX_REPEATS))]
    return (*terms(thread.title) * TITLE_REPEATS, *body)


def _gone_thread(key: ThreadId, source: MemorySource) -> OrganisationThread:
    identity = source.repository, key, source.revision, source.name
    return OrganisationThread(*identity, Kind.ISSUE, title="", author="", created_at=FOREVER, is_gone=True)
