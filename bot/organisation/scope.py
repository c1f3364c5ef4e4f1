"""Which repositories' threads may be shown in a repository."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bot.domain.name_patterns import fits_any
from bot.domain.organisation import Visibility


@dataclass(frozen=True, slots=True)
class OrganisationRepository:
    """A repository of an organisation; ``id`` is GitHub's number, ``name`` "owner/name".

    ``installation`` is GitHub's number of the App's installation there. ``shares`` are its patterns of repositories
    that may show its threads although it is private, and whose threads it may show.
    """

    id: int
    name: str
    installation: int
    visibility: Visibility = Visibility.PRIVATE
    shares: tuple[str, ...] = ()
    is_gone: bool = False


def visible_to(reader: OrganisationRepository, repositories: Iterable[OrganisationRepository]) -> frozenset[int]:
    """Return the numbers of those repositories whose threads may be shown in ``reader``: never its own.

    Everybody who reads it may read public repositories, and internal ones unless it is public itself. A private one is
    shown only if both name each other, and never where the public reads.
    """
    return frozenset(each.id for each in repositories if _is_visible(reader, each))


def _is_visible(reader: OrganisationRepository, other: OrganisationRepository) -> bool:
    if other.is_gone or reader.is_gone or other.id == reader.id or other.installation != reader.installation:
        return False
    if other.visibility is Visibility.PUBLIC:
        return True
    if reader.visibility is Visibility.PUBLIC:
        return False
    if other.visibility is Visibility.INTERNAL:
        return True
    return fits_any(other.name, reader.shares) and fits_any(reader.name, other.shares)
