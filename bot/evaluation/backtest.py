"""Replays the newest threads of a history: the comment on each, and the threads that people linked it to later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter

from bot.domain.answer import Context, Speak
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.evaluate import mask_citations, rank_of
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import PastLibrary, ReplayHistory, past_library
from bot.evaluation.results import Progress, Relations, Replayed, ShownThread
from bot.ranking.order import Candidate
from bot.ranking.weights import RankingModels
from bot.recall.answer import decide, recall
from bot.recall.mentions import canonical_chain, referenced_numbers
from bot.recall.similar import SimilarThread, find_candidates, has_words, judge_candidates
from bot.settings.schema import Settings

Render = Callable[[Thread, Context], str]
"""(thread, what to say about it) → the comment."""


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay threads. ``render`` None leaves the comments out."""

    ranking: RankingModels
    settings: Settings
    place: RepositoryAddress = field(default_factory=RepositoryAddress)
    render: Render | None = None


@dataclass(frozen=True, slots=True)
class ReplayedHits:
    """A replayed thread and the candidates behind its hits, in the same order."""

    replayed: Replayed
    candidates: tuple[Candidate, ...]


def replay(
    history: ReplayHistory,
    links: LinkLabels,
    threads: Sequence[Thread],
    watch: ReplayOptions,
    tick: Progress = lambda _: None,
    until: float | None = None,
) -> Iterator[ReplayedHits]:
    """Replay these threads, which are in the order of their creation, newest first, each against the memory of its
    time; stops at ``until`` (monotonic time)."""
    with past_library(history) as past:
        library = past.with_ranking(watch.ranking).without(watch.settings.ignore.hidden)
        for thread in reversed(threads):
            if until is not None and monotonic() > until:
                return
            yield _replay_thread(thread, library, links.relations(thread), watch)
            tick(1)


def newest_issues(history: ReplayHistory, count: int) -> list[Thread]:
    """The newest issues that a person opened, oldest first."""
    eligible = [thread for thread in history.threads if thread.kind.traits.is_answered and not thread.is_bot]
    return eligible[-count:]


def _replay_thread(thread: Thread, library: PastLibrary, relations: Relations, watch: ReplayOptions) -> ReplayedHits:
    opened = mask_citations(thread, ())
    started = perf_counter()
    ordered, best = _rank_candidates(opened, library, watch)
    candidates, related = tuple(match.candidate for match in best), relations.all
    hits = tuple(
        ShownThread(
            id=c.entry.id,
            title=c.entry.title,
            is_open=c.entry.open_at(thread.created_at),
            similarity=c.similarity,
            confidence=c.confidence,
            is_shown=c.similarity >= watch.settings.similar.threshold,
            related=c.is_any_of(related),
            why=match.why,
        )
        for c, match in zip(candidates, best, strict=True)
    )
    ms = 1000 * (perf_counter() - started)
    rank = rank_of(related, ordered)
    comment = _write_comment(opened, library, watch)
    replayed = Replayed(thread.id, thread.title, thread.created_at, hits, relations, rank, ms, *comment)
    return ReplayedHits(replayed, candidates)


def _rank_candidates(
    opened: Thread, library: PastLibrary, watch: ReplayOptions
) -> tuple[Sequence[Candidate], Sequence[SimilarThread]]:
    """All candidates in order, and those that a comment would list, as in `recall`."""
    before, address = opened.created_at, watch.place
    mentioned = [
        key
        for number in referenced_numbers(opened, address)
        for key in canonical_chain(number, library, before, address.repo)
    ]
    ranked = find_candidates(opened, library, before, mentioned)
    if not has_words(opened):
        return ranked.candidates, ()
    limits = watch.settings.similar
    similar = [hit for hit in judge_candidates(opened, ranked, library, before) if hit.why]
    closed = [hit for hit in similar if hit.thread.is_closed][: limits.max]
    still_open = [hit for hit in similar if not hit.thread.is_closed][: limits.open]
    return ranked.candidates, (*closed, *still_open)


def _write_comment(opened: Thread, library: PastLibrary, watch: ReplayOptions) -> tuple[str, int]:
    if watch.render is None:
        return "", 0
    answer = decide(recall(opened, library, watch.settings, watch.place, opened.created_at), watch.settings.mentions)
    if not isinstance(answer, Speak):
        return "", 0
    return watch.render(opened, answer.context), len(answer.context.mentioned)
