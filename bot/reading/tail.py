"""The end of a text that is too long: it tells how something ended."""

from __future__ import annotations

import re

LEFT_OUT = "[…] "
"""Stands where something was cut."""

_SPACE = re.compile(r"\s+")
_WORD = 40


def tail(text: str, most: int, *, is_cut: bool = False) -> str:
    """The last ``most`` characters at most, from the beginning of a word on, and `LEFT_OUT` before them where there was
    more. ``is_cut``: more was there already that is not in ``text``."""
    if len(text) <= most and not is_cut:
        return text
    begin = max(0, len(text) - max(0, most - len(LEFT_OUT)))
    space = _SPACE.search(text, begin, begin + _WORD) if begin and not text[begin - 1].isspace() else None
    return LEFT_OUT + text[space.end() if space else begin :].lstrip()
