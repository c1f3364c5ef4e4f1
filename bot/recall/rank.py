"""Hits of the index → candidates in order, and how sure one may be of each, in 0..1, the same everywhere."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import log

from bot.indexed import Entry, Hit
from bot.model import ThreadId
from bot.ranking import Model
from bot.recall.echoes import echoes
from bot.recall.features import Question, order_features

LEAST_TERMS = 3
"""Fewer shared terms than this are a coincidence, however rare they are: found, and never shown."""

LEAST_SHARE = 1e-4
"""Of a share the logarithm counts; what was found by vectors alone has none."""

CIRCUMSTANCES = frozenset({"open", "age", "closed"})
"""Features that make a candidate one that people would rather link, and no more alike: an old answer is an answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be shown, as one of the hits found it.

    ``found_as`` is the duplicate that was found in its stead, else its own id; ``folded`` names all threads that count
    for it. ``score`` is in log-odds against the other candidates, ``features`` what it is made of; ``likeness`` is the
    part of it that has nothing to do with the candidate's age and state. ``confidence`` is the probability that it is
    worth showing, ``evidence`` what that is made of.
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
    """All candidates, best first, with what is needed to tell how sure one may be of each.

    ``scores`` are those of all hits but ``echoes``, ascending: echoes say the same as the question, and others are
    judged as if there were none.
    """

    candidates: tuple[Candidate, ...]
    asked: Question
    model: Model
    scores: tuple[float, ...] = ()
    echoes: frozenset[ThreadId] = frozenset()

    def judged(self, candidate: Candidate, signals: Mapping[str, float]) -> Candidate:
        """The candidate with its confidence and similarity. ``signals`` are those of the text."""
        evidence = self._evidence(candidate, signals)
        confidence = self.model.probability(evidence)
        similarity = self.model.similarity(confidence)
        return replace(candidate, confidence=confidence, similarity=similarity, evidence=evidence)

    def _evidence(self, candidate: Candidate, signals: Mapping[str, float]) -> dict[str, float]:
        """The features of `bot.ranking.CONFIDENCE`.

        ``share`` is the logarithm of that of the query's weight; ``place`` is 1 for the hit with the highest score,
        1/2 for the next, and so on; ``semantic`` is the cosine of the texts by a downloaded model, where there is one.
        ``signals``: `titles` (`bot.recall.features.titles_covered`), `errors`, ln(1 + words by three in lines about a
        failure), `same_error`, that an error is the same, and `same_failure`, that a file beside it is the same too.
        Neither the age of a candidate nor its state has a part in it.
        """
        hit = candidate.hit
        evidence = {
            "share": log(max(LEAST_SHARE, hit.share)),
            "place": 1 / (1 + len(self.scores) - bisect_right(self.scores, hit.score)),
            **signals,
        }
        return evidence | ({"semantic": hit.near["semantic"]} if "semantic" in hit.near else {})


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first. ThreadComments go to the higher score for terms, then to the older thread, then to the smaller id."""
    return sorted(candidates, key=_place)


def surest_first(candidate: Candidate) -> tuple[float, float, float, datetime, int, str]:
    """The key that puts the most similar first; linked as in `in_order`."""
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
    again = echoes(hits, asked)
    return Ranked(
        tuple(in_order(map(_folded, groups.values()))),
        replace(asked, repeats=max(0, len(again) - 1)),
        model,
        scores=tuple(sorted(hit.score for hit in hits if hit.entry.id not in again)),
        echoes=again,
    )


def _folded(group: Sequence[Candidate]) -> Candidate:
    """The most alike of the candidates for one thread, in the place of the best of them."""
    if len(group) == 1:
        return group[0]
    alike = min(group, key=lambda one: (-one.likeness, *_place(one)))
    return replace(alike, score=max(one.score for one in group), folded=tuple(one.found_as for one in group))
