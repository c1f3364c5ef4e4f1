"""How well the product finds the known duplicates of a history: every question against memory as it was then."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from time import perf_counter

from bot.evaluation.examples import MOST_EXAMPLES, Example, example, fit, own_ranking
from bot.evaluation.labels import Links
from bot.evaluation.replay import History, Past, epochs, pasts
from bot.model import Thread, ThreadId
from bot.ranking import Ranking, shipped
from bot.recall.mentioned import Place, referenced
from bot.recall.rank import Ranked
from bot.recall.troubleshoot import candidates

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Query:
    """A thread whose earlier duplicates are known."""

    id: ThreadId
    relevant: frozenset[ThreadId]


@dataclass(frozen=True, slots=True)
class Found:
    """``rank``: the place of the first relevant thread, from 1; None where it is no candidate. ``ms``: time taken."""

    id: ThreadId
    rank: int | None
    ms: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: the ranking for each query (None: the shipped one, fitted to the history as it goes), and how
    many days before a query its candidates may have been created (None: all history)."""

    rankings: Mapping[ThreadId, Ranking] | None = None
    window: timedelta | None = None


def evaluate(
    history: History, queries: Sequence[Query], trial: Trial, tick: Progress = lambda _: None
) -> tuple[list[Found], list[Example]]:
    """Where each query finds what is relevant to it, oldest query first, and the examples that they give.

    Without rankings of its own the trial learns on the way, as a repository does: from the duplicates that had been
    marked before an epoch began, if they are enough.
    """
    wanted = {query.id: query.relevant for query in queries}
    asked = [thread for thread in history.threads if thread.id in wanted]
    learns = trial.rankings is None
    links = Links.read(history.threads) if learns else Links({}, ())
    taught = _taught(links, asked)
    lessons = [thread for thread in history.threads if thread.id in taught and thread.id not in wanted]
    found: list[Found] = []
    own: list[Example] = []
    examples: list[Example] = []
    for epoch, past in pasts(history, epochs(history, [*asked, *lessons])):
        learned = own_ranking(own, shipped(), epoch.asked[0].created_at)
        for thread in epoch.asked:
            library = past.ranked_by((trial.rankings or {}).get(thread.id, learned)).within(trial.window)
            if thread.id in wanted:
                place, ranked = _ask(thread, wanted[thread.id], library)
                found.append(place)
                examples += _kept(example(ranked, wanted[thread.id], thread.created_at))
                tick(1)
            if thread.id in taught:
                own += _lesson(thread, library, links)
    return found, examples


def by_folds(
    history: History, queries: Sequence[Query], folds: int, window: timedelta | None, tick: Progress = lambda _: None
) -> list[Found]:
    """Like `evaluate`, each query ranked with weights that were fitted to the other folds only, from nothing.

    Folds are stretches of time of equal numbers of queries.
    """
    place = {thread.id: number for number, thread in enumerate(history.threads)}
    ordered = sorted(queries, key=lambda query: place[query.id])
    fold_of = {query.id: number * folds // len(ordered) for number, query in enumerate(ordered)}
    _, examples = evaluate(history, ordered, Trial({query.id: shipped() for query in ordered}, window), tick)
    created = {history.threads[place[query.id]].created_at: fold_of[query.id] for query in ordered}
    rankings = [fit([one for one in examples if created[one.known_at] != fold], None, 1.0) for fold in range(folds)]
    trial = Trial({query.id: rankings[fold_of[query.id]] for query in ordered}, window)
    return evaluate(history, ordered, trial, tick)[0]


def masked(thread: Thread, relevant: Iterable[ThreadId]) -> Thread:
    """The thread as it was opened, without its citations of these threads."""
    opened = thread.as_of(thread.created_at)
    citations = [_citation(key) for key in sorted(relevant, key=str, reverse=True)]
    if not citations:
        return opened
    pattern = re.compile("|".join(citations), re.IGNORECASE)
    return replace(opened, title=pattern.sub(" ", opened.title), body=pattern.sub(" ", opened.body))


def _citation(key: ThreadId) -> str:
    return rf"(?:#|\bGH-|/(?:issues|pull)/){key}\b" if isinstance(key, int) else rf"(?<![\w-]){re.escape(key)}\b"


def _ask(thread: Thread, relevant: frozenset[ThreadId], past: Past) -> tuple[Found, Ranked]:
    asked = masked(thread, relevant)
    started = perf_counter()
    ranked = candidates(asked, past, thread.created_at, referenced(asked, Place()))
    ms = 1000 * (perf_counter() - started)
    places = (n for n, c in enumerate(ranked.candidates, 1) if relevant.intersection((c.entry.id, *c.folded)))
    return Found(thread.id, next(places, None), ms), ranked


def _taught(links: Links, asked: Sequence[Thread]) -> set[ThreadId]:
    """The marked duplicates that may teach something before these threads are asked, or while they are."""
    if not asked:
        return set()
    marked = [key for key in links.duplicates() if links.created[key] < asked[-1].created_at]
    earlier = [key for key in marked if links.created[key] < asked[0].created_at]
    return {*earlier[-MOST_EXAMPLES:], *marked[len(earlier) :]}


def _lesson(thread: Thread, past: Past, links: Links) -> list[Example]:
    """What a marked duplicate teaches once the mark is known: that and what had been marked before."""
    known_at = links.first_duplicate_mark(thread.id)
    if known_at is None:
        return []
    right = links.known_at(known_at + timedelta(microseconds=1)).relations(thread).duplicates
    _, ranked = _ask(thread, right, past)
    return _kept(example(ranked, right, known_at))


def _kept(one: Example | None) -> list[Example]:
    return [one] if one else []
