"""Finds a repository's cards on this machine by words, id, file, link and time.

The file has copies of the index's posting lists: the index of a branch lies in git objects, in the format of Whoosh or
in parts, and loading what reads it (git, Whoosh, NumPy) takes longer than a search.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from bot.domain.card import (
    Card,
    CardHit,
    CardId,
    CardLink,
    MessageHit,
    card_of,
    is_change,
    key_of,
    name_of,
    number_of,
    proven,
)
from bot.index.impacts import K1, LEVELS, heaviest, idf, settled_idf
from bot.index.segment_file import encode_key, unpack
from bot.local_cache.database import fact

_PART = 500
"""Names that are looked up in one query."""


class LocalCache:
    """The cards of a repository as of the last update. Implements `bot.questions.requests.Cards`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @property
    def size(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM threads").fetchone()[0])

    @property
    def turn_count(self) -> int:
        """Number of messages in all threads together, opening texts included."""
        count = "min(max(json_extract(digest, '$.turn_count'), 1), 1000000)"
        asked = f"SELECT total(CASE WHEN json_valid(digest) THEN coalesce({count}, 1) ELSE 1 END) FROM threads"  # noqa: S608 - ours
        return int(self._database.execute(asked).fetchone()[0])

    def fact(self, name: str) -> str:
        return fact(self._database, name)

    def close(self) -> None:
        self._database.close()

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[Card], bool] | None = None,
        floor: float = 0.0,
    ) -> list[CardHit]:
        ranker = Ranker(self._database, weights, _OF_THREADS)
        found: list[CardHit] = []
        wanted = limit
        for equals in _groups(ranker, ranker.found(floor), _at_once(limit, keep)):
            if wanted <= 0:
                break
            cards = self._at(ranker, equals)
            kept = [(card, place) for place in equals if (card := cards.get(place)) and (keep is None or keep(card))]
            kept.sort(key=lambda pair: (-ranker.score(pair[1]), isinstance(pair[0].id, str), pair[0].id))
            for card, place in kept[:wanted]:
                found.append(CardHit(card, ranker.score(place), ranker.part(place), ranker.terms(place)))
            wanted -= len(kept)
        return found

    @property
    def messages(self) -> int:
        """Number of messages that can be searched; 0 where the memory has no index of them."""
        return sum(segment.length - len(segment.deleted) for segment in _segments(self._database, _OF_MESSAGES))

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        ranker = Ranker(self._database, weights, _OF_MESSAGES)
        found: list[MessageHit] = []
        for equals in _groups(ranker, ranker.found(floor), _at_once(limit, keep)):
            hits = self._messages(ranker, equals)
            kept = [hit for hit in hits if keep is None or keep(hit)]
            found += sorted(kept, key=lambda hit: (-hit.score, isinstance(hit.thread, str), hit.thread, hit.position))[
                : limit - len(found)
            ]
            if len(found) >= limit:
                break
        return found

    def _messages(self, ranker: Ranker, places: Sequence[int]) -> list[MessageHit]:
        found = []
        asked = (
            "SELECT document, thread, position, author, role, at FROM messages WHERE segment = ? AND document IN ({})"
        )
        for segment, inside in _by_segment(ranker, places):
            for document, thread, position, author, role, at in self._rows(asked, inside, segment.number):
                place = segment.start + document
                score, part, held = ranker.score(place), ranker.part(place), ranker.terms(place)
                said = datetime.fromisoformat(at)
                found.append(MessageHit(key_of(thread), position, author, role, said, score, part, held))
        return found

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        found = self._cards(dict.fromkeys(map(name_of, ids)))
        return {card.id: card for card in found.values()}

    def naming(self, path: str) -> dict[CardId, tuple[str, ...]]:
        folders = _folders(path)
        if not folders:
            return {}
        rows = self._database.execute("SELECT thread, path FROM files WHERE name = ?", (folders[-1],))
        found: dict[CardId, tuple[str, ...]] = {}
        for thread, written in rows:
            theirs = _folders(written)
            shorter, longer = sorted((folders, theirs), key=len)
            if longer[-len(shorter) :] == shorter:
                key = key_of(thread)
                found[key] = (*found.get(key, ()), written)
        return found

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        """See `bot.questions.requests.Cards.links`. In the order of their threads."""
        names = list(dict.fromkeys(map(name_of, ids)))
        rows = chain(
            self._rows("SELECT source, target, kind FROM links WHERE source IN ({})", names),
            self._rows("SELECT source, target, kind FROM links WHERE target IN ({})", names),
        )
        links = [CardLink(key_of(source), key_of(target), kind) for source, target, kind in dict.fromkeys(rows)]
        changes = self._changes(link.target for link in links if link.kind == "fix")
        is_none = [link.kind == "fix" and changes.get(link.target) is False for link in links]
        return [link._replace(kind="reference") if none else link for link, none in zip(links, is_none, strict=True)]

    def decided(self, limit: int) -> list[Card]:
        asked = "SELECT digest FROM threads WHERE decided != '' ORDER BY decided DESC, id LIMIT ?"
        return self._read(line for (line,) in self._database.execute(asked, (limit,)))

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        rows = self._database.execute("SELECT digest FROM threads ORDER BY updated DESC, id")
        found: list[Card] = []
        while len(found) < limit and (lines := rows.fetchmany(_PART)):
            found += filter(keep, self._read(line for (line,) in lines))
        return found[:limit]

    def every(self) -> Iterator[Card]:
        """Return all threads, in no order that means anything."""
        rows = self._database.execute("SELECT digest FROM threads")
        while lines := rows.fetchmany(_PART):
            yield from self._read(line for (line,) in lines)

    def updated_since(self, moment: datetime) -> list[Card]:
        """Return the threads that changed at or after ``moment``, newest first."""
        asked = "SELECT digest FROM threads WHERE updated >= ? ORDER BY updated DESC, id"
        return self._read(line for (line,) in self._database.execute(asked, (moment.isoformat(),)))

    def _at(self, ranker: Ranker, places: Sequence[int]) -> dict[int, Card]:
        names: dict[str, int] = {}
        asked = "SELECT document, thread FROM documents WHERE segment = ? AND document IN ({})"
        for segment, inside in _by_segment(ranker, places):
            found = self._rows(asked, inside, segment.number)
            names |= {thread: segment.start + document for document, thread in found}
        return {names[name]: card for name, card in self._cards(names).items()}

    def _cards(self, names: Iterable[str]) -> dict[str, Card]:
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(names))
        return {name_of(card.id): card for card in self._read(line for (line,) in rows)}

    def _read(self, lines: Iterable[str]) -> list[Card]:
        """The cards of these digests, without fixes that are known to be none."""
        cards = [card for line in lines if (card := card_of(line))]
        fixes = [number_of(card.ending.fix or card.ending.claimed) for card in cards]
        changes = self._changes(filter(None, fixes))
        return [proven(card, changes.get(fix or 0)) for card, fix in zip(cards, fixes, strict=True)]

    def _changes(self, numbers: Iterable[CardId]) -> dict[CardId, bool]:
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(dict.fromkeys(map(name_of, numbers))))
        cards = [card for (line,) in rows if (card := card_of(line))]
        known = {card.id: is_change(card.kind, card.state, card.merged_at) for card in cards}
        return {key: merged for key, merged in known.items() if merged is not None}

    def _rows(self, question: str, values: Sequence[object], *before: object) -> Iterator[tuple[Any, ...]]:
        """The rows for any of these values, which follow the parameters ``before`` in the query."""
        for start in range(0, len(values), _PART):
            part = values[start : start + _PART]
            yield from self._database.execute(question.format(", ".join("?" * len(part))), (*before, *part))


def _by_segment(ranker: Ranker, places: Sequence[int]) -> Iterator[tuple[CachedSegment, list[int]]]:
    """The segments with the numbers of those of these documents that they hold."""
    for segment in ranker.segments:
        yield segment, [place - segment.start for place in places if 0 <= place - segment.start < segment.length]


def _at_once(limit: int, keep: object) -> int:
    """How many to read at a time: no more than are wanted, unless some may not be kept."""
    return max(64, 2 * limit) if keep else max(1, limit)


def _groups(ranker: Ranker, places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    start = 0
    while start < len(places):
        end = min(start + size, len(places))
        while end < len(places) and ranker.score(places[end]) == ranker.score(places[end - 1]):
            end += 1
        yield places[start:end]
        start = end


def _folders(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "..")]


_TEXT = "t"


class RankedTables(NamedTuple):
    """The tables of an index: its segments and posting lists; and the letters and weights of its fields."""

    segments: str
    postings: str
    fields: tuple[tuple[str, float], ...]


_OF_THREADS = RankedTables("segments", "postings", (("n", 0.8), (_TEXT, 1.0)))
"""Notes, and titles and texts, weighed as in `bot.recall.library.word_query`."""

_OF_MESSAGES = RankedTables("message_segments", "message_postings", ((_TEXT, 1.0),))


class CachedSegment(NamedTuple):
    """A part of the index: its number, the offset of its documents among all, their count, and the deleted ones."""

    number: int
    start: int
    length: int
    deleted: frozenset[int]


class TermMatches(NamedTuple):
    """A term in the field with this letter: its documents, ascending, with their levels; how many of them are not
    deleted; and what each level adds to a score."""

    letter: str
    term: str
    documents: list[int]
    levels: bytes
    frequency: int
    gains: list[float]


class Ranker:
    """Scores all documents that share a term with a query: the same numbers as the index, without NumPy."""

    def __init__(self, database: sqlite3.Connection, weights: Mapping[str, float], tables: RankedTables) -> None:
        self._database = database
        self._lists = f"SELECT segment, list FROM {tables.postings} WHERE key = ?"  # noqa: S608 - ours
        self.segments = _segments(database, tables)
        self._count = sum(segment.length - len(segment.deleted) for segment in self.segments)
        self._terms = [(term, -weight) for weight, term in heaviest(weights)]
        self._matches = [
            match for letter, importance in tables.fields for term, weight in self._terms
            if (match := self._match(letter, term, importance * weight))
        ]  # fmt: skip
        self._scores: dict[int, float] = {}
        self._held: dict[int, int] = {}  # a bit for each term in the document
        self._score()
        self._parts: dict[int, float] = {}
        self._rarities = self._rarity()

    def found(self, floor: float) -> list[int]:
        """Return the documents that hold at least this part of the query, best first; equal ones in any order."""
        gone = {segment.start + document for segment in self.segments for document in segment.deleted}
        score = self._scores
        kept = [place for place in score if place not in gone and self.part(place) >= floor]
        return sorted(kept, key=score.__getitem__, reverse=True)

    def score(self, place: int) -> float:
        """Return the score of a document, in BM25F units."""
        return self._scores[place]

    def part(self, place: int) -> float:
        """Return the part of the query in a document, weighted by the rarity of words in titles and texts, in 0..1."""
        held = self._held[place]
        if held not in self._parts:
            self._parts[held] = sum(share for bit, share in enumerate(self._rarities) if held >> bit & 1)
        return self._parts[held]

    def terms(self, place: int) -> tuple[str, ...]:
        """Return the terms of the query in a document, by what they add to its score, largest first."""
        shares: dict[str, float] = {}
        for match in self._matches:
            at = bisect_left(match.documents, place)
            if at < len(match.documents) and match.documents[at] == place:
                shares[match.term] = shares.get(match.term, 0.0) + match.gains[match.levels[at]]
        return tuple(sorted(shares, key=lambda term: (-shares[term], term)))

    def _match(self, letter: str, term: str, weight: float) -> TermMatches | None:
        rows = self._database.execute(self._lists, (encode_key(letter, term),))
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
        return TermMatches(letter, term, documents, bytes(levels), frequency, [full * level for level in LEVELS])

    def _score(self) -> None:
        bits = {term: 1 << place for place, (term, _) in enumerate(self._terms)}
        scores, held = self._scores, self._held
        for match in self._matches:
            bit, gains = bits[match.term], match.gains
            if match.frequency:
                for document, level in zip(match.documents, match.levels, strict=True):
                    scores[document] = scores.get(document, 0.0) + gains[level]
                    held[document] = held.get(document, 0) | bit

    def _rarity(self) -> list[float]:
        frequencies = {match.term: match.frequency for match in self._matches if match.letter == _TEXT}
        found = [weight * idf(frequencies.get(term, 0), self._count) for term, weight in self._terms]
        whole = sum(found)
        return [rarity / whole for rarity in found]


def _segments(database: sqlite3.Connection, tables: RankedTables) -> list[CachedSegment]:
    found, start = [], 0
    asked = f"SELECT number, count, deleted FROM {tables.segments} ORDER BY number"  # noqa: S608 - ours
    for number, count, deleted in database.execute(asked):
        found.append(CachedSegment(number, start, count, frozenset(map(int, deleted.split()))))
        start += count
    return found
