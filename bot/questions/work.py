"""Finds the threads that matter for the work at hand, without a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.domain.card import CardId, SessionOutline, ThreadFacts
from bot.questions.related import (
    decided_when,
    decisions_of,
    expand,
    newest_decision,
    open_pulls,
    threads_naming,
    with_files,
    with_newest,
)
from bot.questions.requests import Cards, SmartSearch, WorkRequest
from bot.questions.smart_search import SEARCH_LIMIT, RankedThread, smart, spellings, thread_reference
from bot.questions.worktree_query import WorktreeQuery, worktree_query
from bot.reading.analyzer import terms

SECTION_LIMIT = 3
"""Threads in a section of `what`."""

_ANY_TASK = "open in this project; none is near this work"
"""The reason for a task if no open issue is near the work at hand."""


@dataclass(frozen=True, slots=True)
class WorkAnswer:
    """At most three threads in each section, none twice in one; the signals used, and those that could not be.
    ``sessions`` are the agents' sessions on this work, ``pulls`` the open pull requests on its files or on the open
    issues shown.

    Threads in ``decisions`` and ``recent`` have only their newest decision. If no task is near the work, ``tasks`` has
    the open issues of the project that changed last, each with that reason, and ``has_near_tasks`` is false.
    """

    related: tuple[RankedThread, ...] = ()
    decisions: tuple[RankedThread, ...] = ()
    tasks: tuple[RankedThread, ...] = ()
    pulls: tuple[RankedThread, ...] = ()
    recent: tuple[RankedThread, ...] = ()
    sessions: tuple[SessionOutline, ...] = ()
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    has_near_tasks: bool = False

    @property
    def is_relevant(self) -> bool:
        """Whether anything is related to the work. The newest decisions and the tasks of the project do not count: they
        may be about anything."""
        return bool(self.related or self.decisions or self.has_near_tasks or self.pulls or self.sessions)


def find_for_work(request: WorkRequest, cards: Cards, sessions: Sequence[SessionOutline] = ()) -> WorkAnswer:
    """Find what is related to the branch, was decided about its files, or is open near it; and the newest decisions.

    ``sessions`` are those on this work, the most recent first.
    """
    now, query = request.now, worktree_query(request.worktree)
    found = smart(SmartSearch("", request.worktree, now, SEARCH_LIMIT), cards)
    related = found.hits[:SECTION_LIMIT]
    mentions = threads_naming(query.files, cards)
    distinctive = with_files(mentions, lambda file: file.is_distinctive)
    decisions = decisions_of(with_files(mentions, lambda file: file.telling > 0).values(), now)[:SECTION_LIMIT]
    tasks = _near_tasks(query, found.hits, cards)
    return WorkAnswer(
        related=related,
        decisions=decisions,
        tasks=tasks or _tasks_of_project(cards),
        pulls=open_pulls(distinctive, [one.card for one in (*related, *tasks)], cards)[:SECTION_LIMIT],
        recent=_newest_decisions({one.card.id for one in decisions}, now, cards),
        sessions=tuple(sessions)[:SECTION_LIMIT],
        used=found.used,
        unused=found.unused,
        has_near_tasks=bool(tasks),
    )


def _newest_decisions(shown: set[CardId], now: datetime, cards: Cards) -> tuple[RankedThread, ...]:
    newest = [card for card in cards.recently_decided(SECTION_LIMIT + len(shown)) if card.id not in shown]
    decided = [with_newest(card, decided_when(newest_decision(card), now)) for card in newest if card.decisions]
    return tuple(decided[:SECTION_LIMIT])


def _tasks_of_project(cards: Cards) -> tuple[RankedThread, ...]:
    return tuple(RankedThread(card, 0.0, (_ANY_TASK,)) for card in cards.newest(SECTION_LIMIT, _is_task))


def _near_tasks(query: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> tuple[RankedThread, ...]:
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
