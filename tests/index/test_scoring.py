"""The weight of a term in memories with few and with many threads."""

from __future__ import annotations

import pytest

from bot.index.scoring import MIN_RELIABLE_DOCUMENTS, smoothed_idf
from bot.ranking.rarity import idf


@pytest.mark.parametrize("total", [MIN_RELIABLE_DOCUMENTS, MIN_RELIABLE_DOCUMENTS + 1, 10_000])
def test_with_enough_threads_the_weight_is_the_plain_idf(total: int) -> None:
    assert [smoothed_idf(n, total) for n in (0, 1, 40, total)] == [idf(n, total) for n in (0, 1, 40, total)]


def test_with_few_threads_a_term_in_one_of_them_is_as_rare_as_in_many() -> None:
    assert {smoothed_idf(1, total) for total in range(1, MIN_RELIABLE_DOCUMENTS)} == {idf(1, MIN_RELIABLE_DOCUMENTS)}


@pytest.mark.parametrize("total", range(2, MIN_RELIABLE_DOCUMENTS))
def test_with_few_threads_a_term_weighs_less_the_more_threads_hold_it(total: int) -> None:
    weights = [smoothed_idf(n, total) for n in range(total + 1)]
    assert sorted(weights, reverse=True) == weights
    assert weights[-1] > 0
