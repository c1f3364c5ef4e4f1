"""The rarity of a term: its inverse document frequency, and what follows from it. Plain Python, quick to import."""

from __future__ import annotations

from math import exp, log


def idf(frequency: float, total: float) -> float:
    """The weight of a term that is in ``frequency`` of ``total`` documents (Lucene's formula)."""
    return log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def total_of(rarest: float) -> float:
    """The number of documents, computed from the rarity of a term that none of them contains."""
    return (exp(rarest) - 1) / 2 - 0.5


def frequency_of(rarity: float, total: float) -> float:
    """How many of ``total`` documents contain a term, computed from its rarity."""
    odds = exp(rarity) - 1
    return (total + 0.5 - 0.5 * odds) / (1 + odds)
