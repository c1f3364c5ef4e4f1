"""Lists as arrays: unpacking, counting, and choosing the best and the strongest."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.index import arrays


def numbers(values: Iterable[int]) -> arrays.Numbers:
    return np.fromiter(values, np.int64)


def flags(count: int, raised: Sequence[int]) -> arrays.Flags:
    return np.isin(range(count), raised)


FINITE = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(-10, 10))


@pytest.mark.parametrize(("width", "kind"), [(1, "B"), (2, "H"), (4, "I")])
def test_gaps_of_every_width_become_document_numbers(width: int, kind: str) -> None:
    gaps = [3, 1, 250, 7]
    assert arrays.document_numbers(array(kind, gaps).tobytes(), width).tolist() == list(accumulate(gaps))


def test_gaps_do_not_overflow() -> None:
    largest = 0xFFFFFFFF
    assert arrays.document_numbers(array("I", [largest] * 3).tobytes(), 4).tolist() == [
        largest,
        2 * largest,
        3 * largest,
    ]


def test_bytes_that_are_no_gaps_are_refused() -> None:
    with pytest.raises(KeyError):
        arrays.document_numbers(b"abc", 3)
    with pytest.raises(ValueError, match="size"):
        arrays.document_numbers(b"abc", 2)


def test_gains_are_looked_up_for_the_given_documents() -> None:
    at, gains = numbers([1, 4, 6]), np.array([0.0, 0.25, 0.5])
    result = arrays.gains_for(at, np.array([1, 2, 1], np.uint8), gains, numbers([0, 1, 4, 5, 9]))
    assert result.tolist() == [0.0, 0.25, 0.5, 0.0, 0.0]


def test_the_best_include_all_that_tie_with_the_last() -> None:
    values = np.array([1.0, 3.0, 2.0, 2.0, 0.0, 5.0])
    assert arrays.best(values, 2) == [5, 1]
    assert arrays.best(values, 3) == [5, 1, 2, 3]
    assert arrays.best(values, 100, above=0.0) == [5, 1, 2, 3, 0]
    assert arrays.best(values, 0) == arrays.best(np.zeros(0), 3) == []


@given(st.lists(FINITE), st.integers(0, 20), FINITE)
def test_the_best_are_those_that_sorting_gives(values: list[float], count: int, above: float) -> None:
    good = sorted(
        (position for position, value in enumerate(values) if value > above), key=lambda position: -values[position]
    )
    floor = values[good[:count][-1]] if count and good else float("inf")
    assert arrays.best(np.array(values, float), count, above) == [
        position for position in good if values[position] >= floor
    ]


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=3, max_size=3), max_size=12))
def test_the_strongest_rows_of_each_column_are_those_that_sorting_gives(rows: list[list[float]]) -> None:
    shares = np.array(rows, float).reshape(len(rows), 3)
    expected = [
        sorted((row for row in range(len(rows)) if rows[row][column] > 0), key=lambda row: (-rows[row][column], row))[
            :4
        ]
        for column in range(3)
    ]
    assert arrays.strongest(shares, 4) == expected


def test_an_empty_matrix_has_no_strongest_rows() -> None:
    assert arrays.strongest(np.zeros((0, 2)), 3) == [[], []]
    assert arrays.strongest(np.zeros((2, 0)), 3) == []


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(-3, 3))), st.lists(st.lists(st.integers(-3, 3))))
def test_occurrences_are_counted_over_all_parts(keys: list[list[int]], within: list[list[int]]) -> None:
    counted = Counter(number for part in within for number in part)
    result = arrays.occurrences([*map(numbers, keys)], [*map(numbers, within)])
    assert result.tolist() == [counted[key] for part in keys for key in part]


def test_numbers_are_read_as_they_are_written() -> None:
    assert arrays.numbers(array("q", [-1, 1 << 62]).tobytes()).tolist() == [-1, 1 << 62]
    with pytest.raises(ValueError, match="size"):
        arrays.numbers(b"1234567")


STEPS = st.lists(st.one_of(st.just(0), st.integers(1, 9)), min_size=4, max_size=4)


def steps(*documents: list[int]) -> list[arrays.Numbers]:
    """The columns of documents, each of which has four steps."""
    return [numbers(column) for column in zip(*documents, strict=True)]


def test_the_last_step_is_returned_if_it_is_odd_and_zero_if_it_is_even() -> None:
    result = {until: arrays.last_odd(steps([2, 5, 7, 0], [0, 0, 0, 0]), until).tolist() for until in range(9)}
    assert {until: first for until, [first, _] in result.items()} == {
        **dict.fromkeys((0, 1), 0),
        **dict.fromkeys((2, 3, 4), 2),
        **dict.fromkeys((5, 6), 0),
        **dict.fromkeys((7, 8), 7),
    }
    assert {second for _, second in result.values()} == {0}


def test_a_step_at_the_moment_counts_and_one_later_in_its_second_does_not() -> None:
    assert arrays.last_odd(steps([4, 0, 0, 0]), 4.0).tolist() == [4]
    assert arrays.last_odd(steps([4, 0, 0, 0]), 3.999).tolist() == [0]


@given(st.lists(st.lists(st.integers(1, 9), max_size=4).map(sorted)), st.integers(0, 10))
def test_the_last_odd_step_is_the_one_that_counting_finds(documents: list[list[int]], until: int) -> None:
    passed = [[step for step in document_steps if step <= until] for document_steps in documents]
    result = arrays.last_odd(
        steps(*(document_steps + [0] * (4 - len(document_steps)) for document_steps in documents), [0] * 4), until
    )
    assert result.tolist() == [*(document_steps[-1] if len(document_steps) % 2 else 0 for document_steps in passed), 0]


@given(STEPS, st.integers(0, 10), st.integers(1, 9))
def test_later_steps_change_nothing(document_steps: list[int], until: int, later: int) -> None:
    first = sorted(step for step in document_steps if step and step <= until)
    then = first + [0] * (4 - len(first))
    now = (first + [until + later] * 4)[:4]
    assert arrays.last_odd(steps(then), until).tolist() == arrays.last_odd(steps(now), until).tolist()


def test_steps_of_any_value_and_order_give_an_answer() -> None:
    lowest, highest = -(1 << 63), (1 << 63) - 1
    result = arrays.last_odd(steps([lowest, highest, 3, 1], [-1, 0, 0, 0], [highest] * 4), 5)
    assert result.tolist() == [3, 0, 0]


def test_parts_are_joined_in_their_order() -> None:
    assert arrays.join_arrays([np.zeros(1), np.array([2.0])], np.float64).tolist() == [0.0, 2.0]
    assert arrays.join_arrays([flags(2, [1]), flags(1, [])], np.bool_).tolist() == [False, True, False]
    assert arrays.join_arrays([numbers([1 << 62]), numbers([])], np.int64).tolist() == [1 << 62]
    assert [arrays.join_arrays([], kind).dtype for kind in (np.float64, np.bool_, np.int64)] == [
        np.float64,
        np.bool_,
        np.int64,
    ]
    assert len(arrays.join_arrays([], np.int64)) == 0
