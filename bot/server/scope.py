"""Which repositories the server works on, and which ones it only observes: patterns that the operator gives."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

EXCLUDED = "the repository is excluded"
"""Why a delivery is dropped."""


@dataclass(frozen=True, slots=True)
class RepositoryScope:
    """Patterns of "owner/name". ``exclude`` wins over ``include``; an empty ``include`` means all repositories.

    Repositories in ``observed`` are remembered, and nothing is written there but the memory branch.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()

    def includes(self, name: str) -> bool:
        """Whether the server works on this repository. An unknown name, "", is left to whoever knows it later."""
        if not name:
            return True
        return (not self.include or fits_any(name, self.include)) and not fits_any(name, self.exclude)

    def observes(self, name: str) -> bool:
        """Whether nothing is written there but the memory branch."""
        return fits_any(name, self.observed)

    @property
    def digest(self) -> str:
        """A short text that changes with the patterns that say which repositories are worked on."""
        return hashlib.sha256(repr((self.include, self.exclude)).encode()).hexdigest()[:16]


EVERYTHING = RepositoryScope()
"""All repositories, none of them only observed."""


def fits_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether the name fits one of the patterns."""
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
