"""Measures where the known duplicate ranks, compared with similar titles and BM25, on the development queries.

python -m bench.bench_quality [--json FILE]

Needs the archives next to the checkout. A query sees only older threads, as they were then. *In folds* has weights
fitted to queries of other periods; *as shipped* was fitted to all of these queries. The features were chosen on them
too.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

from bench.archives import ARCHIVE, need_archives
from bench.bench_ranking import FOLDS, rank_by_bm25, ranking_with_order, same_ranking
from bench.figures import Limit, Peer, Report, Result, Table, single
from bot.evaluation.evaluate import EvaluationQuery, EvaluationResult, cross_validate, evaluate, mask_citations
from bot.evaluation.metrics import RankMetrics
from bot.evaluation.replay import ReplayHistory
from bot.ranking.weights import shipped
from tools.fit_ranking import queries, read_archive

MEASURES = {"rr@1": "RR@1", "rr@5": "RR@5", "rr@10": "RR@10", "mrr": "MRR"}
OURS = f"ours, weights in {FOLDS} folds by time"
TITLES = "similar titles"
BM25 = "BM25"
FIELDS = "BM25F as an Action has it, title × 3"
EXCERPT = 1_200
"""Characters of an opening text that the Action of music-assistant/support indexes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    need_archives()
    report = measured()
    print(report.as_text())
    for row in (report.tables[0].head, *report.tables[0].rows):
        print(f"{row[0]:46}" + "  ".join(f"{cell:>18}" for cell in row[1:]))
    if options.json:
        report.write(options.json)


def measured() -> Report:
    history, query_list = read_archive(ARCHIVE, "rust").history, queries()
    methods = {
        TITLES: by_titles(history, query_list),
        BM25: rank_by_bm25(history, query_list),
        FIELDS: by_fields(history, query_list),
        "BM25F, tuned, title × 3": evaluate(
            history, query_list, same_ranking(query_list, ranking_with_order({"text": 1.0}))
        )[0],
        OURS: cross_validate(history, query_list, FOLDS, None),
        "ours, as shipped (in-sample)": evaluate(history, query_list, same_ranking(query_list, shipped()))[0],
    }
    ranks = {name: [result.rank for result in method_results] for name, method_results in methods.items()}
    metrics = {name: RankMetrics.of(each) for name, each in ranks.items()}
    data = f"{len(query_list)} queries with a known older duplicate among {len(history.threads):,} issues of Rust"
    return Report(data, tuple(results(metrics)), (table(metrics, ranks),))


def results(metrics: dict[str, RankMetrics]) -> list[Result]:
    """Every measure against both peers; each must be at least that of BM25."""
    peers = {BM25: ("BM25", "k1 1.2, b .75", Limit("ratio", 1.0)), TITLES: ("similar titles", "pairs of letters", None)}
    ours = metrics[OURS]
    return [
        Result(
            name=f"{key}-{label.split()[0].lower()}",
            group="quality",
            what=MEASURES[key],
            unit="",
            ours=single(ours.figures[key].value, ours.n),
            peer=Peer(label, version, single(metrics[name].figures[key].value, ours.n)),
            limit=limit,
            higher_is_better=True,
        )
        for name, (label, version, limit) in peers.items()
        for key in MEASURES
    ]


def table(by_method: dict[str, RankMetrics], ranks: dict[str, list[int | None]]) -> Table:
    """All methods, with the share among the first three and the 95 % interval of MRR."""
    rows = []
    for name, metrics in by_method.items():
        figures = [f"{metrics.figures[key].value:.3f}" for key in MEASURES]
        mrr = metrics.figures["mrr"]
        three = sum(rank is not None and rank <= 3 for rank in ranks[name]) / len(ranks[name])
        rows.append((name, *figures, f"{mrr.low:.3f}–{mrr.high:.3f}", f"{three:.3f}"))
    head = ("method", *MEASURES.values(), "95 % of MRR", "RR@3")
    return Table("quality", "All methods on the same queries", head, tuple(rows))


def by_titles(history: ReplayHistory, query_list: Sequence[EvaluationQuery]) -> list[EvaluationResult]:
    """Rank older threads by the pairs of letters that titles share (Dice), as actions without an API key do."""
    relevant = {query.id: query.relevant for query in query_list}
    numbers: dict[str, int] = {}
    older: list[tuple[object, int]] = []
    ranked = []
    for thread in history.threads:
        if thread.id in relevant:
            title_pairs = pairs(mask_citations(thread, relevant[thread.id]).title, numbers)
            scores = {key: alike(title_pairs, other) for key, other in older}
            best = max((scores.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            ranked.append(
                EvaluationResult(thread.id, 1 + sum(s > best for s in scores.values()) if best else None, 0.0)
            )
        older.append((thread.id, pairs(thread.title, numbers)))
    return ranked


def by_fields(history: ReplayHistory, query_list: Sequence[EvaluationQuery]) -> list[EvaluationResult]:
    """Rank older threads by BM25F (k1 1.5, b .75) over the title, with weight 3, and the beginning of the opening text.

    The formula is that of Zaragoza and others (TREC 2004); fields and constants are those of the Action of
    music-assistant/support without vectors. Frequencies are as of the query.
    """
    relevant = {query.id: query.relevant for query in query_list}
    lists: dict[str, list[tuple[int, int, int]]] = {}
    lengths: list[tuple[int, int]] = []
    totals = [0, 0]
    ranked = []
    for number, thread in enumerate(history.threads):
        if thread.id in relevant:
            masked = mask_citations(thread, relevant[thread.id])
            query = {*tokens(masked.title), *tokens(masked.body)}
            scores = field_scores(query, lists, lengths, [max(1, total) / max(1, number) for total in totals])
            scores_by_id = {history.threads[position].id: score for position, score in scores.items()}
            best = max((scores_by_id.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            ranked.append(
                EvaluationResult(thread.id, 1 + sum(s > best for s in scores_by_id.values()) if best else None, 0.0)
            )
        title, body = Counter(tokens(thread.title)), Counter(tokens(thread.body[:EXCERPT]))
        lengths.append((title.total(), body.total()))
        totals = [total + length for total, length in zip(totals, lengths[-1], strict=True)]
        for word in {*title, *body}:
            lists.setdefault(word, []).append((number, title[word], body[word]))
    return ranked


def field_scores(
    query: set[str],
    lists: dict[str, list[tuple[int, int, int]]],
    lengths: Sequence[tuple[int, int]],
    means: Sequence[float],
    k1: float = 1.5,
    b: float = 0.75,
) -> dict[int, float]:
    """The scores of the threads that contain a word of the query, by position."""
    scores: dict[int, float] = {}
    for word in query:
        postings = lists.get(word, [])
        rarity = log(1 + (len(lengths) - len(postings) + 0.5) / (len(postings) + 0.5))
        for number, in_title, in_body in postings:
            title, body = (1 - b + b * length / mean for length, mean in zip(lengths[number], means, strict=True))
            weight = 3 * in_title / title + in_body / body
            scores[number] = scores.get(number, 0.0) + rarity * weight / (k1 + weight)
    return scores


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, plus the parts of words with underscores."""
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return [*words, *(part for word in words if "_" in word for part in word.split("_") if part)]


def pairs(title: str, numbers: dict[str, int]) -> int:
    """The pairs of adjacent letters in the words of a title, as bits."""
    bits = 0
    for word in re.findall(r"\w+", title.lower()):
        for letter, next_letter in pairwise(word):
            bits |= 1 << numbers.setdefault(letter + next_letter, len(numbers))
    return bits


def alike(bits: int, others: int) -> float:
    both = bits.bit_count() + others.bit_count()
    return 2 * (bits & others).bit_count() / both if both else 0.0


if __name__ == "__main__":
    main()
