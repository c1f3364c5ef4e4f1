"""What is asked of a glance: cards by words, by id, by file, by link and by time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from bot.card import Card, CardId, Found, Link
from bot.glance.cards import card_of, key_of, name_of, proven
from bot.glance.file import fact
from bot.glance.ranking import Ranker
from bot.reading.proof import is_change, number_of

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
        links = [Link(key_of(source), key_of(target), kind) for source, target, kind in dict.fromkeys(rows)]
        changes = self._changes(link.target for link in links if link.kind == "fix")
        is_none = [link.kind == "fix" and changes.get(link.target) is False for link in links]
        return [link._replace(kind="reference") if none else link for link, none in zip(links, is_none, strict=True)]

    def decided(self, limit: int) -> list[Card]:
        """As `bot.recall.cards.Cards.decided`."""
        asked = "SELECT digest FROM threads WHERE decided != '' ORDER BY decided DESC, id LIMIT ?"
        return self._read(line for (line,) in self._database.execute(asked, (limit,)))

    def updated_since(self, moment: datetime) -> list[Card]:
        """The threads that changed at or after ``moment``, newest first."""
        asked = "SELECT digest FROM threads WHERE updated >= ? ORDER BY updated DESC, id"
        return self._read(line for (line,) in self._database.execute(asked, (moment.isoformat(),)))

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
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(names))
        return {name_of(card.id): card for card in self._read(line for (line,) in rows)}

    def _read(self, lines: Iterable[str]) -> list[Card]:
        """The cards of these digests. What names a thread as its fix that is known to be none is told without."""
        cards = [card for line in lines if (card := card_of(line))]
        fixes = [number_of(card.ending.fix or card.ending.claimed) for card in cards]
        changes = self._changes(filter(None, fixes))
        return [proven(card, changes.get(fix or 0)) for card, fix in zip(cards, fixes, strict=True)]

    def _changes(self, numbers: Iterable[CardId]) -> dict[CardId, bool]:
        """Of these issues and pull requests, as far as they are known, which were merged."""
        rows = self._rows("SELECT digest FROM threads WHERE id IN ({})", list(dict.fromkeys(map(name_of, numbers))))
        cards = [card for (line,) in rows if (card := card_of(line))]
        known = {card.id: is_change(card.kind, card.state, card.merged_at) for card in cards}
        return {key: merged for key, merged in known.items() if merged is not None}

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
