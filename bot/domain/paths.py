"""Compares paths of files as people write them: with more or fewer folders in front, and with either slash."""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"[\\/]")


def path_parts(path: str) -> list[str]:
    """The folders and the name of a file, in small letters."""
    return [part for part in _SEPARATOR.split(path.casefold()) if part not in {"", ".", ".."}]


def end_alike(parts: list[str], others: list[str]) -> bool:
    """Whether two paths may be of one file: one is the end of the other. None is the end of a path without parts."""
    shorter, longer = sorted((parts, others), key=len)
    return bool(shorter) and longer[-len(shorter) :] == shorter
