"""Measures how well the known duplicates of a history are found: every question against memory as it was then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic, perf_counter

from bot.domain.thread import RepositoryAddress, Thread, ThreadId
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import PastLibrary, ReplayHistory, epochs, pasts
from bot.evaluation.results import Progress
from bot.ranking.features import MODEL, ORDER_FEATURES, TRAINED
from bot.ranking.order import Candidate, RankedCandidates
from bot.ranking.weights import ORDER, RankingModels, RankingWeights, shipped
from bot.recall.mentions import referenced
from bot.recall.similar import find_candidates

ROUNDS = 2
_PLAIN = RankingWeights({"text": 5.0, "trained": 5.0, "semantic": 5.0}, {}, 0.0, 0.5)
UNTAUGHT = RankingModels(_PLAIN, _PLAIN, _PLAIN)
"""Picks candidates where nothing may be learned from the queries: by likeness alone, with equal weights."""


@dataclass(frozen=True, slots=True)
class EvaluationQuery:
    """A thread whose earlier duplicates are known."""

    id: ThreadId
    relevant: frozenset[ThreadId]


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """``rank``: the place of the first relevant thread, from 1; None if none is a candidate. ``ms``: time taken."""

    id: ThreadId
    rank: int | None
    ms: float


@dataclass(frozen=True, slots=True)
class Trial:
    """The ranking for each query (None: the shipped one, fitted to the history on the way), and the period before a
    query in which its candidates were created (None: all history)."""

    rankings: Mapping[ThreadId, RankingModels] | None = None
    window: timedelta | None = None


def evaluate(
    history: ReplayHistory, queries: Sequence[EvaluationQuery], trial: Trial, tick: Progress = lambda _: None
) -> tuple[list[EvaluationResult], list[Example]]:
    """The rank of the first relevant thread for each query, oldest query first, and the examples that they give.

    A trial without rankings learns on the way, as a repository does: from the duplicates that were marked before an
    epoch began, if there are enough.
    """
    wanted = {query.id: query.relevant for query in queries}
    asked = [thread for thread in history.threads if thread.id in wanted]
    learns = trial.rankings is None
    links = LinkLabels.read(history.threads) if learns else LinkLabels({}, ())
    taught = _taught(history, links, asked)
    lessons = [thread for thread in history.threads if thread.id in taught and thread.id not in wanted]
    found: list[EvaluationResult] = []
    own: list[Example] = []
    examples: list[Example] = []
    for epoch, past in pasts(history, epochs(history, [*asked, *lessons])):
        learned = own_ranking(own, shipped(), history.threads[epoch.trained_on].created_at)
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


def lessons(history: ReplayHistory, links: LinkLabels, ranking: RankingModels, until: float) -> Iterator[Example]:
    """The examples that the marked duplicates of a history give, newest first; stops at ``until`` (monotonic time)."""
    marked = set(links.duplicates()[-2 * MOST_EXAMPLES :])
    parts = epochs(history, [thread for thread in history.threads if thread.id in marked])
    for epoch, past in pasts(history, reversed(parts)):
        library = past.ranked_by(ranking)
        for thread in reversed(epoch.asked):
            if monotonic() > until:
                return
            yield from _lesson(thread, library, links)


def by_folds(
    history: ReplayHistory,
    queries: Sequence[EvaluationQuery],
    folds: int,
    window: timedelta | None,
    tick: Progress = lambda _: None,
    names: Sequence[str] = ORDER,
) -> list[EvaluationResult]:
    """Like `evaluate`, but rank each query with weights that were fitted, from zero, to the other folds only.

    Folds are periods with equal numbers of queries. Weights are fitted ROUNDS times, each time to the candidates that
    the previous weights pick. Only the features in ``names`` get a weight.
    """
    created = {thread.id: thread.created_at for thread in history.threads}
    ordered = sorted((query for query in queries if query.id in created), key=lambda query: created[query.id])
    fold_at: dict[datetime, int] = {}  # queries of one moment share a fold: examples are told apart by their moments
    for number, query in enumerate(ordered):
        fold_at.setdefault(created[query.id], number * folds // len(ordered))
    held = [frozenset(query.id for query in ordered if fold_at[created[query.id]] == fold) for fold in range(folds)]
    rankings = [UNTAUGHT] * folds
    for _ in range(ROUNDS):
        taught = _folds_taught(history, ordered, rankings, held, window)
        rankings = [fit_ranking(examples, None, 1.0, names) for examples in taught]
    trial = Trial({query.id: rankings[fold_at[created[query.id]]] for query in ordered}, window)
    return evaluate(history, ordered, trial, tick)[0]


def _folds_taught(
    history: ReplayHistory,
    queries: Sequence[EvaluationQuery],
    rankings: Sequence[RankingModels],
    held: Sequence[frozenset[ThreadId]],
    window: timedelta | None,
) -> list[list[Example]]:
    """For each fold, the examples of the queries outside it, among the candidates that its ranking picks."""
    wanted = {query.id: query.relevant for query in queries}
    asked = [thread for thread in history.threads if thread.id in wanted]
    found: list[list[Example]] = [[] for _ in rankings]
    for epoch, past in pasts(history, epochs(history, asked)):
        libraries = [past.ranked_by(ranking).within(window) for ranking in rankings]
        for thread in epoch.asked:
            for fold, library in enumerate(libraries):
                if thread.id not in held[fold]:
                    ranked = _ask(thread, wanted[thread.id], library)[1]
                    found[fold] += _kept(example(ranked, wanted[thread.id], thread.created_at))
    return found


def masked(thread: Thread, relevant: Iterable[ThreadId]) -> Thread:
    """The thread as it was opened, without its citations of these threads and before anybody said a word."""
    opened = replace(thread.as_of(thread.created_at), comments=())
    text = f"{opened.title}\n{opened.body}".lower()
    # A pattern for a whole large group is slow to compile.
    named = [key for key in relevant if str(key).lower() in text]
    if not named:
        return opened
    citations = [_citation(key) for key in sorted(named, key=str, reverse=True)]
    pattern = re.compile("|".join(citations), re.IGNORECASE)
    return replace(opened, title=pattern.sub(" ", opened.title), body=pattern.sub(" ", opened.body))


def _citation(key: ThreadId) -> str:
    name = rf"(?:#|\bGH-|/(?:issues|pull)/){key}" if isinstance(key, int) else rf"(?<![\w-]){re.escape(key)}"
    return rf"{name}(?!\w)"


def _ask(thread: Thread, relevant: frozenset[ThreadId], past: PastLibrary) -> tuple[EvaluationResult, RankedCandidates]:
    asked = masked(thread, relevant)
    started = perf_counter()
    ranked = find_candidates(asked, past, thread.created_at, referenced(asked, RepositoryAddress()))
    ms = 1000 * (perf_counter() - started)
    return EvaluationResult(thread.id, rank_of(relevant, ranked.candidates), ms), ranked


def rank_of(relevant: frozenset[ThreadId], candidates: Iterable[Candidate]) -> int | None:
    """The place of the first relevant candidate, from 1."""
    return next((place for place, one in enumerate(candidates, 1) if one.is_any_of(relevant)), None)


def _taught(history: ReplayHistory, links: LinkLabels, asked: Sequence[Thread]) -> set[ThreadId]:
    """The marked duplicates that can become examples before these threads are asked, or while they are.

    Of the marks before the first epoch only the newest count; a later mark displaces none of them.
    """
    if not asked:
        return set()
    begin = history.threads[epochs(history, asked)[0].trained_on].created_at
    marked = [(at, key) for key in links.duplicates() if (at := links.first_duplicate_mark(key)) is not None]
    marked = sorted((one for one in marked if one[0] < asked[-1].created_at), key=lambda one: one[0])
    early = sum(at < begin for at, _ in marked)
    return {key for _, key in marked[max(0, early - MOST_EXAMPLES) :]}


def _lesson(thread: Thread, past: PastLibrary, links: LinkLabels) -> list[Example]:
    """The example of a marked duplicate, as soon as the mark is known, with the marks before it."""
    known_at = links.first_duplicate_mark(thread.id)
    if known_at is None:
        return []
    right = links.known_at(known_at + timedelta(microseconds=1)).relations(thread).duplicates
    _, ranked = _ask(thread, right, past)
    return _kept(example(ranked, right, known_at))


def _kept(one: Example | None) -> list[Example]:
    return [one] if one else []


LEAST_EXAMPLES = 100
"""Fewer marked duplicates give worse weights than the shipped ones."""

MOST_EXAMPLES = 500
"""The newest examples are enough: the curve is flat from 250 on."""

STRENGTH = 10.0
"""How strongly a repository's own weights are drawn to the shipped ones, in units of each feature's spread."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question: the features of its candidates, which of them are right, and since when that is known."""

    features: tuple[Mapping[str, float], ...]
    right: tuple[bool, ...]
    known_at: datetime


def example(found: RankedCandidates, right: frozenset[ThreadId], known_at: datetime) -> Example | None:
    """The example that a ranked question gives; None when no candidate is right."""
    is_right = tuple(one.is_any_of(right) for one in found.candidates)
    return Example(tuple(c.features for c in found.candidates), is_right, known_at) if any(is_right) else None


def fit_ranking(
    examples: Sequence[Example], base: RankingModels | None, strength: float = STRENGTH, names: Sequence[str] = ORDER
) -> RankingModels:
    """Fit a ranking to these examples, drawn to ``base`` (None: to zero), whose confidences and cuts it keeps.

    Only the features in ``names`` get a new weight.
    """
    blank = RankingWeights({}, {}, 0.0, 0.5)
    known = base or RankingModels(blank, blank, blank)
    source = {each.name: each.source for each in ORDER_FEATURES}
    trained = [name for name in names if source[name] != MODEL]
    return RankingModels(
        _fitted(examples, known.with_vectors, strength, trained),
        _fitted(examples, known.by_words, strength, [name for name in trained if source[name] != TRAINED]),
        _fitted(examples, known.with_text_model, strength, names),
        {**known.provenance, "order": f"{len(examples)} marked duplicates of this repository"},
    )


def own_ranking(examples: Iterable[Example], base: RankingModels, moment: datetime) -> RankingModels:
    """``base``, fitted to the duplicates that were marked before that moment, if there are enough."""
    known = sorted((one for one in examples if one.known_at < moment), key=lambda one: one.known_at)
    return fit_ranking(known[-MOST_EXAMPLES:], base) if len(known) >= LEAST_EXAMPLES else base


def _fitted(
    examples: Sequence[Example], model: RankingWeights, strength: float, names: Sequence[str]
) -> RankingWeights:
    from bot.ranking.fit import fit_order

    used = [name for name in names if any(name in one.features[0] for one in examples)]
    order = fit_order([(one.features, one.right) for one in examples], used, prior=model.order, strength=strength)
    kept = {name: weight for name, weight in model.order.items() if name not in used}
    return RankingWeights({**kept, **order}, model.confidence, model.intercept, model.cut)
