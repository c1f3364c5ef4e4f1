"""What recall needs of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol, Unpack

from bot.indexed import Entry, Hit
from bot.kept import Fix, Wish
from bot.memory.index import Narrowing, Query
from bot.model import Record, Thread, ThreadId
from bot.ranking import Ranking


class Library(Protocol):
    """Threads by id and by likeness."""

    @property
    def issues(self) -> int: ...

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Entry]: ...

    def search(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]: ...

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]: ...

    def held_by(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]: ...

    @property
    def ranking(self) -> Ranking: ...

    def vectors(self, thread: Thread) -> Mapping[str, bytes]: ...

    def fixes(self, ids: Iterable[ThreadId], /) -> Mapping[ThreadId, Fix]: ...

    def wishes(self, ids: Iterable[ThreadId], /) -> Mapping[ThreadId, tuple[Wish, ...]]: ...


class WithoutWords:
    """A library in which some people said nothing: their comments are left out, and the texts that they opened with.

    Titles stay, as they name the thread. ``people`` are logins, however written.
    """

    def __init__(self, library: Library, people: Iterable[str]) -> None:
        self._library = library
        self._people = {login.casefold() for login in people}

    @property
    def issues(self) -> int:
        return self._library.issues

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        return {key: self._hushed(record) for key, record in self._library.records(ids).items()}

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Entry]:
        return self._library.entries(ids)

    def search(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]:
        return self._library.search(query, **options)

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]:
        return self._library.rarity(terms, before=before)

    def held_by(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]:
        return self._library.held_by(groups, before=before)

    @property
    def ranking(self) -> Ranking:
        return self._library.ranking

    def vectors(self, thread: Thread) -> Mapping[str, bytes]:
        return self._library.vectors(thread)

    def fixes(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Fix]:
        return self._library.fixes(ids)

    def wishes(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Wish, ...]]:
        return self._library.wishes(ids)

    def _hushed(self, record: Record) -> Record:
        if not isinstance(record, Thread):
            return record
        said = tuple(comment for comment in record.comments if comment.author.casefold() not in self._people)
        body = "" if record.author.casefold() in self._people else record.body
        return replace(record, body=body, comments=said)


def threads(library: Library, ids: Iterable[ThreadId], before: datetime | None) -> dict[ThreadId, Thread]:
    """The live threads of these ids as they stood at ``before`` (None: now); later ones are left out."""
    found = {key: record for key, record in library.records(ids).items() if isinstance(record, Thread)}
    if before is None:
        return found
    return {key: thread.as_of(before) for key, thread in found.items() if thread.created_at < before}
