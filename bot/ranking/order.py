"""Turns hits of the index into candidates in order, each with a confidence in 0..1.

Near-duplicates are older issues that say the same as the question; they show how much it matters, but do not answer it.
Only a few unvouched issues of one account take part, so that a flood of them does not become an answer.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import log1p

from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import ThreadId
from bot.ranking.features import (
    CONFIDENCE_FEATURES,
    ORDER_FEATURES,
    RankedHit,
    RankingQuery,
    SharedText,
    measured,
    order_features,
    title_terms,
)
from bot.ranking.weights import RankingWeights

COPY_LENGTH = 0.1
"""A copy has the question's words in its title, and the logarithm of its length differs by at most this."""

COPY_SCORE = 0.9
"""A copy has at least this share of the best score of all hits."""

OUTAGE = timedelta(days=2)
OUTAGE_SCORE = 0.5
OUTAGE_WRITERS = 2
"""Reports of an outage are open issues of the last two days with at least half of the best score, by several people. On
1,653 issues of the development data they change next to nothing: outages are rare."""


def near_duplicates(hits: Sequence[Hit], asked: RankingQuery) -> frozenset[ThreadId]:
    """The copies of the question among the hits, and other reports of an outage while it lasts."""
    best = max((hit.score for hit in hits), default=0.0)
    copies = [hit for hit in hits if hit.score >= COPY_SCORE * best and _is_copy(hit.entry, asked)]
    reports = [hit for hit in hits if hit.score >= OUTAGE_SCORE * best and _is_news(hit.entry, asked)]
    writers = {hit.entry.author for hit in reports} - {asked.author}
    found = [*copies, *reports] if len(writers) >= OUTAGE_WRITERS else copies
    return frozenset(hit.entry.id for hit in found)


def _is_copy(entry: IndexEntry, asked: RankingQuery) -> bool:
    is_as_long = abs(log1p(entry.length) - log1p(asked.length)) <= COPY_LENGTH
    return is_as_long and title_terms(entry.title) == asked.title


def _is_news(entry: IndexEntry, asked: RankingQuery) -> bool:
    return entry.closed_since(asked.at) is None and asked.at - entry.created_at <= OUTAGE


LEAST_TERMS = 3
"""Fewer shared terms are a coincidence, however rare they are: such a hit is never shown."""

CIRCUMSTANCES = frozenset(each.name for each in ORDER_FEATURES if each.is_circumstance)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown, as one of the hits found it.

    ``found_as`` is the id of the hit: the thread's own, or that of a duplicate of it; ``folded`` names all threads that
    count for it. ``score`` is in log-odds against the other candidates and made of ``features``; ``likeness`` is the
    score without the candidate's age and state. ``confidence`` is the probability that it is worth showing, made of
    ``evidence``.
    """

    entry: IndexEntry
    hit: Hit
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
        """Whether it is one of these threads, or a thread that counts for it is."""
        return bool(ids.intersection((self.entry.id, *self.folded)))


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """All candidates, best first, with the facts that their confidence needs.

    ``scores`` are those of the hits, ascending, but for hits that say the same as the question: the others are judged
    as if there were none.
    """

    candidates: tuple[Candidate, ...]
    asked: RankingQuery
    model: RankingWeights
    scores: tuple[float, ...] = ()

    def judged(self, candidate: Candidate, text: SharedText) -> Candidate:
        """The candidate with its confidence and similarity, given what a comparison of the texts found."""
        hit = candidate.hit
        place = 1 + len(self.scores) - bisect_right(self.scores, hit.score)
        evidence = measured(CONFIDENCE_FEATURES, RankedHit(hit, self.asked, place=place, text=text))
        confidence = self.model.probability(evidence)
        similarity = self.model.similarity(confidence)
        return replace(candidate, confidence=confidence, similarity=similarity, evidence=evidence)


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. Ties go to the higher score for terms, then to the older thread, then to the smaller id."""
    return sorted(candidates, key=_place)


def surest_first(candidate: Candidate) -> tuple[float, float, float, datetime, int, str]:
    """A sort key that puts the most similar first; ties as in `in_order`."""
    return -candidate.confidence, *_place(candidate)


def _place(candidate: Candidate) -> tuple[float, float, datetime, int, str]:
    key = candidate.entry.id
    number, name = (key, "") if isinstance(key, int) else (sys.maxsize, key)
    return -candidate.score, -candidate.hit.score, candidate.entry.created_at, number, name


def rank_candidates(
    hits: Sequence[Hit], canonical: Mapping[ThreadId, IndexEntry], asked: RankingQuery, model: RankingWeights
) -> RankedCandidates:
    """One candidate for each thread; a duplicate counts for the thread that ``canonical`` names for it."""
    best = max((hit.score for hit in hits), default=0.0)
    groups: dict[ThreadId, list[Candidate]] = {}
    for hit in hits:
        features = order_features(hit, asked, best)
        weighed = {name: weight * features[name] for name, weight in model.order.items() if name in features}
        likeness = sum([part for name, part in weighed.items() if name not in CIRCUMSTANCES])
        entry = canonical.get(hit.entry.id, hit.entry)
        found = Candidate(entry, hit, sum(weighed.values()), likeness, features, (hit.entry.id,))
        groups.setdefault(entry.id, []).append(found)
    again = near_duplicates(hits, asked)
    return RankedCandidates(
        tuple(in_order(map(_folded, groups.values()))),
        replace(asked, repeats=max(0, len(again) - 1)),
        model,
        scores=tuple(sorted(hit.score for hit in hits if hit.entry.id not in again)),
    )


def _folded(group: Sequence[Candidate]) -> Candidate:
    """The most similar of the candidates for one thread, with the score of the best of them."""
    if len(group) == 1:
        return group[0]
    alike = min(group, key=lambda one: (-one.likeness, *_place(one)))
    return replace(alike, score=max(one.score for one in group), folded=tuple(one.found_as for one in group))


AMONG_CANDIDATES, READ_UNVOUCHED = 5, 1
"""The number of unvouched issues of one account that are candidates, and that are read."""


def few_of_each_unknown_author(moment: datetime, most: int) -> Callable[[IndexEntry], bool]:
    """A filter that lets in the first ``most`` issues of each account that were unvouched at this moment.

    An issue is unvouched if no other person took part in it and its author is unknown in the repository
    (`bot.index.document`). The filter lets in all other threads.
    """
    met: Counter[str] = Counter()

    def is_let_in(entry: IndexEntry) -> bool:
        if not entry.is_unvouched_at(moment):
            return True
        account = entry.author.casefold()
        met[account] += 1
        return met[account] <= most

    return is_let_in
