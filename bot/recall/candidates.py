"""What a search over many repositories needs from an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.errors import WorldError


class OrganisationUnavailable(WorldError):
    """The index of the organisation is missing, damaged, too slow or of another version. Answers do without it."""


class Candidates(Protocol):
    """The index of one organisation. Every method raises OrganisationUnavailable when the engine fails.

    A derived read model: the memory branches are the source of truth, and `rebuild` restores it from them.
    """

    def exists(self) -> bool:
        """Whether anything was ever written; False again after somebody deleted the whole index."""

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """The ``limit`` best threads by BM25 over ``terms``, best first.

        Only threads of the repositories in ``scope`` that were created before ``before`` (None: all) and still
        exist. An empty scope finds nothing.
        """

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        """The inverse document frequency of each term in the whole organisation, as in `Library.rarity`."""

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        """Write each thread unless a later revision of it is stored. Writing one twice changes nothing.

        One that ``is_gone`` stays as a tombstone without text, so that an older version arriving late cannot revive it.
        """

    def delete(self, repository: int) -> None:
        """Erase all threads of the repository, with their tombstones."""

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
        """Build a new table from these threads and swap it in atomically.

        Until then searches see the old one. Write again whatever was written after the caller read the threads.
        """

    def compact(self, *, purges: bool = False) -> None:
        """Merge small files and remove those that were replaced a while ago, while searches and writes go on.

        ``purges``: erased text must leave the files too; the files this replaces are removed by the next compaction.
        """
