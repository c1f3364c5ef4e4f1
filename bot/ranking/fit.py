"""Fits linear models, for the order of candidates and the probability of a hit, and computes 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = dict[str, float]
Choice = tuple[Sequence[Mapping[str, float]], Sequence[bool]]
"""The features of the candidates of one question, and which of them are right."""

_ROUNDS = 25
_STEPS = 12
_SMALL = 1e-5


def fit_order(
    choices: Sequence[Choice], names: Sequence[str], *, prior: Mapping[str, float] | None = None, strength: float = 1.0
) -> Weights:
    """The weights that make the right candidates most probable, by a softmax over the candidates of each question.

    Minimises the listwise loss of F. Xia et al., "Listwise approach to learning to rank", ICML 2008, with the
    probability of any right candidate, by Newton's method. Weights are drawn towards ``prior`` (0 by default) with
    ``strength`` × squared distance / 2, in units of each feature's spread. Questions without a right candidate are
    ignored; without any question the prior is returned.
    """
    taught = [(_matrix(candidates, names), np.array(right, dtype=bool)) for candidates, right in choices if any(right)]
    start = np.array([(prior or {}).get(name, 0.0) for name in names])
    if not taught:
        return dict(zip(names, start.tolist(), strict=True))
    spread = _spread(np.concatenate([rows for rows, _ in taught]))
    scaled = [(rows / spread, right) for rows, right in taught]
    found = _newton(lambda weights: _listwise(scaled, weights), start * spread, np.full(len(names), strength))
    return dict(zip(names, (found / spread).tolist(), strict=True))


def fit_probability(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[bool],
    names: Sequence[str],
    *,
    prior: tuple[Mapping[str, float], float] | None = None,
    strength: float = 1.0,
    holds_intercept: bool = False,
) -> tuple[Weights, float]:
    """Weights and intercept of a logistic regression of ``labels``.

    The intercept is drawn to the prior's only with ``holds_intercept``: a few labels of one kind would carry it away.
    """
    weights, intercept = prior or ({}, 0.0)
    start = np.array([*(weights.get(name, 0.0) for name in names), intercept])
    if not rows:
        return dict(zip(names, start[:-1].tolist(), strict=True)), intercept
    matrix = _matrix(rows, names)
    spread = np.append(_spread(matrix), 1.0)
    scaled = np.column_stack([matrix, np.ones(len(matrix))]) / spread
    pull = np.append(np.full(len(names), strength), strength if holds_intercept else 0.0)
    truth = np.array(labels, dtype=float)
    found = _newton(lambda point: _logistic(scaled, truth, point), start * spread, pull) / spread
    return dict(zip(names, found[:-1].tolist(), strict=True)), float(found[-1])


Loss = tuple[float, Floats, Floats]
"""A loss with its slope and its curvature."""


def _newton(loss: Callable[[Floats], Loss], start: Floats, pull: Floats) -> Floats:
    """Minimise ``loss`` plus the pull towards ``start``; steps are halved until they go down."""

    def pulled(point: Floats) -> Loss:
        value, slope, curvature = loss(point)
        away = point - start
        return value + float(pull @ away**2) / 2, slope + pull * away, curvature + np.diag(pull + 1e-9)

    point = start.copy()
    value, slope, curvature = pulled(point)
    for _ in range(_ROUNDS):
        step = np.linalg.solve(curvature, slope)
        for _ in range(_STEPS):
            tried = pulled(point - step)
            if tried[0] <= value:
                break
            step = step / 2
        else:
            break
        point = point - step
        value, slope, curvature = tried
        if float(np.abs(step).max()) < _SMALL:
            break
    return point


def _listwise(taught: Sequence[tuple[Floats, NDArray[np.bool_]]], weights: Floats) -> Loss:
    size = len(weights)
    value, slope, curvature = 0.0, np.zeros(size), np.zeros((size, size))
    for rows, right in taught:
        scores = rows @ weights
        chance, total = _softmax(scores)
        of_right, held = _softmax(scores[right])
        mean = chance @ rows
        value += total - held
        slope += mean - of_right @ rows[right]
        curvature += (rows * chance[:, None]).T @ rows - np.outer(mean, mean)
    return value, slope, curvature


def _logistic(rows: Floats, truth: Floats, weights: Floats) -> Loss:
    scores = rows @ weights
    chance = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    value = float((np.logaddexp(0, scores) - truth * scores).sum())
    return value, rows.T @ (chance - truth), (rows * (chance * (1 - chance))[:, None]).T @ rows


def _softmax(scores: Floats) -> tuple[Floats, float]:
    """The share of each in the sum of e^score, and the logarithm of that sum."""
    largest = float(scores.max())
    powers = np.exp(scores - largest)
    total = float(powers.sum())
    return powers / total, largest + float(np.log(total))


def _matrix(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Floats:
    values = [[row.get(name, 0.0) for name in names] for row in rows]
    return np.array(values, dtype=float).reshape(len(rows), len(names))


def _spread(rows: Floats) -> Floats:
    spread = rows.std(axis=0)
    return np.where(spread > 1e-9, spread, 1.0)


RESAMPLES = 2_000
"""50 of 2,000 resampled means lie beyond each end of the interval, enough for steady ends."""

_BOUNDS = (2.5, 97.5)
_DRAWN = 1 << 20
"""Numbers drawn at a time, which bounds the memory."""


def mean_interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The 95 % percentile interval of the mean, from 2,000 resamples (Efron 1979); the same for the same ``seed``.

    Raises ValueError without values.
    """
    if not len(values):
        raise ValueError("there is no mean of no values")
    means = _resampled_means(np.asarray(values, np.float64), np.random.default_rng(seed))
    low, high = np.percentile(means, _BOUNDS).tolist()
    return float(low), float(high)


def paired_interval(a: Sequence[float], b: Sequence[float], seed: int) -> tuple[float, float, float]:
    """The mean of ``a`` minus ``b``, one pair for each case, and the ends of its 95 % interval.

    Cases are resampled as pairs, so cases that are hard for both do not widen the interval. Raises ValueError where the
    two differ in length or are empty.
    """
    differences = [left - right for left, right in zip(a, b, strict=True)]
    low, high = mean_interval(differences, seed)
    return sum(differences) / len(differences), low, high


def _resampled_means(values: NDArray[np.float64], chance: np.random.Generator) -> NDArray[np.float64]:
    count = len(values)
    step = max(1, _DRAWN // count)
    sizes = [min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step)]
    return np.concatenate([values[chance.integers(count, size=(size, count))].mean(axis=1) for size in sizes])
