"""Guards the organisation's index: rests after a failure, reports trouble once, and counts searches."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from bot.domain.organisation import FoundThread, OrganisationThread
from bot.errors import WorldError
from bot.recall.candidates import Candidates, OrganisationUnavailable
from bot.server.log import catch_error
from bot.server.model import Counters

COOLDOWN_SECONDS = 30.0
"""Seconds after a failure during which the index is not used, so that nobody waits for it."""

REPAIR_AFTER = 300.0
"""Seconds of failures, other than timeouts, after which the index counts as damaged."""

DOWN_SECONDS = 120.0
"""Seconds after its last failure during which the index counts as down, unless it has answered since."""

INDEX_UP = "index_up"
"""The field in a worker's heartbeats, 1 or 0."""

SEARCHES_METRIC = "precedent_organisation_searches_total"
"""Labels: the result: found, nothing, failed, or resting."""

log = logging.getLogger(__name__)

T = TypeVar("T")

Use = Literal["search", "write"]
"""How an index is used. One use may work while the other fails, so each rests and recovers separately.
"""


@dataclass(slots=True)
class _FailureStreak:
    """Consecutive failures of one use of an index. Times are monotonic; ``since`` is for those a rebuild may repair."""

    until: float
    last: float
    since: float | None


class OrganisationGuard:
    """The indexes of all installations, as one process sees them. Safe for several threads.

    ``open_index`` opens the index of an installation, ``count`` adds to counters.
    """

    def __init__(
        self,
        open_index: Callable[[int], Candidates],
        count: Callable[[Counters], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = open_index
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._indexes: dict[int, Candidates] = {}
        self._troubles: dict[tuple[int, Use], _FailureStreak] = {}
        self._writes = Counter[int]()

    def index(self, installation: int) -> GuardedCandidates:
        """The index of an installation. It is opened at its first use."""
        return GuardedCandidates(self, installation)

    @property
    def is_up(self) -> bool:
        """Whether every index that failed lately has answered since."""
        with self._lock:
            return all(self._clock() - each.last > DOWN_SECONDS for each in self._troubles.values())

    def is_damaged(self, installation: int) -> bool:
        """Whether the index has failed for so long that it may need a rebuild."""
        with self._lock:
            troubles = [trouble for (number, _), trouble in self._troubles.items() if number == installation]
        return any(trouble.since is not None and trouble.last - trouble.since >= REPAIR_AFTER for trouble in troubles)

    def write_count(self, installation: int) -> int:
        """How often this process wrote to an index since it compacted it."""
        return self._writes[installation]

    def count_write(self, installation: int, *, compacted: bool = False) -> None:
        """Count a write; a compaction resets the count."""
        with self._lock:
            self._writes[installation] = 0 if compacted else self._writes[installation] + 1

    def call(self, installation: int, use: Use, operation: Callable[[Candidates], T], *heals: Use) -> T:
        """Run an operation on an index. Raises OrganisationUnavailable if it fails, and at once while it rests.

        ``heals``: the uses whose trouble ends with a success.
        """
        answer: list[T] = []
        with self._lock:
            trouble = self._troubles.get((installation, use))
            if trouble and self._clock() < trouble.until:
                raise IndexPaused("the organisation's index failed a moment ago: it will be tried again soon")
        error = catch_error(lambda: answer.append(operation(self._open_index(installation))))
        if error is None:
            self._end_trouble(installation, heals)
            return answer[0]
        self._record_failure(installation, use, str(error), may_repair=bool(error.remedy))
        raise error if isinstance(error, OrganisationUnavailable) else OrganisationUnavailable(str(error))

    def count_search(self, result: str) -> None:
        """Count a search. Without the database it is not counted."""
        with suppress(WorldError):
            self._count({(SEARCHES_METRIC, (result,)): 1})

    def _open_index(self, installation: int) -> Candidates:
        with self._lock:
            index = self._indexes.get(installation)
        if index is None:
            opened = self._open(installation)
            with self._lock:
                index = self._indexes.setdefault(installation, opened)
        return index

    def _end_trouble(self, installation: int, heals: Iterable[Use]) -> None:
        with self._lock:
            healed = [self._troubles.pop((installation, use), None) for use in heals]
            is_over = any(healed) and not self._troubles
        if is_over:
            log.info("the organisation's index answers again")

    def _record_failure(self, installation: int, use: Use, line: str, *, may_repair: bool) -> None:
        now = self._clock()
        with self._lock:
            is_first = not self._troubles
            before = self._troubles.get((installation, use))
            since = before.since if before and before.since is not None else now
            self._troubles[installation, use] = _FailureStreak(
                now + COOLDOWN_SECONDS, now, since if may_repair else None
            )
            self._indexes.pop(installation, None)  # opened again next time
        if is_first:
            log.warning("answers continue without other repositories; the index will be tried again soon: %s", line)


class IndexPaused(OrganisationUnavailable):
    """The index was not asked, as it failed a moment ago."""


class GuardedCandidates:
    """`Candidates` of one installation behind the guard of the process."""

    def __init__(self, guard: OrganisationGuard, installation: int) -> None:
        self._guard = guard
        self._installation = installation

    def exists(self) -> bool:
        """As `Candidates.exists`, which reads no thread: the threads may still be damaged."""
        return self._guard.call(self._installation, "write", lambda index: index.exists())

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """As `Candidates.search`, and counted."""
        try:
            found = self._guard.call(
                self._installation,
                "search",
                lambda index: index.search(terms, scope, before=before, limit=limit),
                "search",
            )
        except OrganisationUnavailable as error:
            self._guard.count_search("resting" if isinstance(error, IndexPaused) else "failed")
            raise
        self._guard.count_search("found" if found else "nothing")
        return found

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        """As `Candidates.rarity`, which reads no thread either."""
        return self._guard.call(self._installation, "search", lambda index: index.rarity(terms))

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        """As `Candidates.upsert`."""
        self._write(lambda index: index.upsert(threads))

    def delete(self, repository: int) -> None:
        """As `Candidates.delete`."""
        self._write(lambda index: index.delete(repository))

    def rebuild(self, threads: Iterable[OrganisationThread]) -> None:
        """As `Candidates.rebuild`, which ends trouble of searches, too."""
        self._guard.call(self._installation, "write", lambda index: index.rebuild(threads), "write", "search")

    def compact(self, *, purges: bool = False) -> None:
        """As `Candidates.compact`."""
        self._write(lambda index: index.compact(purges=purges), compacts=True)

    def _write(self, change: Callable[[Candidates], None], *, compacts: bool = False) -> None:
        self._guard.call(self._installation, "write", change, "write")
        self._guard.count_write(self._installation, compacted=compacts)
