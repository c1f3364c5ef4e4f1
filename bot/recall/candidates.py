"""What a search over many repositories needs of an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import ThreadId
from bot.errors import WorldError


class OrganisationUnavailable(WorldError):
    """The index of the organisation is missing, damaged, too slow, or of another version. Answers go on without it."""


class Candidates(Protocol):
    """The index of one organisation. Every method raises OrganisationUnavailable when the engine fails.

    A derived read model: the memory branches are the truth, and `rebuild` makes it from them.
    """

    def exists(self) -> bool:
        """Whether anything was ever written: False again when somebody deleted the whole index."""

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """The ``limit`` best threads by BM25 over ``terms``, best first.

        Only threads of the repositories in ``scope`` that were created before ``before`` (None: all) and are not
        gone. An empty scope finds nothing.
        """

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        """The inverse document frequency of each term in the whole organisation, as `Library.rarity` has it."""

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        """Write threads, each unless one of a later revision is stored. Writing one twice changes nothing.

        One that ``is_gone`` stays as a tombstone without text, so that a late earlier version does not return.
        """

    def delete(self, repository: int, ids: Collection[ThreadId] | None = None) -> None:
        """Erase threads, None for all of the repository, with their tombstones."""

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
        """Make a new table of these threads and let it replace the present one at once.

        Searches meanwhile see the old one. Write again what was written after the caller read the threads.
        """

    def compact(self, *, purges: bool = False) -> None:
        """Merge small files, and remove those that were replaced a while ago. Searches and writes go on meanwhile.

        ``purges``: what was erased has to leave the files; then files that it replaced leave with the next compaction.
        """
