"""The features of a candidate: numbers that mean the same in every repository, each a row of a table.

A new feature is a row in `ORDER_FEATURES` or `CONFIDENCE_FEATURES`; the weights in `ranking.json`, the order, the
confidence, the choice of candidates in the index, the fitting tool and the documentation all derive from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import fsum, log, log1p
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.domain.digest import IndexHit
from bot.domain.thread import Thread
from bot.ranking.rarity import frequency_of, idf, total_of
from bot.reading.analyzer import body_terms, terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Numbers = NDArray[np.int64]

DAY_SECONDS = 86_400.0
DEFAULT_RARITY = 0.6
"""Assumed rarity of a word missing from the question, as a share of the rarest's: about the mean over titles."""

RARE_WORD_THREADS = 12
MAX_DISTINCTIVE_SHARE = 0.1
"""A word shared by two threads says nothing about their topic if more than this share of all threads contains it."""

MAX_SPECIFIC_SHARE = 0.025
"""A word is specific, whatever it means elsewhere, if at most this share of all threads contains it."""

SPECIFIC_THREADS_FLOOR, SPECIFIC_THREADS_SHARE = 5, 0.003
"""An error, path, name or line is still informative if at most this many threads, or this share of them, have it."""

MIN_SHARE = 1e-4
"""Lower bound of a share before its logarithm is taken; threads found by vectors alone share no term."""

_CACHE_SIZE = 1 << 14


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The thread to find similar ones for: its analysed terms, and how rare each is among threads before ``at``.

    ``lines`` are the terms of the errors that it states and few other threads were closed with, if ``has_lines``;
    otherwise that is not known. ``length`` counts characters; ``rarest`` is the rarity of a word that no thread
    contains. ``repeats``: how many older threads beyond the first say the same: word for word, at the same time, or
    with the same error. They do not make its words common.
    """

    title: frozenset[str]
    body: frozenset[str]
    rarity: Mapping[str, float]
    rarest: float
    length: int
    author: str
    at: datetime
    repeats: int = 0
    lines: frozenset[str] = frozenset()
    has_lines: bool = False

    @property
    def words(self) -> int:
        return len(self.title | self.body)

    @property
    def threads(self) -> float:
        """The number of threads, computed from the rarity of a word that none of them contains."""
        return total_of(self.rarest)

    @property
    def few(self) -> float:
        """How many threads may contain something that still counts as specific to two of them."""
        return max(SPECIFIC_THREADS_FLOOR, SPECIFIC_THREADS_SHARE * self.threads) + self.repeats

    def frequency(self, term: str) -> float:
        """How many threads contain a term, computed from its rarity."""
        return frequency_of(self.rarity.get(term, 0.0), self.threads)

    def is_rare(self, rarity: float, share: float) -> bool:
        """Whether a rarity reaches this share of the rarest, or that of a word in RARE_WORD_THREADS besides repeats."""
        return rarity >= min(share * self.rarest, idf(RARE_WORD_THREADS + self.repeats, self.threads))


def query_for(thread: Thread, rarity: Mapping[str, float], rarest: float) -> RankingQuery:
    """The query for a thread at the time of its creation."""
    return RankingQuery(
        title=frozenset(terms(thread.title)),
        body=frozenset(body_terms(thread.body)),
        rarity=rarity,
        rarest=max(rarest, 1e-9),
        length=len(thread.title) + len(thread.body),
        author=thread.author,
        at=thread.created_at,
    )


def is_distinctive(term: str, query: RankingQuery) -> bool:
    """Whether few enough threads contain this term for it to connect two of them."""
    return query.is_rare(query.rarity.get(term, 0.0), -log(MAX_DISTINCTIVE_SHARE) / query.rarest)


def is_specific(term: str, query: RankingQuery) -> bool:
    """Whether hardly any thread contains this term."""
    return query.is_rare(query.rarity.get(term, 0.0), -log(MAX_SPECIFIC_SHARE) / query.rarest)


@dataclass(frozen=True, slots=True)
class SharedText:
    """The result of comparing the question with the full text of an older thread.

    ``words`` are the terms of the older text. ``errors`` counts groups of three adjacent words, in lines about a
    failure, that both have and few others. ``same_error``: both have the same error; ``same_failure``: also a file;
    ``other_error``: each states an error, and another one.
    """

    words: frozenset[str] = frozenset()
    errors: int = 0
    same_error: bool = False
    same_failure: bool = False
    other_error: bool = False


class RankedHit(NamedTuple):
    """A hit with its question: everything that the scalar form of a feature may use.

    ``best`` is the highest score of all hits, ``rank`` the rank of this score, from 1. ``text`` is known only for the
    few candidates that are read.
    """

    hit: IndexHit
    query: RankingQuery
    best: float = 0.0
    rank: int = 1
    text: SharedText = SharedText()


class DocumentColumns(NamedTuple):
    """All documents of an index at one moment: everything that the array form of a feature may use.

    ``scores`` are those for the terms; ``cosines`` is None if the question has no vector. Times, including ``now``, are
    seconds since 1970; ``closed`` is 0 for an open thread. ``lengths`` counts characters, ``duplicates`` known
    duplicates.
    """

    scores: Values
    cosines: Values | None
    created: Numbers
    closed: Numbers
    lengths: Numbers
    duplicates: Numbers
    now: float


TERMS, MODEL = "terms", "text model"
ENTRY, TITLES, TEXTS = "entry", "titles", "texts"
"""Sources of features. Those of a text model count only where its vectors exist."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A number that says how well a hit answers a question.

    ``scalar`` measures it for one hit; None means not available (a hit without a vector has no cosine). A feature with
    an ``array`` form, which measures all documents of an index at once, also selects the candidates. A circumstance
    makes people more likely to link a candidate, but does not make it more similar: an old answer is still an answer.
    """

    name: str
    about: str
    source: str
    scalar: Callable[[RankedHit], float | None]
    array: Callable[[DocumentColumns], Values | None] | None = None
    is_circumstance: bool = False


def measure(features: Sequence[Feature], hit: RankedHit) -> dict[str, float]:
    """The value of each of these features for a hit, by name."""
    return {each.name: value for each in features if (value := each.scalar(hit)) is not None}


def order_features(hit: IndexHit, query: RankingQuery, best: float) -> dict[str, float]:
    """The features that order candidates; ``best`` is the highest score of all hits."""
    return measure(ORDER_FEATURES, RankedHit(hit, query, best))


@lru_cache(maxsize=_CACHE_SIZE)
def title_terms(title: str) -> frozenset[str]:
    # Cached, because the titles of a history recur with every question.
    return frozenset(terms(title))


LEAST_COSINE, COSINE_SLOPE = 0.18, 0.30
"""In the order, a text without a vector needs a place among the others: it counts as if its cosine were that of texts
with its score on average, this least one + this slope × its share of the best score."""


def _ordering_cosine(ranked: RankedHit) -> float | None:
    cosine = ranked.hit.cosine
    return LEAST_COSINE + COSINE_SLOPE * _text(ranked) if cosine == 0 else cosine


def _ordering_cosines(columns: DocumentColumns) -> Values | None:
    import numpy as np

    cosines = columns.cosines
    if cosines is None:
        return None
    return np.where(cosines == 0, LEAST_COSINE + COSINE_SLOPE * _texts(columns), cosines)


def _text(ranked: RankedHit) -> float:
    return ranked.hit.score / ranked.best if ranked.best > 0 else 0.0


def _texts(columns: DocumentColumns) -> Values:
    values: Values = columns.scores / max(float(columns.scores.max(initial=0.0)), 1e-9)
    return values


def _age(ranked: RankedHit) -> float:
    return _days(ranked.hit.entry.created_at, ranked.query.at)


def _closed(ranked: RankedHit) -> float:
    closed_at = ranked.hit.entry.closed_since(ranked.query.at)
    return _days(closed_at, ranked.query.at) if closed_at else 0.0


def _title_found(ranked: RankedHit) -> float:
    return _weight(title_terms(ranked.hit.entry.title) & ranked.query.body, ranked.query) / ranked.query.rarest


def _title_covered(ranked: RankedHit) -> float:
    words = title_terms(ranked.hit.entry.title)
    shared = (words & ranked.query.title) | (words & ranked.query.body)
    known = _weight(shared, ranked.query)
    unknown = DEFAULT_RARITY * ranked.query.rarest * (len(words) - len(shared))
    return known / (known + unknown) if known > 0 else 0.0


def _title_overlap(ranked: RankedHit) -> float:
    words = title_terms(ranked.hit.entry.title)
    shared = len(words & ranked.query.title)
    union = len(words) + len(ranked.query.title) - shared
    return shared / union if union else 0.0


def _titles(ranked: RankedHit) -> float:
    total = _weight(ranked.query.title, ranked.query)
    if not total:  # a title without words says nothing
        return _title_covered(ranked)
    covered = _weight(ranked.query.title & ranked.text.words, ranked.query) / total
    return (covered + _title_covered(ranked)) / 2


def _weight(words: frozenset[str], query: RankingQuery) -> float:
    # An exact sum: sets have no order, and an inexact sum would depend on it.
    rarity = query.rarity
    return fsum([rarity.get(word, 0.0) for word in words])


def _days(since: datetime, until: datetime) -> float:
    return log1p(max(0.0, (until - since).total_seconds()) / DAY_SECONDS)


def _log1p(values: NDArray[Any]) -> Values:
    import numpy as np  # only an index has arrays, and loading NumPy takes longer than most whole runs

    result: Values = np.log1p(np.maximum(values, 0))
    return result


ORDER_FEATURES = (
    Feature(
        "text",
        "score for the shared terms, as a share of the best",
        TERMS,
        _text,
        _texts,
    ),
    Feature("semantic", "cosine of the texts, by a text model", MODEL, _ordering_cosine, _ordering_cosines),
    Feature(
        "open",
        "1 where the older thread was open",
        ENTRY,
        lambda one: float(one.hit.entry.closed_since(one.query.at) is None),
        lambda docs: (docs.closed == 0).astype(float),
        is_circumstance=True,
    ),
    Feature(
        "age",
        "ln(1 + days) since it was created",
        ENTRY,
        _age,
        lambda docs: _log1p((docs.now - docs.created) / DAY_SECONDS),
        is_circumstance=True,
    ),
    Feature(
        "closed",
        "ln(1 + days) since it was closed, 0 while open",
        ENTRY,
        _closed,
        lambda docs: _log1p((docs.now - docs.closed) / DAY_SECONDS) * (docs.closed != 0),
        is_circumstance=True,
    ),
    Feature(
        "length",
        "ln(1 + characters) of its title and text",
        ENTRY,
        lambda one: log1p(one.hit.entry.length),
        lambda docs: _log1p(docs.lengths),
    ),
    Feature(
        "duplicates",
        "ln(1 + known duplicates of it)",
        ENTRY,
        lambda one: log1p(one.hit.duplicates),
        lambda docs: _log1p(docs.duplicates),
    ),
    Feature("title_found", "rarity of its title's words in the new text, in units of the rarest", TITLES, _title_found),
    Feature("title_covered", "share of its title, by rarity, that the new issue covers", TITLES, _title_covered),
    Feature("title_overlap", "Jaccard coefficient of both titles", TITLES, _title_overlap),
    Feature(
        "length_ratio",
        "distance of the logarithms of both lengths",
        ENTRY,
        lambda one: abs(log1p(one.hit.entry.length) - log1p(one.query.length)),
    ),
    Feature(
        "same_author",
        "1 where one person wrote both",
        ENTRY,
        lambda one: float(one.hit.entry.author == one.query.author),
    ),
)
"""The features that order candidates."""

CONFIDENCE_FEATURES = (
    Feature("titles", "mean share of each title, by rarity, that the other text covers", TEXTS, _titles),
    Feature(
        "share",
        "logarithm of the score as a share of the most that any text could score",
        TERMS,
        lambda one: log(max(MIN_SHARE, one.hit.share)),
    ),
    Feature("place", "1/n for the n-th highest score", TERMS, lambda one: 1 / one.rank),
    Feature(
        "errors",
        "ln(1 + adjacent words in lines about a failure that both have and few others)",
        TEXTS,
        lambda one: log1p(one.text.errors),
    ),
    Feature("same_error", "1 where both have the same error", TEXTS, lambda one: float(one.text.same_error)),
    Feature("same_failure", "1 where they have the same file as well", TEXTS, lambda one: float(one.text.same_failure)),
    Feature(
        "other_error", "1 where each states an error, and another one", TEXTS, lambda one: float(one.text.other_error)
    ),
    Feature("semantic", "cosine of the texts, by a text model", MODEL, lambda one: one.hit.cosine or None),
)
"""The features of the confidence in a hit. Age and state are not among them: they predict links, not similarity."""
