"""Vectors of signed bytes, plain and as codes.

A code is a byte that stands for three consecutive numbers: a third of the size, for a cosine that is off by .016.
This is product quantisation (H. Jégou, M. Douze, C. Schmid, "Product quantization for nearest neighbor search", IEEE
PAMI 33, 2011): the directions are cut into groups of GROUP_WIDTH numbers, and each group has its own book of the
BOOK_SIZE points that are nearest to most values. The first point of each group is zero, so that a row of zeros stays
one. Codes are stored by group: an array of groups x rows.

All sums over plain vectors are exact: no partial sum of at most 1,024 products of two bytes exceeds 2²⁴, up to which a
float32 holds every whole number. So a cosine depends neither on the machine nor on the order of additions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bot.index.arrays import Scores

GROUP_WIDTH = 3
BOOK_SIZE = 256

Codes = NDArray[np.uint8]
Book = NDArray[np.float32]
"""Groups x BOOK_SIZE x GROUP_WIDTH numbers in -1..1."""

_SAMPLE_ROWS = 4_096
_ROUNDS = 8
_CHUNK_ROWS = 4_096
_BOOK_SCALE = 32_767
_BOOK_DTYPE = np.dtype("<i2")


def groups(length: int) -> int:
    return -(-length // GROUP_WIDTH)


def train_codes(rows: Matrix) -> Book:
    """A code book for these rows, trained on a sample of them; the same rows give the same book."""
    nonzero = np.flatnonzero(rows.any(axis=1))
    sample = _directions(rows[nonzero[:: max(1, len(nonzero) // _SAMPLE_ROWS)]])
    random = np.random.default_rng(0)
    book = np.zeros((sample.shape[0], BOOK_SIZE, GROUP_WIDTH), np.float32)
    for group, points in enumerate(sample if sample.shape[1] else ()):
        book[group, 1:] = _centres(points, points[random.integers(0, len(points), BOOK_SIZE - 1)])
    return read_book(pack_book(book), rows.shape[1])


def encode_vectors(rows: Matrix, book: Book) -> Codes:
    codes = np.empty((len(book), len(rows)), np.uint8)
    for start in range(0, len(rows), _CHUNK_ROWS):
        for group, points in enumerate(_directions(rows[start : start + _CHUNK_ROWS])):
            codes[group, start : start + _CHUNK_ROWS] = _nearest(points, book[group])
    return codes


def decode_vectors(codes: Codes, book: Book, length: int) -> Matrix:
    """Rows in these directions, scaled so that the largest number is ±127; zeros where all codes are zero."""
    rows = np.empty((codes.shape[1], length), np.int8)
    for start in range(0, len(rows), _CHUNK_ROWS):
        part = codes[:, start : start + _CHUNK_ROWS]
        wide = np.stack([points[group_codes] for points, group_codes in zip(book, part, strict=True)], axis=1)
        flat = wide.reshape(part.shape[1], -1)[:, :length]
        largest = np.abs(flat).max(axis=1, keepdims=True, initial=0.0)
        rows[start : start + _CHUNK_ROWS] = np.rint(flat / np.maximum(largest, 1e-9) * 127)
    return rows


def coded_squares(codes: Codes, book: Book) -> Squares:
    """The squared length of the vector behind each row of codes."""
    return _sum_lookups(codes, np.einsum("gsw,gsw->gs", book, book))


def coded_cosines(codes: Codes, book: Book, vector: bytes, squared: Squares) -> Scores:
    """The cosine (-1..1) of each coded row with ``vector``; 0 where either is all zeros."""
    query = np.zeros(len(book) * GROUP_WIDTH, np.float32)
    query[: len(vector)] = np.frombuffer(vector, np.int8)
    dots = _sum_lookups(codes, np.einsum("gsw,gw->gs", book, query.reshape(-1, GROUP_WIDTH)))
    lengths = np.sqrt(squared.astype(np.float64) * float(query @ query))
    result: Scores = np.divide(dots, lengths, out=np.zeros(len(dots)), where=lengths > 0)
    return np.clip(result, -1.0, 1.0, out=result)


def pack_book(book: Book) -> bytes:
    """A code book as signed little-endian numbers of two bytes."""
    return np.rint(np.clip(book, -1, 1) * _BOOK_SCALE).astype(_BOOK_DTYPE).tobytes()


def read_book(packed: bytes, length: int) -> Book:
    """The code book for vectors of this length; the first point of each group is zero. Raises ValueError."""
    book = np.frombuffer(packed, _BOOK_DTYPE).reshape(groups(length), BOOK_SIZE, GROUP_WIDTH).astype(
        np.float32
    ) / np.float32(_BOOK_SCALE)
    book[:, 0] = 0
    return book


def read_codes(packed: bytes, length: int, count: int) -> Codes:
    """The codes of ``count`` rows. Raises ValueError for a wrong number of bytes."""
    return np.frombuffer(packed, np.uint8).reshape(groups(length), count)


def _directions(rows: Matrix) -> NDArray[np.float32]:
    """The rows scaled to a length of 1, as groups x rows x GROUP_WIDTH."""
    wide = np.zeros((len(rows), groups(rows.shape[1]) * GROUP_WIDTH), np.float32)
    wide[:, : rows.shape[1]] = rows
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), np.float32(1e-9))
    return np.ascontiguousarray(wide.reshape(len(rows), groups(rows.shape[1]), GROUP_WIDTH).transpose(1, 0, 2))


def _centres(points: NDArray[np.float32], start: NDArray[np.float32]) -> NDArray[np.float32]:
    """Lloyd's algorithm starting from these points; a centre without nearest points stays where it is."""
    centres = start.copy()
    for _ in range(_ROUNDS):
        near = _nearest(points, centres)
        count = np.bincount(near, minlength=len(centres))
        for part in range(GROUP_WIDTH):
            total = np.bincount(near, points[:, part], len(centres))
            centres[:, part] = np.where(count > 0, total / np.maximum(count, 1), centres[:, part])
    return centres


def _nearest(points: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.intp]:
    nearest: NDArray[np.intp] = np.argmax(points @ centres.T - np.einsum("sw,sw->s", centres, centres) / 2, axis=1)
    return nearest


def _sum_lookups(codes: Codes, table: NDArray[np.float32]) -> Squares:
    sums = np.zeros(codes.shape[1], np.float32)
    for group, values in zip(codes, table, strict=True):
        sums += values[group]
    return sums


# -- plain -------------------------------------------------------------------------------------------------------

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
