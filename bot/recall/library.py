"""What recall needs of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


def threads(library: Library, ids: Iterable[ThreadId], before: datetime | None) -> dict[ThreadId, Thread]:
    """The live threads of these ids as they stood at ``before`` (None: now); later ones are left out."""
    found = {key: record for key, record in library.records(ids).items() if isinstance(record, Thread)}
    if before is None:
        return found
    return {key: thread.as_of(before) for key, thread in found.items() if thread.created_at < before}
