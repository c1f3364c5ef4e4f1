"""A chain of duplicates is followed in one way."""

from __future__ import annotations

import pytest

from bot.domain.duplicates import MAX_CHAIN, duplicate_chain

CASES: list[tuple[str, dict[int, int], list[int]]] = [
    ("no duplicate", {}, [1]),
    ("a chain", {1: 2, 2: 3}, [1, 2, 3]),
    ("a circle is left before it begins again", {1: 2, 2: 3, 3: 1}, [1, 2, 3]),
    ("a circle further on", {1: 2, 2: 3, 3: 2}, [1, 2, 3]),
    ("a duplicate of itself", {1: 1}, [1]),
]


@pytest.mark.parametrize(("originals", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_chain_ends_at_the_original(originals: dict[int, int], expected: list[int]) -> None:
    assert duplicate_chain(1, originals.get) == expected


def test_a_long_chain_is_followed_to_a_limit() -> None:
    assert duplicate_chain(0, lambda key: key + 1) == [*range(MAX_CHAIN + 1)]
