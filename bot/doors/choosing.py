"""A search by words with filters, as the command line and the tools for agents have it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bot.card import LEAST_PART, Card, Found
from bot.glance.glance import Glance
from bot.reading.words import terms

AGO = re.compile(r"([1-9][0-9]{0,3})([dwmy])", re.ASCII)
_NAMED = re.compile(r"(?<!\S)#([0-9]{1,15})(?!\S)", re.ASCII)
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


class Choice(NamedTuple):
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


def by_words(words: str, glance: Glance, limit: int, choice: Choice) -> list[Found]:
    """The threads that the words name by their numbers (``#48``), then those that hold enough of them, best first."""
    weights = {term: float(count) for term, count in Counter(terms(words)).items()}
    found = {one.card.id: one for one in glance.search(weights, limit=limit, keep=choice.keeps, floor=LEAST_PART)}
    numbers = [int(number) for number in _NAMED.findall(words)][:limit]
    cards = glance.cards(numbers) if numbers else {}
    named = [cards[number] for number in dict.fromkeys(numbers) if number in cards and choice.keeps(cards[number])]
    first = {card.id: found.get(card.id) or Found(card, 0.0, 1.0, ()) for card in named}
    return list({**first, **found}.values())[:limit]


def moment_of(text: str, now: datetime) -> datetime:
    """A day (``2026-05-03``), or so many days, weeks, months of 30 days or years of 365 days ago (``7d``).

    Raises ValueError or OverflowError for anything else.
    """
    ago = AGO.fullmatch(text)
    if ago:
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
