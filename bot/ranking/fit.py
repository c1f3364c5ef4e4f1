"""Fits linear models for the order of candidates and the probability of a hit, and computes 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = dict[str, float]
Choice = tuple[Sequence[Mapping[str, float]], Sequence[bool]]
"""The features of one question's candidates, and which candidates are right."""

_MAX_ITERATIONS = 25
_MAX_HALVINGS = 12
_TOLERANCE = 1e-5


def fit_order(
    choices: Sequence[Choice], names: Sequence[str], *, prior: Mapping[str, float] | None = None, strength: float = 1.0
) -> Weights:
    """The weights that make the right candidates most probable, by a softmax over the candidates of each question.

    Minimises the listwise loss of F. Xia et al., "Listwise approach to learning to rank", ICML 2008, with the
    probability of any right candidate, by Newton's method. The penalty ``strength`` × squared distance / 2 pulls
    weights towards ``prior`` (0 by default), in units of each feature's spread. Questions without a right candidate are
    ignored; without any question the prior is returned.
    """
    questions = [
        (_matrix(candidates, names), np.array(right, dtype=bool)) for candidates, right in choices if any(right)
    ]
    start = np.array([(prior or {}).get(name, 0.0) for name in names])
    if not questions:
        return dict(zip(names, start.tolist(), strict=True))
    spread = _spread(np.concatenate([rows for rows, _ in questions]))
    scaled = [(rows / spread, right) for rows, right in questions]
    solution = _newton(lambda weights: _listwise(scaled, weights), start * spread, np.full(len(names), strength))
    return dict(zip(names, (solution / spread).tolist(), strict=True))


def fit_probability(
    rows: Sequence[Mapping[str, float]],
    labels: Sequence[bool],
    names: Sequence[str],
    *,
    strength: float = 1.0,
) -> tuple[Weights, float]:
    """Weights and intercept of a logistic regression of ``labels``; the weights are pulled to 0, the intercept is not.

    Without any rows all are 0.
    """
    if not rows:
        return dict.fromkeys(names, 0.0), 0.0
    matrix = _matrix(rows, names)
    spread = np.append(_spread(matrix), 1.0)
    scaled = np.column_stack([matrix, np.ones(len(matrix))]) / spread
    penalty = np.append(np.full(len(names), strength), 0.0)
    targets = np.array(labels, dtype=float)
    start = np.zeros(len(names) + 1)
    solution = _newton(lambda point: _logistic(scaled, targets, point), start, penalty) / spread
    return dict(zip(names, solution[:-1].tolist(), strict=True)), float(solution[-1])


Loss = tuple[float, Floats, Floats]
"""A loss with its gradient and its Hessian."""


def _newton(loss: Callable[[Floats], Loss], start: Floats, penalty: Floats) -> Floats:
    """Minimise ``loss`` plus the penalty for leaving ``start``; steps are halved until the value decreases."""

    def penalised(point: Floats) -> Loss:
        value, gradient, hessian = loss(point)
        offset = point - start
        return value + float(penalty @ offset**2) / 2, gradient + penalty * offset, hessian + np.diag(penalty + 1e-9)

    point = start.copy()
    value, gradient, hessian = penalised(point)
    for _ in range(_MAX_ITERATIONS):
        step = np.linalg.solve(hessian, gradient)
        for _ in range(_MAX_HALVINGS):
            trial = penalised(point - step)
            if trial[0] <= value:
                break
            step = step / 2
        else:
            break
        point = point - step
        value, gradient, hessian = trial
        if float(np.abs(step).max()) < _TOLERANCE:
            break
    return point


def _listwise(questions: Sequence[tuple[Floats, NDArray[np.bool_]]], weights: Floats) -> Loss:
    size = len(weights)
    value, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
    for rows, right in questions:
        scores = rows @ weights
        probabilities, total = _softmax(scores)
        right_probabilities, right_total = _softmax(scores[right])
        mean = probabilities @ rows
        value += total - right_total
        gradient += mean - right_probabilities @ rows[right]
        hessian += (rows * probabilities[:, None]).T @ rows - np.outer(mean, mean)
    return value, gradient, hessian


def _logistic(rows: Floats, targets: Floats, weights: Floats) -> Loss:
    scores = rows @ weights
    probabilities = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    value = float((np.logaddexp(0, scores) - targets * scores).sum())
    return value, rows.T @ (probabilities - targets), (rows * (probabilities * (1 - probabilities))[:, None]).T @ rows


def _softmax(scores: Floats) -> tuple[Floats, float]:
    """Each one's share of the sum of e^score, and the logarithm of that sum."""
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
"""50 of 2,000 resampled means lie beyond each end of the interval, enough for stable ends."""

_PERCENTILES = (2.5, 97.5)
_BATCH_SIZE = 1 << 20
"""Numbers drawn at a time, to bound the memory."""


def mean_interval(values: Sequence[float], seed: int) -> tuple[float, float]:
    """The 95 % percentile interval of the mean, from 2,000 resamples (Efron 1979); the same for the same ``seed``.

    Raises ValueError without values.
    """
    if not len(values):
        raise ValueError("there is no mean of no values")
    means = _resampled_means(np.asarray(values, np.float64), np.random.default_rng(seed))
    low, high = np.percentile(means, _PERCENTILES).tolist()
    return float(low), float(high)


def paired_interval(a: Sequence[float], b: Sequence[float], seed: int) -> tuple[float, float, float]:
    """The mean of ``a`` minus ``b``, one pair per case, and the ends of its 95 % interval.

    Cases are resampled as pairs, so cases that are hard for both do not widen the interval. Raises ValueError if the
    two differ in length or are empty.
    """
    differences = [left - right for left, right in zip(a, b, strict=True)]
    low, high = mean_interval(differences, seed)
    return sum(differences) / len(differences), low, high


def _resampled_means(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    count = len(values)
    step = max(1, _BATCH_SIZE // count)
    sizes = [min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step)]
    return np.concatenate([values[rng.integers(count, size=(size, count))].mean(axis=1) for size in sizes])
