"""From what was seen in a replay to the confidence from which on a hit is worth showing in this repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.labels import NO_FEEDBACK, Feedback
from bot.evaluation.metrics import reaching
from bot.evaluation.results import Replayed
from bot.ranking.weights import RankingWeights

USUAL_SHARE = 0.125
"""Of the issues: a repository of its own cut gives a hit to no more than these by itself."""

LEAST_THREADS = 100
"""Replayed threads from which a share means something."""

LEAST_SPOKEN = 20
"""Comments from which a precision means something."""

STRENGTH = 20.0
"""How strongly own confidences are drawn to the shipped ones, in units of each feature's spread."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model with a cut of its own, and in plain words why; ``is_own``: the cut is not the shipped one."""

    model: RankingWeights
    reason: str
    is_own: bool


def refitted(seen: Sequence[ReplayedHits], model: RankingWeights, feedback: Feedback = NO_FEEDBACK) -> RankingWeights:
    """The model with confidences drawn towards what people said of hits that they saw.

    What they link has no part in it: most of what is worth showing is never linked, so links teach the order alone.
    """
    from bot.ranking.fit import fit_probability

    told = [
        (candidate.evidence, feedback[one.replayed.id, hit.id])
        for one in seen
        for candidate, hit in zip(one.candidates, one.replayed.hits, strict=True)
        if (one.replayed.id, hit.id) in feedback
    ]
    if not told:
        return model
    rows, labels = [evidence for evidence, _ in told], [is_good for _, is_good in told]
    prior = (model.confidence, model.intercept)
    weights, intercept = fit_probability(
        rows, labels, [*model.confidence], prior=prior, strength=STRENGTH, holds_intercept=True
    )
    return replace(model, confidence=weights, intercept=intercept)


def by_share(replayed: Sequence[Replayed], model: RankingWeights, share: float) -> Calibration:
    """The cut at which this share of the threads has a hit to show."""
    if len(replayed) < LEAST_THREADS:
        return _kept(model, f"only {len(replayed)} issues could be replayed, {LEAST_THREADS} are needed")
    best = sorted((_best(one) for one in replayed), reverse=True)
    cut = best[min(len(best) - 1, max(0, round(share * len(best)) - 1))]
    if cut <= 0:
        return _kept(model, f"fewer than {share:.0%} of the issues have any candidate")
    return Calibration(model.with_cut(cut), f"{share:.1%} of {len(replayed)} replayed issues have a hit", True)


def by_precision(replayed: Sequence[Replayed], model: RankingWeights, precision: float) -> Calibration:
    """The lowest cut at which this share of the comments shows something that people linked later.

    Links understate, see `bot.evaluation.metrics`: 0.3 of the comments with a link is about 0.8 of them worth reading.
    """
    best = sorted(_best(one) for one in replayed if one.hits)
    related = sorted(
        max(hit.confidence for hit in one.hits if hit.related) for one in replayed if any(h.related for h in one.hits)
    )
    for cut in sorted({*best, *related}):
        count, good = reaching(best, cut), reaching(related, cut)
        if count >= LEAST_SPOKEN and good / count >= precision:
            reason = f"{count} comments of {len(replayed)} issues at {precision:.0%}"
            return Calibration(model.with_cut(cut), reason, True)
    return _kept(model, f"no {LEAST_SPOKEN} comments reach a precision of {precision:.0%} by what people linked")


def vector_fields_of(seen: Sequence[ReplayedHits]) -> frozenset[str]:
    """The vector fields by which anything was found."""
    return frozenset(name for one in seen for candidate in one.candidates for name in candidate.hit.near)


def recut(one: ReplayedHits, model: RankingWeights, threshold: float) -> ReplayedHits:
    """What was seen, with the similarities of another model."""
    hits = []
    for candidate, hit in zip(one.candidates, one.replayed.hits, strict=True):
        confidence = model.probability(candidate.evidence)
        similarity = model.similarity(confidence)
        shown = similarity >= threshold
        hits.append(replace(hit, confidence=confidence, similarity=similarity, is_shown=shown))
    return replace(one, replayed=replace(one.replayed, hits=tuple(hits)))


def _best(one: Replayed) -> float:
    return max((hit.confidence for hit in one.hits), default=0.0)


def _kept(model: RankingWeights, why: str) -> Calibration:
    return Calibration(model, f"the cut is kept as it is: {why}", False)
