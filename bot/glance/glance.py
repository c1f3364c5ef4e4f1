"""What is asked of a glance: cards by words, by id, by file, by link and by time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from bot.card import Card, CardId, Found, Link
from bot.glance.cards import card_of, key_of, name_of
from bot.glance.file import fact
from bot.glance.ranking import Ranker

_PART = 500
"""Names that are looked up with one question."""


class Glance:
    """The cards of a repository, as they were when the file was last brought up to date. A `bot.recall.cards.Cards`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @property
    def size(self) -> int:
        """Number of threads."""
        return int(self._database.execute("SELECT count(*) FROM threads").fetchone()[0])

    def fact(self, name: str) -> str:
        """What is noted of the file under this name, "" where nothing is."""
        return fact(self._database, name)

    def close(self) -> None:
        self._database.close()

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[Card], bool] | None = None,
        floor: float = 0.0,
    ) -> list[Found]:
        """As `bot.recall.cards.Cards.search`."""
        ranker = Ranker(self._database, weights)
        found: list[Found] = []
        wanted = limit
        for equals in _groups(ranker, ranker.found(floor), max(64, 2 * limit)):
            if wanted <= 0:
                break
            cards = self._at(ranker, equals)
            kept = [(card, place) for place in equals if (card := cards.get(place)) and (keep is None or keep(card))]
            kept.sort(key=lambda pair: (-ranker.score(pair[1]), isinstance(pair[0].id, str), pair[0].id))
            for card, place in kept[:wanted]:
                found.append(Found(card, ranker.score(place), ranker.part(place), ranker.terms(place)))
            wanted -= len(kept)
        return found

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        """As `bot.recall.cards.Cards.cards`."""
        found = self._cards(dict.fromkeys(map(name_of, ids)))
        return {card.id: card for card in found.values()}

    def naming(self, path: str) -> dict[CardId, tuple[str, ...]]:
        """As `bot.recall.cards.Cards.naming`."""
        folders = _folders(path)
        if not folders:
            return {}
        rows = self._database.execute("SELECT thread, path FROM files WHERE name = ?", (folders[-1],))
        found: dict[CardId, tuple[str, ...]] = {}
        for thread, written in rows:
            theirs = _folders(written)
            shorter, longer = sorted((folders, theirs), key=len)
            if longer[-len(shorter) :] == shorter:
                key = key_of(thread)
                found[key] = (*found.get(key, ()), written)
        return found

    def links(self, ids: Iterable[CardId]) -> list[Link]:
        """As `bot.recall.cards.Cards.links`, in the order of their threads."""
        names = list(dict.fromkeys(map(name_of, ids)))
        rows = chain(
            self._rows("SELECT source, target, kind FROM links WHERE source IN ({})", names),
            self._rows("SELECT source, target, kind FROM links WHERE target IN ({})", names),
        )
        return [Link(key_of(source), key_of(target), kind) for source, target, kind in dict.fromkeys(rows)]

    def decided(self, limit: int) -> list[Card]:
        """As `bot.recall.cards.Cards.decided`."""
        asked = "SELECT digest FROM threads WHERE decided != '' ORDER BY decided DESC, id LIMIT ?"
        return [card for (line,) in self._database.execute(asked, (limit,)) if (card := card_of(line))]

    def updated_since(self, moment: datetime) -> list[Card]:
        """The threads that changed at or after ``moment``, newest first."""
        asked = "SELECT digest FROM threads WHERE updated >= ? ORDER BY updated DESC, id"
        rows = self._database.execute(asked, (moment.isoformat(),))
        return [card for (line,) in rows if (card := card_of(line))]

    def _at(self, ranker: Ranker, places: Sequence[int]) -> dict[int, Card]:
        """The cards of these documents, by their places."""
        names: dict[str, int] = {}
        for segment in ranker.segments:
            inside = [place - segment.start for place in places if 0 <= place - segment.start < segment.length]
            asked = "SELECT document, thread FROM documents WHERE segment = ? AND document IN ({})"
            found = self._rows(asked, inside, segment.number)
            names |= {thread: segment.start + document for document, thread in found}
        return {names[name]: card for name, card in self._cards(names).items()}

    def _cards(self, names: Iterable[str]) -> dict[str, Card]:
        rows = self._rows("SELECT id, digest FROM threads WHERE id IN ({})", list(names))
        return {name: card for name, line in rows if (card := card_of(line))}

    def _rows(self, question: str, values: Sequence[object], *before: object) -> Iterator[tuple[Any, ...]]:
        """The answers to a question about any of these values, which come after those ``before`` in it."""
        for start in range(0, len(values), _PART):
            part = values[start : start + _PART]
            yield from self._database.execute(question.format(", ".join("?" * len(part))), (*before, *part))


def _groups(ranker: Ranker, places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """These in their order, at least ``size`` at a time, equal scores together."""
    start = 0
    while start < len(places):
        end = min(start + size, len(places))
        while end < len(places) and ranker.score(places[end]) == ranker.score(places[end - 1]):
            end += 1
        yield places[start:end]
        start = end


def _folders(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "..")]
