"""What each step of the ranking gains on the development queries, and whether it holds elsewhere.

python -m tests.bench.bench_ranking            from plain BM25 to the whole model, five folds by time
python -m tests.bench.bench_ranking --transfer weights of before 2014 on 2014; weights of the small archives alone
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from math import inf, log

from bot.domain.thread import Thread
from bot.evaluation.evaluate import (
    EvaluationQuery,
    EvaluationResult,
    Example,
    Trial,
    cross_validate,
    evaluate,
    fit_ranking,
    mask_citations,
)
from bot.evaluation.metrics import RankMetrics
from bot.evaluation.replay import ReplayHistory
from bot.ranking.features import MODEL, ORDER_FEATURES, TRAINED
from bot.ranking.weights import ORDER, RankingModels, RankingWeights, shipped
from bot.reading.analyzer import body_terms, terms
from tools.fit_ranking import Archive, archives, queries

FOLDS = 5
PRIORS = ("open", "age", "closed")
STEPS = {
    "+ state and age of the candidate": ("text", *PRIORS),
    "+ known duplicates, lengths, author": ("text", *PRIORS, "duplicates", "length", "length_ratio", "same_author"),
    "+ words of the titles (by words alone)": tuple(
        each.name for each in ORDER_FEATURES if each.source not in (TRAINED, MODEL)
    ),
    "+ trained vectors (the whole model)": ORDER,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--transfer", action="store_true")
    chosen = options.parse_args()
    large, *small = archives()
    asked = queries()
    print(f"{'':42}RR@1  RR@5  RR@10 RR@20 MRR   (95 % interval)  candidates")
    if chosen.transfer:
        transfer(large, small, asked)
    else:
        steps(large.history, asked)


def steps(history: ReplayHistory, asked: Sequence[EvaluationQuery]) -> None:
    """One line for each step."""
    report("BM25 (k1 1.2, b .75), one field", plain(history, asked))
    report("tuned BM25F, title x 3", evaluate(history, asked, one_ranking(asked, ordered({"text": 1.0})))[0])
    for name, features in STEPS.items():
        report(name, cross_validate(history, asked, FOLDS, None, names=features))


def transfer(large: Archive, small: Sequence[Archive], asked: Sequence[EvaluationQuery]) -> None:
    """Weights that were learned before, or elsewhere."""
    year = {thread.id: thread.created_at.year for thread in large.history.threads}
    late = [query for query in asked if year[query.id] == 2014]
    early = [query for query in asked if year[query.id] < 2014]
    _, examples = evaluate(large.history, early, one_ranking(early, shipped()))
    report(
        "2014, weights of before", evaluate(large.history, late, one_ranking(late, fit_ranking(examples, None, 1.0)))[0]
    )
    cross = {found.id: found for found in cross_validate(large.history, asked, FOLDS, None)}
    report("2014, five folds of all queries", [cross[query.id] for query in late])
    elsewhere = [one for archive in small for one in lessons_of(archive)]
    weights = fit_ranking(elsewhere, ordered({"text": 5.0, "trained": 5.0}), 10.0)
    found = evaluate(large.history, asked, one_ranking(asked, weights))[0]
    report(f"all, weights of {len(elsewhere)} weak relations", found)
    report("all, tuned BM25F", evaluate(large.history, asked, one_ranking(asked, ordered({"text": 1.0})))[0])


def lessons_of(archive: Archive) -> list[Example]:
    """The examples of a small archive: whatever people linked, as duplicates or not."""
    found = {thread.id: archive.links.relations(thread).all for thread in archive.history.threads}
    asked = [EvaluationQuery(key, relevant) for key, relevant in found.items() if relevant]
    return evaluate(archive.history, asked, one_ranking(asked, shipped()))[1]


def one_ranking(asked: Sequence[EvaluationQuery], ranking: RankingModels) -> Trial:
    return Trial({query.id: ranking for query in asked})


def ordered(order: dict[str, float]) -> RankingModels:
    """A ranking of these weights; of what is shown it knows nothing."""
    words = {name: weight for name, weight in order.items() if name not in ("trained", "trained_title")}
    return RankingModels(*(RankingWeights(weights, {}, 0.0, 0.5) for weights in (order, words, order)))


def plain(
    history: ReplayHistory, asked: Sequence[EvaluationQuery], k1: float = 1.2, b: float = 0.75
) -> list[EvaluationResult]:
    """BM25 as the textbooks have it, over title and text as one; frequencies as of the query's creation."""
    relevant = {query.id: query.relevant for query in asked}
    lists: dict[str, list[tuple[int, int]]] = {}
    lengths: list[int] = []
    found = []
    for number, thread in enumerate(history.threads):
        if thread.id in relevant:
            scores = scored(mask_citations(thread, relevant[thread.id]), lists, lengths, (k1, b))
            places = {history.threads[place].id: score for place, score in scores.items()}
            best = max((places.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            found.append(EvaluationResult(thread.id, 1 + sum(s > best for s in places.values()) if best else None, 0.0))
        words = Counter([*history.documents[number].title, *history.documents[number].body])
        lengths.append(sum(words.values()))
        for word, count in words.items():
            lists.setdefault(word, []).append((number, count))
    return found


def scored(
    thread: Thread, lists: dict[str, list[tuple[int, int]]], lengths: Sequence[int], constants: tuple[float, float]
) -> dict[int, float]:
    k1, b = constants
    mean = sum(lengths) / max(1, len(lengths))
    scores: dict[int, float] = {}
    for word in {*terms(thread.title), *body_terms(thread.body)}:
        held = lists.get(word, [])
        rarity = log(1 + (len(lengths) - len(held) + 0.5) / (len(held) + 0.5))
        for number, count in held:
            bound = k1 * (1 - b + b * lengths[number] / mean)
            scores[number] = scores.get(number, 0.0) + rarity * count * (k1 + 1) / (count + bound)
    return scores


def report(name: str, found: Sequence[EvaluationResult]) -> None:
    metrics = RankMetrics.of([one.rank for one in found]).figures
    values = "  ".join(f"{metrics[key].value:.3f}" for key in ("rr@1", "rr@5", "rr@10", "rr@20", "mrr"))
    recall = sum((one.rank or inf) <= 200 for one in found) / len(found)
    print(f"{name:42}{values} ({metrics['mrr'].low:.3f}-{metrics['mrr'].high:.3f})  {recall:.3f}", flush=True)


if __name__ == "__main__":
    main()
