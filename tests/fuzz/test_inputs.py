"""The inputs reach planted faults of every kind, and an input that takes too long is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from tests.fuzz import inputs
from tests.fuzz.properties import within_limit

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
"""Some inputs are as long as GitHub accepts."""

TEXTS = inputs.texts(lambda: ["some words", ""], ("{x}",))
THREAD = {"title": "Lost", "comments": [{"id": 1, "body": "x"}]}


def depth(value: Any) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "is_faulty"),
    [
        (TEXTS, lambda text: "\0" in text),
        (TEXTS, lambda text: len(text) > 60_000),
        (TEXTS, lambda text: "{x}some" in text),
        (inputs.lists_of_texts(lambda: [["a", "b"]]), lambda texts: "<" in texts[1]),
        (inputs.binary(lambda: [bytes(9)]), lambda data: b"\xff\xff" in data),
        (inputs.files(lambda: {"a0": b"12", "b": b"34"}), lambda files: "a1" in files),
        (inputs.structures(lambda: [THREAD]), lambda value: value["comments"][0]["id"] is None),
        (inputs.structures(lambda: [THREAD]), lambda value: "title" not in value),
        (inputs.structures(lambda: [THREAD]), lambda value: depth(value["comments"]) > 300),
        (inputs.json_lines(lambda: [json.dumps(THREAD).encode()]), lambda data: b": 1e400" in data),
        (inputs.json_lines(lambda: [json.dumps(THREAD).encode()]), lambda data: b"\\ud800" in data),
    ],
)
def test_a_planted_fault_is_found(strategy: st.SearchStrategy[Any], is_faulty: Callable[[Any], bool]) -> None:
    def fails(value: Any) -> bool:
        try:
            return is_faulty(value)
        except (KeyError, IndexError, TypeError):
            return False

    find(strategy, fails, settings=settings(max_examples=10_000, database=None, phases=[Phase.generate]))


@pytest.mark.slow
def test_an_input_that_takes_too_long_fails_even_if_the_code_catches_all_exceptions() -> None:
    def spin(_: str) -> None:
        try:
            while True:
                pass
        except Exception:  # noqa: BLE001 - as the product does when it reads strangers' bytes
            return

    within_limit(int, (ValueError,), limit=0.02)("x")
    with pytest.raises(AssertionError, match="processor time"):
        within_limit(spin, limit=0.02)("text")
