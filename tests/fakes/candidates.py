"""An organisation's index in memory, with plain BM25, which tests and evaluation use instead of LanceDB."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import log1p

import numpy as np

from bot.domain.digest import FAR_FUTURE
from bot.domain.organisation import FoundThread, OrganisationThread

K1, B = 1.2, 0.75


class InMemoryCandidates:
    """Threads in the order of their creation. Those created after ``moment`` do not exist yet and are not counted.

    ``since``: thread → when it got into the index, if not when it was created.
    """

    def __init__(self, threads: Iterable[OrganisationThread], since: Mapping[object, datetime] | None = None) -> None:
        self.moment = FAR_FUTURE
        self._threads = sorted(
            (thread for thread in threads if not thread.is_gone), key=lambda thread: thread.created_at
        )
        self._created = [thread.created_at for thread in self._threads]
        self._since = [(since or {}).get(thread.key, thread.created_at) for thread in self._threads]
        lengths = np.array([len(thread.terms) for thread in self._threads], dtype=float)
        norms = K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean()) if len(lengths) else 1.0))
        lists = defaultdict[str, list[tuple[int, int]]](list)
        for index, thread in enumerate(self._threads):
            for term, count in Counter(thread.terms).items():
                lists[term].append((index, count))
        self._postings = {term: np.array([index for index, _ in postings]) for term, postings in lists.items()}
        self._term_scores = {
            term: counts * (K1 + 1) / (counts + norms[self._postings[term]])
            for term, postings in lists.items()
            for counts in [np.array([count for _, count in postings], dtype=float)]
        }

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        """Inverse document frequencies at ``moment``, computed as in LanceDB; an unknown term counts as in one."""
        existing = bisect_left(self._created, self.moment)
        rarities = {}
        for term in terms:
            frequency = max(1, int(np.searchsorted(self._postings[term], existing))) if term in self._postings else 1
            rarities[term] = log1p(max(0.0, existing - frequency + 0.5) / (frequency + 0.5))
        return rarities

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """The best threads by BM25; a term that occurs twice counts twice."""
        scores = np.zeros(len(self._threads))
        latest = min(before or FAR_FUTURE, self.moment)
        for term, rarity in self.rarity(set(terms)).items():
            if term in self._postings:
                scores[self._postings[term]] += terms.count(term) * rarity * self._term_scores[term]
        matches: list[FoundThread] = []
        for index in np.argsort(-scores, kind="stable").tolist():
            if len(matches) == limit or scores[index] <= 0:
                break
            thread = self._threads[index]
            if thread.repository in scope and max(thread.created_at, self._since[index]) < latest:
                matches.append(FoundThread(thread, float(scores[index])))
        return matches
