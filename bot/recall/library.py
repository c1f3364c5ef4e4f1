"""The memory that recall searches, and queries built from a thread or from words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol, Unpack

from bot.domain.changes import FixInfo, Request
from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Record, Thread, ThreadId
from bot.index.protocol import Query, SearchOptions
from bot.ranking.features import ORDER_FEATURES
from bot.ranking.order import TITLE_BOOST
from bot.ranking.weights import RankingModels, RankingWeights
from bot.reading.analyzer import body_terms, terms
from bot.reading.error_lines import line_terms


class Library(Protocol):
    """Threads by id and by similarity. Its records and messages may be shown: they lack the words of hidden people."""

    @property
    def issues(self) -> int: ...

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]: ...

    def search(self, query: Query, **options: Unpack[SearchOptions]) -> list[IndexHit]: ...

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]: ...

    def joint_frequency(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]: ...

    @property
    def ranking(self) -> RankingModels: ...

    def vector(self, thread: Thread) -> bytes: ...

    def fixes(self, ids: Iterable[ThreadId], /) -> Mapping[ThreadId, FixInfo]: ...

    def requests(self, ids: Iterable[ThreadId], /) -> Mapping[ThreadId, tuple[Request, ...]]: ...

    def releases(self) -> frozenset[str]:
        """The tags of the repository's releases; none if it has none, or they were never read."""
        ...


def threads(library: Library, ids: Iterable[ThreadId], before: datetime | None) -> dict[ThreadId, Thread]:
    """The threads with these ids as they stood at ``before`` (None: now), except later ones and tombstones."""
    found = {key: record for key, record in library.records(ids).items() if isinstance(record, Thread)}
    if before is None:
        return found
    return {key: thread.as_of(before) for key, thread in found.items() if thread.created_at < before}


def similar_query(thread: Thread, vector: bytes = b"", model: RankingWeights | None = None) -> Query:
    """A query for threads similar to this one: each of its terms and error lines once, terms of the title three times.

    ``vector`` is the thread's. The weights of a ``model`` help to choose the candidates.
    """
    title = set(terms(thread.title))
    weights = dict.fromkeys(body_terms(thread.body), 1.0)
    for term in title:
        weights[term] = 1.0 + TITLE_BOOST
    weights.update(dict.fromkeys(line_terms(thread.title, thread.body), 1.0))
    return Query(weights, vector=vector, blend=blend(model.order) if model else None)


def blend(order: Mapping[str, float]) -> dict[str, float]:
    """The part of a model's order that an index can compute."""
    return {each.name: order[each.name] for each in ORDER_FEATURES if each.array and each.name in order}
