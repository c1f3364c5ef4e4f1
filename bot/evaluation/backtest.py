"""Replays the newest threads of a history: the comment on each, and the threads that people linked it to later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import monotonic, perf_counter

from bot.domain.answer import Context, Speak
from bot.domain.thread import RepositoryAddress, Thread, ThreadId
from bot.evaluation.evaluate import mask_citations, rank_of
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import PastLibrary, ReplayHistory, past_library
from bot.evaluation.results import PassedOver, Progress, Relations, Replayed, ShownThread
from bot.ranking.order import Candidate
from bot.ranking.weights import RankingModels
from bot.recall.answer import decide, recall
from bot.recall.mentions import canonical_chain, referenced_numbers
from bot.recall.similar import SimilarThread, find_candidates, has_words, is_same_day, judge_candidates
from bot.settings.schema import Settings, SimilarSettings

Render = Callable[[Thread, Context], str]
"""(thread, what to say about it) → the comment."""


MORE_SIMILAR = "left out: others are more similar"
NO_REASON = "left out: the texts share nothing that a comment could give as its reason"
NOT_READ = "left out: too few words in common, or too many others are more alike"
SAME_AUTHOR = "left out: the same person opened it on the same day"
"""Why a thread that the search found is not listed."""


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
    ordered, judged = _rank_candidates(opened, library, watch)
    best, related = _listed(judged, watch.settings.similar), relations.all
    candidates = tuple(match.candidate for match in best)
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
    passed_over = None if any(hit.related for hit in hits) else _passed_over(opened, related, ordered, judged)
    replayed = Replayed(thread.id, thread.title, thread.created_at, hits, relations, rank, ms, *comment, passed_over)
    return ReplayedHits(replayed, candidates)


def _rank_candidates(
    opened: Thread, library: PastLibrary, watch: ReplayOptions
) -> tuple[Sequence[Candidate], Sequence[SimilarThread]]:
    """All candidates in order, and those whose texts were read, the most similar first, as in `recall`."""
    before, address = opened.created_at, watch.place
    mentioned = [
        key
        for number in referenced_numbers(opened, address)
        for key in canonical_chain(number, library, before, address.repo)
    ]
    ranked = find_candidates(opened, library, before, mentioned)
    if not has_words(opened):
        return ranked.candidates, ()
    return ranked.candidates, judge_candidates(opened, ranked, library, before)


def _listed(judged: Sequence[SimilarThread], limits: SimilarSettings) -> Sequence[SimilarThread]:
    """Those that a comment would list, if they are similar enough."""
    closed = (match for match in judged if match.thread.is_closed and match.is_worth_showing)  # reads endings
    still_open = (match for match in judged if not match.thread.is_closed and match.is_worth_showing)
    return (*islice(closed, limits.max), *islice(still_open, limits.open))


def _passed_over(
    opened: Thread, related: frozenset[ThreadId], ordered: Sequence[Candidate], judged: Sequence[SimilarThread]
) -> PassedOver | None:
    """The first related candidate, which no comment would list, and why."""
    first = next((candidate for candidate in ordered if candidate.is_any_of(related)), None)
    if first is None:
        return None
    entry, read = first.entry, next((match for match in judged if match.candidate.entry.id == first.entry.id), None)
    if read:
        similarity, reason = read.candidate.similarity, MORE_SIMILAR if read.why else NO_REASON
    else:
        similarity, reason = None, SAME_AUTHOR if is_same_day(opened, entry) else NOT_READ
    return PassedOver(entry.id, entry.title, entry.open_at(opened.created_at), similarity, reason)


def _write_comment(opened: Thread, library: PastLibrary, watch: ReplayOptions) -> tuple[str, int]:
    if watch.render is None:
        return "", 0
    answer = decide(recall(opened, library, watch.settings, watch.place, opened.created_at), watch.settings.mentions)
    if not isinstance(answer, Speak):
        return "", 0
    return watch.render(opened, answer.context), len(answer.context.mentioned)
