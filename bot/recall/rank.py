"""Hits of the index → candidates in order, and how sure one may be of each, in 0..1, the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import exp, log, log1p

from bot.indexed import Entry, Hit
from bot.model import ThreadId
from bot.ranking import Model
from bot.recall.features import Question, order_features, title_wanted

LEAST_TERMS = 3
"""Fewer shared terms than this are a coincidence, however rare they are: found, and never shown."""

FIELD = 10
"""A hit is compared with the tenth best: what stands out from its field is more than a shared subject."""

WEAKEST = 0.05
"""Least share of the tenth best score that is told apart from none."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown, as one of the hits found it.

    ``found_as`` is the duplicate that was found in its stead, else its own id; ``folded`` names all threads that count
    for it. ``score`` is in log-odds against the other candidates, ``features`` what it is made of. ``confidence`` is
    the probability that people would link it, ``evidence`` what that is made of.
    """

    entry: Entry
    hit: Hit
    score: float
    features: Mapping[str, float]
    folded: tuple[ThreadId, ...]
    confidence: float = 0.0
    similarity: float = 0.0
    evidence: Mapping[str, float] = field(default_factory=dict)

    @property
    def found_as(self) -> ThreadId:
        return self.hit.entry.id


@dataclass(frozen=True, slots=True)
class Ranked:
    """All candidates, best first, with what is needed to tell how one stands out among them.

    ``total`` is the logarithm of the sum of e^score, ``rival`` the score after the best FIELD ones, ``field_score`` the
    tenth best score for the terms.
    """

    candidates: tuple[Candidate, ...]
    asked: Question
    model: Model
    total: float = 0.0
    rival: float = 0.0
    field_score: float = 0.0

    def judged(self, candidate: Candidate, signals: Mapping[str, float]) -> Candidate:
        """The candidate with its confidence and similarity. ``signals``: `same_error`, `same_file`, `names`."""
        evidence = self._evidence(candidate, signals)
        confidence = self.model.probability(evidence)
        similarity = self.model.similarity(confidence)
        return replace(candidate, confidence=confidence, similarity=similarity, evidence=evidence)

    def _evidence(self, candidate: Candidate, signals: Mapping[str, float]) -> dict[str, float]:
        """The features of `bot.ranking.CONFIDENCE`.

        ``score`` is the candidate's, ``chance`` the logarithm of its share among all, ``lead`` its distance to the best
        ones' rival; ``share`` of the query's weight and ``text_lead`` over the tenth best are of its terms alone;
        ``words`` is ln(1 + terms of the question); the other ones are as in `bot.recall.features`.
        """
        hit = candidate.hit
        lead = hit.score / self.field_score if self.field_score > 0 else 1.0
        return {
            "score": candidate.score,
            "chance": candidate.score - self.total,
            "lead": candidate.score - self.rival,
            "share": hit.share,
            "text_lead": log(max(WEAKEST, lead)),
            "trained": hit.near.get("trained", 0.0),
            "words": log1p(self.asked.words),
            "title_covered": candidate.features["title_covered"],
            "title_wanted": title_wanted(hit.entry.title, self.asked),
            "title_overlap": candidate.features["title_overlap"],
            **signals,
        }


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. Ties go to the higher score for terms, then to the older thread, then to the smaller id."""
    return sorted(candidates, key=_place)


def _place(candidate: Candidate) -> tuple[float, float, datetime, int, str]:
    key = candidate.entry.id
    number, name = (key, "") if isinstance(key, int) else (sys.maxsize, key)
    return -candidate.score, -candidate.hit.score, candidate.entry.created_at, number, name


def ranked(hits: Sequence[Hit], canonical: Mapping[ThreadId, Entry], asked: Question, model: Model) -> Ranked:
    """One candidate for each thread; a duplicate counts for the thread that ``canonical`` names for it."""
    scores = sorted((hit.score for hit in hits), reverse=True)
    groups: dict[ThreadId, list[Candidate]] = {}
    for hit in hits:
        features = order_features(hit, asked, scores[0])
        score = sum([weight * features[name] for name, weight in model.order.items() if name in features])
        entry = canonical.get(hit.entry.id, hit.entry)
        found = Candidate(entry, hit, score, features, (hit.entry.id,))
        groups.setdefault(entry.id, []).append(found)
    candidates = in_order(map(_folded, groups.values()))
    return Ranked(
        tuple(candidates),
        asked,
        model,
        total=_log_sum([candidate.score for candidate in candidates]),
        rival=candidates[min(FIELD, len(candidates) - 1)].score if candidates else 0.0,
        field_score=scores[min(FIELD, len(scores)) - 1] if scores else 0.0,
    )


def _folded(group: Sequence[Candidate]) -> Candidate:
    """The best of the candidates for one thread, which counts for all of them."""
    if len(group) == 1:
        return group[0]
    return replace(min(group, key=_place), folded=tuple(one.found_as for one in group))


def _log_sum(scores: Sequence[float]) -> float:
    if not scores:
        return 0.0
    largest = max(scores)
    return largest + log(sum(exp(score - largest) for score in scores))
