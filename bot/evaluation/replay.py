"""Memory as it was: each thread is compared with older ones only, with vectors learned from earlier threads.

A replay goes through history in epochs. At the start of each, the word vectors are trained on the threads before it and
the product's own index is built with them. So the vectors of an epoch are as stale as in a repository that learns again
whenever it has grown by RETRAINING_GROWTH.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from bot.domain.changes import FixInfo, Request
from bot.domain.digest import Hit
from bot.domain.hidden_people import HiddenPeople
from bot.domain.thread import Outcome, Record, Thread, ThreadId
from bot.evaluation.labels import first_original
from bot.evaluation.results import Progress
from bot.index import build_index, open_index
from bot.index.document import bare_document
from bot.index.protocol import Index, IndexDocument, Query, SearchOptions
from bot.memory.model_store import Embedder, LearnedModel, embed
from bot.ranking.weights import RankingModels, shipped
from bot.reading.pages import RELEASES, source_of

if TYPE_CHECKING:
    from bot.ranking.word_vectors import WordVectors


RETRAINING_GROWTH = 1.3
"""Growth of the number of threads after which the vectors are trained again."""

FIRST_TRAINING_SIZE = 50
"""Number of threads before the first training."""


@dataclass(frozen=True)
class ReplayHistory:
    """All threads of a repository in the order of their creation, each with its terms for the index.

    ``vector_fields`` are the vectors of a downloaded model (``embedder``), which was not trained on this history, by
    thread. ``trained`` caches the word vectors by the number of first threads that they were trained on.
    """

    threads: Sequence[Thread]
    documents: Sequence[IndexDocument]
    vector_fields: Mapping[ThreadId, Mapping[str, bytes]] = field(default_factory=dict)
    embedder: Embedder | None = None
    trained: dict[int, WordVectors | None] = field(default_factory=dict, repr=False)

    @classmethod
    def read(
        cls, threads: Iterable[Thread], embedder: Embedder | None = None, tick: Progress = lambda _: None
    ) -> ReplayHistory:
        """Return the history of these threads; ``tick`` is called with 1 for each."""
        ordered = sorted(threads, key=lambda thread: (thread.created_at, str(thread.id)))
        documents, fields = [], {}
        for thread in ordered:
            documents.append(_document(thread))
            if embedder:
                fields[thread.id] = embed(thread, embedder)
            tick(1)
        return cls(ordered, documents, fields, embedder)

    def before(self, moment: datetime) -> int:
        """How many threads were created before that moment."""
        return bisect_left(self.threads, moment, key=lambda thread: thread.created_at)


class PastLibrary:
    """A library of the threads before the end of an epoch; each query gives its moment."""

    def __init__(
        self, history: ReplayHistory, end: int, learned: LearnedModel, index: Index, window: timedelta | None = None
    ) -> None:
        self._index, self._learned, self._window = index, learned, window
        self._hidden = HiddenPeople()
        self._threads = {thread.id: thread for thread in history.threads[:end]}
        self.entries, self.rarity, self.joint_frequency = index.entries, index.rarity, index.joint_frequency

    def with_ranking(self, ranking: RankingModels) -> PastLibrary:
        library = copy(self)
        library._learned = replace(self._learned, ranking=ranking)
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
        return self._learned.ranking

    def vectors(self, thread: Thread) -> Mapping[str, bytes]:
        return self._learned.vectors(thread)

    def fixes(self, _: Iterable[ThreadId]) -> Mapping[ThreadId, FixInfo]:
        return {}  # fixes and requests of today were not known then

    def releases(self) -> frozenset[str]:
        return frozenset(str(key).partition(":")[2] for key in self._threads if source_of(key) == RELEASES)

    def requests(self, _: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Request, ...]]:
        return {}

    def search_messages(self, _: Query, **__: Unpack[SearchOptions]) -> list[Hit]:
        return []  # only people's searches look in messages

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        return {key: self._threads[key].without(self._hidden) for key in ids if key in self._threads}

    def search(self, query: Query, **options: Unpack[SearchOptions]) -> list[Hit]:
        keep, before = options.get("keep"), options.get("before")
        if self._window is not None and before:
            since = before - self._window
            options["keep"] = lambda entry: entry.created_at >= since and (keep is None or keep(entry))
        return self._index.search(query, **options)


@dataclass(frozen=True)
class Epoch:
    """A part of history: ``threads`` were created after learning from the first ``trained_on`` threads."""

    trained_on: int
    threads: tuple[Thread, ...]


def epochs(history: ReplayHistory, threads: Iterable[Thread]) -> list[Epoch]:
    """The threads by epoch, oldest first."""
    starts, size = [0], float(FIRST_TRAINING_SIZE)
    while size < len(history.threads):
        starts.append(int(size))
        size *= RETRAINING_GROWTH
    by_start: dict[int, list[Thread]] = {}
    for thread in sorted(threads, key=lambda thread: (thread.created_at, str(thread.id))):
        index = bisect_left(starts, history.before(thread.created_at) + 1) - 1
        by_start.setdefault(starts[index], []).append(thread)
    return [Epoch(start, tuple(threads)) for start, threads in by_start.items()]


def past_libraries(
    history: ReplayHistory, parts: Iterable[Epoch], *, trains: bool = True
) -> Iterator[tuple[Epoch, PastLibrary]]:
    """Yield each epoch with its library, which is closed when the next one is requested.

    ``trains``: train word vectors; without them the library finds threads by words alone.
    """
    for epoch in parts:
        end = history.before(epoch.threads[-1].created_at)
        vectors = _word_vectors(history, epoch.trained_on) if trains else None
        learned = LearnedModel(shipped(), vectors, history.embedder)
        with tempfile.TemporaryDirectory(prefix="precedent-") as folder:
            build_index(Path(folder), (_with_vectors(history, number, learned) for number in range(end)))
            index = open_index(Path(folder))
            try:
                yield epoch, PastLibrary(history, end, learned, index)
            finally:
                index.close()


def _word_vectors(history: ReplayHistory, count: int) -> WordVectors | None:
    from bot.ranking.word_vectors import train_embeddings

    if count not in history.trained:
        history.trained[count] = train_embeddings([(one.title, one.body) for one in history.documents[:count]])
    return history.trained[count]


def _document(thread: Thread) -> IndexDocument:
    """The indexed document of a thread, with its first known original, which later events do not change."""
    document = bare_document(thread, Outcome())
    target, at = first_original(thread) or (None, None)
    return replace(document, entry=replace(document.entry, duplicate_of=target, duplicate_at=at))


def _with_vectors(history: ReplayHistory, number: int, learned: LearnedModel) -> IndexDocument:
    document = history.documents[number]
    fields = history.vector_fields.get(document.entry.id, {})
    return replace(document, vectors={**learned.term_vectors(document.title, document.body), **fields})
