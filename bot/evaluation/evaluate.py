"""Measures how well the known duplicates of a history are found: each query against memory as it was then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic, perf_counter

from bot.domain.thread import RepositoryAddress, Thread, ThreadId
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import PastLibrary, ReplayHistory, past_library
from bot.evaluation.results import Progress
from bot.ranking.features import MODEL, ORDER_FEATURES
from bot.ranking.order import Candidate
from bot.ranking.weights import ORDER_NAMES, RankingModels, RankingWeights, shipped
from bot.recall.mentions import referenced_numbers
from bot.recall.similar import find_candidates

FIRST_LEARNING_SIZE, RELEARNING_GROWTH = 50, 1.3
"""Like a memory in a run that nobody waits for, see `bot.pipeline.learn`."""

FIT_ROUNDS = 2
_EQUAL_WEIGHTS = RankingWeights({"text": 5.0, "semantic": 5.0}, {}, 0.0, 0.5)
UNTRAINED = RankingModels(_EQUAL_WEIGHTS, _EQUAL_WEIGHTS)
"""Picks candidates by similarity alone, with equal weights, where nothing may be learned from the queries."""


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
    """The ranking for each query (None: the shipped one, fitted to the history as it goes), and the period before a
    query in which its candidates were created (None: all history)."""

    rankings: Mapping[ThreadId, RankingModels] | None = None
    window: timedelta | None = None


def evaluate(
    history: ReplayHistory, queries: Sequence[EvaluationQuery], trial: Trial, tick: Progress = lambda _: None
) -> tuple[list[EvaluationResult], list[Example]]:
    """The rank of the first relevant thread for each query, oldest query first, and the examples that they give.

    A trial without rankings learns as it goes, like a repository, whenever the history has grown by RELEARNING_GROWTH:
    from the duplicates that were marked until then, if there are enough.
    """
    relevant = {query.id: query.relevant for query in queries}
    queried = [thread for thread in history.threads if thread.id in relevant]
    learns = trial.rankings is None
    links = LinkLabels.read(history.threads) if learns else LinkLabels({}, ())
    learnable = _learnable(history, links, queried)
    results: list[EvaluationResult] = []
    own_examples: list[Example] = []
    examples: list[Example] = []
    learned, learned_at = shipped(), history.threads[0].created_at if history.threads else None
    with past_library(history) as past:
        for thread in history.threads:
            if thread.id not in relevant and thread.id not in learnable:
                continue
            if learns and (moment := last_learning(history, thread)) != learned_at:
                learned, learned_at = own_ranking(own_examples, shipped(), moment), moment
            library = past.with_ranking((trial.rankings or {}).get(thread.id, learned)).with_window(trial.window)
            if thread.id in relevant:
                result, found = _rank_query(thread, relevant[thread.id], library, thread.created_at)
                results.append(result)
                examples += found
                tick(1)
            if thread.id in learnable:
                own_examples += _duplicate_example(thread, library, links)
    return results, examples


def last_learning(history: ReplayHistory, thread: Thread) -> datetime:
    """When a repository with this history last learned before this thread was created."""
    older, size = history.before(thread.created_at), float(FIRST_LEARNING_SIZE)
    last = 0
    while int(size) <= older:
        last = int(size)
        size *= RELEARNING_GROWTH
    return history.threads[last].created_at


def duplicate_examples(
    history: ReplayHistory, links: LinkLabels, ranking: RankingModels, until: float
) -> Iterator[Example]:
    """Yield the examples that the marked duplicates give, newest first; stops at ``until`` (monotonic time)."""
    marked = set(links.duplicates()[-2 * MAX_EXAMPLES :])
    with past_library(history) as past:
        library = past.with_ranking(ranking)
        for thread in reversed(history.threads):
            if thread.id not in marked:
                continue
            if monotonic() > until:
                return
            yield from _duplicate_example(thread, library, links)


def cross_validate(
    history: ReplayHistory,
    queries: Sequence[EvaluationQuery],
    folds: int,
    window: timedelta | None,
    tick: Progress = lambda _: None,
    names: Sequence[str] = ORDER_NAMES,
) -> list[EvaluationResult]:
    """Like `evaluate`, but rank each query with weights that were fitted, from zero, to the other folds only.

    Folds are periods with equal numbers of queries. Weights are fitted FIT_ROUNDS times, each time to the candidates
    that the previous weights pick. Only the features in ``names`` get a weight.
    """
    created = {thread.id: thread.created_at for thread in history.threads}
    ordered = sorted((query for query in queries if query.id in created), key=lambda query: created[query.id])
    fold_at: dict[datetime, int] = {}  # queries of one moment share a fold: only their moments tell examples apart
    for number, query in enumerate(ordered):
        fold_at.setdefault(created[query.id], number * folds // len(ordered))
    fold_of = {query: fold_at[created[query.id]] for query in ordered}
    rankings = [UNTRAINED] * folds
    for _ in range(FIT_ROUNDS):
        fold_examples = _fold_examples(history, fold_of, rankings, window)
        rankings = [fit_ranking(examples, None, 1.0, names) for examples in fold_examples]
    trial = Trial({query.id: rankings[fold] for query, fold in fold_of.items()}, window)
    return evaluate(history, ordered, trial, tick)[0]


def _fold_examples(
    history: ReplayHistory,
    fold_of: Mapping[EvaluationQuery, int],
    rankings: Sequence[RankingModels],
    window: timedelta | None,
) -> list[list[Example]]:
    """For each fold, the examples of the queries outside it, among the candidates that its ranking picks."""
    queries = {query.id: (query, fold) for query, fold in fold_of.items()}
    examples: list[list[Example]] = [[] for _ in rankings]
    with past_library(history) as past:
        libraries = [past.with_ranking(ranking).with_window(window) for ranking in rankings]
        for thread in (thread for thread in history.threads if thread.id in queries):
            query, own_fold = queries[thread.id]
            for fold, library in enumerate(libraries):
                if fold != own_fold:
                    examples[fold] += _rank_query(thread, query.relevant, library, thread.created_at)[1]
    return examples


def mask_citations(thread: Thread, relevant: Iterable[ThreadId]) -> Thread:
    """The thread as it was opened, without its citations of these threads and without comments."""
    opened = replace(thread.as_of(thread.created_at), comments=())
    text = f"{opened.title}\n{opened.body}".lower()
    # A pattern for a large group is slow to compile.
    cited = [key for key in relevant if str(key).lower() in text]
    if not cited:
        return opened
    citations = [_citation(key) for key in sorted(cited, key=str, reverse=True)]
    pattern = re.compile("|".join(citations), re.IGNORECASE)
    return replace(opened, title=pattern.sub(" ", opened.title), body=pattern.sub(" ", opened.body))


def _citation(key: ThreadId) -> str:
    name = rf"(?:#|\bGH-|/(?:issues|pull)/){key}" if isinstance(key, int) else rf"(?<![\w-]){re.escape(key)}"
    return rf"{name}(?!\w)"


def _rank_query(
    thread: Thread, relevant: frozenset[ThreadId], past: PastLibrary, known_at: datetime
) -> tuple[EvaluationResult, list[Example]]:
    """The result of a query, and the example that it gives; none if no candidate is relevant."""
    query = mask_citations(thread, relevant)
    started = perf_counter()
    mentioned = referenced_numbers(query, RepositoryAddress())
    candidates = find_candidates(query, past, thread.created_at, mentioned).candidates
    ms = 1000 * (perf_counter() - started)
    right = tuple(candidate.is_any_of(relevant) for candidate in candidates)
    examples = [Example(tuple(each.features for each in candidates), right, known_at)] if any(right) else []
    return EvaluationResult(thread.id, rank_of(relevant, candidates), ms), examples


def rank_of(relevant: frozenset[ThreadId], candidates: Iterable[Candidate]) -> int | None:
    """The place of the first relevant candidate, from 1."""
    return next((rank for rank, candidate in enumerate(candidates, 1) if candidate.is_any_of(relevant)), None)


def _learnable(history: ReplayHistory, links: LinkLabels, queried: Sequence[Thread]) -> set[ThreadId]:
    """The marked duplicates that can become examples before or during the evaluation of these threads.

    Of the marks before the last learning before them, only the newest count; later marks displace none of them.
    """
    if not queried:
        return set()
    begin = last_learning(history, queried[0])
    marked = [(at, key) for key in links.duplicates() if (at := links.first_duplicate_mark(key)) is not None]
    marked = sorted((mark for mark in marked if mark[0] < queried[-1].created_at), key=lambda mark: mark[0])
    early = sum(at < begin for at, _ in marked)
    return {key for _, key in marked[max(0, early - MAX_EXAMPLES) :]}


def _duplicate_example(thread: Thread, past: PastLibrary, links: LinkLabels) -> list[Example]:
    """The example of a marked duplicate, as soon as the mark is known, with the marks before it."""
    known_at = links.first_duplicate_mark(thread.id)
    if known_at is None:
        return []
    right = links.known_at(known_at + timedelta(microseconds=1)).relations(thread).duplicates
    return _rank_query(thread, right, past, known_at)[1]


MIN_EXAMPLES = 100
"""Fewer marked duplicates give worse weights than the shipped ones."""

MAX_EXAMPLES = 500
"""The newest examples are enough: the curve is flat from 250 on."""

PRIOR_STRENGTH = 10.0
"""How strongly a repository's own weights are drawn to the shipped ones, in units of each feature's spread."""


@dataclass(frozen=True, slots=True)
class Example:
    """One query: the features of its candidates, which of them are right, and when that became known."""

    features: tuple[Mapping[str, float], ...]
    right: tuple[bool, ...]
    known_at: datetime


def fit_ranking(
    examples: Sequence[Example],
    base: RankingModels | None,
    strength: float = PRIOR_STRENGTH,
    names: Sequence[str] = ORDER_NAMES,
) -> RankingModels:
    """Fit a ranking to these examples, drawn to ``base`` (None: to zero). Keeps the confidences and cuts of ``base``.

    Only the features in ``names`` get a new weight.
    """
    blank = RankingWeights({}, {}, 0.0, 0.5)
    prior = base or RankingModels(blank, blank)
    of_model = {feature.name for feature in ORDER_FEATURES if feature.source == MODEL}
    return RankingModels(
        _fit_weights(examples, prior.by_words, strength, [name for name in names if name not in of_model]),
        _fit_weights(examples, prior.with_text_model, strength, names),
        {**prior.provenance, "order": f"{len(examples)} marked duplicates of this repository"},
    )


def own_ranking(examples: Iterable[Example], base: RankingModels, moment: datetime) -> RankingModels:
    """``base``, fitted to the duplicates that were marked before that moment, if there are enough."""
    usable = sorted(
        (example for example in examples if example.known_at < moment), key=lambda example: example.known_at
    )
    return fit_ranking(usable[-MAX_EXAMPLES:], base) if len(usable) >= MIN_EXAMPLES else base


def _fit_weights(
    examples: Sequence[Example], model: RankingWeights, strength: float, names: Sequence[str]
) -> RankingWeights:
    from bot.ranking.fit import fit_order

    fitted = [name for name in names if any(name in example.features[0] for example in examples)]
    cases = [(example.features, example.right) for example in examples]
    order = fit_order(cases, fitted, prior=model.order, strength=strength)
    unchanged = {name: weight for name, weight in model.order.items() if name not in fitted}
    return RankingWeights({**unchanged, **order}, model.confidence, model.intercept, model.cut)
