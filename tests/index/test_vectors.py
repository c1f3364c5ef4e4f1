"""Vectors of signed bytes: exact cosines, even at the limits of a float32."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.index import vectors
from bot.index.vectors import MAX_DIMENSIONS


def exact_cosine(left: bytes, right: bytes) -> float:
    first, second = ([byte - 256 if byte > 127 else byte for byte in vector] for vector in (left, right))
    lengths = sum(x * x for x in first) * sum(x * x for x in second)
    return sum(x * y for x, y in zip(first, second, strict=True)) / sqrt(lengths) if lengths else 0.0


@pytest.mark.slow
@given(st.integers(1, 40).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=2)))
def test_cosines_are_exact(rows: list[bytes]) -> None:
    matrix = vectors.matrix(b"".join(rows), len(rows[0]))
    assert vectors.cosines(matrix, rows[0]).tolist() == [exact_cosine(row, rows[0]) for row in rows]


@pytest.mark.parametrize("length", [1, 128, MAX_DIMENSIONS])
def test_many_long_vectors_give_exact_cosines_too(length: int) -> None:
    rng = Random(length)
    rows = [rng.randbytes(length) for _ in range(700)]
    matrix = vectors.matrix(b"".join(rows), length)
    assert vectors.cosines(matrix, rows[5]).tolist() == [exact_cosine(row, rows[5]) for row in rows]
    assert vectors.cosines(matrix, rows[5], vectors.squares(matrix)).tolist()[5] in (1.0, 0.0)


def test_the_largest_sums_are_exact() -> None:
    lowest, highest = b"\x80" * MAX_DIMENSIONS, b"\x7f" * MAX_DIMENSIONS
    matrix = vectors.matrix(lowest + highest, MAX_DIMENSIONS)
    assert vectors.squares(matrix).tolist() == [128 * 128 * 1024, 127 * 127 * 1024]
    assert vectors.cosines(matrix, lowest).tolist() == [1.0, -1.0]


def test_a_zero_vector_is_similar_to_nothing() -> None:
    matrix = vectors.matrix(b"\0\0\3\4", 2)
    assert vectors.cosines(matrix, b"\3\4").tolist() == [0.0, 1.0]
    assert vectors.cosines(matrix, b"\0\0").tolist() == [0.0, 0.0]


@pytest.mark.slow
@given(st.lists(st.binary(min_size=5, max_size=5)), st.binary(min_size=5, max_size=5), st.integers(0, 20))
def test_the_first_rows_alone_have_the_same_cosines_as_among_all(rows: list[bytes], query: bytes, count: int) -> None:
    matrix = vectors.matrix(b"".join(rows), 5)
    squares = vectors.squares(matrix)
    cosines = vectors.cosines(matrix[:count], query, squares[:count])
    assert cosines.tolist() == vectors.cosines(matrix, query).tolist()[:count]
    assert all(-1 - 1e-15 <= value <= 1 + 1e-15 for value in cosines.tolist())


def test_no_rows_give_no_cosines() -> None:
    assert vectors.cosines(vectors.matrix(b"", 3), b"abc").tolist() == []


def test_bytes_that_are_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="reshape"):
        vectors.matrix(b"12345", 2)
