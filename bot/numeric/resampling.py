"""How far a mean could have come out otherwise: 95 % intervals by the bootstrap, with chance that repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2_000
"""Of 2,000 resampled means 50 lie beyond each end of the interval, enough for its ends to be steady."""

_BOUNDS = (2.5, 97.5)
_DRAWN = 1 << 20
"""Numbers that are drawn at a time, so that memory stays small for any number of values."""


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

    Cases are resampled whole, so what is hard for both does not widen the interval. Raises ValueError where the two
    differ in length, or are empty.
    """
    differences = [left - right for left, right in zip(a, b, strict=True)]
    low, high = mean_interval(differences, seed)
    return sum(differences) / len(differences), low, high


def _resampled_means(values: NDArray[np.float64], chance: np.random.Generator) -> NDArray[np.float64]:
    count = len(values)
    step = max(1, _DRAWN // count)
    sizes = [min(step, RESAMPLES - start) for start in range(0, RESAMPLES, step)]
    return np.concatenate([values[chance.integers(count, size=(size, count))].mean(axis=1) for size in sizes])
