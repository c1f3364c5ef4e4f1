"""How many threads of an organisation have each term, counted in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

MAX_COUNTED_TERMS = 500_000
"""Most terms counted at once. Beyond it, the rarest are dropped: they are rare, whatever their exact count."""

MIN_COUNT = 2
"""The smallest count worth keeping. A term without one counts as if one thread had it."""


class TermCounts:
    """Lossy counting: a term that was dropped and came again is counted too low, by at most the number of drops."""

    def __init__(self, most: int = MAX_COUNTED_TERMS) -> None:
        self.threads = 0
        self._counts: Counter[str] = Counter()
        self._most, self._floor = most, 0

    def add(self, terms: Iterable[str]) -> None:
        """Count a thread with these terms."""
        self.threads += 1
        self._counts.update(set(terms))
        while len(self._counts) > self._most:
            self._floor += 1
            self._counts = Counter({term: count for term, count in self._counts.items() if count > self._floor})

    @property
    def frequent(self) -> Mapping[str, int]:
        return {term: count for term, count in self._counts.items() if count >= MIN_COUNT}
