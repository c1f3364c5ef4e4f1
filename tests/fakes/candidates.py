"""An organisation's index in memory, with plain BM25: what the tests and the evaluation ask in place of LanceDB."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import log1p

from bot.domain.digest import LATE
from bot.domain.organisation import FoundThread, OrganisationThread

K1, B = 1.2, 0.75


class RememberedCandidates:
    """Threads in the order of their creation; ``moment``: those created since do not exist and are not counted.

    ``since`` says for a thread when it got into the index, if that was not when it was created.
    """

    def __init__(self, threads: Iterable[OrganisationThread], since: Mapping[object, datetime] | None = None) -> None:
        self._since = since or {}
        self.upsert(tuple(threads))
        self.moment = LATE

    def upsert(self, threads: Sequence[OrganisationThread]) -> None:
        self._threads = sorted((one for one in threads if not one.is_gone), key=lambda one: one.created_at)
        self._counts = [Counter(one.terms) for one in self._threads]
        self._lengths = [count.total() for count in self._counts]
        self._mean = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))
        self._lists = defaultdict[str, list[int]](list)
        for place, counts in enumerate(self._counts):
            for term in counts:
                self._lists[term].append(place)

    def _is_there(self, place: int, before: datetime) -> bool:
        one = self._threads[place]
        return one.created_at < before and self._since.get(one.key, one.created_at) < before

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        """Inverse document frequencies at the moment, counted as LanceDB's."""
        known = sum(one.created_at < self.moment for one in self._threads)
        found = {}
        for term in terms:
            held = sum(self._threads[place].created_at < self.moment for place in self._lists.get(term, ()))
            held = max(1, held)  # the engine counts only terms of several threads, all others as of one
            found[term] = log1p(max(0, known - held + 0.5) / (held + 0.5))
        return found

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """The best by BM25."""
        scores = defaultdict[int, float](float)
        latest = min(before or LATE, self.moment)
        for term, rarity in self.rarity(set(terms)).items():
            for place in self._lists.get(term, ()):
                count = self._counts[place][term]
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * self._lengths[place] / self._mean))
                scores[place] += rarity * part
        there = [p for p in scores if self._threads[p].repository in scope and self._is_there(p, latest)]
        best = sorted(there, key=lambda place: (-scores[place], place))[:limit]
        return [FoundThread(self._threads[place], scores[place]) for place in best]
