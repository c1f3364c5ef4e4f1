"""Scoring: the weight of a term, the level of a posting (a term in a document), and the terms to look up."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

K1 = 5.0
"""Saturation. This, and the weights and normalisations of title and body, are the best of a grid over 692 queries on
issues of Rust up to 2015."""

MAX_QUERY_TERMS = 512
"""Most terms of a query that are looked up, heaviest first."""

MIN_RELIABLE_DOCUMENTS = 60
"""Minimum number of documents whose term frequencies are used unchanged. Fewer say little: a term in one of three may
be in one of a thousand, and each new document would shift all scores."""

PSEUDO_DOCUMENTS = 10
"""Documents without a term, added when its share is estimated from fewer than MIN_RELIABLE_DOCUMENTS documents."""

_LEVEL_BASE = 1 / 64
_LEVEL_COUNT = 31
LEVELS: tuple[float, ...] = (0.0, *(_LEVEL_BASE ** (1 - step / _LEVEL_COUNT) for step in range(1, _LEVEL_COUNT + 1)))
"""Level → f/(k1 + f), geometric from 1/56 to 1; level 0 is not used. Neighbours differ by 14 %."""


def idf(frequency: float, total: int) -> float:
    """The weight of a term that is in ``frequency`` of ``total`` documents; > 0 (Lucene's formula)."""
    return log(1 + (total - frequency + 0.5) / (frequency + 0.5))


def smoothed_idf(frequency: int, total: int) -> float:
    """The same for a score; fewer than MIN_RELIABLE_DOCUMENTS are extrapolated, so that one more changes little.

    The first document with a term shows that the term exists; the others show how common it is.
    """
    if total >= MIN_RELIABLE_DOCUMENTS:
        return idf(frequency, total)
    estimated = frequency + (MIN_RELIABLE_DOCUMENTS - total) * max(0, frequency - 1) / (total + PSEUDO_DOCUMENTS)
    return idf(estimated, MIN_RELIABLE_DOCUMENTS)


def heaviest(weights: Mapping[str, float]) -> list[tuple[float, str]]:
    """The terms of a query to look up, as (negative weight, term); terms of weight 0 are left out."""
    return sorted((-weight, term) for term, weight in weights.items() if weight > 0)[:MAX_QUERY_TERMS]
