"""Ranks the threads of a glance for a search by words: the same numbers as the index, bit by bit, without arrays."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from bot.memory.levels import K1, LEVELS, heaviest, idf, settled_idf
from bot.memory.packed import encode_key, unpack

_TEXT = "t"
_FIELDS = (("n", 0.8), (_TEXT, 1.0))
"""The letters of notes, and of titles and texts, and how much each counts: as `bot.recall.query.word_query` has it."""


class Segment(NamedTuple):
    """A part of the index: its number, where its documents begin among all, how many it has, which were deleted."""

    number: int
    start: int
    length: int
    deleted: frozenset[int]


class Clue(NamedTuple):
    """A term in the field with this letter: its documents among all, ascending, with their levels; how many of them
    exist; and what each level adds to a score."""

    letter: str
    term: str
    documents: list[int]
    levels: bytes
    frequency: int
    gains: list[float]


class Ranker:
    """One query, scored at once, for all documents that share a term with it."""

    def __init__(self, database: sqlite3.Connection, weights: Mapping[str, float]) -> None:
        self._database = database
        self.segments = _segments(database)
        self._count = sum(segment.length - len(segment.deleted) for segment in self.segments)
        self._terms = [(term, -weight) for weight, term in heaviest(weights)]
        self._clues = [
            clue for letter, importance in _FIELDS for term, weight in self._terms
            if (clue := self._clue(letter, term, importance * weight))
        ]  # fmt: skip
        self._scores: dict[int, float] = {}
        self._held: dict[int, int] = {}  # a bit for each term that the document holds
        self._score()
        self._parts: dict[int, float] = {}
        self._rarities = self._rarity()

    def found(self, floor: float) -> list[int]:
        """The documents that hold at least this part of the query, best first; equal ones in any order."""
        gone = {segment.start + document for segment in self.segments for document in segment.deleted}
        score = self._scores
        kept = [place for place in score if place not in gone and self.part(place) >= floor]
        return sorted(kept, key=score.__getitem__, reverse=True)

    def score(self, place: int) -> float:
        """What its terms add up to, in BM25F units."""
        return self._scores[place]

    def part(self, place: int) -> float:
        """How much of the query it holds, by the rarity of the words in titles and texts, in 0..1."""
        held = self._held[place]
        if held not in self._parts:
            shares = (share for bit, share in enumerate(self._rarities) if held >> bit & 1)
            self._parts[held] = sum(shares)
        return self._parts[held]

    def terms(self, place: int) -> tuple[str, ...]:
        """The terms of the query that this document holds, what adds most to its score first."""
        shares: dict[str, float] = {}
        for clue in self._clues:
            at = bisect_left(clue.documents, place)
            if at < len(clue.documents) and clue.documents[at] == place:
                shares[clue.term] = shares.get(clue.term, 0.0) + clue.gains[clue.levels[at]]
        return tuple(sorted(shares, key=lambda term: (-shares[term], term)))

    def _clue(self, letter: str, term: str, weight: float) -> Clue | None:
        rows = self._database.execute("SELECT segment, list FROM postings WHERE key = ?", (encode_key(letter, term),))
        lists = dict(rows.fetchall())
        documents: list[int] = []
        levels = bytearray()
        gone = 0
        for segment in self.segments:
            if segment.number in lists:
                found, more = unpack(lists[segment.number])
                documents += [segment.start + document for document in found] if segment.start else found
                levels += more
                gone += len(segment.deleted.intersection(found)) if segment.deleted else 0
        if not documents:
            return None
        frequency = len(documents) - gone
        full = weight * settled_idf(frequency, self._count) * (K1 + 1)
        return Clue(letter, term, documents, bytes(levels), frequency, [full * level for level in LEVELS])

    def _score(self) -> None:
        bits = {term: 1 << place for place, (term, _) in enumerate(self._terms)}
        scores, held = self._scores, self._held
        for clue in self._clues:
            bit, gains = bits[clue.term], clue.gains
            if clue.frequency:
                for document, level in zip(clue.documents, clue.levels, strict=True):
                    scores[document] = scores.get(document, 0.0) + gains[level]
                    held[document] = held.get(document, 0) | bit

    def _rarity(self) -> list[float]:
        """The share of each term in the rarity of all of them together."""
        frequencies = {clue.term: clue.frequency for clue in self._clues if clue.letter == _TEXT}
        found = [weight * idf(frequencies.get(term, 0), self._count) for term, weight in self._terms]
        whole = sum(found)
        return [rarity / whole for rarity in found]


def _segments(database: sqlite3.Connection) -> list[Segment]:
    found, start = [], 0
    for number, count, deleted in database.execute("SELECT number, count, deleted FROM segments ORDER BY number"):
        found.append(Segment(number, start, count, frozenset(map(int, deleted.split()))))
        start += count
    return found
