"""Finds a repository's cards on this machine by words, id, file, link and time.

The file has copies of the index's posting lists: the index of a branch is in git objects, in the format of Whoosh or
in parts, and loading its readers (git, Whoosh, NumPy) takes longer than a search.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import Counter
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
    ThreadFacts,
    card_of,
    cards_of,
    key_of,
    name_of,
)
from bot.domain.change_state import is_change
from bot.domain.hidden_people import HiddenPeople
from bot.domain.paths import end_alike, path_parts
from bot.index.scoring import K1, LEVELS, NOTES_WEIGHT, heaviest, least, query_share, query_shares, smoothed_idf
from bot.index.segment_file import encode_key, unpack
from bot.local_cache.database import fact
from bot.ranking.rarity import idf

_BY_ID = "substr(id, 1, 1) = '=', CAST(CASE substr(id, 1, 1) WHEN '#' THEN substr(id, 2) END AS INTEGER), id"
"""The order of ids: numbers before texts."""

_BATCH_SIZE = 500
"""Names looked up in one query, and rows fetched at a time."""


class LocalCache:
    """The cards of a repository as of the last update, without the words and names of the people in ``hidden``.

    Implements `bot.questions.requests.Cards`.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.hidden = HiddenPeople()
        self.common_statistics: Mapping[str, TermStatistics] = {}
        """Those of all memories that are searched together, by tables, so that their scores compare; else empty."""

    @property
    def size(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM threads").fetchone()[0])

    @property
    def turn_count(self) -> int:
        """Number of messages in all threads together, opening texts included."""
        count = "min(max(json_extract(digest, '$.turn_count'), 1), 1000000)"
        sql = f"SELECT total(CASE WHEN json_valid(digest) THEN coalesce({count}, 1) ELSE 1 END) FROM threads"  # noqa: S608 - ours
        return int(self._database.execute(sql).fetchone()[0])

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
        ranker = self._ranker(weights, _THREAD_TABLES)
        hits: list[CardHit] = []
        remaining = limit
        for ties in _tie_groups(ranker, ranker.rank(floor), _batch_size(limit, keep)):
            if remaining <= 0:
                break
            cards = self._cards_at(ranker, ties)
            kept = [
                (card, document) for document in ties if (card := cards.get(document)) and (keep is None or keep(card))
            ]
            kept.sort(key=lambda pair: (-ranker.score(pair[1]), isinstance(pair[0].id, str), pair[0].id))
            for card, document in kept[:remaining]:
                hits.append(CardHit(card, ranker.score(document), ranker.part(document), ranker.terms(document)))
            remaining -= len(kept)
        return hits

    @property
    def messages(self) -> int:
        """Number of messages that can be searched; 0 if the memory has no index of them."""
        return sum(segment.length - len(segment.deleted) for segment in _segments(self._database, _MESSAGE_TABLES))

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        ranker = self._ranker(weights, _MESSAGE_TABLES)
        found: list[MessageHit] = []
        for ties in _tie_groups(ranker, ranker.rank(floor), _batch_size(limit, keep or self.hidden)):
            hits = self._message_hits_at(ranker, ties)
            kept = [hit for hit in hits if hit.author not in self.hidden and (keep is None or keep(hit))]
            found += sorted(kept, key=lambda hit: (-hit.score, isinstance(hit.thread, str), hit.thread, hit.position))[
                : limit - len(found)
            ]
            if len(found) >= limit:
                break
        return found

    def _message_hits_at(self, ranker: Ranker, documents: Sequence[int]) -> list[MessageHit]:
        hits = []
        sql = "SELECT document, thread, position, author, role, at FROM messages WHERE segment = ? AND document IN ({})"
        for segment, offsets in _by_segment(ranker, documents):
            for document, thread, position, author, role, at in self._rows(sql, offsets, segment.number):
                number = segment.start + document
                score, part, matched_terms = ranker.score(number), ranker.part(number), ranker.terms(number)
                written_at = datetime.fromisoformat(at)
                hits.append(MessageHit(key_of(thread), position, author, role, written_at, score, part, matched_terms))
        return hits

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        return self._ranker(dict.fromkeys(terms, 1.0), _THREAD_TABLES).rarity

    def statistics(self, terms: Iterable[str]) -> dict[str, TermStatistics]:
        """Return how many threads, and how many messages, have each of these terms, by tables."""
        weights = dict.fromkeys(terms, 1.0)
        return {
            tables.segments: Ranker(self._database, weights, tables).statistics
            for tables in (_THREAD_TABLES, _MESSAGE_TABLES)
        }

    def _ranker(self, weights: Mapping[str, float], tables: RankedTables) -> Ranker:
        return Ranker(self._database, weights, tables, self.common_statistics.get(tables.segments))

    def threads_with(self, keep: Callable[[MessageHit], bool]) -> set[CardId]:
        deleted = {segment.number: segment.deleted for segment in _segments(self._database, _MESSAGE_TABLES)}
        rows = self._database.execute("SELECT segment, document, thread, position, author, role, at FROM messages")
        found: set[CardId] = set()
        for segment, document, thread, position, author, role, at in rows:
            if document not in deleted.get(segment, ()) and author not in self.hidden:
                hit = MessageHit(key_of(thread), position, author, role, datetime.fromisoformat(at), 0.0, 0.0, ())
                found |= {hit.thread} if keep(hit) else set()
        return found

    def facts(self, ids: Iterable[CardId]) -> Mapping[CardId, ThreadFacts]:
        return self.cards(ids)

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        found = self._cards(dict.fromkeys(map(name_of, ids)))
        return {card.id: card for card in found.values()}

    def file_mentions(self, path: str) -> dict[CardId, tuple[str, ...]]:
        parts = path_parts(path)
        if not parts:
            return {}
        rows = self._database.execute("SELECT thread, path FROM files WHERE name = ?", (parts[-1].casefold(),))
        found: dict[CardId, tuple[str, ...]] = {}
        for thread, spelling in rows:
            if end_alike(parts, path_parts(spelling)):
                key = key_of(thread)
                found[key] = (*found.get(key, ()), spelling)
        return found

    def files(self) -> Iterator[tuple[CardId, str]]:
        rows = self._database.execute("SELECT thread, path FROM files")
        return ((key_of(thread), path) for thread, path in rows)

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        """See `bot.questions.requests.Cards.links`. In the order of the threads."""
        names = list(dict.fromkeys(map(name_of, ids)))
        rows = chain(
            self._rows("SELECT source, target, kind FROM links WHERE source IN ({})", names),
            self._rows("SELECT source, target, kind FROM links WHERE target IN ({})", names),
        )
        links = [CardLink(key_of(source), key_of(target), kind) for source, target, kind in dict.fromkeys(rows)]
        threads = self._threads(link.target for link in links if link.kind == "fix")
        merged = {key: is_change(thread.kind, thread.state, thread.merged_at) for key, thread in threads.items()}
        return [
            link._replace(kind="reference") if link.kind == "fix" and merged.get(link.target) is False else link
            for link in links
        ]

    def recently_decided(self, limit: int) -> list[Card]:
        sql = "SELECT digest FROM threads WHERE decided != '' ORDER BY decided DESC, id LIMIT ?"
        return self._parse_cards(line for (line,) in self._database.execute(sql, (limit,)))

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        rows = self._database.execute(f"SELECT digest FROM threads ORDER BY updated DESC, {_BY_ID}")  # noqa: S608 - ours
        found: list[Card] = []
        while len(found) < limit and (lines := rows.fetchmany(_BATCH_SIZE)):
            found += filter(keep, self._parse_cards(line for (line,) in lines))
        return found[:limit]

    def updated_since(self, moment: datetime) -> list[Card]:
        """Return the threads that changed at or after ``moment``, newest first."""
        sql = f"SELECT digest FROM threads WHERE updated >= ? ORDER BY updated DESC, {_BY_ID}"  # noqa: S608 - ours
        return self._parse_cards(line for (line,) in self._database.execute(sql, (moment.isoformat(),)))

    def _cards_at(self, ranker: Ranker, documents: Sequence[int]) -> dict[int, Card]:
        names: dict[str, int] = {}
        sql = "SELECT document, thread FROM documents WHERE segment = ? AND document IN ({})"
        for segment, offsets in _by_segment(ranker, documents):
            found = self._rows(sql, offsets, segment.number)
            names |= {thread: segment.start + document for document, thread in found}
        return {names[name]: card for name, card in self._cards(names).items()}

    def _cards(self, names: Iterable[str]) -> dict[str, Card]:
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(names))
        return {name_of(card.id): card for card in self._parse_cards(line for (line,) in rows)}

    def _parse_cards(self, lines: Iterable[str]) -> list[Card]:
        return cards_of(lines, self.hidden, self._threads)

    def _threads(self, numbers: Iterable[CardId]) -> dict[CardId, Card]:
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(dict.fromkeys(map(name_of, numbers))))
        return {card.id: card for (line,) in rows if (card := card_of(line))}

    def _rows(self, sql: str, values: Sequence[object], *before: object) -> Iterator[tuple[Any, ...]]:
        """The rows for any of these values; the parameters ``before`` precede them in the query."""
        for start in range(0, len(values), _BATCH_SIZE):
            part = values[start : start + _BATCH_SIZE]
            yield from self._database.execute(sql.format(", ".join("?" * len(part))), (*before, *part))


def _by_segment(ranker: Ranker, documents: Sequence[int]) -> Iterator[tuple[CachedSegment, list[int]]]:
    """The segments, each with the offsets of those of these documents that it holds."""
    for segment in ranker.segments:
        yield (
            segment,
            [document - segment.start for document in documents if 0 <= document - segment.start < segment.length],
        )


def _batch_size(limit: int, keep: object) -> int:
    """How many to read at a time: exactly the limit, or more if a filter may drop some."""
    return max(64, 2 * limit) if keep else max(1, limit)


def _tie_groups(ranker: Ranker, documents: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    begin = 0
    while begin < len(documents):
        end = min(begin + size, len(documents))
        while end < len(documents) and ranker.score(documents[end]) == ranker.score(documents[end - 1]):
            end += 1
        yield documents[begin:end]
        begin = end


_TEXT_LETTER = "t"


class RankedTables(NamedTuple):
    """The tables of an index, for segments and posting lists, and the letters and weights of its fields."""

    segments: str
    postings: str
    fields: tuple[tuple[str, float], ...]


_THREAD_TABLES = RankedTables("segments", "postings", (("n", NOTES_WEIGHT), (_TEXT_LETTER, 1.0)))
"""Notes, and titles and texts."""

_MESSAGE_TABLES = RankedTables("message_segments", "message_postings", ((_TEXT_LETTER, 1.0),))


class CachedSegment(NamedTuple):
    """A segment: its number, the offset of its documents in the index, their count, and the deleted ones."""

    number: int
    start: int
    length: int
    deleted: frozenset[int]


class TermStatistics(NamedTuple):
    """The number of documents in an index, and how many of them have a term in a field (letter, term)."""

    total: int
    frequencies: Mapping[tuple[str, str], int]


def sum_statistics(statistics: Sequence[TermStatistics]) -> TermStatistics:
    """Those of several indexes together."""
    frequencies = Counter[tuple[str, str]]()
    for each in statistics:
        frequencies.update(each.frequencies)
    return TermStatistics(sum(each.total for each in statistics), frequencies)


class TermMatches(NamedTuple):
    """A term in the field with this letter, and its weight: its documents, ascending, with their levels, and how many
    are not deleted."""

    letter: str
    term: str
    weight: float
    documents: list[int]
    levels: bytes
    frequency: int


class Ranker:
    """Scores all documents that share a term with a query. The scores equal those of the index, without NumPy.

    ``statistics`` say how rare the terms are; by default those of this index.
    """

    def __init__(
        self,
        database: sqlite3.Connection,
        weights: Mapping[str, float],
        tables: RankedTables,
        statistics: TermStatistics | None = None,
    ) -> None:
        self._database = database
        self._lists = f"SELECT segment, list FROM {tables.postings} WHERE key = ?"  # noqa: S608 - ours
        self.segments = _segments(database, tables)
        self._terms = [(term, -weight) for weight, term in heaviest(weights)]
        self._matches = [
            match for letter, importance in tables.fields for term, weight in self._terms
            if (match := self._match(letter, term, importance * weight))
        ]  # fmt: skip
        total = sum(segment.length - len(segment.deleted) for segment in self.segments)
        self.statistics = statistics or TermStatistics(total, {(m.letter, m.term): m.frequency for m in self._matches})
        self._gains = {(match.letter, match.term): self._gains_of(match) for match in self._matches}
        self._scores: dict[int, float] = {}
        self._term_bits: dict[int, int] = {}  # a bit for each term in the document
        self._score()
        self._parts: dict[int, float] = {}
        self.rarity = self._rarity()
        self._shares = query_shares({term: weight * self.rarity[term] for term, weight in self._terms})

    def rank(self, floor: float) -> list[int]:
        """Return the documents that hold at least this part of the query, best first; ties in any order."""
        deleted = {segment.start + document for segment in self.segments for document in segment.deleted}
        score = self._scores
        documents = [number for number in score if number not in deleted and self.part(number) >= least(floor)]
        return sorted(documents, key=score.__getitem__, reverse=True)

    def score(self, number: int) -> float:
        """Return the score of a document, in BM25F units."""
        return self._scores[number]

    def part(self, number: int) -> float:
        """Return the part of the query in a document, weighted by the rarity of words in titles and texts, in 0..1."""
        bits = self._term_bits[number]
        if bits not in self._parts:
            held = (term for bit, (term, _) in enumerate(self._terms) if bits >> bit & 1)
            self._parts[bits] = query_share(self._shares, held)
        return self._parts[bits]

    def terms(self, number: int) -> tuple[str, ...]:
        """Return the query terms in a document, the largest contribution to its score first."""
        shares: dict[str, float] = {}
        for match in self._matches:
            index = bisect_left(match.documents, number)
            if index < len(match.documents) and match.documents[index] == number:
                shares[match.term] = (
                    shares.get(match.term, 0.0) + self._gains[match.letter, match.term][match.levels[index]]
                )
        return tuple(sorted(shares, key=lambda term: (-shares[term], term)))

    def _match(self, letter: str, term: str, weight: float) -> TermMatches | None:
        rows = self._database.execute(self._lists, (encode_key(letter, term),))
        lists = dict(rows.fetchall())
        documents: list[int] = []
        levels = bytearray()
        deleted_count = 0
        for segment in self.segments:
            if segment.number in lists:
                inside, segment_levels = unpack(lists[segment.number])
                documents += [segment.start + document for document in inside] if segment.start else inside
                levels += segment_levels
                deleted_count += len(segment.deleted.intersection(inside)) if segment.deleted else 0
        if not documents:
            return None
        return TermMatches(letter, term, weight, documents, bytes(levels), len(documents) - deleted_count)

    def _gains_of(self, match: TermMatches) -> list[float]:
        """What each level of a term adds to a score."""
        frequency = self.statistics.frequencies[match.letter, match.term]
        full = match.weight * smoothed_idf(frequency, self.statistics.total) * (K1 + 1)
        return [full * level for level in LEVELS]

    def _score(self) -> None:
        bits = {term: 1 << position for position, (term, _) in enumerate(self._terms)}
        scores, term_bits = self._scores, self._term_bits
        for match in self._matches:
            bit, gains = bits[match.term], self._gains[match.letter, match.term]
            if match.frequency:
                for document, level in zip(match.documents, match.levels, strict=True):
                    scores[document] = scores.get(document, 0.0) + gains[level]
                    term_bits[document] = term_bits.get(document, 0) | bit

    def _rarity(self) -> dict[str, float]:
        """The weight of each term by how many titles and texts have it."""
        total, frequencies = self.statistics
        return {term: idf(frequencies.get((_TEXT_LETTER, term), 0), total) for term, _ in self._terms}


def _segments(database: sqlite3.Connection, tables: RankedTables) -> list[CachedSegment]:
    segments, start = [], 0
    sql = f"SELECT number, count, deleted FROM {tables.segments} ORDER BY number"  # noqa: S608 - ours
    for number, count, deleted in database.execute(sql):
        segments.append(CachedSegment(number, start, count, frozenset(map(int, deleted.split()))))
        start += count
    return segments
