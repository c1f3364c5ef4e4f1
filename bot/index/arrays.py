"""Inverted lists and columns as arrays: decodes, intersects and counts them, and selects the best values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NUMBER_BYTES = 8
_NUMBER_DTYPE = np.dtype("<i8")

Numbers = NDArray[np.int64]
Levels = NDArray[np.uint8]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_GAP_DTYPES: dict[int, np.dtype[np.unsignedinteger]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}

Kind = TypeVar("Kind", bound=np.generic)


def document_numbers(gaps: bytes | memoryview, width: int) -> Numbers:
    """Document numbers, in ascending order, from the gaps between them: little-endian, ``width`` 1, 2 or 4 bytes each.

    Raises KeyError for another width, ValueError when the bytes do not divide by it.
    """
    documents: Numbers = np.cumsum(np.frombuffer(gaps, _GAP_DTYPES[width]), dtype=np.int64)
    return documents


def numbers(packed: bytes | memoryview) -> Numbers:
    """Signed little-endian numbers of eight bytes. Raises ValueError when the bytes do not divide by eight."""
    return np.frombuffer(packed, _NUMBER_DTYPE).astype(np.int64, copy=False)


def gains_for(documents: Numbers, levels: Levels, gains: Scores, wanted: Numbers) -> Scores:
    """The gain of each ``wanted`` document from a posting list, whose documents are ascending and not empty."""
    positions = np.minimum(np.searchsorted(documents, wanted), len(documents) - 1)
    return np.where(documents[positions] == wanted, gains[levels[positions]], 0.0)


def intersect(parts: Sequence[Numbers]) -> Numbers:
    """The numbers that are in all parts, each of which is ascending and not empty."""
    common, *others = sorted(parts, key=len)
    for other in others:
        positions = np.minimum(np.searchsorted(other, common), len(other) - 1)
        common = common[other[positions] == common]
    return common


def frequent_numbers(times: int, parts: Sequence[Numbers]) -> Numbers:
    """The numbers that occur more than ``times`` times in total."""
    values, counts = np.unique(join_arrays(parts, np.int64), return_counts=True)
    frequent: Numbers = values[counts > times]
    return frequent


def best(values: Scores, count: int, above: float = -np.inf) -> list[int]:
    """The indices of the ``count`` highest values and of all values equal to the last of them, highest first.

    Only values greater than ``above`` count; equal ones keep their order.
    """
    if count <= 0:
        return []
    places = np.flatnonzero(values > above)
    candidates = values[places]
    if len(candidates) > count:
        floor = np.partition(candidates, len(candidates) - count)[len(candidates) - count]
        places = places[candidates >= floor]
    order = np.argsort(-values[places], kind="stable")
    return [int(place) for place in places[order].tolist()]


def strongest(shares: Scores, count: int) -> list[list[int]]:
    """For each column of a matrix, the rows with its ``count`` highest positive values, highest first.

    Equal values are in the order of their rows.
    """
    by_column = np.ascontiguousarray(shares.T)
    floor: Scores | float = 0.0
    if by_column.shape[1] > count:
        kth = by_column.shape[1] - count
        floor = np.partition(by_column, kth, axis=1)[:, kth : kth + 1]
    column, row = np.nonzero((by_column > 0) & (by_column >= floor))
    order = np.lexsort((row, -by_column[column, row], column))
    borders = np.searchsorted(column, np.arange(len(by_column) + 1)).tolist()
    rows = row[order].tolist()
    return [rows[start : min(stop, start + count)] for start, stop in pairwise(borders)]


def occurrences(keys: Sequence[Numbers], within: Sequence[Numbers]) -> Numbers:
    """How often each key occurs in ``within``."""
    wanted, (values, counts) = join_arrays(keys, np.int64), np.unique(join_arrays(within, np.int64), return_counts=True)
    if not len(values):
        return np.zeros(len(wanted), np.int64)
    positions = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[positions] == wanted, counts[positions], 0)


def last_odd(steps: Sequence[Numbers], until: float) -> Numbers:
    """For each document, its last step up to a moment if that is odd-numbered (the first, the third, …), else 0.

    There is one array per step; a document's steps ascend, and missing steps are 0.
    """
    matrix = np.stack(steps)
    passed = (matrix != 0) & (matrix <= until)
    count = passed.sum(axis=0)
    last = np.where(passed, matrix, 0).max(axis=0)
    result: Numbers = np.where(count % 2 == 1, last, 0)
    return result


def join_arrays(parts: Sequence[NDArray[Kind]], kind: type[Kind]) -> NDArray[Kind]:
    return np.concatenate([np.zeros(0, kind), *parts])
