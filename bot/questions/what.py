"""The threads that matter for the work at hand, without a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.card import Card, SessionOutline
from bot.questions.related import (
    decided_when,
    decisions_of,
    expand,
    newest_decision,
    open_pulls,
    threads_naming,
    with_newest,
)
from bot.questions.requests import Cards, SmartSearch, WorkRequest
from bot.questions.smart_search import SHOWN, RankedThread, reference, smart, written
from bot.questions.worktree_query import WorktreeQuery, worktree_query
from bot.reading.analyzer import terms

EACH = 3
"""Threads in a section of `what`."""


@dataclass(frozen=True, slots=True)
class WhatAnswer:
    """At most three in each section, no thread twice in one; what they were found by, and what could not be used.
    ``sessions`` are the agents' sessions on this work, ``pulls`` the open pull requests on its files, or on the open
    issues that are shown.

    Threads in ``decisions`` and ``recent`` have only their newest decision.
    """

    related: tuple[RankedThread, ...] = ()
    decisions: tuple[RankedThread, ...] = ()
    tasks: tuple[RankedThread, ...] = ()
    pulls: tuple[RankedThread, ...] = ()
    recent: tuple[RankedThread, ...] = ()
    sessions: tuple[SessionOutline, ...] = ()
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def is_relevant(self) -> bool:
        """Whether anything is related to the work; the newest decisions, about anything, do not count."""
        return bool(self.related or self.decisions or self.tasks or self.pulls or self.sessions)


def find_what(request: WorkRequest, cards: Cards, sessions: Sequence[SessionOutline] = ()) -> WhatAnswer:
    """Find what is related to the branch, decided about its files, still open, and was decided last anywhere.

    ``sessions`` are those on this work, the most recent first.
    """
    now, signs = request.now, worktree_query(request.worktree)
    found = smart(SmartSearch("", request.worktree, now, SHOWN), cards)
    naming = threads_naming(signs.files, cards)
    decisions = decisions_of(naming, now)[:EACH]
    tasks = _tasks(signs, found.hits, cards)
    shown = {one.card.id for one in decisions}
    newest = (card for card in cards.decided(EACH + len(shown)) if card.id not in shown and card.decisions)
    return WhatAnswer(
        related=found.hits[:EACH],
        decisions=decisions,
        tasks=tasks,
        pulls=open_pulls(naming, [one.card for one in (*found.hits[:EACH], *tasks)], cards)[:EACH],
        recent=tuple(with_newest(card, decided_when(newest_decision(card), now)) for card in newest)[:EACH],
        sessions=tuple(sessions)[:EACH],
        used=found.used,
        unused=found.unused,
    )


def _tasks(signs: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> tuple[RankedThread, ...]:
    """Open issues: found themselves, then those about a word of the branch that its threads bear out, then links."""
    found = {one.card.id: one for one in hits if _is_task(one.card)}
    for one in _about(signs, hits, cards):
        found.setdefault(one.card.id, one)
    near = [one.card.id for one in hits[:EACH]]
    for hop in expand(dict.fromkeys((*signs.tickets, *near)), cards):
        if _is_task(hop.card):
            way = "names" if hop.direction == "from" else "is named by"
            found.setdefault(hop.card.id, RankedThread(hop.card, 0.0, (f"{way} {reference(hop.hit)}",)))
    return tuple(found.values())[:EACH]


def _about(signs: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> list[RankedThread]:
    """Open issues whose titles have a word that the branch's name has, and a hit's title too."""
    borne = {term for one in hits for term in terms(one.card.title)} & signs.telling.keys()
    if not borne:
        return []
    found = cards.search(dict.fromkeys(borne, 1.0), limit=SHOWN, keep=_is_task)
    titles = {one.card.id: borne.intersection(terms(one.card.title)) for one in found}
    return [
        RankedThread(one.card, 0.0, (f"its title has {', '.join(written(signs.text, sorted(titles[one.card.id])))}",))
        for one in found
        if titles[one.card.id]
    ]


def _is_task(card: Card) -> bool:
    return card.kind.traits.is_listed and card.state == "open"
