"""Inverted lists and columns as arrays: decoded, intersected, counted, and the best of them chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

BYTES = 8
_NUMBER = np.dtype("<i8")

Numbers = NDArray[np.int64]
Levels = NDArray[np.uint8]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

_GAPS: dict[int, np.dtype[np.unsignedinteger]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}

Kind = TypeVar("Kind", bound=np.generic)


def document_numbers(gaps: bytes | memoryview, width: int) -> Numbers:
    """Document numbers, in ascending order, from the gaps between them: little-endian, ``width`` 1, 2 or 4 bytes each.

    Raises KeyError for another width, ValueError when the bytes do not divide by it.
    """
    found: Numbers = np.cumsum(np.frombuffer(gaps, _GAPS[width]), dtype=np.int64)
    return found


def numbers(packed: bytes | memoryview) -> Numbers:
    """Signed little-endian numbers of eight bytes. Raises ValueError when the bytes do not divide by eight."""
    return np.frombuffer(packed, _NUMBER).astype(np.int64, copy=False)


def gained(at: Numbers, found: Levels, by_level: Scores, wanted: Numbers) -> Scores:
    """The gain of each ``wanted`` document from a list of documents ``at``, ascending and not empty, with levels."""
    place = np.minimum(np.searchsorted(at, wanted), len(at) - 1)
    return np.where(at[place] == wanted, by_level[found[place]], 0.0)


def common(parts: Sequence[Numbers]) -> Numbers:
    """The numbers that are in all parts, each of which is ascending and not empty."""
    found, *others = sorted(parts, key=len)
    for other in others:
        place = np.minimum(np.searchsorted(other, found), len(other) - 1)
        found = found[other[place] == found]
    return found


def more_than(times: int, parts: Sequence[Numbers]) -> Numbers:
    """The numbers that occur more than ``times`` times in all parts together."""
    known, counts = np.unique(joined(parts, np.int64), return_counts=True)
    found: Numbers = known[counts > times]
    return found


def best(values: Scores, count: int, above: float = -np.inf) -> list[int]:
    """The places of the ``count`` highest values and of all that equal the last of them, highest first.

    Only values greater than ``above`` count; equal ones keep their order.
    """
    if count <= 0:
        return []
    places = np.flatnonzero(values > above)
    found = values[places]
    if len(found) > count:
        floor = np.partition(found, len(found) - count)[len(found) - count]
        places = places[found >= floor]
    order = np.argsort(-values[places], kind="stable")
    return [int(place) for place in places[order].tolist()]


def strongest(shares: Scores, count: int) -> list[list[int]]:
    """For each column of a matrix the rows with its ``count`` highest positive values, highest first.

    Equal values are in the order of their rows.
    """
    by_column = np.ascontiguousarray(shares.T)
    floor: Scores | float = 0.0
    if by_column.shape[1] > count:
        cut = by_column.shape[1] - count
        floor = np.partition(by_column, cut, axis=1)[:, cut : cut + 1]
    column, row = np.nonzero((by_column > 0) & (by_column >= floor))
    order = np.lexsort((row, -by_column[column, row], column))
    borders = np.searchsorted(column, np.arange(len(by_column) + 1)).tolist()
    rows = row[order].tolist()
    return [rows[start : min(stop, start + count)] for start, stop in pairwise(borders)]


def occurrences(keys: Sequence[Numbers], within: Sequence[Numbers]) -> Numbers:
    """How often each key occurs in ``within``."""
    asked, (known, counts) = joined(keys, np.int64), np.unique(joined(within, np.int64), return_counts=True)
    if not len(known):
        return np.zeros(len(asked), np.int64)
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[place] == asked, counts[place], 0)


def last_odd(steps: Sequence[Numbers], until: float) -> Numbers:
    """For each document, its last step up to a moment if that is an odd one (the first, the third, …), else 0.

    There is an array for each step; the steps of a document ascend, and are 0 where there are fewer.
    """
    taken = np.stack(steps)
    passed = (taken != 0) & (taken <= until)
    count = passed.sum(axis=0)
    last = np.where(passed, taken, 0).max(axis=0)
    found: Numbers = np.where(count % 2 == 1, last, 0)
    return found


def joined(parts: Sequence[NDArray[Kind]], kind: type[Kind]) -> NDArray[Kind]:
    return np.concatenate([np.zeros(0, kind), *parts])


def pack_planes(columns: Sequence[Numbers]) -> bytes:
    """These columns, one after the other, each with the lowest bytes of all numbers first, which deflates well."""
    return b"".join(np.ascontiguousarray(_bytes_of(column).T).tobytes() for column in columns)


def unpack_planes(packed: bytes, columns: int, count: int) -> list[Numbers]:
    """The inverse of `pack_planes`. Raises ValueError for another number of bytes."""
    planes = np.frombuffer(packed, np.uint8).reshape(columns, BYTES, count)
    return [np.ascontiguousarray(plane.T).view(_NUMBER).reshape(count).astype(np.int64, copy=False) for plane in planes]


def rows_of(column: Numbers) -> bytes:
    """The numbers one after the other, as signed little-endian numbers of eight bytes."""
    return column.astype(_NUMBER, copy=False).tobytes()


def _bytes_of(column: Numbers) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.ascontiguousarray(column, _NUMBER).view(np.uint8).reshape(len(column), BYTES)
