"""The table is complete: each pair of a call and a fault has one rule, and stand-ins for others are played."""

from __future__ import annotations

from collections import Counter
from itertools import product

from tests.faults.calls import CALLS, FAULTS
from tests.faults.page import pages
from tests.faults.table import SAME, cells_to_play, rules


def test_each_pair_of_a_call_and_a_fault_has_exactly_one_rule() -> None:
    counts = Counter(pair for _, rule in rules() for pair in rule.pairs)
    assert {pair: count for pair, count in counts.items() if count > 1} == {}
    assert set(product(CALLS, FAULTS)) ^ set(counts) == set()


def test_a_fault_that_stands_for_another_is_played_itself() -> None:
    stand_ins = {(call, rule.like) for _, rule in rules() if rule.like for call, _ in rule.pairs}
    assert {pair for pair in stand_ins - cells_to_play().keys() if pair[1] != SAME} == set()


def test_the_pages_match_the_tables() -> None:
    assert {page: page.read_text(encoding="utf-8") for page in pages()} == pages()
