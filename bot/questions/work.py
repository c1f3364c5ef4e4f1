"""Finds the threads that matter for the work at hand, for some words, or for some files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from bot.domain.card import CardId, Passage, ThreadFacts
from bot.questions.passages import passages_of
from bot.questions.related import (
    decided_when,
    decisions_of,
    expand,
    newest_decision,
    open_pulls,
    rank_by_files,
    threads_naming,
    threads_naming_paths,
    with_files,
    with_newest,
)
from bot.questions.requests import Cards, ReadMessages, WorkRequest, nothing_read
from bot.questions.smart_search import (
    SEARCH_LIMIT,
    RankedThread,
    rank_threads,
    spellings,
    thread_reference,
    unused_signals,
)
from bot.questions.worktree_query import WorktreeQuery, worktree_query
from bot.reading.analyzer import terms

WORK_LIMIT, FILES_LIMIT = 3, 10
"""Threads in a section of `what`, and of `related`."""

_ANY_TASK = "open in this project; none is near this work"
"""The reason for a task if no open issue is near the work at hand."""


@dataclass(frozen=True, slots=True)
class WorkAnswer:
    """The relevant ``threads``, best first, what was said there about the words, the signals used, and those that could
    not be.

    The other sections are empty after a search. Threads in ``decisions`` and ``recent`` have only their newest
    decision; ``pulls`` are the open pull requests on the files or on the open issues shown. If no task is near the
    work, ``tasks`` has the open issues of the project that changed last, each with that reason, and ``has_near_tasks``
    is false.
    """

    threads: tuple[RankedThread, ...] = ()
    decisions: tuple[RankedThread, ...] = ()
    tasks: tuple[RankedThread, ...] = ()
    pulls: tuple[RankedThread, ...] = ()
    recent: tuple[RankedThread, ...] = ()
    passages: Mapping[CardId, Passage] = field(default_factory=dict)
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    has_near_tasks: bool = False

    @property
    def is_relevant(self) -> bool:
        """Whether anything is related to the work. The newest decisions and the tasks of the project do not count: they
        may be about anything."""
        return bool(self.threads or self.decisions or self.has_near_tasks or self.pulls)


def find_for_work(request: WorkRequest, cards: Cards, read: ReadMessages = nothing_read) -> WorkAnswer:
    """Find what is related to the work, to the words or to the files, in sections without repetitions; see
    `WorkRequest`.

    At most ten threads in each section about files, and three about the work.
    """
    if request.files:
        return _about_files(request, cards)
    signals = worktree_query(request.worktree)
    ranked = rank_threads(request, signals, cards, read)
    unused = (*request.query.unused, *unused_signals(request.worktree, signals))
    answer = _hits(request, ranked, read) if request.is_search else _about_work(request, signals, ranked, cards)
    return replace(answer, used=signals.used, unused=unused)


def _hits(request: WorkRequest, ranked: tuple[RankedThread, ...], read: ReadMessages) -> WorkAnswer:
    threads = ranked[: max(0, request.limit)]
    messages = ((one.card.id, one.card.kind, one.message) for one in threads)
    return WorkAnswer(threads, passages=passages_of(messages, request.query, read))


def _about_files(request: WorkRequest, cards: Cards) -> WorkAnswer:
    mentions = threads_naming_paths(request.files, cards)
    threads = rank_by_files(mentions.values(), request.now)[:FILES_LIMIT]
    return WorkAnswer(
        threads,
        decisions=decisions_of(mentions.values(), request.now)[:FILES_LIMIT],
        pulls=open_pulls(mentions, [one.card for one in threads], cards)[:FILES_LIMIT],
    )


def _about_work(
    request: WorkRequest, signals: WorktreeQuery, ranked: tuple[RankedThread, ...], cards: Cards
) -> WorkAnswer:
    hits, now = ranked[:SEARCH_LIMIT], request.now
    threads = hits[:WORK_LIMIT]
    mentions = threads_naming(signals.files, cards)
    distinctive = with_files(mentions, lambda file: file.is_distinctive)
    decisions = decisions_of(with_files(mentions, lambda file: file.telling > 0).values(), now)[:WORK_LIMIT]
    tasks = _near_tasks(signals, hits, cards)
    return WorkAnswer(
        threads,
        decisions,
        tasks or _tasks_of_project(cards),
        pulls=open_pulls(distinctive, [one.card for one in (*threads, *tasks)], cards)[:WORK_LIMIT],
        recent=_newest_decisions({one.card.id for one in decisions}, now, cards),
        has_near_tasks=bool(tasks),
    )


def _newest_decisions(shown: set[CardId], now: datetime, cards: Cards) -> tuple[RankedThread, ...]:
    newest = [card for card in cards.recently_decided(WORK_LIMIT + len(shown)) if card.id not in shown]
    decided = [with_newest(card, decided_when(newest_decision(card), now)) for card in newest if card.decisions]
    return tuple(decided[:WORK_LIMIT])


def _tasks_of_project(cards: Cards) -> tuple[RankedThread, ...]:
    return tuple(RankedThread(card, 0.0, (_ANY_TASK,)) for card in cards.newest(WORK_LIMIT, _is_task))


def _near_tasks(query: WorktreeQuery, hits: tuple[RankedThread, ...], cards: Cards) -> tuple[RankedThread, ...]:
    """Open issues: those among the hits, then those that share a word with the branch and a hit, then linked ones."""
    found = {thread.card.id: thread for thread in hits if _is_task(thread.card)}
    for thread in _with_branch_words(query, hits, cards):
        found.setdefault(thread.card.id, thread)
    near = [thread.card.id for thread in hits[:WORK_LIMIT]]
    for neighbour in expand(dict.fromkeys((*query.tickets, *near)), cards):
        if _is_task(neighbour.card):
            verb = "names" if neighbour.direction == "from" else "is named by"
            found.setdefault(
                neighbour.card.id, RankedThread(neighbour.card, 0.0, (f"{verb} {thread_reference(neighbour.hit)}",))
            )
    return tuple(found.values())[:WORK_LIMIT]


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
