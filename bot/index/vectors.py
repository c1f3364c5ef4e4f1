"""Vectors of signed bytes, and their cosines.

All sums are exact: no partial sum of at most 1,024 products of two bytes exceeds 2²⁴, up to which a float32 holds every
whole number. So a cosine depends neither on the machine nor on the order of additions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bot.index.arrays import Scores

MAX_DIMENSIONS = 1024
"""The most numbers that a vector may have."""

Matrix = NDArray[np.int8]
Squares = NDArray[np.float32]

_WIDENING_BATCH = 1 << 16
"""Numbers widened at a time: few enough to fit the processor's cache and to keep libraries from starting threads, which
cost more than they save."""


def matrix(packed: bytes | memoryview, length: int) -> Matrix:
    """Rows of ``length`` signed bytes, read in place. Raises ValueError when the bytes do not divide into them."""
    return np.frombuffer(packed, np.int8).reshape(-1, length)


def squares(rows: Matrix) -> Squares:
    sums = np.empty(len(rows), np.float32)
    for part in _parts(rows):
        wide = rows[part].astype(np.float32)
        sums[part] = np.einsum("ij,ij->i", wide, wide)
    return sums


def cosines(rows: Matrix, vector: bytes, squared: Squares | None = None) -> Scores:
    """The cosine (-1..1) of each row with ``vector``, which is as long as a row; 0 where either is all zeros.

    ``squared`` saves computing ``squares(rows)`` again.
    """
    query = np.frombuffer(vector, np.int8).astype(np.float32)
    dots = np.empty(len(rows), np.float32)
    for part in _parts(rows):
        np.matmul(rows[part].astype(np.float32), query, out=dots[part])
    lengths = np.sqrt((squares(rows) if squared is None else squared).astype(np.float64) * float(query @ query))
    result: Scores = np.divide(dots, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return result


def _parts(rows: Matrix) -> list[slice]:
    step = max(1, _WIDENING_BATCH // rows.shape[1])
    return [slice(start, start + step) for start in range(0, len(rows), step)]
