"""The cards of a memory as the bot's runs open it: the same threads in the same order as on a developer's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bot.domain.card import Card, CardHit, CardId, MessageHit, ThreadFacts, ThreadMessage, id_order, message_of
from bot.domain.digest import IndexEntry
from bot.domain.thread import Thread
from bot.index.protocol import NOTES, TEXT, Query
from bot.index.scoring import NOTES_WEIGHT
from bot.memory.memory import Memory
from bot.questions.passages import messages_of
from bot.questions.requests import Keep

FIELDS = {TEXT: 1.0, NOTES: NOTES_WEIGHT}
"""Weights of titles and texts, and of notes."""


MAX_LISTED = 20_000
"""In a memory of more threads, a search without words finds nothing: it would read the facts of all of them."""


class MemoryCards:
    """See `bot.questions.requests.CardSearch`. ``may_show`` limits the threads."""

    def __init__(self, memory: Memory, may_show: Callable[[CardId], bool]) -> None:
        self._memory, self._may_show = memory, may_show
        self._known: dict[CardId, Card | None] = {}

    @property
    def size(self) -> int:
        return self._memory.state.manifest.threads

    @property
    def messages(self) -> int:
        return self._memory.message_count

    def search(
        self, weights: Mapping[str, float], *, limit: int, keep: Keep | None = None, floor: float = 0.0
    ) -> list[CardHit]:
        def is_wanted(entry: IndexEntry) -> bool:
            return self._may_show(entry.id) and (keep is None or keep(self._shown(entry)))

        hits = self._memory.search(_query(weights, floor), limit=limit, keep=is_wanted)
        cards = self.cards([hit.entry.id for hit in hits])
        return [CardHit(cards[hit.entry.id], hit.score, hit.part, hit.terms) for hit in hits if hit.entry.id in cards]

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        def is_wanted(entry: IndexEntry) -> bool:
            hit = _message_hit(entry)
            return self._may_show(hit.thread) and (keep is None or keep(hit))

        hits = self._memory.search_messages(_query(weights, floor), limit=limit, keep=is_wanted)
        return [_message_hit(hit.entry)._replace(score=hit.score, part=hit.part, terms=hit.terms) for hit in hits]

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        return self._memory.rarity(terms)

    def threads_with(self, keep: Callable[[MessageHit], bool]) -> set[CardId]:
        hits = map(_message_hit, self._memory.every_message() if self.size <= MAX_LISTED else ())
        return {hit.thread for hit in hits if self._may_show(hit.thread) and keep(hit)}

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        every = self._memory.every_card() if self.size <= MAX_LISTED else ()
        found = [card for card in every if self._may_show(card.id) and keep(card)]
        return sorted(found, key=lambda card: (-card.updated_at.timestamp(), *id_order(card.id)))[:limit]

    def facts(self, ids: Iterable[CardId]) -> Mapping[CardId, ThreadFacts]:
        entries = self._memory.shown_entries(key for key in ids if self._may_show(key))
        return {key: self._shown(entry) for key, entry in entries.items()}

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        wanted = [key for key in dict.fromkeys(ids) if self._may_show(key)]
        missing = [key for key in wanted if key not in self._known]
        self._known |= dict.fromkeys(missing) | (self._memory.cards(missing) if missing else {})
        return {key: card for key in wanted if (card := self._known[key])}

    def read(self, keys: Iterable[CardId]) -> dict[CardId, Sequence[ThreadMessage]]:
        """See `bot.questions.requests.ReadMessages`."""
        records = self._memory.records(key for key in dict.fromkeys(keys) if self._may_show(key))
        return {key: messages_of(record) for key, record in records.items() if isinstance(record, Thread)}

    def _shown(self, entry: IndexEntry) -> IndexEntry:
        """The entry without the name of a hidden person."""
        people = self._memory.hidden_people
        return replace(entry, author=people.alias(entry.author)) if people else entry


def _query(weights: Mapping[str, float], floor: float) -> Query:
    return Query(weights, FIELDS, floor=floor, most_terms=max(1, len(weights)))


def _message_hit(entry: IndexEntry) -> MessageHit:
    thread, position = message_of(entry.id)
    return MessageHit(thread, position, entry.author, entry.role, entry.created_at, 0.0, 0.0, ())
