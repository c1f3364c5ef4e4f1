"""The contract of the index: what goes in, what is asked, what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.model import Entry, Hit, ThreadId

TEXT = "text"
"""The field of titles and opening texts: what a new thread is compared with."""

NOTES = "notes"
"""The field of what was made of the thread: decisions, keywords, files, summary. For a search by words."""


class IndexCorrupt(Exception):
    """The index is damaged, hostile, or of a format that this version does not read. The remedy is to rebuild it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A thread as it is indexed: its entry, and analysed terms in order, with repetitions.

    ``notes`` maps a section (``decisions``, ``keywords``, ``files``, ``summary``; others count least) to its terms.
    """

    entry: Entry
    title: Sequence[str]
    body: Sequence[str] = ()
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """Analysed terms and how much each counts, and the fields to look in and how much each counts.

    Weights are ≥ 0; what weighs nothing is not looked for.
    """

    terms: Mapping[str, float]
    fields: Mapping[str, float] = field(default_factory=lambda: {TEXT: 1.0})


class Index(Protocol):
    """A searchable set of threads, at most one document for each id."""

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[Entry], bool] | None = None,
    ) -> list[Hit]:
        """The ``limit`` best threads that share a term with ``query``, best first.

        Equal scores are ordered by id, numbers before strings. With ``before``, threads that were created then or
        later do not exist: they are neither found nor counted in term statistics. ``keep`` leaves threads out after
        they were scored. Raises IndexCorrupt.
        """
        ...

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Entry]:
        """The entries of those of ``ids`` that are in the index. Raises IndexCorrupt."""
        ...

    def update(self, documents: Iterable[Document], remove: Iterable[ThreadId] = ()) -> None:
        """Put documents in the place of those with the same id, and take out ``remove``; visible at once, and on disk.

        Of two documents with one id the later one stays; an id in both arguments stays. Raises IndexCorrupt; what was
        there before is then still on disk.
        """
        ...

    def close(self) -> None:
        """Give back the files. Using the index afterwards is an error."""
        ...

    def __len__(self) -> int:
        """The number of threads."""
        ...
