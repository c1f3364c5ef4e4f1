"""What is known of a candidate before its text is read, as numbers that mean the same in every repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import exp, fsum, log, log1p

from bot.domain.digest import Hit
from bot.domain.thread import Thread
from bot.reading.analyzer import body_terms, terms

DAY = 86_400.0
USUAL_RARITY = 0.6
"""Rarity of a word that the question does not hold, as a share of the rarest's: about the mean over titles."""

FEW = 12
WIDE = 0.1
"""Of a word that more than this share of all threads holds nobody would say that two speak of it."""

NARROW = 0.025
"""A word that no larger share of all threads holds is specific, whatever it means elsewhere."""

LEAST_FEW, FEW_SHARE = 5, 0.01
"""As many threads, or this share of them, may have an error, a path, a name, a line that still says something."""

_REMEMBERED = 1 << 14


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """A thread as it is looked for: its analysed terms, and how rare each is among the threads before ``at``.

    ``length`` counts characters; ``rarest`` is the rarity of a word that stands nowhere. ``repeats``: how many older
    threads beyond the first say the same, word for word or at the same time; they make none of its words common.
    """

    title: frozenset[str]
    body: frozenset[str]
    rarity: Mapping[str, float]
    rarest: float
    length: int
    author: str
    at: datetime
    repeats: int = 0

    @property
    def words(self) -> int:
        return len(self.title | self.body)

    @property
    def threads(self) -> float:
        """How many threads there are, by the rarity of a word that stands nowhere."""
        return (exp(self.rarest) - 1) / 2 - 0.5

    @property
    def few(self) -> float:
        """How many threads may hold what is specific to two of them."""
        return max(LEAST_FEW, FEW_SHARE * self.threads) + self.repeats

    def is_rare(self, rarity: float, share: float) -> bool:
        """Whether this is such a share of the rarest word's rarity; what FEW threads hold beside repeats is."""
        held_by = FEW + self.repeats
        few = log1p(max(0.0, self.threads - held_by + 0.5) / (held_by + 0.5))
        return rarity >= min(share * self.rarest, few)


def question(thread: Thread, rarity: Mapping[str, float], rarest: float) -> RankingQuery:
    """The question that a thread asks at the moment of its creation."""
    return RankingQuery(
        title=frozenset(terms(thread.title)),
        body=frozenset(body_terms(thread.body)),
        rarity=rarity,
        rarest=max(rarest, 1e-9),
        length=len(thread.title) + len(thread.body),
        author=thread.author,
        at=thread.created_at,
    )


def is_told(term: str, asked: RankingQuery) -> bool:
    """Whether so few threads hold this term that it says something of two that do."""
    return asked.is_rare(asked.rarity.get(term, 0.0), -log(WIDE) / asked.rarest)


def is_specific(term: str, asked: RankingQuery) -> bool:
    """Whether hardly any thread holds this term."""
    return asked.is_rare(asked.rarity.get(term, 0.0), -log(NARROW) / asked.rarest)


def titles_covered(candidate_covered: float, asked: RankingQuery, words: frozenset[str]) -> float:
    """How far each title is covered by the other text, on average: ``words`` are all of the older text."""
    whole = _weight(asked.title, asked)
    ours = _weight(asked.title & words, asked) / whole if whole else 0.0
    return (ours + candidate_covered) / 2


def rare_terms(hit: Hit, asked: RankingQuery) -> float:
    """How rare the three rarest of the strongest shared terms are on average."""
    return sum(sorted((asked.rarity.get(term, 0.0) for term in hit.terms), reverse=True)[:3]) / 3


def order_features(hit: Hit, asked: RankingQuery, best: float) -> dict[str, float]:
    """The features of `bot.ranking.weights.ORDER`. ``best`` is the highest score of all hits.

    ``text`` is the score as a share of it; arms are cosines; ``age`` and ``closed`` are ln(1 + days) since creation and
    since closing (0 while open); ``length`` and ``duplicates`` are logarithms too, ``length_ratio`` the distance of the
    logarithms of both lengths. Of the candidate's title: ``title_found`` is the rarity of its words in the question's
    text, in units of the rarest; ``title_covered`` the share of its rarity in the question; ``title_overlap`` Jaccard's
    coefficient of both titles.
    """
    entry = hit.entry
    closed_at = entry.closed_since(asked.at)
    length = log1p(entry.length)
    found, covered, overlap = _titles(title_terms(entry.title), asked)
    return {
        "text": hit.score / best if best > 0 else 0.0,
        **hit.near,
        "open": float(closed_at is None),
        "age": _days(entry.created_at, asked.at),
        "closed": _days(closed_at, asked.at) if closed_at else 0.0,
        "length": length,
        "length_ratio": abs(length - log1p(asked.length)),
        "same_author": float(entry.author == asked.author),
        "duplicates": log1p(hit.duplicates),
        "title_found": found,
        "title_covered": covered,
        "title_overlap": overlap,
    }


@lru_cache(maxsize=_REMEMBERED)
def title_terms(title: str) -> frozenset[str]:
    # Remembered, because the titles of a history come up again with every question.
    return frozenset(terms(title))


def _titles(words: frozenset[str], asked: RankingQuery) -> tuple[float, float, float]:
    in_title, in_body = words & asked.title, words & asked.body
    in_either = in_title | in_body
    known = _weight(in_either, asked)
    unknown = USUAL_RARITY * asked.rarest * (len(words) - len(in_either))
    either = len(words) + len(asked.title) - len(in_title)
    return (
        _weight(in_body, asked) / asked.rarest,
        known / (known + unknown) if known > 0 else 0.0,
        len(in_title) / either if either else 0.0,
    )


def _weight(words: frozenset[str], asked: RankingQuery) -> float:
    # An exact sum, because sets have no order and other sums depend on it.
    rarity = asked.rarity
    return fsum([rarity.get(word, 0.0) for word in words])


def _days(since: datetime, until: datetime) -> float:
    return log1p(max(0.0, (until - since).total_seconds()) / DAY)
