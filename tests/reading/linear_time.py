"""Checks that the time to read a text grows linearly with its length."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time

from bot.reading.markdown import read as read_markdown

LENGTHS = (2_048, 16_384)
FLOOR = 0.015
"""Seconds for the longer text below which a measurement means nothing."""

TRIES = 4
"""Times that both texts are read again before the longer one counts as too slow."""


def assert_linear_time(read: Callable[[str], object], *pieces: str) -> None:
    """Reading any one of these pieces, repeated, takes linear time."""
    slow = {piece: too_slow(read, lambda length, piece=piece: (piece * length)[:length]) for piece in pieces}
    assert not any(slow.values()), slow


def too_slow(
    read: Callable[[str], object],
    text_of: Callable[[int], str],
    lengths: tuple[int, int] = LENGTHS,
    floor: float = FLOOR,
) -> str:
    """The seconds for a text of each length if they grow faster than linearly, otherwise nothing.

    The bound lies halfway between linear and quadratic: a text eight times as long may take 23 times the time. Other
    work on the machine can make either look slower than it is, so what seems too slow is measured again.
    """
    small, large = map(text_of, lengths)
    bound = (lengths[1] / lengths[0]) ** 1.5
    took, baseline = seconds(read, large), 0.0
    for _ in range(TRIES):
        if took < max(floor, bound * baseline):
            return ""
        baseline = max(baseline, min(seconds(read, small) for _ in range(2)))
        took = min(took, seconds(read, large))
    return "" if took < max(floor, bound * baseline) else f"{baseline:.3f} s, then {took:.3f} s"


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor seconds without the garbage collector, whose pauses grow with all that this process holds."""
    read_markdown.cache_clear()  # a text that is read again is measured again
    gc.disable()
    try:
        start = process_time()
        read(text)
        return process_time() - start
    finally:
        gc.enable()
