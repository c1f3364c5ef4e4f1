"""What is known of a candidate before its text is read, as numbers that mean the same in every repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import log1p

from bot.model import Entry, Hit, Thread
from bot.reading.words import body_terms, terms

DAY = 86_400.0
USUAL_RARITY = 0.6
"""Rarity of a word that the question does not hold, as a share of the rarest's: about the mean over titles."""


@dataclass(frozen=True, slots=True)
class Question:
    """A thread as it is looked for: its analysed terms, and how rare each is among the threads before ``at``.

    ``length`` counts characters; ``rarest`` is the rarity of a word that stands nowhere.
    """

    title: frozenset[str]
    body: frozenset[str]
    rarity: Mapping[str, float]
    rarest: float
    length: int
    author: str
    at: datetime

    @property
    def words(self) -> int:
        return len(self.title | self.body)


def question(thread: Thread, rarity: Mapping[str, float], rarest: float) -> Question:
    """The question that a thread asks at the moment of its creation."""
    return Question(
        title=frozenset(terms(thread.title)),
        body=frozenset(body_terms(thread.body)),
        rarity=rarity,
        rarest=max(rarest, 1e-9),
        length=len(thread.title) + len(thread.body),
        author=thread.author,
        at=thread.created_at,
    )


def order_features(hit: Hit, asked: Question, best: float) -> dict[str, float]:
    """The features of `bot.ranking.ORDER`. ``best`` is the highest score of all hits.

    ``text`` is the score as a share of it; arms are cosines; ``age`` and ``closed`` are ln(1 + days) since creation and
    since closing (0 while open); ``length`` and ``duplicates`` are logarithms too, ``length_ratio`` the distance of the
    logarithms of both lengths. Of the candidate's title: ``title_found`` is the rarity of its words in the question's
    text, in units of the rarest; ``title_covered`` the share of its rarity in the question; ``title_overlap`` Jaccard's
    coefficient of both titles.
    """
    entry = hit.entry
    return {
        "text": hit.score / best if best > 0 else 0.0,
        **hit.near,
        **_circumstances(entry, asked),
        "duplicates": log1p(hit.duplicates),
        **_titles(entry.title, asked),
    }


def title_wanted(title: str, asked: Question) -> float:
    """The share of the rarity of the question's title that another title holds, in 0..1."""
    wanted = sum(asked.rarity.get(term, 0.0) for term in asked.title)
    return sum(asked.rarity.get(term, 0.0) for term in asked.title & set(terms(title))) / wanted if wanted else 0.0


def _circumstances(entry: Entry, asked: Question) -> dict[str, float]:
    closed_at = entry.closed_since(asked.at)
    length = log1p(entry.length)
    return {
        "open": float(closed_at is None),
        "age": _days(entry.created_at, asked.at),
        "closed": _days(closed_at, asked.at) if closed_at else 0.0,
        "length": length,
        "length_ratio": abs(length - log1p(asked.length)),
        "same_author": float(entry.author == asked.author),
    }


def _titles(title: str, asked: Question) -> dict[str, float]:
    words = set(terms(title))
    in_title, in_body = words & asked.title, words & asked.body
    rarity = asked.rarity
    known = sum(rarity.get(term, 0.0) for term in in_title | in_body)
    unknown = USUAL_RARITY * asked.rarest * len(words - in_title - in_body)
    either = len(words | asked.title)
    return {
        "title_found": sum(rarity.get(term, 0.0) for term in in_body) / asked.rarest,
        "title_covered": known / (known + unknown) if words else 0.0,
        "title_overlap": len(in_title) / either if either else 0.0,
    }


def _days(since: datetime, until: datetime) -> float:
    return log1p(max(0.0, (until - since).total_seconds()) / DAY)
