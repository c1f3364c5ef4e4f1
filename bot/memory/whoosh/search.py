"""Scores the documents of all segments for a query, one inverted list after the other."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

from bot.memory.bm25f import K1, LEVELS, idf
from bot.memory.index import Query
from bot.memory.postings import Postings, encode_key
from bot.memory.whoosh import stored
from bot.memory.whoosh.writer import ENTRY, LETTERS
from bot.model import Entry

MAX_LOOKED_UP = 512
"""Terms of a query that are looked up, the heaviest first."""

MAX_SCORED = 128
"""Terms of a query that are scored, those with the highest (1 + ln weight) · idf first."""

MAX_SHOWN = 8


class Leaf:
    """One segment, open for reading."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.count: int = reader.doc_count_all()
        self.deleted = frozenset(reader.segment().deleted_docs())
        if self._reader._perdoc.size("entry") < self.count * stored.LEAST_BYTES:
            raise ValueError("fewer documents than the table of contents says")

    def postings(self, key: bytes) -> Postings | None:
        found: Postings | None = self._reader._terms.get(key)
        return found

    def entry(self, document: int) -> Entry:
        return stored.unpack(self._entries[document])

    def find(self, key: bytes) -> int | None:
        """The document that holds a key, of several the last."""
        found = self.postings(key)
        alive = [number for number in found.documents if number not in self.deleted] if found else []
        return alive[-1] if alive else None

    def close(self) -> None:
        self._reader.close()

    @cached_property
    def created(self) -> array[int]:
        """When each document was created, in seconds."""
        numbers: array[int] = self._reader._perdoc.numbers("created")
        return numbers

    @cached_property
    def is_chronological(self) -> bool:
        return all(earlier <= later for earlier, later in pairwise(self.created))

    @cached_property
    def _entries(self) -> Any:
        return self._reader.column_reader("entry", ENTRY, translate=False)


class View:
    """The documents of a leaf that exist for one search."""

    def __init__(self, leaf: Leaf, before: datetime | None) -> None:
        self.leaf, self.end = leaf, leaf.count
        hidden: Iterable[int] = leaf.deleted
        if before is not None:
            moment = before.timestamp()
            if leaf.is_chronological:
                self.end = bisect_left(leaf.created, moment)
            else:
                hidden = leaf.deleted.union(number for number, at in enumerate(leaf.created) if at >= moment)
        self.hidden = {number for number in hidden if number < self.end}
        self.count = self.end - len(self.hidden)
        self._visible = bytearray(b"\1") * self.end
        for number in self.hidden:
            self._visible[number] = 0

    def postings(self, key: bytes) -> Postings | None:
        found = self.leaf.postings(key)
        if found and found.documents[-1] >= self.end:
            cut = bisect_left(found.documents, self.end)
            found = Postings(found.documents[:cut], found.levels[:cut])
        return found if found and found.documents else None

    def frequency(self, documents: list[int]) -> int:
        """How many of these documents exist."""
        return sum(map(self._visible.__getitem__, documents)) if self.hidden else len(documents)


@dataclass(slots=True)
class Clue:
    """A term that the query and some documents share, with the weight of a posting at full saturation."""

    term: str
    weight: float
    rank: float
    lists: list[tuple[int, Postings]]


class Candidate(NamedTuple):
    """A document with its score: the number of its view, and its number there."""

    score: float
    view: int
    document: int


class Search:
    """One query, scored, in time linear in the lists of its terms.

    ``most`` is the score that no document could exceed: every term of the query, also what no document holds, at full
    saturation.
    """

    def __init__(self, leaves: Sequence[Leaf], query: Query, before: datetime | None) -> None:
        self._views = [View(leaf, before) for leaf in leaves]
        self._total = sum(view.count for view in self._views)
        clues, unseen = self._look_up(query)
        self._clues = sorted(clues, key=lambda clue: (-clue.rank, clue.term))[:MAX_SCORED]
        self.most = unseen + sum(clue.weight for clue in self._clues)
        self._scores = [self._score(number) for number in range(len(self._views))]

    def best(self, count: int) -> list[Candidate]:
        """The ``count`` best documents and all that score like the last of them, best first."""
        floors = nlargest(count, (score for scores in self._scores for score in scores))
        floor = max(floors[-1], 5e-324) if floors else 0.0
        found = [
            Candidate(score, view, document)
            for view, scores in enumerate(self._scores)
            for document, score in enumerate(scores)
            if score >= floor
        ]
        return sorted(found, reverse=True)

    def entry(self, candidate: Candidate) -> Entry:
        return self._views[candidate.view].leaf.entry(candidate.document)

    def terms(self, candidates: Sequence[Candidate]) -> list[tuple[str, ...]]:
        """For each candidate the query's terms that it holds, what adds most to its score first, at most eight."""
        shares: dict[tuple[int, int], dict[str, float]] = {(c.view, c.document): {} for c in candidates}
        wanted = [{c.document for c in candidates if c.view == view} for view in range(len(self._views))]
        for clue in self._clues:
            for view, (documents, levels) in clue.lists:
                for document in wanted[view].intersection(documents):
                    level = levels[bisect_left(documents, document)]
                    share = shares[view, document]
                    share[clue.term] = share.get(clue.term, 0.0) + clue.weight * LEVELS[level]
        return [_strongest(shares[c.view, c.document]) for c in candidates]

    def _look_up(self, query: Query) -> tuple[list[Clue], float]:
        """What the documents share with the query, and the weight of what no document holds."""
        heaviest = sorted(((-weight, term) for term, weight in query.terms.items() if weight > 0))[:MAX_LOOKED_UP]
        clues, unseen = [], 0.0
        for field, importance in sorted(query.fields.items()):
            for weight, term in heaviest if importance > 0 else ():
                clue = self._clue(LETTERS[field], importance, term, -weight)
                if clue.lists:
                    clues.append(clue)
                else:
                    unseen += clue.weight
        return clues, unseen

    def _clue(self, letter: str, importance: float, term: str, weight: float) -> Clue:
        key = encode_key(letter, term)
        found = [(number, view.postings(key)) for number, view in enumerate(self._views)]
        lists = [(number, postings) for number, postings in found if postings]
        frequency = sum(self._views[number].frequency(postings.documents) for number, postings in lists)
        rarity = idf(frequency, self._total)
        rank = (1 + log(max(weight, 1.0))) * rarity
        return Clue(term, importance * weight * rarity * (K1 + 1), rank, lists if frequency else [])

    def _score(self, number: int) -> list[float]:
        view = self._views[number]
        scores = [0.0] * view.end
        for clue in self._clues:
            for at, (documents, levels) in clue.lists:
                if at == number:
                    gains = [clue.weight * level for level in LEVELS]
                    for document, level in zip(documents, levels, strict=True):
                        scores[document] += gains[level]
        for document in view.hidden:
            scores[document] = 0.0
        return scores


def _strongest(shares: dict[str, float]) -> tuple[str, ...]:
    return tuple(sorted(shares, key=lambda term: (-shares[term], term))[:MAX_SHOWN])
