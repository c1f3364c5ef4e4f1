"""Which repositories the server works on, and which ones it only observes: patterns that the operator gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.domain.name_patterns import fits_any

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


ALL_REPOSITORIES = RepositoryScope()
"""All repositories, none of them only observed."""
