"""Replays the newest threads of a history: the comment on each, and the threads that people linked it to later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter

from bot.domain.answer import Context, Speak
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.evaluate import masked, rank_of
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import PastLibrary, ReplayHistory, epochs, pasts
from bot.evaluation.results import Progress, Relations, Replayed, ShownThread
from bot.ranking.order import Candidate
from bot.ranking.weights import RankingModels
from bot.reading.analyzer import terms
from bot.recall.answer import decide, recall
from bot.recall.library import WithoutWords
from bot.recall.mentions import canonical_chain, referenced
from bot.recall.similar import SimilarThread, find_candidates, judge_candidates
from bot.settings.schema import Settings

Render = Callable[[Thread, Context], str]
"""(thread, what to say about it) → the comment."""


@dataclass(frozen=True)
class Watch:
    """How to replay threads. ``render`` None leaves the comments out; ``trains``: word vectors are trained."""

    ranking: RankingModels
    settings: Settings
    place: RepositoryAddress = field(default_factory=RepositoryAddress)
    render: Render | None = None
    trains: bool = True


@dataclass(frozen=True, slots=True)
class ReplayedHits:
    """A replayed thread and the candidates behind its hits, in the same order."""

    replayed: Replayed
    candidates: tuple[Candidate, ...]


def replay(
    history: ReplayHistory,
    links: LinkLabels,
    asked: Sequence[Thread],
    watch: Watch,
    tick: Progress = lambda _: None,
    until: float | None = None,
) -> Iterator[ReplayedHits]:
    """Replay these threads, newest first, each against the older ones then; stops at ``until`` (monotonic time)."""
    for epoch, past in pasts(history, reversed(epochs(history, asked)), trains=watch.trains):
        library = past.ranked_by(watch.ranking)
        for thread in reversed(epoch.asked):
            if until is not None and monotonic() > until:
                return
            yield _one(thread, library, links.relations(thread), watch)
            tick(1)


def newest(history: ReplayHistory, count: int) -> list[Thread]:
    """The newest issues that a person opened, oldest first."""
    fit = [thread for thread in history.threads if thread.kind.traits.is_answered and not thread.is_bot]
    return fit[-count:]


def _one(thread: Thread, library: PastLibrary, relations: Relations, watch: Watch) -> ReplayedHits:
    opened = masked(thread, ())
    started = perf_counter()
    ordered, best = _best(opened, library, watch)
    candidates, related = tuple(one.candidate for one in best), relations.all
    hits = tuple(
        ShownThread(
            id=c.entry.id,
            title=c.entry.title,
            is_open=c.entry.open_at(thread.created_at),
            similarity=c.similarity,
            confidence=c.confidence,
            is_shown=c.similarity >= watch.settings.troubleshooting.similarity_threshold,
            related=c.is_any_of(related),
            why=one.why,
        )
        for c, one in zip(candidates, best, strict=True)
    )
    ms = 1000 * (perf_counter() - started)
    rank = rank_of(related, ordered)
    said = _comment(opened, library, watch)
    one = Replayed(thread.id, thread.title, thread.created_at, hits, relations, rank, ms, *said)
    return ReplayedHits(one, candidates)


def _best(opened: Thread, library: PastLibrary, watch: Watch) -> tuple[Sequence[Candidate], Sequence[SimilarThread]]:
    """All candidates in order, and those that fill the places of a comment, as in `recall`."""
    before, place = opened.created_at, watch.place
    known = [key for one in referenced(opened, place) for key in canonical_chain(one, library, before, place.repo)]
    ranked = find_candidates(opened, library, before, known)
    if not terms(opened.title):
        return ranked.candidates, ()
    limits = watch.settings.troubleshooting
    library_read = WithoutWords(library, watch.settings.ignore.people)
    found = [one for one in judge_candidates(opened, ranked, library_read, before) if one.why]
    closed = [one for one in found if one.thread.is_closed][: limits.max_results]
    still_open = [one for one in found if not one.thread.is_closed][: limits.open_results]
    return ranked.candidates, (*closed, *still_open)


def _comment(opened: Thread, library: PastLibrary, watch: Watch) -> tuple[str, int]:
    if watch.render is None:
        return "", 0
    answer = decide(recall(opened, library, watch.settings, watch.place, opened.created_at))
    if not isinstance(answer, Speak):
        return "", 0
    return watch.render(opened, answer.context), len(answer.context.mentioned)
