"""Scores as arrays: lists unpacked and added up, the best of them, the strongest terms, counts."""

from array import array
from collections import Counter
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.numeric import scores

FINITE = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(-10, 10))


@pytest.mark.parametrize(("width", "kind"), [(1, "B"), (2, "H"), (4, "I")])
def test_gaps_of_every_width_become_document_numbers(width: int, kind: str) -> None:
    gaps = [3, 1, 250, 7]
    assert scores.documents(array(kind, gaps).tobytes(), width).tolist() == list(accumulate(gaps))


def test_gaps_do_not_overflow() -> None:
    largest = 0xFFFFFFFF
    assert scores.documents(array("I", [largest] * 3).tobytes(), 4).tolist() == [largest, 2 * largest, 3 * largest]


def test_bytes_that_are_no_gaps_are_refused() -> None:
    with pytest.raises(KeyError):
        scores.documents(b"abc", 3)
    with pytest.raises(ValueError, match="size"):
        scores.documents(b"abc", 2)


def test_lists_add_up() -> None:
    total = scores.zeros(4)
    gains = scores.gains(2.0, (0.0, 0.25, 0.5))
    scores.add(total, scores.as_numbers([0, 2]), scores.levels(b"\1\2"), gains)
    scores.add(total, scores.as_numbers([2, 3]), scores.levels(b"\2\1"), gains)
    assert total.tolist() == [0.5, 0.0, 2.0, 0.5]


@pytest.mark.parametrize(("document", "level"), [(4, b"\1"), (0, b"\2"), (0, b"\xff")])
def test_a_document_or_a_level_that_is_not_there_is_refused(document: int, level: bytes) -> None:
    with pytest.raises(IndexError):
        scores.add(scores.zeros(4), scores.as_numbers([document]), scores.levels(level), scores.gains(1.0, (0.0, 1.0)))


def test_what_was_gained_is_told_for_chosen_documents() -> None:
    at, gains = scores.as_numbers([1, 4, 6]), scores.gains(1.0, (0.0, 0.25, 0.5))
    found = scores.gained(at, scores.levels(b"\1\2\1"), gains, scores.as_numbers([0, 1, 4, 5, 9]))
    assert found.tolist() == [0.0, 0.25, 0.5, 0.0, 0.0]


def test_hidden_documents_are_not_counted() -> None:
    assert scores.frequency(scores.as_numbers([0, 2, 3]), scores.flags(4, [1, 3])) == 2
    assert scores.frequency(scores.as_numbers([0, 2, 3]), scores.flags(4, [])) == 3


def test_the_best_come_with_all_that_equal_the_last_of_them() -> None:
    values = np.array([1.0, 3.0, 2.0, 2.0, 0.0, 5.0])
    assert scores.best(values, 2) == [5, 1]
    assert scores.best(values, 3) == [5, 1, 2, 3]
    assert scores.best(values, 100, above=0.0) == [5, 1, 2, 3, 0]
    assert scores.best(values, 0) == scores.best(scores.zeros(0), 3) == []


@given(st.lists(FINITE), st.integers(0, 20), FINITE)
def test_the_best_are_those_that_sorting_gives(values: list[float], count: int, above: float) -> None:
    good = sorted((place for place, value in enumerate(values) if value > above), key=lambda place: -values[place])
    floor = values[good[:count][-1]] if count and good else float("inf")
    assert scores.best(np.array(values, float), count, above) == [place for place in good if values[place] >= floor]


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=3, max_size=3), max_size=12))
def test_the_strongest_rows_of_each_column_are_those_that_sorting_gives(rows: list[list[float]]) -> None:
    shares = np.array(rows, float).reshape(len(rows), 3)
    expected = [
        sorted((row for row in range(len(rows)) if rows[row][column] > 0), key=lambda row: (-rows[row][column], row))[
            :4
        ]
        for column in range(3)
    ]
    assert scores.strongest(shares, 4) == expected


def test_nothing_is_strongest_where_there_is_nothing() -> None:
    assert scores.strongest(scores.zeros(0, 2), 3) == [[], []]
    assert scores.strongest(scores.zeros(2, 0), 3) == []


@given(st.lists(st.lists(st.integers(-3, 3))), st.lists(st.lists(st.integers(-3, 3))))
def test_occurrences_are_counted_over_all_parts(keys: list[list[int]], within: list[list[int]]) -> None:
    counted = Counter(number for part in within for number in part)
    found = scores.occurrences([*map(scores.as_numbers, keys)], [*map(scores.as_numbers, within)])
    assert found == [counted[key] for part in keys for key in part]


def test_numbers_and_ends_are_read_as_they_are_written() -> None:
    assert scores.numbers(array("q", [-1, 1 << 62]).tobytes()).tolist() == [-1, 1 << 62]
    assert scores.ends(array("I", [2, 0, 0xFFFFFFFF]).tobytes()).tolist() == [2, 2, 2 + 0xFFFFFFFF]
    with pytest.raises(ValueError, match="size"):
        scores.numbers(b"1234567")


@pytest.mark.parametrize(("values", "expected"), [([], True), ([1], True), ([1, 1, 2], True), ([1, 2, 1], False)])
def test_what_is_ascending_is_seen(values: list[int], expected: bool) -> None:
    assert scores.is_ascending(scores.as_numbers(values)) is expected
