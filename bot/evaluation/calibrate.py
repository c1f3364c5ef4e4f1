"""Chooses the cut of a repository, the least confidence at which a hit is worth showing, from a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.labels import NO_FEEDBACK, Feedback
from bot.evaluation.metrics import best_hits, count_reaching
from bot.evaluation.results import Replayed
from bot.ranking.weights import RankingWeights

MAX_HIT_SHARE = 0.125
"""Maximum share of issues that get a hit when a repository learns its own cut."""

MIN_THREADS = 100
"""Fewer replayed threads do not give a meaningful share."""

MIN_COMMENTS = 20
"""Fewer comments do not give a meaningful precision."""

PRIOR_STRENGTH = 20.0
"""How strongly a repository's own confidences are drawn to the shipped ones, in units of each feature's spread."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A model with its cut, and the reason for the cut in plain words; ``is_own``: it is not the shipped cut."""

    model: RankingWeights
    reason: str
    is_own: bool


def refit_confidence(
    seen: Sequence[ReplayedHits], model: RankingWeights, feedback: Feedback = NO_FEEDBACK
) -> RankingWeights:
    """The model with confidences drawn towards the feedback on hits that people saw.

    Links play no part: most threads worth showing are never linked, so links teach only the order.
    """
    from bot.ranking.fit import fit_probability

    pairs = [
        ((one.replayed.id, hit.id), candidate.evidence)
        for one in seen
        for candidate, hit in zip(one.candidates, one.replayed.hits, strict=True)
    ]
    rows = [evidence for key, evidence in pairs if key in feedback]
    labels = [feedback[key] for key, _ in pairs if key in feedback]
    if not rows:
        return model
    prior = (model.confidence, model.intercept)
    weights, intercept = fit_probability(
        rows, labels, [*model.confidence], prior=prior, strength=PRIOR_STRENGTH, holds_intercept=True
    )
    return replace(model, confidence=weights, intercept=intercept)


def cut_by_share(replayed: Sequence[Replayed], model: RankingWeights, share: float) -> Calibration:
    """The cut at which this share of the threads has a hit to show."""
    if len(replayed) < MIN_THREADS:
        return _keep_cut(model, f"only {len(replayed)} issues could be replayed, {MIN_THREADS} are needed")
    best = sorted((_best_confidence(one) for one in replayed), reverse=True)
    cut = best[min(len(best) - 1, max(0, round(share * len(best)) - 1))]
    if cut <= 0:
        return _keep_cut(model, f"fewer than {share:.0%} of the issues have any candidate")
    return Calibration(model.with_cut(cut), f"{share:.1%} of {len(replayed)} replayed issues have a hit", True)


def cut_by_precision(replayed: Sequence[Replayed], model: RankingWeights, precision: float) -> Calibration:
    """The lowest cut at which this share of the comments shows a thread that people linked later.

    Links understate, see `bot.evaluation.metrics`: 0.3 of the comments with a link is about 0.8 of them worth reading.
    """
    best, related = best_hits(replayed, attrgetter("confidence"))
    for cut in sorted({*best, *related}):
        count, linked = count_reaching(best, cut), count_reaching(related, cut)
        if count >= MIN_COMMENTS and linked / count >= precision:
            reason = f"{count} comments of {len(replayed)} issues at {precision:.0%}"
            return Calibration(model.with_cut(cut), reason, True)
    return _keep_cut(model, f"no {MIN_COMMENTS} comments reach a precision of {precision:.0%} by what people linked")


def vector_fields_of(seen: Sequence[ReplayedHits]) -> frozenset[str]:
    """The vector fields that found anything."""
    return frozenset(name for one in seen for candidate in one.candidates for name in candidate.hit.near)


def rescore(replay: ReplayedHits, model: RankingWeights, threshold: float) -> ReplayedHits:
    """The same replay with the similarities of another model."""
    hits = []
    for candidate, hit in zip(replay.candidates, replay.replayed.hits, strict=True):
        confidence = model.probability(candidate.evidence)
        similarity = model.similarity(confidence)
        is_shown = similarity >= threshold
        hits.append(replace(hit, confidence=confidence, similarity=similarity, is_shown=is_shown))
    return replace(replay, replayed=replace(replay.replayed, hits=tuple(hits)))


def _best_confidence(replayed: Replayed) -> float:
    return max((hit.confidence for hit in replayed.hits), default=0.0)


def _keep_cut(model: RankingWeights, reason: str) -> Calibration:
    return Calibration(model, f"the cut is kept as it is: {reason}", False)
