"""Checks that the time to read a text grows linearly with its length."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time


def assert_linear_time(read: Callable[[str], object], *pieces: str) -> None:
    """Texts made of any one of these pieces take time in proportion to their length."""
    assert [piece for piece in pieces if not _takes_linear_time(read, piece)] == []


def _takes_linear_time(read: Callable[[str], object], piece: str) -> bool:
    """Eight times the text takes less than thirty times the time: quadratic code would need sixty-four times.

    One look at short texts is enough for nearly every reader. It is as strict, since what is quadratic is a smaller
    part of a shorter text's time; only a reader that it suspects, often because of something else that ran meanwhile,
    is measured again, with longer texts.
    """

    def seconds(length: int) -> float:
        return _seconds(read, (piece * length)[:length])

    if seconds(16_384) < 16 * seconds(2_048) + 0.002:
        return True
    small, large = (min(seconds(length) for _ in range(3)) for length in (8_192, 65_536))
    return large < 30 * small + 0.05


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = process_time()
    read(text)
    return process_time() - start
