"""A search by words with filters, as the command line and the tools for agents have it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import LEAST_PART, Card, CardHit, SessionPassage
from bot.reading.analyzer import terms

if TYPE_CHECKING:
    from bot.questions.related import Hop
    from bot.questions.requests import Cards


AGO = re.compile(r"([1-9][0-9]{0,3})([dwmy])", re.ASCII)
_NAMED = re.compile(r"(?<!\S)#([0-9]{1,15})(?!\S)", re.ASCII)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


class SearchFilter(NamedTuple):
    """Which threads are wanted: ``state`` and ``kind`` (``all``: any), all of these labels, opened by ``author``,
    changed since then. Letters of labels and logins may be large or small."""

    state: str = "all"
    kind: str = "all"
    labels: frozenset[str] = frozenset()
    author: str = ""
    since: datetime | None = None

    def keeps(self, card: Card) -> bool:
        """Whether this thread is wanted."""
        return (
            self.state in ("all", card.state)
            and self.kind in ("all", card.kind)
            and {label.casefold() for label in self.labels} <= {label.casefold() for label in card.labels}
            and self.author.casefold() in ("", card.author.casefold())
            and (self.since is None or card.updated_at >= self.since)
        )


class WordSearch(NamedTuple):
    """A search by words, wherever it was asked: at most ``limit`` threads of this choice or, where its kind
    is ``session``, messages of transcripts. ``expand``: also what is one link away. ``logs`` are transcripts beside
    those that the settings name."""

    words: str
    choice: SearchFilter = SearchFilter()
    limit: int = 10
    expand: bool = False
    logs: tuple[str, ...] = ()

    @property
    def is_of_sessions(self) -> bool:
        return self.choice.kind == "session"


class ThreadHits(NamedTuple):
    """The threads that were found, best first, and what is one link away from them."""

    found: tuple[CardHit, ...]
    near: tuple[Hop, ...] = ()


class SessionHits(NamedTuple):
    """The messages that were found, best first, and how many sessions were looked through."""

    passages: tuple[SessionPassage, ...]
    searched: int


def search_memory(asked: WordSearch, cards: Cards) -> ThreadHits:
    """The threads that the words name by their numbers (``#48``), then those that hold enough of them."""
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


def moment_of(text: str, now: datetime) -> datetime:
    """A day (``2026-05-03``), or so many days, weeks, months of 30 days or years of 365 days ago (``7d``).

    Raises ValueError or OverflowError for anything else.
    """
    ago = AGO.fullmatch(text)
    if ago:
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
