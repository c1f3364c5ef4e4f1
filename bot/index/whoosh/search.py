"""Ranks the documents of all segments for a query, by its terms and its vectors."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate, pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Kind
from bot.index import arrays
from bot.index.arrays import Flags, Numbers, Scores
from bot.index.posting_lists import Postings
from bot.index.protocol import FLOOD_THRESHOLD, TEXT, Query
from bot.index.scoring import K1, LEVELS, heaviest, least, query_shares, smoothed_idf
from bot.index.segment_file import encode_key
from bot.index.whoosh.codec import FIELD_LETTERS, KIND_NUMBERS
from bot.index.whoosh.segment_reader import SegmentReader, SegmentSnapshot
from bot.ranking.features import ORDER_FEATURES, DocumentColumns
from bot.ranking.rarity import idf


class TermPostings(NamedTuple):
    """The lists of one term, each with the number of its view, and how many of their documents exist."""

    found: list[tuple[int, Postings]]
    frequency: int


class IndexSearcher:
    """The documents that exist for one search, numbered from the first segment to the last."""

    def __init__(self, readers: Sequence[SegmentReader], before: datetime | None) -> None:
        self.before = before
        self.views = [SegmentSnapshot(reader, before) for reader in readers]
        self._has_roles = any(view.has_roles() for view in self.views)
        if before is not None:
            self._hide_unvouched(before)
        self.count = sum(view.count for view in self.views)
        self.borders = list(accumulate((view.end for view in self.views), initial=0))
        self._frequencies: dict[tuple[str, str], int] = {}

    def _hide_unvouched(self, now: datetime) -> None:
        """Hide unvouched threads that were closed, and all unvouched threads of a flooding account."""
        unvouched = self._unvouched()
        if not any(flags.any() for flags in unvouched):
            return
        accounts = [view.numbers("account") for view in self.views]
        many = arrays.frequent_numbers(
            FLOOD_THRESHOLD,
            [account_numbers[flags] for account_numbers, flags in zip(accounts, unvouched, strict=True)],
        )
        for view, account_numbers, flags in zip(self.views, accounts, unvouched, strict=True):
            view.hide(flags & ((view.closed(now) != 0) | np.isin(account_numbers, many)))

    def _unvouched(self) -> list[Flags]:
        """For each view, flags of its unvouched threads. Without roles there are none."""
        return [view.unvouched(self.before) if self._has_roles else np.zeros(view.end, np.bool_) for view in self.views]

    def apply_roles(self, entry: IndexEntry) -> IndexEntry:
        """The entry of a thread; without roles, no thread is unvouched."""
        return entry if self._has_roles or entry.unvouched_until is None else replace(entry, unvouched_until=None)

    def lists(self, field: str, term: str) -> TermPostings:
        key = encode_key(FIELD_LETTERS[field], term)
        candidates = [(number, view.postings(key)) for number, view in enumerate(self.views)]
        found = [(number, postings) for number, postings in candidates if postings]
        frequency = sum(self.views[number].frequency(postings.documents) for number, postings in found)
        self._frequencies[field, term] = frequency
        return TermPostings(found, frequency)

    def by_view(self, numbers: list[int]) -> list[Numbers]:
        """Documents, in ascending order, by view and with the numbers they have in that view."""
        ranges = [
            (start, bisect_left(numbers, start), bisect_left(numbers, end)) for start, end in pairwise(self.borders)
        ]
        return [np.array(numbers[low:high], np.int64) - start for start, low, high in ranges]

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        """The inverse document frequency of each term in titles and opening texts; cached for the terms of a query."""
        return {term: idf(self._frequency(term), self.count) for term in terms}

    def joint_frequency(self, groups: Collection[frozenset[str]]) -> dict[frozenset[str], int]:
        """How many documents contain all terms of each group in titles and opening texts."""
        lists = {term: dict(self.lists(TEXT, term).found) for term in frozenset[str]().union(*groups)}
        return {group: self._count_joint([lists[term] for term in group]) for group in groups}

    def _count_joint(self, lists: Sequence[Mapping[int, Postings]]) -> int:
        views = set(lists[0]).intersection(*lists) if lists else ()
        shared = ((self.views[view], [found[view].documents for found in lists]) for view in views)
        return sum(view.frequency(arrays.intersect(parts)) for view, parts in shared)

    def entry(self, number: int) -> IndexEntry:
        view = bisect_right(self.borders, number) - 1
        return self.apply_roles(self.views[view].reader.entry(number - self.borders[view]))

    def targets(self) -> list[Numbers]:
        """The threads that documents were known to duplicate, by view, once for each duplicate."""
        return [view.targets(self.before, flags) for view, flags in zip(self.views, self._unvouched(), strict=True)]

    def _frequency(self, term: str) -> int:
        known = self._frequencies.get((TEXT, term))
        return self.lists(TEXT, term).frequency if known is None else known


class QueryTerm(NamedTuple):
    """A term that the query and some documents share: the gain in score of each level, and the lists."""

    term: str
    gains: Scores
    lists: list[tuple[int, Postings]]


class DocumentScores(NamedTuple):
    """A value for each document; those not above ``nothing`` do not match."""

    values: Scores
    nothing: float

    def best(self, count: int) -> list[int]:
        """The ``count`` best documents and all that tie with the last of them, best first."""
        return arrays.best(self.values, count, above=self.nothing)


class Search:
    """One query, answered in time linear in the lists of its terms and in the vectors.

    ``ranking`` ranks the documents by their terms or, with a blend, by its sum. ``most`` is the highest possible score:
    every term of the query, even one that no document contains, at full saturation.
    """

    def __init__(self, searcher: IndexSearcher, query: Query) -> None:
        self._searcher = searcher
        self._matches: list[QueryTerm] = []
        self._most_terms = query.most_terms
        self._entries: dict[int, IndexEntry] = {}
        self.most = 0.0
        self._look_up(query)
        self._scored = self._scores()
        cosines = [view.reader.cosines(query.vector, view.end) for view in searcher.views] if query.vector else None
        self._cosines = None if cosines is None else arrays.join_arrays(cosines, np.float64)
        self._duplicates = self._count_duplicates()
        self._query_share, found = np.zeros(len(self._scored)), DocumentScores(self._scored, 0.0)
        if query.floor is not None:
            self._query_share = self._query_shares(query)
            found = DocumentScores(np.where(self._query_share >= least(query.floor), self._scored, 0.0), 0.0)
        if query.blend is not None and searcher.before:
            found = self._blended(query.blend, searcher.before)
        self.ranking = found if query.kinds is None else self._of_kinds(found, query.kinds)

    def entry(self, number: int) -> IndexEntry:
        if number not in self._entries:
            self._entries[number] = self._searcher.entry(number)
        return self._entries[number]

    def hits(self, numbers: Iterable[int]) -> list[IndexHit]:
        """These documents as hits, in any order."""
        ordered = sorted(numbers)
        in_views = self._searcher.by_view(ordered)
        cosines = [None] * len(ordered) if self._cosines is None else self._cosines[ordered].tolist()
        most = self.most or 1.0
        facts = (values[ordered].tolist() for values in (self._scored, self._duplicates, self._query_share))
        found_by = zip(ordered, self._terms(in_views), cosines, *facts, strict=True)
        return [
            IndexHit(self.entry(number), score, why, score / most, cosine, duplicates, part)
            for number, why, cosine, score, duplicates, part in found_by
        ]

    def _of_kinds(self, ranking: DocumentScores, kinds: Iterable[Kind]) -> DocumentScores:
        kind_numbers = arrays.join_arrays([view.numbers("kind") for view in self._searcher.views], np.int64)
        is_wanted = np.isin(kind_numbers, [KIND_NUMBERS[kind] for kind in kinds])
        return DocumentScores(np.where(is_wanted, ranking.values, -inf), ranking.nothing)

    def _look_up(self, query: Query) -> None:
        looked_up = heaviest(query.terms)
        for field, importance in sorted(query.fields.items()):
            for weight, term in looked_up if importance > 0 else ():
                postings, frequency = self._searcher.lists(field, term)
                full = importance * -weight * smoothed_idf(frequency, self._searcher.count) * (K1 + 1)
                self.most += full
                if frequency:
                    self._matches.append(QueryTerm(term, full * np.asarray(LEVELS), postings))

    def _scores(self) -> Scores:
        borders = self._searcher.borders
        total = np.zeros(borders[-1])
        parts = [total[start:end] for start, end in pairwise(borders)]
        for _, gains, lists in self._matches:
            for at, (documents, levels) in lists:
                parts[at][documents] += gains[levels]
        for part, view in zip(parts, self._searcher.views, strict=True):
            part[view.hidden] = 0.0
        return total

    def _query_shares(self, query: Query) -> Scores:
        """For each document, the share of the query that it contains."""
        weights = {term: -weight for weight, term in heaviest(query.terms)}
        rarity = self._searcher.rarity(weights)
        shares = query_shares({term: weight * rarity[term] for term, weight in weights.items()})
        total = np.zeros(self._searcher.borders[-1])
        for term in {match.term for match in self._matches}:
            held = np.zeros(len(total), np.bool_)
            parts = [held[start:end] for start, end in pairwise(self._searcher.borders)]
            for lists in (match.lists for match in self._matches if match.term == term):
                for at, (documents, _) in lists:
                    parts[at][documents] = True
            total += shares[term] * held
        return np.minimum(total, 1.0)

    def _terms(self, wanted: Sequence[Numbers]) -> list[tuple[str, ...]]:
        """The query's terms in each document, those that add most to its score first."""
        terms = sorted({match.term for match in self._matches})
        rows = {term: row for row, term in enumerate(terms)}
        borders = list(accumulate(map(len, wanted), initial=0))
        shares = np.zeros((len(terms), borders[-1]))
        for term, gains, lists in self._matches:
            for at, (documents, levels) in lists:
                part = shares[rows[term], borders[at] : borders[at + 1]]
                part += arrays.gains_for(documents, levels, gains, wanted[at])
        return [tuple(terms[row] for row in found) for found in arrays.strongest(shares, self._most_terms)]

    def _count_duplicates(self) -> Numbers:
        keys = [view.numbers("key") for view in self._searcher.views]
        return arrays.occurrences(keys, self._searcher.targets())

    def _blended(self, blend: Mapping[str, float], moment: datetime) -> DocumentScores:
        views = self._searcher.views
        columns = DocumentColumns(
            scores=self._scored,
            cosines=self._cosines,
            created=arrays.join_arrays([view.numbers("created") for view in views], np.int64),
            closed=arrays.join_arrays([view.closed(moment) for view in views], np.int64),
            lengths=arrays.join_arrays([view.numbers("length") for view in views], np.int64),
            duplicates=self._duplicates,
            now=moment.timestamp(),
        )
        total = np.zeros(len(self._scored))
        for feature in ORDER_FEATURES:
            if feature.array and blend.get(feature.name) and (values := feature.array(columns)) is not None:
                total += blend[feature.name] * values
        total[arrays.join_arrays([view.hidden for view in views], np.bool_)] = -inf
        return DocumentScores(total, -inf)
