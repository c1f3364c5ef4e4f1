"""Chooses the cut of a repository, the least confidence at which a hit is worth showing, from a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.labels import NO_FEEDBACK, Feedback
from bot.evaluation.metrics import best_hits, count_reaching
from bot.evaluation.results import Replayed
from bot.ranking.weights import MODEL_EVIDENCE, RankingModels, RankingWeights, probability_of

MAX_HIT_SHARE = 0.125
"""Maximum share of issues that get a hit when a repository learns its own cut."""

MIN_THREADS = 100
"""Fewer replayed threads do not give a meaningful share."""

_HALVINGS = 50
"""So often is an interval halved: the rest is below any rounding of a stored number."""

MIN_COMMENTS = 20
"""Fewer comments do not give a meaningful precision."""

PRIOR_STRENGTH = 10.0
"""How strongly a repository's own confidences are drawn to the shipped ones: like ten votes of each kind, roughly."""

VOTE_LOG_ODDS = 0.05
"""The most by which one vote moves the log-odds of all confidences: ten move 0.65 to 0.53 or 0.75."""

MAX_STRANGERS = 10
"""The votes for which those of all people without write access count, however many they are. One account's are one."""


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

    All move alike: a few votes on alike hits say nothing about the weight of a feature, and would move hits that nobody
    rated by any amount. Links play no part: most threads worth showing are never linked, so links teach only the order.
    """
    rated = [
        _Rated(vote.by, model.log_odds(candidate.evidence), vote.helps, vote.may_write)
        for one in seen
        for candidate, hit in zip(one.candidates, one.replayed.hits, strict=True)
        for vote in feedback.votes.get((one.replayed.id, hit.id), ())
    ]
    own = _shift([(1.0, each.log_odds, each.helps) for each in rated if each.may_write])
    strangers = [each for each in rated if not each.may_write]
    votes_by_account = Counter(each.by for each in strangers)
    share = min(1.0, MAX_STRANGERS / max(1, len(votes_by_account)))
    moved = _shift([(share / votes_by_account[each.by], each.log_odds + own, each.helps) for each in strangers])
    return replace(model, intercept=model.intercept + own + moved) if rated else model


class _Rated(NamedTuple):
    """One vote on a hit with these log-odds."""

    by: str
    log_odds: float
    helps: bool
    may_write: bool


def _shift(votes: Sequence[tuple[float, float, bool]]) -> float:
    """How far to move all log-odds for these votes: the weight of each, the log-odds of its hit, whether it helps.

    The maximum of their likelihood with a normal prior around 0, within VOTE_LOG_ODDS for each vote.
    """
    high = VOTE_LOG_ODDS * sum(weight for weight, _, _ in votes)
    low = -high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = sum(weight * (probability_of(odds + middle) - helps) for weight, odds, helps in votes)
        low, high = (middle, high) if slope + PRIOR_STRENGTH * middle < 0 else (low, middle)
    return (low + high) / 2


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


def has_vectors(seen: Sequence[ReplayedHits]) -> bool:
    """Whether most hits of this replay were judged with a text model."""
    judged = [MODEL_EVIDENCE in candidate.evidence for one in seen for candidate in one.candidates]
    return 2 * sum(judged) > len(judged)


def rescore(replay: ReplayedHits, ranking: RankingModels, threshold: float) -> ReplayedHits:
    """The same replay with the similarities of another ranking."""
    hits = []
    for candidate, hit in zip(replay.candidates, replay.replayed.hits, strict=True):
        model = ranking.for_evidence(candidate.evidence)
        confidence = model.probability(candidate.evidence)
        similarity = model.similarity(confidence)
        is_shown = similarity >= threshold
        hits.append(replace(hit, confidence=confidence, similarity=similarity, is_shown=is_shown))
    return replace(replay, replayed=replace(replay.replayed, hits=tuple(hits)))


def _best_confidence(replayed: Replayed) -> float:
    return max((hit.confidence for hit in replayed.hits), default=0.0)


def _keep_cut(model: RankingWeights, reason: str) -> Calibration:
    return Calibration(model, f"the cut is kept as it is: {reason}", False)
