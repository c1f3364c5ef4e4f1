"""Which repositories' threads may be shown in a repository."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from bot.domain.name_patterns import fits
from bot.domain.organisation import Visibility


@dataclass(frozen=True, slots=True)
class Share:
    """A pattern of repositories that agree to show each other's threads although they are private.

    A plain name means only the ``repository`` (GitHub's number) that had it when the pattern was first read, or was the
    first ever to have it; 0 if none did. Whoever takes a name that became free takes over no agreement.
    """

    pattern: str
    repository: int = 0

    def includes(self, other: OrganisationRepository) -> bool:
        return fits(other.name, self.pattern) and ("*" in self.pattern or self.repository == other.id)

    def bound_to(self, repository: int, name: str) -> Share:
        """The share with the meaning of a plain name that had none yet."""
        is_named = self.repository == 0 and self.pattern.lower() == name.lower()
        return replace(self, repository=repository) if is_named else self


@dataclass(frozen=True, slots=True)
class OrganisationRepository:
    """A repository of an organisation; ``id`` is GitHub's number, ``name`` "owner/name".

    ``installation`` is GitHub's number of the App's installation there; ``people`` are the logins that it ignores.
    """

    id: int
    name: str
    installation: int
    visibility: Visibility = Visibility.PRIVATE
    shares: tuple[Share, ...] = ()
    people: tuple[str, ...] = ()


def visible_to(reader: OrganisationRepository, repositories: Iterable[OrganisationRepository]) -> frozenset[int]:
    """Return the numbers of those repositories whose threads may be shown in ``reader``: never its own.

    Everybody who reads it may read public repositories, and internal ones unless it is public itself. A private one is
    shown only if both name each other, and never where the public reads.
    """
    return frozenset(each.id for each in repositories if _is_visible(reader, each))


def _is_visible(reader: OrganisationRepository, other: OrganisationRepository) -> bool:
    if other.id == reader.id or other.installation != reader.installation:
        return False
    if other.visibility is Visibility.PUBLIC:
        return True
    if reader.visibility is Visibility.PUBLIC:
        return False
    if other.visibility is Visibility.INTERNAL:
        return True
    return _shares(reader, other) and _shares(other, reader)


def _shares(repository: OrganisationRepository, other: OrganisationRepository) -> bool:
    return any(share.includes(other) for share in repository.shares)
