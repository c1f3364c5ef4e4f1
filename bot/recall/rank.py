"""Hits of the index → candidates in order, and how sure one may be of each, in 0..1, the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, log1p

from bot.model import Entry, Hit, ThreadId
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
    the probability that people would link it.
    """

    entry: Entry
    hit: Hit
    score: float
    features: Mapping[str, float]
    folded: tuple[ThreadId, ...]
    confidence: float = 0.0
    similarity: float = 0.0

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
        if len(candidate.hit.terms) < LEAST_TERMS:
            return replace(candidate, confidence=0.0, similarity=0.0)
        evidence = self.evidence(candidate, signals)
        weighed = sum(weight * evidence[name] for name, weight in self.model.confidence.items() if name in evidence)
        confidence = 1 / (1 + exp(-max(-500.0, min(500.0, self.model.intercept + weighed))))
        return replace(candidate, confidence=confidence, similarity=self.model.similarity(confidence))

    def evidence(self, candidate: Candidate, signals: Mapping[str, float]) -> dict[str, float]:
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
    return sorted(candidates, key=lambda c: (-c.score, -c.hit.score, c.entry.created_at, *_id_order(c.entry.id)))


def _id_order(key: ThreadId) -> tuple[int, str]:
    return (key, "") if isinstance(key, int) else (sys.maxsize, key)


def ranked(hits: Sequence[Hit], canonical: Mapping[ThreadId, Entry], asked: Question, model: Model) -> Ranked:
    """One candidate for each thread; a duplicate counts for the thread that ``canonical`` names for it."""
    scores = sorted((hit.score for hit in hits), reverse=True)
    best: dict[ThreadId, list[Candidate]] = {}
    for hit in hits:
        features = order_features(hit, asked, scores[0])
        score = sum(weight * features[name] for name, weight in model.order.items() if name in features)
        entry = canonical.get(hit.entry.id, hit.entry)
        best.setdefault(entry.id, []).append(Candidate(entry, hit, score, features, ()))
    groups = [(in_order(group)[0], tuple(one.found_as for one in group)) for group in best.values()]
    candidates = in_order(replace(first, folded=folded) for first, folded in groups)
    return Ranked(
        tuple(candidates),
        asked,
        model,
        total=_log_sum([candidate.score for candidate in candidates]),
        rival=candidates[min(FIELD, len(candidates) - 1)].score if candidates else 0.0,
        field_score=scores[min(FIELD, len(scores)) - 1] if scores else 0.0,
    )


def _log_sum(scores: Sequence[float]) -> float:
    if not scores:
        return 0.0
    largest = max(scores)
    return largest + log(sum(exp(score - largest) for score in scores))
