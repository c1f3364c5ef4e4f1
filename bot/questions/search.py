"""Searches threads by words, with filters, and finds what was said in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import CardHit, CardId, Passage, SessionPassage
from bot.questions.passages import passages_of
from bot.questions.requests import Cards, CardSearch, ReadMessages, WordSearch, nothing_read
from bot.questions.thread_search import find_threads

if TYPE_CHECKING:
    from bot.questions.related import Neighbour


class ThreadHits(NamedTuple):
    """The threads that a search found, best first, what was said there, and the threads one link away."""

    hits: tuple[CardHit, ...]
    linked: tuple[Neighbour, ...] = ()
    passages: Mapping[CardId, Passage] = {}


class SessionHits(NamedTuple):
    """The messages that a search found, best first, and the number of sessions searched."""

    passages: tuple[SessionPassage, ...]
    searched: int


def search_memory(request: WordSearch, cards: Cards, read: ReadMessages = nothing_read) -> ThreadHits:
    """As `find_words`, with the threads one link away if they are wanted."""
    found = find_words(request, cards, read)
    if not request.expand:
        return found
    from bot.questions.related import expand

    return found._replace(linked=expand([hit.card.id for hit in found.hits], cards))


def find_words(request: WordSearch, cards: CardSearch, read: ReadMessages) -> ThreadHits:
    """Find the threads whose numbers are in the words (``#48``), then those that hold enough of the words.

    Without words: those that match the qualifiers, the one that changed last first.
    """
    query, limit = request.query, request.limit
    hits = find_threads(query, cards, read, limit=limit)
    by_id = {hit.card.id: hit for hit in hits}
    numbers = query.numbers[:limit]
    by_number = cards.cards(numbers) if numbers else {}
    named = [by_number[n] for n in numbers if n in by_number and query.matches_thread(by_number[n])]
    named_hits = {card.id: by_id.get(card.id) or CardHit(card, 0.0, 1.0, ()) for card in named}
    shown = tuple({**named_hits, **by_id}.values())[:limit]
    passages = passages_of(((hit.card.id, hit.card.kind, hit.message) for hit in shown), query, read)
    return ThreadHits(shown, passages=passages)
