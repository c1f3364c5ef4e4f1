"""Memory as it was: each thread is compared with older ones only.

One index, the product's own, holds the whole history: it answers as of a moment, as if later threads did not exist.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Unpack

from bot.domain.changes import FixInfo, Request
from bot.domain.digest import IndexHit
from bot.domain.hidden_people import HiddenPeople
from bot.domain.thread import Outcome, Record, Thread, ThreadId
from bot.evaluation.labels import first_original
from bot.evaluation.results import Progress
from bot.index import build_index, open_index
from bot.index.document import bare_document
from bot.index.protocol import Index, IndexDocument, Query, SearchOptions
from bot.memory.model_store import Embedder, embed
from bot.ranking.weights import RankingModels, shipped
from bot.reading.pages import RELEASES, source_of


@dataclass(frozen=True)
class ReplayHistory:
    """All threads of a repository in the order of their creation, each with its terms for the index.

    ``vectors`` are those of a text model, by thread. Texts that differ from the stored ones are read with ``embedder``;
    without one, the vectors of the stored texts stand for them.
    """

    threads: Sequence[Thread]
    documents: Sequence[IndexDocument]
    vectors: Mapping[ThreadId, bytes] = field(default_factory=dict)
    embedder: Embedder | None = None

    @classmethod
    def read(
        cls, threads: Iterable[Thread], embedder: Embedder | None = None, tick: Progress = lambda _: None
    ) -> ReplayHistory:
        """Return the history of these threads; ``tick`` is called with 1 for each."""
        ordered = sorted(threads, key=lambda thread: (thread.created_at, str(thread.id)))
        documents, vectors = [], {}
        for thread in ordered:
            documents.append(_document(thread))
            if embedder:
                vectors[thread.id] = embed(thread, embedder)
            tick(1)
        return cls(ordered, documents, vectors, embedder)

    def before(self, moment: datetime) -> int:
        """How many threads were created before that moment."""
        return bisect_left(self.threads, moment, key=lambda thread: thread.created_at)


class PastLibrary:
    """A library of the threads of a history with their ``index``; each query gives its moment."""

    def __init__(self, history: ReplayHistory, index: Index) -> None:
        self._index, self._ranking = index, shipped()
        self._vectors, self._embedder = history.vectors, history.embedder
        self._window: timedelta | None = None
        self._hidden = HiddenPeople()
        self._threads = {thread.id: thread for thread in history.threads}
        self.entries, self.rarity, self.joint_frequency = index.entries, index.rarity, index.joint_frequency

    def with_ranking(self, ranking: RankingModels) -> PastLibrary:
        library = copy(self)
        library._ranking = ranking
        return library

    def with_window(self, window: timedelta | None) -> PastLibrary:
        """The same library, but searches find only threads created within the window before their moment."""
        library = copy(self)
        library._window = window
        return library

    def without(self, people: HiddenPeople) -> PastLibrary:
        """The same library, but its records lack the words and names of these people."""
        library = copy(self)
        library._hidden = people
        return library

    @property
    def issues(self) -> int:
        return sum(thread.kind.traits.is_listed for thread in self._threads.values())

    @property
    def ranking(self) -> RankingModels:
        return self._ranking

    def vector(self, thread: Thread) -> bytes:
        stored = self._threads.get(thread.id)
        is_known = stored is not None and (thread.title, thread.body) == (stored.title, stored.body)
        if self._embedder and not is_known:
            return embed(thread, self._embedder)
        return self._vectors.get(thread.id, b"")

    def fixes(self, _: Iterable[ThreadId]) -> Mapping[ThreadId, FixInfo]:
        return {}  # fixes and requests of today were not known then

    def releases(self) -> frozenset[str]:
        return frozenset(str(key).partition(":")[2] for key in self._threads if source_of(key) == RELEASES)

    def requests(self, _: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Request, ...]]:
        return {}

    def search_messages(self, _: Query, **__: Unpack[SearchOptions]) -> list[IndexHit]:
        return []  # only people's searches look in messages

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        return {key: self._threads[key].without(self._hidden) for key in ids if key in self._threads}

    def search(self, query: Query, **options: Unpack[SearchOptions]) -> list[IndexHit]:
        keep, before = options.get("keep"), options.get("before")
        if self._window is not None and before:
            since = before - self._window
            options["keep"] = lambda entry: entry.created_at >= since and (keep is None or keep(entry))
        return self._index.search(query, **options)


@contextmanager
def past_library(history: ReplayHistory) -> Iterator[PastLibrary]:
    """The library of a history, with an index of all its threads."""
    with tempfile.TemporaryDirectory(prefix="precedent-") as folder:
        vectors = history.vectors
        build_index(Path(folder), (replace(one, vector=vectors.get(one.entry.id)) for one in history.documents))
        index = open_index(Path(folder))
        try:
            yield PastLibrary(history, index)
        finally:
            index.close()


def _document(thread: Thread) -> IndexDocument:
    """The indexed document of a thread, with its first known original, which later events do not change."""
    document = bare_document(thread, Outcome())
    target, at = first_original(thread) or (None, None)
    return replace(document, entry=replace(document.entry, duplicate_of=target, duplicate_at=at))
