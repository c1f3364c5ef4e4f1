"""A search by words with filters, as the command line and the tools for agents have it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.card import LEAST_PART, Card, Found, Passage
from bot.doors.located import Progress, no_progress
from bot.errors import UserError
from bot.reading.words import terms

if TYPE_CHECKING:
    from bot.recall.cards import Cards
    from bot.recall.hop import Hop

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


class WordSearch(NamedTuple):
    """A search by words, whichever door it came through: at most ``limit`` threads of this choice or, where its kind
    is ``session``, messages of transcripts. ``expand``: also what is one link away. ``logs`` are transcripts beside
    those that the settings name."""

    words: str
    choice: Choice = Choice()
    limit: int = 10
    expand: bool = False
    logs: tuple[str, ...] = ()

    @property
    def is_of_sessions(self) -> bool:
        return self.choice.kind == "session"


class ThreadHits(NamedTuple):
    """The threads that were found, best first, and what is one link away from them."""

    found: tuple[Found, ...]
    near: tuple[Hop, ...] = ()


class SessionHits(NamedTuple):
    """The messages that were found, best first, and how many sessions were looked through."""

    passages: tuple[Passage, ...]
    searched: int


def in_memory(asked: WordSearch, cards: Cards) -> ThreadHits:
    """The threads that the words name by their numbers (``#48``), then those that hold enough of them."""
    weights = {term: float(count) for term, count in Counter(terms(asked.words)).items()}
    limit, keeps = asked.limit, asked.choice.keeps
    found = {one.card.id: one for one in cards.search(weights, limit=limit, keep=keeps, floor=LEAST_PART)}
    numbers = [int(number) for number in _NAMED.findall(asked.words)][:limit]
    by_number = cards.cards(numbers) if numbers else {}
    named = [by_number[n] for n in dict.fromkeys(numbers) if n in by_number and keeps(by_number[n])]
    first = {card.id: found.get(card.id) or Found(card, 0.0, 1.0, ()) for card in named}
    hits = tuple({**first, **found}.values())[:limit]
    if not asked.expand:
        return ThreadHits(hits)
    from bot.recall.hop import expand

    return ThreadHits(hits, expand([one.card.id for one in hits], cards))


def in_sessions(asked: WordSearch, folder: Path, option: str, progress: Progress = no_progress) -> SessionHits:
    """The messages of the transcripts that the settings of the checkout around ``folder``, or the search, name.

    UserError where nobody names any, and for what sessions do not have. ``option`` stands before the name of a
    parameter where this door has it: ``--``, or nothing.
    """
    from bot.doors.transcripts import opened_logs
    from bot.memory.checkout_git import top_of

    _refuse_filters(asked, option)
    with opened_logs(top_of(folder), asked.logs, asked=True, progress=progress) as logs:
        if logs is None:
            give = "give --logs PATH, or " if option else ""
            raise UserError(f"no transcripts are named: {give}set sources.sessions in the settings")
        return SessionHits(tuple(logs.search(asked.words, asked.limit, asked.choice.since)), logs.size)


def _refuse_filters(asked: WordSearch, option: str) -> None:
    choice = asked.choice
    filters = {"state": choice.state != "all", "label": choice.labels, "author": choice.author, "expand": asked.expand}
    if wrong := [f"{option}{name}" for name, is_given in filters.items() if is_given]:
        raise UserError(
            f"{', '.join(wrong)}: sessions have none of these; "
            f"{option}since and {option}limit go with {option}kind session"
        )


def moment_of(text: str, now: datetime) -> datetime:
    """A day (``2026-05-03``), or so many days, weeks, months of 30 days or years of 365 days ago (``7d``).

    Raises ValueError or OverflowError for anything else.
    """
    ago = AGO.fullmatch(text)
    if ago:
        return now - timedelta(days=int(ago[1]) * _DAYS[ago[2]])
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
