"""Patterns of repository names."""

from __future__ import annotations

from collections.abc import Sequence


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fits(name, pattern) for pattern in patterns)


def fits(name: str, pattern: str) -> bool:
    """Whether "owner/name" fits a pattern such as ``octo-org/docs-*``, ignoring case.

    An asterisk stands for any number of characters except slashes; nothing else is special. The time is at most
    proportional to the length of the name times that of the pattern.
    """
    parts, patterns = name.lower().split("/"), pattern.lower().split("/")
    return len(parts) == len(patterns) and all(map(_fits, parts, patterns))


def _fits(text: str, pattern: str) -> bool:
    first, *middle = pattern.split("*")
    if not middle:
        return text == first
    last = middle.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    start, end = len(first), len(text) - len(last)
    for piece in middle:  # the leftmost match leaves the most room for the others, so no other need be tried
        position = text.find(piece, start, end)
        if position < 0:
            return False
        start = position + len(piece)
    return True
