"""Measures what each step of the ranking gains on the development queries, and whether that holds elsewhere.

python -m bench.bench_ranking            from plain BM25 to the whole model, five folds by time
python -m bench.bench_ranking --transfer weights from before 2014 on 2014; weights of the small archives alone

Needs the archives next to the checkout.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from math import inf, log

from bench.archives import need_archives
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
from bot.ranking.features import MODEL, ORDER_FEATURES
from bot.ranking.weights import RankingModels, RankingWeights, shipped
from bot.reading.analyzer import body_terms, terms
from tools.fit_ranking import Archive, archives, queries

FOLDS = 5
PRIORS = ("open", "age", "closed")
STEPS = {
    "+ state and age of the candidate": ("text", *PRIORS),
    "+ known duplicates, lengths, author": ("text", *PRIORS, "duplicates", "length", "length_ratio", "same_author"),
    "+ words of the titles (the whole model)": tuple(each.name for each in ORDER_FEATURES if each.source != MODEL),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transfer", action="store_true")
    options = parser.parse_args()
    need_archives()
    large, *small = archives()
    query_list = queries()
    print(f"{'':42}RR@1  RR@5  RR@10 RR@20 MRR   (95 % interval)  candidates")
    if options.transfer:
        transfer(large, small, query_list)
    else:
        steps(large.history, query_list)


def steps(history: ReplayHistory, query_list: Sequence[EvaluationQuery]) -> None:
    """Print one line for each step."""
    report("BM25 (k1 1.2, b .75), one field", rank_by_bm25(history, query_list))
    report(
        "tuned BM25F, title x 3",
        evaluate(history, query_list, same_ranking(query_list, ranking_with_order({"text": 1.0})))[0],
    )
    for name, features in STEPS.items():
        report(name, cross_validate(history, query_list, FOLDS, None, names=features))


def transfer(large: Archive, small: Sequence[Archive], query_list: Sequence[EvaluationQuery]) -> None:
    """Print the quality of weights fitted to earlier queries, or to other archives."""
    year = {thread.id: thread.created_at.year for thread in large.history.threads}
    late = [query for query in query_list if year[query.id] == 2014]
    early = [query for query in query_list if year[query.id] < 2014]
    _, examples = evaluate(large.history, early, same_ranking(early, shipped()))
    report(
        "2014, weights of before",
        evaluate(large.history, late, same_ranking(late, fit_ranking(examples, None, 1.0)))[0],
    )
    cross = {result.id: result for result in cross_validate(large.history, query_list, FOLDS, None)}
    report("2014, five folds of all queries", [cross[query.id] for query in late])
    elsewhere = [lesson for archive in small for lesson in examples_of(archive)]
    weights = fit_ranking(elsewhere, ranking_with_order({"text": 5.0}), 10.0)
    results = evaluate(large.history, query_list, same_ranking(query_list, weights))[0]
    report(f"all, weights of {len(elsewhere)} weak relations", results)
    report(
        "all, tuned BM25F",
        evaluate(large.history, query_list, same_ranking(query_list, ranking_with_order({"text": 1.0})))[0],
    )


def examples_of(archive: Archive) -> list[Example]:
    """The examples of a small archive: all links by people, duplicates or not."""
    linked = {thread.id: archive.links.relations(thread).all for thread in archive.history.threads}
    query_list = [EvaluationQuery(key, relevant) for key, relevant in linked.items() if relevant]
    return evaluate(archive.history, query_list, same_ranking(query_list, shipped()))[1]


def same_ranking(query_list: Sequence[EvaluationQuery], ranking: RankingModels) -> Trial:
    return Trial({query.id: ranking for query in query_list})


def ranking_with_order(order: dict[str, float]) -> RankingModels:
    """A ranking with these weights for the order, and none for the confidence."""
    weights = RankingWeights(order, {}, 0.0, 0.5)
    return RankingModels(weights, weights)


def rank_by_bm25(
    history: ReplayHistory, query_list: Sequence[EvaluationQuery], k1: float = 1.2, b: float = 0.75
) -> list[EvaluationResult]:
    """Textbook BM25 over title and text as one field, with frequencies as of the query's creation."""
    relevant = {query.id: query.relevant for query in query_list}
    lists: dict[str, list[tuple[int, int]]] = {}
    lengths: list[int] = []
    results = []
    for number, thread in enumerate(history.threads):
        if thread.id in relevant:
            scores = bm25_scores(mask_citations(thread, relevant[thread.id]), lists, lengths, (k1, b))
            scores_by_id = {history.threads[position].id: score for position, score in scores.items()}
            best = max((scores_by_id.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            results.append(
                EvaluationResult(thread.id, 1 + sum(s > best for s in scores_by_id.values()) if best else None, 0.0)
            )
        words = Counter([*history.documents[number].title, *history.documents[number].body])
        lengths.append(sum(words.values()))
        for word, count in words.items():
            lists.setdefault(word, []).append((number, count))
    return results


def bm25_scores(
    thread: Thread, lists: dict[str, list[tuple[int, int]]], lengths: Sequence[int], constants: tuple[float, float]
) -> dict[int, float]:
    k1, b = constants
    mean = sum(lengths) / max(1, len(lengths))
    scores: dict[int, float] = {}
    for word in {*terms(thread.title), *body_terms(thread.body)}:
        postings = lists.get(word, [])
        rarity = log(1 + (len(lengths) - len(postings) + 0.5) / (len(postings) + 0.5))
        for number, count in postings:
            bound = k1 * (1 - b + b * lengths[number] / mean)
            scores[number] = scores.get(number, 0.0) + rarity * count * (k1 + 1) / (count + bound)
    return scores


def report(name: str, results: Sequence[EvaluationResult]) -> None:
    metrics = RankMetrics.of([result.rank for result in results]).figures
    values = "  ".join(f"{metrics[key].value:.3f}" for key in ("rr@1", "rr@5", "rr@10", "rr@20", "mrr"))
    recall = sum((result.rank or inf) <= 200 for result in results) / len(results)
    print(f"{name:42}{values} ({metrics['mrr'].low:.3f}-{metrics['mrr'].high:.3f})  {recall:.3f}", flush=True)


if __name__ == "__main__":
    main()
