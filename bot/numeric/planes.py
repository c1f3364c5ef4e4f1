"""Columns of whole numbers byte by byte, the lowest of all numbers first: so they deflate well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bot.numeric.scores import Numbers

BYTES = 8
_NUMBER = np.dtype("<i8")


def pack(columns: Sequence[Numbers]) -> bytes:
    """These columns, one after the other."""
    return b"".join(np.ascontiguousarray(_bytes_of(column).T).tobytes() for column in columns)


def unpack(packed: bytes, columns: int, count: int) -> list[Numbers]:
    """So many columns of ``count`` numbers each. Raises ValueError when it is another number of bytes."""
    planes = np.frombuffer(packed, np.uint8).reshape(columns, BYTES, count)
    return [np.ascontiguousarray(plane.T).view(_NUMBER).reshape(count).astype(np.int64, copy=False) for plane in planes]


def rows_of(column: Numbers) -> bytes:
    """The numbers one after the other, as signed little-endian numbers of eight bytes."""
    return column.astype(_NUMBER, copy=False).tobytes()


def _bytes_of(column: Numbers) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.ascontiguousarray(column, _NUMBER).view(np.uint8).reshape(len(column), BYTES)
