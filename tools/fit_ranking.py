"""Fits the shipped ranking to the development data and writes bot/ranking/ranking.json.

    python -m tools.fit_ranking [--check] [--keep-orders] [--semantic FOLDER]

The order is fitted to the queries whose earlier duplicate is known, the confidence to pairs that people graded. The
weights for memories with a text model are fitted only with `--semantic`, the folder that `tools.minilm` makes: it reads
all issues, which takes some minutes. `--check` fits without writing anything, and says how far the result is from the
shipped weights.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.cli.output import progress
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import thread_from_archive
from bot.evaluation.evaluate import EvaluationQuery, Trial, evaluate, fit_ranking
from bot.evaluation.labels import LinkLabels, Mark
from bot.evaluation.replay import ReplayHistory
from bot.memory.model_store import Embedder, embed
from bot.ranking.embedder import open_embedder
from bot.ranking.weights import (
    CONFIDENCE_NAMES,
    CUT_SIMILARITY,
    MODEL_NAMES,
    RankingModels,
    RankingWeights,
    ranking_fields,
    shipped,
)
from tools.graded_pairs import Graded, fit_confidence, grade_archive, read_pairs

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared/data"
TARGET = ROOT / "bot/ranking/ranking.json"
CUT = CUT_SIMILARITY
"""A similarity is the probability that a reader of both issues calls the hit useful, unless a repository's own cut is
higher. Four in five of the shown hits are useful then, as most are surer than the cut."""

CUT_WITH_MODEL = 0.6
"""With a text model, four in five are useful from this confidence on, even in archives that it was not fitted to."""

READ_BY_HAND = {"same_failure": 2.0, "other_error": -3.0}
"""No graded pair has both the same rare error and the same rare file: two people who describe one failure in different
words. By links it is worth more than the error alone; how much is a guess. Of 18 pairs that state different errors none
is useful: too few, and too clear, to fit a weight to."""

SKIPPED = 20
"""The first issues of an archive have nothing to compare with."""

SEED = 20_150_101


@dataclass(frozen=True)
class Archive:
    """A history with all links that people made: in the threads, and in the labels that came with the archive."""

    name: str
    history: ReplayHistory
    links: LinkLabels


def read_archive(path: Path, name: str) -> Archive:
    """An archive of the development data."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    history = ReplayHistory.read(map(thread_from_archive, rows))
    links = LinkLabels.read(history.threads)
    return Archive(name, history, links.with_marks(_labels(rows, {thread.id: thread for thread in history.threads})))


def _labels(rows: Sequence[dict[str, Any]], threads: dict[ThreadId, Thread]) -> list[Mark]:
    """The archive's own labels as marks; their dates are unknown, so they count as the last."""
    end = max(thread.revised_at for thread in threads.values())
    kinds = (("duplicate_of", True), ("related_weak", False))
    return [
        Mark(row["id"], target, end, is_duplicate)
        for row in rows
        for field, is_duplicate in kinds
        for target in row.get(field) or ()
    ]


def archives() -> list[Archive]:
    """All archives, the large one first."""
    small = sorted(path for path in (DATA / "threads").glob("*.jsonl.gz") if "endings" not in path.name)
    large = read_archive(DATA / "rust_pre2015/issues.jsonl.gz", "rust")
    return [large, *(read_archive(path, path.name.split(".")[0]) for path in small)]


def queries() -> list[EvaluationQuery]:
    """The development queries."""
    lines = (DATA / "rust_pre2015/queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [EvaluationQuery(row["id"], frozenset(row["relevant"])) for row in map(json.loads, lines)]


def with_text_model(archive: Archive, embedder: Embedder) -> Archive:
    """The same archive, read by a text model."""
    threads = archive.history.threads
    with progress(archive.name, len(threads)) as tick:
        vectors = {}
        for thread in threads:
            vectors[thread.id] = embed(thread, embedder)
            tick(1)
    return replace(archive, history=replace(archive.history, vectors=vectors, embedder=embedder))


def fit_orders(large: Archive, large_queries: Sequence[EvaluationQuery]) -> RankingModels:
    """The orders, fitted from scratch."""
    with progress("Queries", len(large_queries)) as tick:
        _, examples = evaluate(
            large.history, large_queries, Trial({query.id: shipped() for query in large_queries}), tick
        )
    return fit_ranking(examples, None, 1.0)


def graded_pairs(data: Sequence[Archive], ranking: RankingModels) -> list[Graded]:
    """All graded pairs as this ranking sees them."""
    pairs = read_pairs(DATA / "related.jsonl")
    rows = []
    with progress("Graded pairs", len(pairs)) as tick:
        for archive in data:
            own_pairs = [pair for pair in pairs if pair.archive.startswith(archive.name)]
            rows += list(grade_archive(archive.history, own_pairs, ranking))
            tick(len(own_pairs))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep-orders", action="store_true", help="fit the confidences alone")
    parser.add_argument("--semantic", type=Path, metavar="FOLDER", help="fit what a text model adds, too")
    options = parser.parse_args()
    data, cases = archives(), queries()
    ranking = shipped() if options.keep_orders else fit_orders(data[0], cases)
    ranking = replace(ranking, with_text_model=shipped().with_text_model)
    rows = graded_pairs(data, ranking)
    ranking = replace(ranking, by_words=with_fitted_confidence(rows, ranking.by_words, CUT))
    if options.semantic:
        ranking = fit_text_model(ranking, data, cases, open_embedder(options.semantic), options.keep_orders)
    provenance = {
        "order": f"{len(cases)} queries of {len(data[0].history.threads):,} Rust issues up to 2015, listwise softmax",
        "confidence": f"{len(rows)} pairs that two people graded, of "
        + ", ".join(f"{one.name} ({len(one.history.threads)})" for one in data if graded_in(one, rows)),
        "text model": "all-MiniLM-L6-v2 in 8 bits, as tools/minilm.py makes it",
        "not fitted": ", ".join(READ_BY_HAND),
    }
    text = json.dumps(ranking_fields(replace(ranking, provenance=provenance)), indent=1) + "\n"
    if options.check:
        print(compare(ranking, shipped()))
    else:
        TARGET.write_text(text, encoding="utf-8")


def graded_in(archive: Archive, rows: Sequence[Graded]) -> bool:
    return any(row.pair.archive.startswith(archive.name) for row in rows)


def with_fitted_confidence(rows: Sequence[Graded], model: RankingWeights, cut: float) -> RankingWeights:
    """The model with the confidence fitted to these grades."""
    refitted = fit_confidence(rows, model, [name for name in CONFIDENCE_NAMES if name not in READ_BY_HAND])
    return replace(refitted, confidence={**refitted.confidence, **READ_BY_HAND}).with_cut(cut)


def fit_text_model(
    ranking: RankingModels,
    data: Sequence[Archive],
    large_queries: Sequence[EvaluationQuery],
    embedder: Embedder,
    keeps_order: bool,
) -> RankingModels:
    """The ranking with a model for memories that this text model reads."""
    with_vectors = [with_text_model(archive, embedder) for archive in data]
    if not keeps_order:
        ranking = replace(ranking, with_text_model=fit_orders(with_vectors[0], large_queries).with_text_model)
    rows = graded_pairs(with_vectors, ranking)
    return replace(ranking, with_text_model=with_fitted_confidence(rows, ranking.with_text_model, CUT_WITH_MODEL))


def compare(ours: RankingModels, theirs: RankingModels) -> str:
    """The largest distance between the weights of two rankings, by part."""
    lines = []
    for name in MODEL_NAMES:
        our_model, their_model = getattr(ours, name), getattr(theirs, name)
        for part in ("order", "confidence"):
            our_weights, their_weights = getattr(our_model, part), getattr(their_model, part)
            distance = max(
                abs(our_weights.get(key, 0.0) - their_weights.get(key, 0.0)) for key in {*our_weights, *their_weights}
            )
            lines.append(f"{name}.{part}: largest difference {distance:.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
