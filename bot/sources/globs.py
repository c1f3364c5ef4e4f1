"""Which paths of a repository a setting names: ``*`` within a folder, ``**`` across folders, capitals or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase


class Globs:
    """Some patterns such as ``docs/**/*.md``. Time grows with the length of path and pattern, not faster."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [pattern.casefold().split("/") for pattern in patterns]

    def match(self, path: str) -> bool:
        """Whether a pattern names this file."""
        parts = path.casefold().split("/")
        return any(len(steps) in _reached(parts, steps) for steps in self._patterns)

    def lead(self, folder: str) -> bool:
        """Whether a file below this folder could match."""
        parts = folder.casefold().split("/")
        return any(min(_reached(parts, steps), default=len(steps)) < len(steps) for steps in self._patterns)


def _reached(parts: Sequence[str], steps: Sequence[str]) -> set[int]:
    """How many steps of a pattern may be done once all parts of a path were taken."""
    places = _skipped({0}, steps)
    for part in parts:
        taken = set()
        for place in places:
            if place < len(steps) and steps[place] == "**":
                taken.add(place)
            elif place < len(steps) and fnmatchcase(part, steps[place]):
                taken.add(place + 1)
        places = _skipped(taken, steps)
    return places


def _skipped(places: set[int], steps: Sequence[str]) -> set[int]:
    """These places and those behind a ``**``, which may stand for no folder at all."""
    found = set(places)
    for place, step in enumerate(steps):
        if step == "**" and place in found:
            found.add(place + 1)
    return found
