"""What a term weighs, in memories of a few threads and of many."""

from __future__ import annotations

import pytest

from bot.index.impacts import SETTLED, idf, smoothed_idf


@pytest.mark.parametrize("total", [SETTLED, SETTLED + 1, 10_000])
def test_of_enough_threads_a_term_weighs_what_they_say(total: int) -> None:
    assert [smoothed_idf(n, total) for n in (0, 1, 40, total)] == [idf(n, total) for n in (0, 1, 40, total)]


def test_of_few_threads_a_term_that_one_holds_is_as_rare_as_in_many() -> None:
    assert {smoothed_idf(1, total) for total in range(1, SETTLED)} == {idf(1, SETTLED)}


@pytest.mark.parametrize("total", range(2, SETTLED))
def test_of_few_threads_too_a_term_weighs_less_the_more_hold_it(total: int) -> None:
    weights = [smoothed_idf(n, total) for n in range(total + 1)]
    assert sorted(weights, reverse=True) == weights
    assert weights[-1] > 0
