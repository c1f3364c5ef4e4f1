"""Searches by words, with filters: the threads, and what was said in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import CardHit, CardId, Passage, SessionPassage
from bot.questions.passages import passages_of
from bot.questions.requests import Cards, ReadMessages, SearchFilter, WordSearch, nothing_read
from bot.questions.thread_search import find_threads

if TYPE_CHECKING:
    from bot.questions.related import Hop


class ThreadHits(NamedTuple):
    """The threads that a search found, best first, what was said there, and the threads one link away."""

    found: tuple[CardHit, ...]
    near: tuple[Hop, ...] = ()
    passages: Mapping[CardId, Passage] = {}


class SessionHits(NamedTuple):
    """The messages that a search found, best first, and the number of sessions searched."""

    passages: tuple[SessionPassage, ...]
    searched: int


def search_memory(asked: WordSearch, cards: Cards, read: ReadMessages = nothing_read) -> ThreadHits:
    """Find the threads that the words name by number (``#48``), then those that hold enough of the words.

    Without words: those that the qualifiers let through, the one that changed last first.
    """
    query, limit = asked.meant, asked.limit
    keep = None if asked.choice == SearchFilter() else asked.choice.keeps
    hits = find_threads(query, cards, read, limit=limit, keep=keep)
    found = {one.card.id: one for one in hits}
    numbers = query.numbers[:limit]
    by_number = cards.cards(numbers) if numbers else {}
    named = [
        by_number[n]
        for n in numbers
        if n in by_number and asked.choice.keeps(by_number[n]) and query.keeps_thread(by_number[n])
    ]
    first = {card.id: found.get(card.id) or CardHit(card, 0.0, 1.0, ()) for card in named}
    shown = tuple({**first, **found}.values())[:limit]
    said = passages_of(((one.card.id, one.card.kind, one.message) for one in shown), query, read)
    if not asked.expand:
        return ThreadHits(shown, passages=said)
    from bot.questions.related import expand

    return ThreadHits(shown, expand([one.card.id for one in shown], cards), said)
