"""Compares paths of files as people write them: with more or fewer folders in front, and with either slash."""

from __future__ import annotations

import re

_SEPARATOR = re.compile(r"[\\/]")


def path_parts(path: str) -> list[str]:
    """The folders and the name of a file, as they are written, without ``.`` and ``..``."""
    return [part for part in _SEPARATOR.split(path) if part not in ("", ".", "..")]


def end_alike(parts: list[str], others: list[str]) -> bool:
    """Whether two paths may be of one file: one is the end of the other, whatever the case of letters.

    None is the end of a path without parts.
    """
    shorter, longer = sorted((parts, others), key=len)
    ends = zip(shorter, longer[-len(shorter) :], strict=False)
    return bool(shorter) and all(one.casefold() == other.casefold() for one, other in ends)
