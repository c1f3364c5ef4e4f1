"""Scoring: the weight of a term, the level of a posting (a term in a document), the terms to look up, and how much of a
query a text holds.

Every search by words uses it: the index, its copy on a developer's machine, sessions, and many repositories. Plain
Python, quick to import.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import fsum

from bot.ranking.rarity import idf

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

_LEVEL_BOUNDS = tuple((low * high) ** 0.5 for low, high in pairwise(LEVELS[1:]))


def level_of(fraction: float) -> int:
    """The level nearest to this f/(k1 + f), by their ratio."""
    return 1 + bisect_left(_LEVEL_BOUNDS, fraction)


def smoothed_idf(frequency: int, total: int) -> float:
    """The rarity of a term for a score: fewer than MIN_RELIABLE_DOCUMENTS are extrapolated, so one more changes little.

    The first document with a term shows that the term exists; the others show how common it is.
    """
    if total >= MIN_RELIABLE_DOCUMENTS:
        return idf(frequency, total)
    estimated = frequency + (MIN_RELIABLE_DOCUMENTS - total) * max(0, frequency - 1) / (total + PSEUDO_DOCUMENTS)
    return idf(estimated, MIN_RELIABLE_DOCUMENTS)


NOTES_WEIGHT = 0.8
"""Weight of the notes (decisions, keywords, files, summary) in a search by words; that of titles and texts is 1."""

MIN_QUERY_SHARE = 0.5
"""Minimum share of the query that a hit must contain, weighted by the rarity of words: of two words, the rarer one."""

_TOLERANCE = 1e-9
"""Shares and scores that differ by less are equal: sums of the same numbers differ with their order."""


def query_shares(rarities: Mapping[str, float]) -> dict[str, float]:
    """The share of each term in a query, given the weight of each; they add up to 1."""
    total = fsum(rarities.values())
    return {term: rarity / total for term, rarity in rarities.items()} if total else {}


def query_share(shares: Mapping[str, float], terms: Iterable[str]) -> float:
    """How much of a query these terms are (each once), in 0..1; ``shares`` are those of `query_shares`."""
    return min(1.0, fsum(shares.get(term, 0.0) for term in terms))


def least(floor: float) -> float:
    """The least share that reaches this floor."""
    return floor - _TOLERANCE


def rank_key(score: float) -> float:
    """Sorts the best score first; scores that only rounding tells apart are equal."""
    return -round(score, 7)


def heaviest(weights: Mapping[str, float]) -> list[tuple[float, str]]:
    """The terms of a query to look up, as (negative weight, term); terms of weight 0 are left out."""
    return sorted((-weight, term) for term, weight in weights.items() if weight > 0)[:MAX_QUERY_TERMS]
