"""What recall needs of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from bot.memory.index import Query
from bot.model import Entry, Hit, Record, Thread, ThreadId


class Library(Protocol):
    """Threads by id and by likeness."""

    @property
    def size(self) -> int: ...

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Entry]: ...

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[Entry], bool] | None = None,
    ) -> list[Hit]: ...


class WithoutWords:
    """A library in which some people said nothing: their comments are left out, and the texts that they opened with.

    Titles stay, as they name the thread. ``people`` are logins, however written.
    """

    def __init__(self, library: Library, people: Iterable[str]) -> None:
        self._library = library
        self._people = {login.casefold() for login in people}

    @property
    def size(self) -> int:
        return self._library.size

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        return {key: self._hushed(record) for key, record in self._library.records(ids).items()}

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Entry]:
        return self._library.entries(ids)

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[Entry], bool] | None = None,
    ) -> list[Hit]:
        return self._library.search(query, limit=limit, before=before, keep=keep)

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
