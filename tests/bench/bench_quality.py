"""Where the known duplicate ranks, beside similar titles and BM25: the whole table, on the development queries.

python -m tests.bench.bench_quality [--json FILE]     needs the archive beside the checkout

A query sees only threads that are older than itself, as they were then. *In folds* has its weights from the queries of
other stretches of time; *as shipped* was fitted to all of these very queries. What the features are was chosen on them.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

from bot.evaluation.evaluate import EvaluationQuery, EvaluationResult, cross_validate, evaluate, mask_citations
from bot.evaluation.metrics import RankMetrics
from bot.evaluation.replay import ReplayHistory
from bot.ranking.weights import shipped
from tests.bench.bench_ranking import FOLDS, one_ranking, ordered, plain
from tests.bench.figures import Limit, Peer, Report, Result, Table, one
from tests.bench.history import ARCHIVE
from tools.fit_ranking import queries, read_archive

MEASURES = {"rr@1": "RR@1", "rr@5": "RR@5", "rr@10": "RR@10", "mrr": "MRR"}
OURS = f"ours, weights in {FOLDS} folds by time"
TITLES = "similar titles"
BM25 = "BM25"
FIELDS = "BM25F as an Action has it, title × 3"
EXCERPT = 1_200
"""Characters of an opening text that the Action of music-assistant/support keeps in its index."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    if not ARCHIVE.exists():
        raise SystemExit(f"no archive at {ARCHIVE}: nothing was measured")
    report = measured()
    print(report.told())
    for row in (report.tables[0].head, *report.tables[0].rows):
        print(f"{row[0]:46}" + "  ".join(f"{cell:>18}" for cell in row[1:]))
    if chosen.json:
        report.write(chosen.json)


def measured() -> Report:
    history, asked = read_archive(ARCHIVE, "rust").history, queries()
    ways = {
        TITLES: by_titles(history, asked),
        BM25: plain(history, asked),
        FIELDS: by_fields(history, asked),
        "BM25F, tuned, title × 3": evaluate(history, asked, one_ranking(asked, ordered({"text": 1.0})))[0],
        OURS: cross_validate(history, asked, FOLDS, None),
        "ours, as shipped (in-sample)": evaluate(history, asked, one_ranking(asked, shipped()))[0],
    }
    ranks = {name: [one_found.rank for one_found in way] for name, way in ways.items()}
    found = {name: RankMetrics.of(each) for name, each in ranks.items()}
    data = f"{len(asked)} queries with a known older duplicate among {len(history.threads):,} issues of Rust"
    return Report(data, tuple(results(found)), (table(found, ranks),))


def results(found: dict[str, RankMetrics]) -> list[Result]:
    """Every measure against both peers; at least BM25 is wanted of each."""
    peers = {BM25: ("BM25", "k1 1.2, b .75", Limit("ratio", 1.0)), TITLES: ("similar titles", "pairs of letters", None)}
    ours = found[OURS]
    return [
        Result(
            name=f"{key}-{label.split()[0].lower()}",
            group="quality",
            what=MEASURES[key],
            unit="",
            ours=one(ours.figures[key].value, ours.n),
            peer=Peer(label, version, one(found[name].figures[key].value, ours.n)),
            limit=limit,
            higher_is_better=True,
        )
        for name, (label, version, limit) in peers.items()
        for key in MEASURES
    ]


def table(found: dict[str, RankMetrics], ranks: dict[str, list[int | None]]) -> Table:
    """All methods, with the share among the first three and the ends of the 95 % interval of MRR."""
    rows = []
    for name, metrics in found.items():
        figures = [f"{metrics.figures[key].value:.3f}" for key in MEASURES]
        mrr = metrics.figures["mrr"]
        three = sum(rank is not None and rank <= 3 for rank in ranks[name]) / len(ranks[name])
        rows.append((name, *figures, f"{mrr.low:.3f}–{mrr.high:.3f}", f"{three:.3f}"))
    head = ("method", *MEASURES.values(), "95 % of MRR", "RR@3")
    return Table("quality", "All methods on the same queries", head, tuple(rows))


def by_titles(history: ReplayHistory, asked: Sequence[EvaluationQuery]) -> list[EvaluationResult]:
    """Older threads by how many pairs of letters their titles share (Dice), as actions without a key compare them."""
    relevant = {query.id: query.relevant for query in asked}
    numbers: dict[str, int] = {}
    older: list[tuple[object, int]] = []
    found = []
    for thread in history.threads:
        if thread.id in relevant:
            own = pairs(mask_citations(thread, relevant[thread.id]).title, numbers)
            scores = {key: alike(own, other) for key, other in older}
            best = max((scores.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            found.append(EvaluationResult(thread.id, 1 + sum(s > best for s in scores.values()) if best else None, 0.0))
        older.append((thread.id, pairs(thread.title, numbers)))
    return found


def by_fields(history: ReplayHistory, asked: Sequence[EvaluationQuery]) -> list[EvaluationResult]:
    """Older threads by BM25F (k1 1.5, b .75) over the title, which weighs 3, and the beginning of the opening text.

    The formula is that of Zaragoza and others (TREC 2004), fields and constants are those of the Action of
    music-assistant/support where it has no vectors. Frequencies are those of the moment of the query.
    """
    relevant = {query.id: query.relevant for query in asked}
    lists: dict[str, list[tuple[int, int, int]]] = {}
    lengths: list[tuple[int, int]] = []
    totals = [0, 0]
    found = []
    for number, thread in enumerate(history.threads):
        if thread.id in relevant:
            seen = mask_citations(thread, relevant[thread.id])
            query = {*tokens(seen.title), *tokens(seen.body)}
            scores = field_scores(query, lists, lengths, [max(1, total) / max(1, number) for total in totals])
            places = {history.threads[place].id: score for place, score in scores.items()}
            best = max((places.get(key, 0.0) for key in relevant[thread.id]), default=0.0)
            found.append(EvaluationResult(thread.id, 1 + sum(s > best for s in places.values()) if best else None, 0.0))
        title, body = Counter(tokens(thread.title)), Counter(tokens(thread.body[:EXCERPT]))
        lengths.append((title.total(), body.total()))
        totals = [total + length for total, length in zip(totals, lengths[-1], strict=True)]
        for word in {*title, *body}:
            lists.setdefault(word, []).append((number, title[word], body[word]))
    return found


def field_scores(
    query: set[str],
    lists: dict[str, list[tuple[int, int, int]]],
    lengths: Sequence[tuple[int, int]],
    means: Sequence[float],
    k1: float = 1.5,
    b: float = 0.75,
) -> dict[int, float]:
    """The scores of the threads that hold a word of the query, by their numbers."""
    scores: dict[int, float] = {}
    for word in query:
        held = lists.get(word, [])
        rarity = log(1 + (len(lengths) - len(held) + 0.5) / (len(held) + 0.5))
        for number, in_title, in_body in held:
            title, body = (1 - b + b * length / mean for length, mean in zip(lengths[number], means, strict=True))
            weight = 3 * in_title / title + in_body / body
            scores[number] = scores.get(number, 0.0) + rarity * weight / (k1 + weight)
    return scores


def tokens(text: str) -> list[str]:
    """The words of a text in lower case, and the parts of those with underscores besides."""
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return [*words, *(part for word in words if "_" in word for part in word.split("_") if part)]


def pairs(title: str, numbers: dict[str, int]) -> int:
    """The pairs of neighbouring letters in the words of a title, as bits."""
    bits = 0
    for word in re.findall(r"\w+", title.lower()):
        for one_letter, other in pairwise(word):
            bits |= 1 << numbers.setdefault(one_letter + other, len(numbers))
    return bits


def alike(bits: int, others: int) -> float:
    both = bits.bit_count() + others.bit_count()
    return 2 * (bits & others).bit_count() / both if both else 0.0


if __name__ == "__main__":
    main()
