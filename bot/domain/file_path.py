"""Paths of files as people write them: with more or fewer folders in front, and with either slash."""

from __future__ import annotations


def path_parts(path: str) -> list[str]:
    """Return the folders of a path and its name, without ``.`` and ``..``."""
    return [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]


def end_alike(parts: list[str], other: list[str]) -> bool:
    """Whether both paths, given as their parts, may be the same file: one is the end of the other."""
    shorter, longer = sorted((parts, other), key=len)
    return longer[-len(shorter) :] == shorter
