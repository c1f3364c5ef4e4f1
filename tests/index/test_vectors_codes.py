"""Vectors as codes, and columns of numbers as planes: how close they stay, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.index import arrays, vectors


def rows(count: int, length: int, seed: int = 1) -> vectors.Matrix:
    """Vectors about as similar as those of texts: sums of a few topics."""
    random = np.random.default_rng(seed)
    mixed = random.standard_normal((count, 8)) @ random.standard_normal((8, length))
    mixed += random.standard_normal((count, length))
    return np.rint(mixed / np.abs(mixed).max(axis=1, keepdims=True) * 127).astype(np.int8)


@pytest.mark.parametrize("length", [1, 2, 3, 10, 96])
def test_cosines_of_codes_are_near_those_of_the_vectors(length: int) -> None:
    exact = rows(600, length)
    book = vectors.train_codes(exact)
    codes = vectors.encode_vectors(exact, book)
    squares = vectors.coded_squares(codes, book)
    assert codes.shape == (vectors.groups(length), 600)
    for query in exact[:5]:
        near_cosines = vectors.coded_cosines(codes, book, query.tobytes(), squares)
        assert np.abs(near_cosines - vectors.cosines(exact, query.tobytes())).mean() < 0.04
        assert np.abs(near_cosines).max() <= 1


def test_zero_rows_stay_zero() -> None:
    exact = rows(50, 10)
    exact[[3, 49]] = 0
    book = vectors.train_codes(exact)
    codes = vectors.encode_vectors(exact, book)
    near_cosines = vectors.coded_cosines(codes, book, exact[0].tobytes(), vectors.coded_squares(codes, book))
    assert np.flatnonzero(near_cosines == 0).tolist() == [3, 49]
    assert not vectors.decode_vectors(codes, book, 10)[[3, 49]].any()
    assert not vectors.coded_cosines(codes, book, bytes(10), vectors.coded_squares(codes, book)).any()


def test_a_matrix_of_zeros_can_be_coded() -> None:
    empty = np.zeros((20, 7), np.int8)
    book = vectors.train_codes(empty)
    assert not vectors.decode_vectors(vectors.encode_vectors(empty, book), book, 7).any()


def test_decoded_vectors_are_coded_almost_the_same_again() -> None:
    exact = rows(500, 96)
    book = vectors.train_codes(exact)
    first = vectors.decode_vectors(vectors.encode_vectors(exact, book), book, 96)
    again = vectors.decode_vectors(vectors.encode_vectors(first, book), book, 96)
    assert (np.abs(first.astype(int)).max(axis=1) == 127).all()
    assert np.mean([vectors.cosines(first[n : n + 1], again[n].tobytes())[0] for n in range(500)]) > 0.999


def test_equal_rows_give_equal_codebooks_that_survive_a_round_trip() -> None:
    book = vectors.train_codes(rows(300, 10))
    packed = vectors.pack_book(book)
    assert packed == vectors.pack_book(vectors.train_codes(rows(300, 10)))
    assert len(packed) == 4 * vectors.BOOK_SIZE * vectors.GROUP_WIDTH * 2
    assert np.array_equal(vectors.read_book(packed, 10), book)


@pytest.mark.parametrize("change", [-1, 1, 2])
def test_books_and_codes_of_another_size_are_refused(change: int) -> None:
    with pytest.raises(ValueError, match=r"reshape|buffer size"):
        vectors.read_book(bytes(4 * vectors.BOOK_SIZE * vectors.GROUP_WIDTH * 2 + change), 10)
    with pytest.raises(ValueError, match="reshape"):
        vectors.read_codes(bytes(4 * 9 + change), 10, 9)


NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(NUMBERS, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_columns_survive_the_round_trip_through_planes(columns: list[list[int]]) -> None:
    expected = [np.array(column, np.int64) for column in columns]
    packed = arrays.pack_planes(expected)
    assert len(packed) == arrays.NUMBER_BYTES * sum(map(len, columns))
    unpacked = arrays.unpack_planes(packed, len(columns), len(columns[0]))
    assert [column.tolist() for column in unpacked] == columns
    assert np.frombuffer(arrays.rows_of(unpacked[0]), "<i8").tolist() == columns[0]
    with pytest.raises(ValueError, match="reshape"):
        arrays.unpack_planes(packed + b"\0", len(columns), len(columns[0]))
