"""Searches by words, with filters."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import LEAST_PART, CardHit, SessionPassage
from bot.reading.analyzer import terms

if TYPE_CHECKING:
    from bot.questions.related import Hop
    from bot.questions.requests import Cards, WordSearch

_NAMED = re.compile(r"(?<!\S)#([0-9]{1,15})(?!\S)", re.ASCII)


class ThreadHits(NamedTuple):
    """The threads that a search found, best first, and those one link away."""

    found: tuple[CardHit, ...]
    near: tuple[Hop, ...] = ()


class SessionHits(NamedTuple):
    """The messages that a search found, best first, and the number of sessions searched."""

    passages: tuple[SessionPassage, ...]
    searched: int


def search_memory(asked: WordSearch, cards: Cards) -> ThreadHits:
    """Find the threads that the words name by number (``#48``), then those that hold enough of the words."""
    weights = {term: float(count) for term, count in Counter(terms(asked.words)).items()}
    limit, keeps = asked.limit, asked.choice.keeps
    found = {one.card.id: one for one in cards.search(weights, limit=limit, keep=keeps, floor=LEAST_PART)}
    numbers = [int(number) for number in _NAMED.findall(asked.words)][:limit]
    by_number = cards.cards(numbers) if numbers else {}
    named = [by_number[n] for n in dict.fromkeys(numbers) if n in by_number and keeps(by_number[n])]
    first = {card.id: found.get(card.id) or CardHit(card, 0.0, 1.0, ()) for card in named}
    hits = tuple({**first, **found}.values())[:limit]
    if not asked.expand:
        return ThreadHits(hits)
    from bot.questions.related import expand

    return ThreadHits(hits, expand([one.card.id for one in hits], cards))
