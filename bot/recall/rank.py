"""Hits of the index → candidates in order, and how sure one may be of each, in 0..1, the same everywhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log1p

from bot.indexed import Entry, Hit
from bot.model import ThreadId
from bot.ranking import Model
from bot.recall.echoes import echoes
from bot.recall.features import Question, order_features

LEAST_TERMS = 3
"""Fewer shared terms than this are a coincidence, however rare they are: found, and never shown."""

FIELD = 10
"""A hit is compared with the one after the ten best: what stands out from its field is more than a shared subject."""

SETTLED = 60
"""Candidates from which on the rival is the one that was found. Among fewer it is chance who comes after the ten best,
so that it is mixed with `USUAL_RIVAL`."""

USUAL_RIVAL = {
    "text": 0.4, "title_found": 0.3, "title_covered": 0.15, "title_overlap": 0.02, "length": 6.5, "length_ratio": 1.1,
    "trained": 0.18, "trained_title": 0.08, "semantic": 0.3, "semantic_title": 0.3,
}  # fmt: skip
"""Features of a rival, as they are on average among 60 to 280 issues of four repositories; those of a downloaded model
are guessed."""

CIRCUMSTANCES = frozenset({"open", "age", "closed"})
"""Features that make a candidate one that people would rather link, and no more alike: an old answer is an answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown, as one of the hits found it.

    ``found_as`` is the duplicate that was found in its stead, else its own id; ``folded`` names all threads that count
    for it. ``score`` is in log-odds against the other candidates, ``features`` what it is made of; ``likeness`` is the
    part of it that has nothing to do with the candidate's age and state. ``confidence`` is the probability that people
    would link it, ``evidence`` what that is made of.
    """

    entry: Entry
    hit: Hit
    score: float
    likeness: float
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

    ``rival`` is the likeness after the FIELD most alike, with one echo among them at most. ``echoes`` say the same as
    the question. All others are judged as if there were none: a unit of their score is worth ``lift`` log-odds more,
    and ``others_rival`` is the rival among them.
    """

    candidates: tuple[Candidate, ...]
    asked: Question
    model: Model
    rival: float = 0.0
    echoes: frozenset[ThreadId] = frozenset()
    lift: float = 0.0
    others_rival: float = 0.0

    def judged(self, candidate: Candidate, signals: Mapping[str, float]) -> Candidate:
        """The candidate with its confidence and similarity. ``signals``: `same_error`, `same_file`, `names`."""
        evidence = self._evidence(candidate, signals)
        confidence = self.model.probability(evidence)
        similarity = self.model.similarity(confidence)
        return replace(candidate, confidence=confidence, similarity=similarity, evidence=evidence)

    def _evidence(self, candidate: Candidate, signals: Mapping[str, float]) -> dict[str, float]:
        """The features of `bot.ranking.CONFIDENCE`.

        ``likeness`` is the candidate's and ``lead`` its distance to the rival of the most alike; ``share`` is that of
        the query's weight, ``words`` ln(1 + terms of the question), ``title_covered`` as in `bot.recall.features`.
        ``closed`` is 1 for what was closed, however long ago: the age of a candidate has no part in it.
        """
        is_echo = candidate.found_as in self.echoes
        likeness = candidate.likeness if is_echo else _lifted(candidate, self.lift)
        return {
            "likeness": likeness,
            "lead": likeness - (self.rival if is_echo else self.others_rival),
            "share": candidate.hit.share,
            "words": log1p(self.asked.words),
            "title_covered": candidate.features["title_covered"],
            "closed": 1.0 - candidate.features["open"],
            **signals,
        }


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. Ties go to the higher score for terms, then to the older thread, then to the smaller id."""
    return sorted(candidates, key=_place)


def surest_first(candidate: Candidate) -> tuple[float, float, float, datetime, int, str]:
    """The key that puts the most similar first; ties as in `in_order`."""
    return -candidate.confidence, *_place(candidate)


def _place(candidate: Candidate) -> tuple[float, float, datetime, int, str]:
    key = candidate.entry.id
    number, name = (key, "") if isinstance(key, int) else (sys.maxsize, key)
    return -candidate.score, -candidate.hit.score, candidate.entry.created_at, number, name


def ranked(hits: Sequence[Hit], canonical: Mapping[ThreadId, Entry], asked: Question, model: Model) -> Ranked:
    """One candidate for each thread; a duplicate counts for the thread that ``canonical`` names for it."""
    best = max((hit.score for hit in hits), default=0.0)
    groups: dict[ThreadId, list[Candidate]] = {}
    for hit in hits:
        features = order_features(hit, asked, best)
        weighed = {name: weight * features[name] for name, weight in model.order.items() if name in features}
        likeness = sum([part for name, part in weighed.items() if name not in CIRCUMSTANCES])
        entry = canonical.get(hit.entry.id, hit.entry)
        found = Candidate(entry, hit, sum(weighed.values()), likeness, features, (hit.entry.id,))
        groups.setdefault(entry.id, []).append(found)
    return _measured(tuple(in_order(map(_folded, groups.values()))), hits, asked, model)


def _measured(candidates: tuple[Candidate, ...], hits: Sequence[Hit], asked: Question, model: Model) -> Ranked:
    """The candidates with what they are measured by. However many echoes there are, they are one rival."""
    again = echoes(hits, asked)
    best = max((hit.score for hit in hits), default=0.0)
    best_other = max((hit.score for hit in hits if hit.entry.id not in again), default=0.0)
    lift = model.order.get("text", 0.0) * (1 / best_other - 1 / best) if best_other > 0 else 0.0
    others = [one for one in candidates if one.found_as not in again]
    said_again = sorted(one.likeness for one in candidates if one.found_as in again)
    return Ranked(
        candidates,
        replace(asked, repeats=max(0, len(again) - 1)),
        model,
        rival=_rival([*(one.likeness for one in others), *said_again[-1:]], model),
        echoes=again,
        lift=lift,
        others_rival=_rival([_lifted(one, lift) for one in others], model),
    )


def _lifted(candidate: Candidate, lift: float) -> float:
    """The likeness of a candidate where a unit of its score is worth so many log-odds more."""
    return candidate.likeness + lift * candidate.hit.score


def _rival(likenesses: Iterable[float], model: Model) -> float:
    """The likeness after the FIELD most alike; the usual one as far as there are too few to tell."""
    alike = sorted(likenesses, reverse=True)
    if not alike:
        return 0.0
    known = min(1.0, len(alike) / SETTLED)
    usual = sum(model.order.get(name, 0.0) * value for name, value in USUAL_RIVAL.items())
    return usual + known * (alike[min(FIELD, len(alike) - 1)] - usual) if known < 1 else alike[FIELD]


def _folded(group: Sequence[Candidate]) -> Candidate:
    """The most alike of the candidates for one thread, in the place of the best of them."""
    if len(group) == 1:
        return group[0]
    alike = min(group, key=lambda one: (-one.likeness, *_place(one)))
    return replace(alike, score=max(one.score for one in group), folded=tuple(one.found_as for one in group))
