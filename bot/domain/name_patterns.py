"""Patterns of repository names."""

from __future__ import annotations

from collections.abc import Sequence


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fits(name, pattern) for pattern in patterns)


def fits(name: str, pattern: str) -> bool:
    """Whether "owner/name" fits a pattern such as ``octo-org/docs-*``, in upper or lower case.

    An asterisk stands for any characters except a slash, also for none; nothing else is special. The time grows with
    the length of the name times that of the pattern at most, whatever they are.
    """
    parts, patterns = name.lower().split("/"), pattern.lower().split("/")
    return len(parts) == len(patterns) and all(map(_fits, parts, patterns))


def _fits(text: str, pattern: str) -> bool:
    first, *between = pattern.split("*")
    if not between:
        return text == first
    last = between.pop()
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in between:  # the leftmost place leaves the most for the others, so no other has to be tried
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
