"""Turns hits of the index into candidates in order, each with a confidence in 0..1.

Near-duplicates are older issues that say the same as the question: they show how much it matters, but do not answer it.
Only a few unvouched issues per account take part, so that flooding the tracker does not produce an answer.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import fsum, log1p
from typing import NamedTuple

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import ThreadId
from bot.ranking.features import (
    CONFIDENCE_FEATURES,
    ORDER_FEATURES,
    RankedHit,
    RankingQuery,
    SharedText,
    measure,
    order_features,
    title_terms,
)
from bot.ranking.rarity import idf
from bot.ranking.weights import RankingModels

TITLE_BOOST = 2.0
"""Extra weight of a term in the title, which makes it weigh three times as much as one in the body."""

MAX_COPY_LENGTH_GAP = 0.1
"""A copy has the question's words in its title, and the logarithm of its length differs by at most this."""

MIN_COPY_SCORE_SHARE = 0.9
"""A copy has at least this share of the best score of all hits."""

OUTAGE_PERIOD = timedelta(days=2)
MIN_OUTAGE_SCORE_SHARE = 0.5
MIN_OUTAGE_AUTHORS = 2
"""Reports of an outage are open issues of the last two days with at least half of the best score, by several people. On
1,653 issues of the development data they change almost nothing: outages are rare."""


class Holders(NamedTuple):
    """The threads that state an error of the question in the same words, and how many of them contain each term.

    ``answered`` are those of them that were closed, and not as duplicates, if few were; ``lines`` are the terms of the
    errors that these state.
    """

    ids: frozenset[ThreadId]
    counts: Mapping[str, int]
    answered: frozenset[ThreadId] = frozenset()
    lines: frozenset[str] = frozenset()


NO_HOLDERS = Holders(frozenset(), {})


def near_duplicates(
    hits: Sequence[IndexHit], query: RankingQuery, holders: Holders = NO_HOLDERS
) -> frozenset[ThreadId]:
    """The copies of the question among the hits, the threads with its error, and other reports of an ongoing outage."""
    best = max((hit.score for hit in hits), default=0.0)
    copies = [hit for hit in hits if hit.score >= MIN_COPY_SCORE_SHARE * best and _is_copy(hit.entry, query)]
    reports = [hit for hit in hits if hit.score >= MIN_OUTAGE_SCORE_SHARE * best and _is_recent_open(hit.entry, query)]
    writers = {hit.entry.author for hit in reports} - {query.author}
    similar = [*copies, *reports] if len(writers) >= MIN_OUTAGE_AUTHORS else copies
    return holders.ids.union(hit.entry.id for hit in similar)


def _is_copy(entry: IndexEntry, query: RankingQuery) -> bool:
    is_same_length = abs(log1p(entry.length) - log1p(query.length)) <= MAX_COPY_LENGTH_GAP
    return is_same_length and title_terms(entry.title) == query.title


def _is_recent_open(entry: IndexEntry, query: RankingQuery) -> bool:
    return entry.closed_since(query.at) is None and query.at - entry.created_at <= OUTAGE_PERIOD


MIN_SHARED_TERMS = 3
"""Fewer shared terms are a coincidence, however rare: such a hit is never shown."""

CIRCUMSTANCE_FEATURES = frozenset(each.name for each in ORDER_FEATURES if each.is_circumstance)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown, with the hit that found it.

    ``found_as`` is the id of the hit: the thread's own, or a duplicate's; ``folded`` lists all hits merged into this
    candidate. ``score``, in log-odds against the other candidates, is computed from ``features``; ``likeness`` is the
    score without the candidate's age and state. ``confidence``, the probability that it is worth showing, is computed
    from ``evidence``.
    """

    entry: IndexEntry
    hit: IndexHit
    score: float
    likeness: float
    features: Mapping[str, float]
    folded: tuple[ThreadId, ...]
    confidence: float = 0.0
    similarity: float = 0.0
    evidence: Mapping[str, float] = field(default_factory=dict)

    @property
    def found_as(self) -> ThreadId:
        return self.hit.entry.id

    def is_any_of(self, ids: frozenset[ThreadId]) -> bool:
        """Whether it, or a hit merged into it, is one of these threads."""
        return bool(ids.intersection((self.entry.id, *self.folded)))


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """All candidates, best first, with what is needed to compute their confidence.

    ``scores`` are those of the hits, ascending, except near-duplicates of the question: the others are judged as if
    there were none. ``holders`` state one of its errors.
    """

    candidates: tuple[Candidate, ...]
    query: RankingQuery
    ranking: RankingModels
    scores: tuple[float, ...] = ()
    holders: Holders = NO_HOLDERS

    def judge(self, candidate: Candidate, text: SharedText, floor: float = 0.0) -> Candidate:
        """The candidate with its confidence and similarity, at least ``floor``, given what a comparison of the texts
        found."""
        hit = candidate.hit
        place = 1 + len(self.scores) - bisect_right(self.scores, hit.score)
        evidence = measure(CONFIDENCE_FEATURES, RankedHit(hit, self.query, rank=place, text=text))
        model = self.ranking.for_evidence(evidence)
        confidence = model.probability(evidence)
        similarity = max(floor, model.similarity(confidence))
        return replace(candidate, confidence=confidence, similarity=similarity, evidence=evidence)


def sort_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. Ties go to the higher score for terms, then the older thread, then the smaller id."""
    return sorted(candidates, key=_order_key)


SimilarityKey = tuple[float, float, float, float, datetime, int, str]


def similarity_key(candidate: Candidate) -> SimilarityKey:
    """A sort key that puts the most similar first, then the surest; ties as in `sort_candidates`."""
    return -candidate.similarity, -candidate.confidence, *_order_key(candidate)


def _order_key(candidate: Candidate) -> tuple[float, float, datetime, int, str]:
    key = candidate.entry.id
    number, name = (key, "") if isinstance(key, int) else (sys.maxsize, key)
    return -candidate.score, -candidate.hit.score, candidate.entry.created_at, number, name


def rank_candidates(
    hits: Sequence[IndexHit],
    canonical: Mapping[ThreadId, IndexEntry],
    query: RankingQuery,
    ranking: RankingModels,
    holders: Holders = NO_HOLDERS,
    *,
    has_vectors: bool = False,
) -> RankedCandidates:
    """One candidate per thread; a duplicate counts as the thread that ``canonical`` maps it to.

    ``has_vectors``: a text model has read the question.
    """
    duplicates = near_duplicates(hits, query, holders)
    hits, query = _without_repeats(hits, query, duplicates, holders.counts)
    best = max((hit.score for hit in hits), default=0.0)
    order = ranking.model(has_vectors=has_vectors).order
    groups: dict[ThreadId, list[Candidate]] = {}
    for hit in hits:
        features = order_features(hit, query, best)
        contributions = {name: weight * features[name] for name, weight in order.items() if name in features}
        likeness = sum([part for name, part in contributions.items() if name not in CIRCUMSTANCE_FEATURES])
        entry = canonical.get(hit.entry.id, hit.entry)
        candidate = Candidate(entry, hit, sum(contributions.values()), likeness, features, (hit.entry.id,))
        groups.setdefault(entry.id, []).append(candidate)
    return RankedCandidates(
        tuple(sort_candidates(map(_merge, groups.values()))),
        query,
        ranking,
        scores=tuple(sorted(hit.score for hit in hits if hit.entry.id not in duplicates)),
        holders=holders,
    )


def _without_repeats(
    hits: Sequence[IndexHit], query: RankingQuery, duplicates: frozenset[ThreadId], counts: Mapping[str, int]
) -> tuple[Sequence[IndexHit], RankingQuery]:
    """The hits and the query as they would be if there were only one of these near-duplicates.

    Otherwise the more often something is reported, the more common its words, and the less a known fix would resemble
    it. Scores are scaled by the rarity of the terms that a hit is known to share.
    """
    repeats = len(duplicates) - 1
    if repeats < 1:
        return hits, query
    held = Counter(term for hit in hits if hit.entry.id in duplicates for term in hit.terms)
    held |= Counter(counts)  # the larger of both, as a hit lists only some of its terms
    threads = query.threads - repeats
    holders = {term: query.frequency(term) - count + 1 for term, count in held.items() if count > 1}
    rarer = {term: idf(min(max(number, 0.0), threads), threads) for term, number in holders.items()}
    rarity = {**query.rarity, **{term: value for term, value in rarer.items() if term in query.rarity}}
    before = _mass(query.rarity, query.title, [*query.title, *query.body, *query.lines])
    after = _mass(rarity, query.title, [*query.title, *query.body, *query.lines])
    scaled = []
    for hit in hits:
        was = _mass(query.rarity, query.title, hit.terms)
        gain = _mass(rarity, query.title, hit.terms) / was if was else 1.0
        share = min(1.0, hit.share * gain * before / after) if after else hit.share
        scaled.append(replace(hit, score=hit.score * gain, share=share))
    return scaled, replace(query, rarity=rarity, rarest=idf(0, threads), repeats=repeats)


def _mass(rarity: Mapping[str, float], title: Collection[str], terms: Iterable[str]) -> float:
    """The sum of the rarities, those of the title's terms three times, as in a query."""
    return fsum(rarity.get(term, 0.0) * (1.0 + TITLE_BOOST if term in title else 1.0) for term in dict.fromkeys(terms))


def _merge(group: Sequence[Candidate]) -> Candidate:
    """The most similar of the candidates for one thread, with the best score among them."""
    if len(group) == 1:
        return group[0]
    most_similar = min(group, key=lambda one: (-one.likeness, *_order_key(one)))
    return replace(most_similar, score=max(one.score for one in group), folded=tuple(one.found_as for one in group))


MAX_UNVOUCHED_CANDIDATES, MAX_UNVOUCHED_READ = 5, 1
"""How many unvouched issues per account become candidates, and how many are read."""


def limit_unknown_authors(moment: datetime, limit: int) -> Callable[[IndexEntry], bool]:
    """A filter that accepts only the first ``limit`` issues of each account that were unvouched at this moment.

    An issue is unvouched if no other person took part in it and its author is unknown in the repository
    (`bot.index.document`). The filter accepts all other threads.
    """
    counts: Counter[str] = Counter()

    def accepts(entry: IndexEntry) -> bool:
        if not entry.is_unvouched_at(moment):
            return True
        account = entry.author.casefold()
        counts[account] += 1
        return counts[account] <= limit

    return accepts
