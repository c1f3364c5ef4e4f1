"""Ranks the messages of the logs for a search by words: BM25, with a floor below which nothing is said.

S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; what a posting is worth is
in `bot.glance.logs.postings`, the weight of a term in `bot.memory.levels`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bot.card import LEAST_PART
from bot.glance.logs.postings import K1, LEVEL_BITS, departed, postings, segments
from bot.memory.levels import LEVELS, heaviest, idf

_LEVEL = (1 << LEVEL_BITS) - 1


class Ranking(NamedTuple):
    """Messages that pass the floor, with their scores in BM25 units, best first; ``rarity`` is that of each term."""

    found: tuple[tuple[int, float], ...]
    rarity: Mapping[str, float]


def ranked(database: sqlite3.Connection, wanted: Sequence[str]) -> Ranking:
    """Everything that holds enough of these terms. Of two that are equal the one with the higher number is later."""
    held = segments(database)
    total = sum(segment.size - segment.gone for segment in held)
    numbers = [segment.number for segment in held]
    gone = departed(database)
    scores: dict[int, float] = {}
    parts: dict[int, float] = {}
    rarity: dict[str, float] = {}
    for _, term in heaviest(dict.fromkeys(wanted, 1.0)):
        found = postings(database, numbers, term, gone)
        weight = rarity[term] = idf(len(found), max(total, len(found)))
        gains = [weight * level * (K1 + 1) for level in LEVELS]
        for posting in found:
            passage = posting >> LEVEL_BITS
            scores[passage] = scores.get(passage, 0.0) + gains[posting & _LEVEL]
            parts[passage] = parts.get(passage, 0.0) + weight
    least = LEAST_PART * sum(rarity.values()) * (1 - 1e-9)
    kept = [(passage, scores[passage]) for passage, part in parts.items() if part >= least]
    return Ranking(tuple(sorted(kept, key=lambda one: (-one[1], one[0]))), rarity)
