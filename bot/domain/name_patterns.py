"""Patterns of repository names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fits(name, pattern) for pattern in patterns)


def fits(name: str, pattern: str) -> bool:
    """Whether "owner/name" fits a pattern such as ``octo-org/docs-*``, ignoring case.

    An asterisk stands for any number of characters except slashes; nothing else is special.
    """
    parts, patterns = name.lower().split("/"), pattern.lower().split("/")
    return len(parts) == len(patterns) and all(map(_fits, parts, patterns))


def _fits(text: str, pattern: str) -> bool:
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))
