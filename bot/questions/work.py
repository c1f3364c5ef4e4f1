"""Finds the threads that matter for the work at hand, without a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.card import SessionOutline
from bot.questions.related import (
    decided_when,
    decisions_of,
    expand,
    newest_decision,
    open_pulls,
    threads_naming,
    with_newest,
)
from bot.questions.requests import Cards, SmartSearch, ThreadFacts, WorkRequest
from bot.questions.smart_search import SEARCH_LIMIT, RankedThread, smart, spellings, thread_reference
from bot.questions.worktree_query import WorktreeQuery, worktree_query
from bot.reading.analyzer import terms

SECTION_LIMIT = 3
"""Threads in a section of `what`."""


@dataclass(frozen=True, slots=True)
class WorkAnswer:
    """At most three threads in each section, none twice in one; the signals used, and those that could not be.
    ``sessions`` are the agents' sessions on this work, ``pulls`` the open pull requests on its files or on the open
    issues shown.

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
        """Whether anything is related to the work. The newest decisions do not count: they may be about anything."""
        return bool(self.related or self.decisions or self.tasks or self.pulls or self.sessions)


def find_for_work(request: WorkRequest, cards: Cards, sessions: Sequence[SessionOutline] = ()) -> WorkAnswer:
    """Find what is related to the branch, was decided about its files, or is still open; and the newest decisions.

    ``sessions`` are those on this work, the most recent first.
    """
    now, query = request.now, worktree_query(request.worktree)
    found = smart(SmartSearch("", request.worktree, now, SEARCH_LIMIT), cards)
    mentions = threads_naming(query.files, cards)
    decisions = decisions_of(mentions, now)[:SECTION_LIMIT]
    tasks = _tasks(query, found.hits, cards)
    shown = {one.card.id for one in decisions}
    newest = (
        card for card in cards.recently_decided(SECTION_LIMIT + len(shown)) if card.id not in shown and card.decisions
    )
    return WorkAnswer(
        related=found.hits[:SECTION_LIMIT],
        decisions=decisions,
        tasks=tasks,
        pulls=open_pulls(mentions, [one.card for one in (*found.hits[:SECTION_LIMIT], *tasks)], cards)[:SECTION_LIMIT],
        recent=tuple(with_newest(card, decided_when(newest_decision(card), now)) for card in newest)[:SECTION_LIMIT],
        sessions=tuple(sessions)[:SECTION_LIMIT],
        used=found.used,
        unused=found.unused,
    )


def _tasks(query: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> tuple[RankedThread, ...]:
    """Open issues: those among the hits, then those that share a word with the branch and a hit, then linked ones."""
    found = {thread.card.id: thread for thread in hits if _is_task(thread.card)}
    for thread in _with_branch_words(query, hits, cards):
        found.setdefault(thread.card.id, thread)
    near = [thread.card.id for thread in hits[:SECTION_LIMIT]]
    for neighbour in expand(dict.fromkeys((*query.tickets, *near)), cards):
        if _is_task(neighbour.card):
            verb = "names" if neighbour.direction == "from" else "is named by"
            found.setdefault(
                neighbour.card.id, RankedThread(neighbour.card, 0.0, (f"{verb} {thread_reference(neighbour.hit)}",))
            )
    return tuple(found.values())[:SECTION_LIMIT]


def _with_branch_words(query: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> list[RankedThread]:
    """Open issues whose title shares a word with both the branch's name and the title of a hit."""
    shared_terms = {term for one in hits for term in terms(one.card.title)} & query.distinctive.keys()
    if not shared_terms:
        return []
    found = cards.search(dict.fromkeys(shared_terms, 1.0), limit=SEARCH_LIMIT, keep=_is_task)
    titles = {one.card.id: shared_terms.intersection(terms(one.card.title)) for one in found}
    return [
        RankedThread(one.card, 0.0, (f"its title has {', '.join(spellings(query.text, sorted(titles[one.card.id])))}",))
        for one in found
        if titles[one.card.id]
    ]


def _is_task(card: ThreadFacts) -> bool:
    return card.kind.traits.is_listed and card.state == "open"
