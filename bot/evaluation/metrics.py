"""The figures of an evaluation: how high the right thread ranks, and how well confidence predicts that it is right.

Labels understate. A thread counts as related only if people linked it, and mostly nobody does: 40 hits with high
confidence that were never linked were read by hand, and 29 (about 70 %) were really related. So precision here is a
lower bound, and a hit without a link is "not linked by anyone", never "wrong".
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from bot.evaluation.results import Backtest, Grade, Replayed, ShownThread
from bot.ranking.fit import mean_interval, paired_interval

RANK_CUTOFFS = (1, 5, 10, 20)
BIN_COUNT = 10
SEED = 20_150_125
"""Any number would do; a fixed one gives the same intervals in every run."""

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """How high the first related thread ranked, over ``n`` queries.

    ``figures``: ``rr@k``, the share of queries that have it among the first k (recall rate), and ``mrr``, the mean of
    1/rank; all in 0..1, and empty when there was no query.
    """

    n: int
    figures: Mapping[str, Figure]

    @classmethod
    def of(cls, ranks: Iterable[int | None]) -> RankMetrics:
        """From ranks that count from 1; None if nothing related was found, which counts as 0."""
        ranks = list(ranks)
        if not ranks:
            return cls(0, {})
        columns = _rank_scores(ranks).items()
        return cls(len(ranks), {name: Figure(sum(v) / len(v), *mean_interval(v, SEED)) for name, v in columns})

    def as_dict(self) -> dict[str, object]:
        """Ready for JSON: ``n``, each figure (None without queries), and ``interval`` with [low, high] for each."""
        names = list(_rank_scores([]))
        values = {name: _rounded(self.figures[name].value if self.n else None) for name in names}
        ends = {name: [_rounded(figure.low), _rounded(figure.high)] for name, figure in self.figures.items()}
        return {"n": self.n, **values, "interval": ends}


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of similar confidence: their mean confidence, the share that was related, and their number."""

    confidence: float
    share: float
    count: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A threshold, the share of threads that it gives a comment, and the share of comments with a related hit."""

    threshold: float
    coverage: float
    precision: float


def reciprocal_rank(rank: int | None) -> float:
    return 1 / rank if rank else 0.0


def rank_differences(ours: Sequence[int | None], theirs: Sequence[int | None]) -> dict[str, Figure]:
    """Ours minus theirs, for each of ``RankMetrics.figures``, on the same queries in the same order.

    Raises ValueError if the two differ in length or are empty.
    """
    left, right = _rank_scores(ours), _rank_scores(theirs)
    return {name: Figure(*paired_interval(left[name], right[name], SEED)) for name in left}


def auc(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """The chance that a true case scores above a false one, a tie counting half; None when one class is missing.

    The area under the ROC curve by the ranks of the true cases (Mann-Whitney; Hanley & McNeil 1982).
    """
    true = sum(labels)
    false = len(labels) - true
    if not true or not false:
        return None
    ranks, below = 0.0, 0
    for _, tied in _by_score(labels, scores):
        ranks += sum(tied) * (below + (len(tied) + 1) / 2)
        below += len(tied)
    return (ranks - true * (true + 1) / 2) / (true * false)


def average_precision(labels: Sequence[bool], scores: Sequence[float]) -> float | None:
    """The precision at each true case, averaged; equal scores count as one step. None without a true case."""
    true, seen, hits, total = sum(labels), 0, 0, 0.0
    for _, tied in reversed(_by_score(labels, scores)):
        seen += len(tied)
        hits += sum(tied)
        total += sum(tied) * hits / seen
    return total / true if true else None


def calibration_bins(confidences: Sequence[float], labels: Sequence[bool], bins: int = BIN_COUNT) -> tuple[Bin, ...]:
    """Cases by ascending confidence in at most ``bins`` parts of about the same size.

    Equal confidences stay together, so that the order of the cases does not matter.
    """
    parts: dict[int, list[tuple[float, int, int]]] = {}
    below = 0
    for confidence, tied in _by_score(labels, confidences):
        middle = below + len(tied) / 2
        parts.setdefault(int(middle * bins / len(labels)), []).append((confidence, sum(tied), len(tied)))
        below += len(tied)
    return tuple(_make_bin(part) for part in parts.values())


def expected_calibration_error(bins: Sequence[Bin]) -> float | None:
    """How far confidence is from what was observed, in 0..1, averaged over bins by their counts; None without bins.

    ECE over bins of equal counts, as Naeini, Cooper & Hauskrecht (2015) define it; Guo et al. (2017) made it common.
    """
    count = sum(group.count for group in bins)
    return sum(abs(group.confidence - group.share) * group.count for group in bins) / count if count else None


def precision_coverage(replayed: Sequence[Replayed]) -> tuple[Cut, ...]:
    """The effect of each threshold at which something changes, the highest first."""
    best, related = best_hits(replayed, attrgetter("similarity"))
    cuts = []
    for threshold in sorted({*best, *related}, reverse=True):
        commented = count_reaching(best, threshold)
        cuts.append(Cut(threshold, commented / len(replayed), count_reaching(related, threshold) / commented))
    return tuple(cuts)


def best_hits(replayed: Sequence[Replayed], value: Callable[[ShownThread], float]) -> tuple[list[float], list[float]]:
    """The highest value among the hits of each thread, and among its related hits, if it has any; both ascending."""
    all_values = [[value(hit) for hit in one.hits] for one in replayed]
    related = [[value(hit) for hit in one.hits if hit.related] for one in replayed]
    return sorted(max(values) for values in all_values if values), sorted(max(values) for values in related if values)


def share_interval(part: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``whole`` cases, which are at least one (Wilson 1927)."""
    z, share = 1.96, part / total
    middle = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    return max(0.0, (middle - spread) / (1 + z * z / total)), min(1.0, (middle + spread) / (1 + z * z / total))


def hits_of(replayed: Iterable[Replayed]) -> list[ShownThread]:
    """All hits, shown or not: the cases of the calibration."""
    return [hit for one in replayed for hit in one.hits]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share (0..1) of all does not exceed; None without values."""
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1] if values else None


def summary(backtest: Backtest) -> dict[str, Any]:
    """The figures of a replay, ready for JSON; None for what these threads cannot show.

    ``n``: threads replayed of ``wanted``; ``threads``: the size of the memory. ``commented``: threads with a comment of
    any kind, ``similar``: those on which a similar thread was shown; each with its share of ``n``. ``precision``: share
    of ``similar`` with at least one related hit, ``hit_precision``: share of shown hits that are related; both are
    lower bounds (see the top of this module). ``grades``: a count for each. ``rr@1`` … ``mrr`` with
    ``interval``: over the ``with_relations`` threads that people linked to an older one. ``auc``: how well the highest
    confidence of a thread separates those with a related hit from the others; ``hit_auc``, ``ece``: over single hits.
    ``ms_p50``, ``ms_p95``: milliseconds of one answer; ``seconds``: of the replay.
    """
    replayed = backtest.replayed
    times = [one.ms for one in replayed]
    return {
        "repo": backtest.repo,
        "n": len(replayed),
        "wanted": backtest.wanted,
        "threads": backtest.threads,
        "threshold": backtest.threshold,
        **_comment_figures(replayed),
        **_rank_figures(replayed),
        **_confidence_figures(replayed),
        "ms_p50": _rounded(percentile(times, 0.5)),
        "ms_p95": _rounded(percentile(times, 0.95)),
        "seconds": _rounded(backtest.seconds),
        "evidence": dict(backtest.evidence),
    }


def _comment_figures(replayed: Sequence[Replayed]) -> dict[str, object]:
    grades = Counter(one.grade for one in replayed)
    shown = [hit for one in replayed for hit in one.shown]
    commented, similar = sum(one.has_comment for one in replayed), sum(bool(one.shown) for one in replayed)
    return {
        "commented": commented,
        "commented_share": _share(commented, len(replayed)),
        "similar": similar,
        "similar_share": _share(similar, len(replayed)),
        "precision": _share(grades[Grade.SUCCESS] + grades[Grade.ASSIST], similar),
        "hit_precision": _share(sum(hit.related for hit in shown), len(shown)),
        "grades": {grade.value: grades[grade] for grade in Grade},
    }


def _rank_figures(replayed: Sequence[Replayed]) -> dict[str, object]:
    ranks = RankMetrics.of(one.rank for one in replayed if one.relations.all).as_dict()
    return {"with_relations": ranks.pop("n"), **ranks}


def _confidence_figures(replayed: Sequence[Replayed]) -> dict[str, object]:
    has_related = [any(hit.related for hit in one.hits) for one in replayed]
    highest = [max((hit.confidence for hit in one.hits), default=0.0) for one in replayed]
    hits = hits_of(replayed)
    labels, confidences = [hit.related for hit in hits], [hit.confidence for hit in hits]
    return {
        "auc": _rounded(auc(has_related, highest)),
        "average_precision": _rounded(average_precision(has_related, highest)),
        "hit_auc": _rounded(auc(labels, confidences)),
        "ece": _rounded(expected_calibration_error(calibration_bins(confidences, labels))),
    }


def _rank_scores(ranks: Sequence[int | None]) -> dict[str, list[float]]:
    scores = {f"rr@{cut}": [float(rank is not None and rank <= cut) for rank in ranks] for cut in RANK_CUTOFFS}
    return scores | {"mrr": [reciprocal_rank(rank) for rank in ranks]}


def _by_score(labels: Sequence[bool], scores: Sequence[float]) -> list[tuple[float, list[bool]]]:
    cases = sorted(zip(scores, labels, strict=True))
    return [(score, [label for _, label in tied]) for score, tied in groupby(cases, key=lambda case: case[0])]


def _make_bin(part: Sequence[tuple[float, int, int]]) -> Bin:
    count = sum(size for _, _, size in part)
    confidence = sum(value * size for value, _, size in part) / count
    return Bin(confidence, sum(true for _, true, _ in part) / count, count)


def count_reaching(ascending: Sequence[float], threshold: float) -> int:
    """How many of these ascending values are not below the threshold."""
    return len(ascending) - bisect_left(ascending, threshold)


def _share(part: int, total: int) -> float | None:
    return _rounded(part / total) if total else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
