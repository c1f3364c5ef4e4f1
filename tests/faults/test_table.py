"""The table is whole: each pair of a call and a fault has one rule, and what stands for another is played itself."""

from __future__ import annotations

from collections import Counter
from itertools import product

from tests.faults.calls import CALLS, FAULTS
from tests.faults.page import pages
from tests.faults.table import SAME, played, rules


def test_each_pair_of_a_call_and_a_fault_has_exactly_one_rule() -> None:
    found = Counter(pair for _, rule in rules() for pair in rule.pairs)
    assert {pair: count for pair, count in found.items() if count > 1} == {}
    assert set(product(CALLS, FAULTS)) ^ set(found) == set()


def test_what_stands_for_another_fault_is_played() -> None:
    alike = {(call, rule.like) for _, rule in rules() if rule.like for call, _ in rule.pairs}
    assert {pair for pair in alike - played().keys() if pair[1] != SAME} == set()


def test_the_pages_are_what_the_tables_say() -> None:
    assert {page: page.read_text(encoding="utf-8") for page in pages()} == pages()
