"""Checks that the time to read a text grows linearly with its length."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time


def assert_linear_time(read: Callable[[str], object], piece: str) -> None:
    """Eight times the text takes less than thirty times the time: quadratic code would need sixty-four times."""

    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        start = process_time()
        read(text)
        return process_time() - start

    small, large = (min(seconds(length) for _ in range(3)) for length in (8_192, 65_536))
    assert large < 30 * small + 0.05
