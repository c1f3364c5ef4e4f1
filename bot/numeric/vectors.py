"""Vectors of signed bytes: matrices of them, and the cosines of their rows with a vector.

All sums are exact: of at most 1,024 products of two bytes no partial sum exceeds 2²⁴, up to which a float32 holds every
whole number. So a cosine depends neither on the machine nor on the order in which a library adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bot.numeric.scores import Scores

MAX_LENGTH = 1024
"""The most numbers that a vector may have."""

Matrix = NDArray[np.int8]
Squares = NDArray[np.float32]

_WIDENED = 1 << 16
"""Numbers that are widened at a time: few enough to stay in the processor's cache, and for no library to start threads,
which cost more than they save."""


def matrix(packed: bytes | memoryview, length: int) -> Matrix:
    """Rows of ``length`` signed bytes, read in place. Raises ValueError when the bytes do not divide into them."""
    return np.frombuffer(packed, np.int8).reshape(-1, length)


def squares(rows: Matrix) -> Squares:
    """The squared length of each row."""
    found = np.empty(len(rows), np.float32)
    for part in _parts(rows):
        wide = rows[part].astype(np.float32)
        found[part] = np.einsum("ij,ij->i", wide, wide)
    return found


def cosines(rows: Matrix, vector: bytes, squared: Squares | None = None) -> Scores:
    """The cosine (-1..1) of each row with ``vector``, which is as long as a row; 0 where either is all zeros.

    ``squared`` saves computing ``squares(rows)`` again.
    """
    asked = np.frombuffer(vector, np.int8).astype(np.float32)
    dots = np.empty(len(rows), np.float32)
    for part in _parts(rows):
        np.matmul(rows[part].astype(np.float32), asked, out=dots[part])
    lengths = np.sqrt((squares(rows) if squared is None else squared).astype(np.float64) * float(asked @ asked))
    found: Scores = np.divide(dots, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    return found


def _parts(rows: Matrix) -> list[slice]:
    step = max(1, _WIDENED // rows.shape[1])
    return [slice(start, start + step) for start in range(0, len(rows), step)]
