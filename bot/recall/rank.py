"""Hits of the index → ranked candidates with a similarity in 0..1 that means the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log

from bot.model import Entry, Hit, ThreadId

INTERCEPT = -5.17
MARGIN_WEIGHT = 1.721
SHARE_WEIGHT = 7.711
LENGTH_WEIGHT = 0.661
SAME_ERROR = 1.527
SAME_FILE = 0.311
"""The shipped mapping from evidence to similarity, a logistic curve. The weights were fitted on the three best hits of
2,400 issues of one archive (2014), against what people said later of the pairs; the intercept puts 0.65 where, on
average over five archives, one issue in eight has a hit. See docs/evaluation.md."""

LEAST_TERMS = 3
"""Fewer shared terms than this are a coincidence, however rare they are."""

FIELD = 10
"""A hit is compared with the tenth best: what stands out from its field is more than a shared subject."""

MAX_MARGIN = 1.8
MAX_QUERY_TERMS = 300


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown. ``found_as`` is the duplicate that was found in its stead, else its own id.

    ``evidence`` is the sum of what speaks for it, in log-odds; ``similarity`` the same in 0..1.
    """

    entry: Entry
    evidence: float
    score: float
    terms: tuple[str, ...]
    found_as: ThreadId

    @property
    def similarity(self) -> float:
        return 1 / (1 + exp(-self.evidence))


def text_evidence(hit: Hit, field_score: float, query_terms: int) -> float:
    """What the texts say of how alike query and thread are, in log-odds.

    The share of the query's weight that the thread covers, how far it stands out from ``field_score``, and the length
    of the query (a long one is covered by chance less easily). None of it grows with the repository.
    """
    if len(hit.terms) < LEAST_TERMS or hit.share <= 0 or hit.score <= 0:
        return -inf
    margin = min(MAX_MARGIN, log(hit.score / field_score)) if field_score > 0 else 0.0
    length = log(max(1, min(MAX_QUERY_TERMS, query_terms)))
    return INTERCEPT + MARGIN_WEIGHT * margin + SHARE_WEIGHT * hit.share + LENGTH_WEIGHT * length


def with_signals(candidate: Candidate, *, same_error: bool, same_file: bool) -> Candidate:
    """The candidate with the evidence of a shared error line and a shared file."""
    more = SAME_ERROR * same_error + SAME_FILE * same_file
    return replace(candidate, evidence=candidate.evidence + more)


def within_reach(candidates: Sequence[Candidate], floor: float) -> list[Candidate]:
    """Those of the best ten that shared signals could lift over the floor."""
    return [c for c in candidates[:FIELD] if with_signals(c, same_error=True, same_file=True).similarity >= floor]


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. Ties go to the higher raw score, then to the older thread, then to the smaller id, numbers first."""
    return sorted(candidates, key=lambda c: (-c.evidence, -c.score, c.entry.created_at, *_id_order(c.entry.id)))


def _id_order(key: ThreadId) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (sys.maxsize, key)


def ranked(hits: Sequence[Hit], canonical: Mapping[ThreadId, Entry], query_terms: int) -> list[Candidate]:
    """One candidate for each thread, best first; a duplicate counts for the thread that ``canonical`` names for it."""
    best: dict[ThreadId, Candidate] = {}
    field_score = hits[min(FIELD, len(hits)) - 1].score if hits else 0.0
    for hit in hits:
        entry = canonical.get(hit.entry.id, hit.entry)
        evidence = text_evidence(hit, field_score, query_terms)
        candidate = Candidate(entry, evidence, hit.score, hit.terms, hit.entry.id)
        best[entry.id] = in_order([candidate, *([best[entry.id]] if entry.id in best else [])])[0]
    return in_order(candidate for candidate in best.values() if candidate.evidence > -inf)
