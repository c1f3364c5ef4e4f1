"""An organisation's index in memory, with plain BM25: what the tests and the evaluation ask in place of LanceDB."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import log1p

import numpy as np

from bot.domain.digest import LATE
from bot.domain.organisation import FoundThread, OrganisationThread

K1, B = 1.2, 0.75


class RememberedCandidates:
    """Threads in the order of their creation; ``moment``: those created since do not exist and are not counted.

    ``since`` says for a thread when it got into the index, if that was not when it was created.
    """

    def __init__(self, threads: Iterable[OrganisationThread], since: Mapping[object, datetime] | None = None) -> None:
        self.moment = LATE
        self._threads = sorted((one for one in threads if not one.is_gone), key=lambda one: one.created_at)
        self._created = [one.created_at for one in self._threads]
        self._since = [(since or {}).get(one.key, one.created_at) for one in self._threads]
        lengths = np.array([len(one.terms) for one in self._threads], dtype=float)
        norms = K1 * (1 - B + B * lengths / max(1.0, float(lengths.mean()) if len(lengths) else 1.0))
        lists = defaultdict[str, list[tuple[int, int]]](list)
        for place, one in enumerate(self._threads):
            for term, count in Counter(one.terms).items():
                lists[term].append((place, count))
        self._places = {term: np.array([place for place, _ in found]) for term, found in lists.items()}
        self._parts = {
            term: counts * (K1 + 1) / (counts + norms[self._places[term]])
            for term, found in lists.items()
            for counts in [np.array([count for _, count in found], dtype=float)]
        }

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        """Inverse document frequencies at the moment, counted as LanceDB's: a term of few threads is in one."""
        known = bisect_left(self._created, self.moment)
        found = {}
        for term in terms:
            held = max(1, int(np.searchsorted(self._places[term], known))) if term in self._places else 1
            found[term] = log1p(max(0.0, known - held + 0.5) / (held + 0.5))
        return found

    def search(
        self, terms: Sequence[str], scope: Collection[int], *, before: datetime | None = None, limit: int = 200
    ) -> list[FoundThread]:
        """The best by BM25; a term that comes twice counts twice."""
        scores = np.zeros(len(self._threads))
        latest = min(before or LATE, self.moment)
        for term, rarity in self.rarity(set(terms)).items():
            if term in self._places:
                scores[self._places[term]] += terms.count(term) * rarity * self._parts[term]
        found: list[FoundThread] = []
        for place in np.argsort(-scores, kind="stable").tolist():
            if len(found) == limit or scores[place] <= 0:
                break
            one = self._threads[place]
            if one.repository in scope and max(one.created_at, self._since[place]) < latest:
                found.append(FoundThread(one, float(scores[place])))
        return found
