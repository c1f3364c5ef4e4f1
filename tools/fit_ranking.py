"""Fits the shipped ranking to the development data and writes bot/ranking/ranking.json.

    python -m tools.fit_ranking [--check] [--keep-orders] [--semantic FOLDER]

The order is fitted to the queries whose earlier duplicate is known, the confidence to pairs that people graded. What is
shipped for memories with a text model is fitted only with `--semantic`, the folder that `tools.minilm` makes: it reads
all issues, which takes some minutes. `--check` fits them and says how far they are from what is shipped; it writes
nothing.
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
from bot.index.protocol import VECTOR_FIELDS
from bot.memory.model_store import Embedder, embed
from bot.ranking.embedder import open_embedder
from bot.ranking.weights import (
    CONFIDENCE,
    MODEL_NAMES,
    SHOWN_FROM,
    RankingModels,
    RankingWeights,
    ranking_fields,
    shipped,
)
from tools.graded import Graded, fit_confidence, graded, read_pairs

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared/data"
TARGET = ROOT / "bot/ranking/ranking.json"
CUT = SHOWN_FROM
"""A similarity is the probability that somebody who reads both calls the hit useful, unless a repository's own cut is
higher. Of all that is shown four in five are useful then, as most of it is surer than the cut."""

CUT_WITH_MODEL = 0.6
"""With a text model four in five are useful from this confidence on, in archives that it was not fitted to as well."""

READ_BY_HAND = {"same_failure": 2.0}
"""No graded pair has the same error and the same file, of few threads each: two people who met one failure and tell of
it in other words. By links it is worth more than the error alone; how much is a guess."""

SKIPPED = 20
"""The first issues of an archive have nothing to be compared with."""

SEED = 20_150_101


@dataclass(frozen=True)
class Archive:
    """A history with all that people said of it: in the threads, and in the labels that came with the archive."""

    name: str
    history: ReplayHistory
    links: LinkLabels


def read_archive(path: Path, name: str) -> Archive:
    """An archive of the development data."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    history = ReplayHistory.read(map(thread_from_archive, rows))
    found = LinkLabels.read(history.threads)
    return Archive(name, history, found.with_marks(_labels(rows, {thread.id: thread for thread in history.threads})))


def _labels(rows: Sequence[dict[str, Any]], threads: dict[ThreadId, Thread]) -> list[Mark]:
    """The archive's own labels as marks; when they were made is not known, so they count as the last."""
    end = max(thread.revised_at for thread in threads.values())
    kinds = (("duplicate_of", True), ("related_weak", False))
    return [
        Mark(row["id"], target, end, is_duplicate)
        for row in rows
        for field, is_duplicate in kinds
        for target in row.get(field) or ()
    ]


def archives() -> list[Archive]:
    """The large archive first."""
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
        arms = {}
        for thread in threads:
            arms[thread.id] = embed(thread, embedder)
            tick(1)
    return replace(archive, history=replace(archive.history, vector_fields=arms, embedder=embedder))


def fit_orders(large: Archive, asked: Sequence[EvaluationQuery]) -> RankingModels:
    """The orders, from nothing."""
    with progress("Queries", len(asked)) as tick:
        _, examples = evaluate(large.history, asked, Trial({query.id: shipped() for query in asked}), tick)
    return fit_ranking(examples, None, 1.0)


def graded_pairs(found: Sequence[Archive], ranking: RankingModels, trains: bool) -> list[Graded]:
    """All graded pairs as this ranking sees them."""
    pairs = read_pairs(DATA / "related.jsonl")
    rows = []
    with progress("Graded pairs", len(pairs)) as tick:
        for archive in found:
            wanted = [pair for pair in pairs if pair.archive.startswith(archive.name)]
            rows += list(graded(archive.history, wanted, ranking, trains=trains))
            tick(len(wanted))
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--keep-orders", action="store_true", help="fit the confidences alone")
    options.add_argument("--semantic", type=Path, metavar="FOLDER", help="fit what a text model adds, too")
    chosen = options.parse_args()
    found, asked = archives(), queries()
    ranking = shipped() if chosen.keep_orders else fit_orders(found[0], asked)
    ranking = replace(ranking, with_text_model=shipped().with_text_model)
    rows = list[Graded]()
    for arms in ((), VECTOR_FIELDS[:2]):
        rows = graded_pairs(found, ranking, trains=bool(arms))
        ranking = ranking.with_model(arms, fitted(rows, ranking.model(arms), CUT))
    if chosen.semantic:
        ranking = fit_text_model(ranking, found, asked, open_embedder(chosen.semantic), chosen.keep_orders)
    provenance = {
        "order": f"{len(asked)} queries of {len(found[0].history.threads):,} Rust issues up to 2015, listwise softmax",
        "confidence": f"{len(rows)} pairs that two people graded, of "
        + ", ".join(f"{archive.name} ({len(archive.history.threads)})" for archive in found),
        "text model": "all-MiniLM-L6-v2 in 8 bits, as tools/minilm.py makes it",
        "not fitted": "same_failure",
    }
    text = json.dumps(ranking_fields(replace(ranking, provenance=provenance)), indent=1) + "\n"
    if chosen.check:
        print(compare(ranking, shipped()))
    else:
        TARGET.write_text(text, encoding="utf-8")


def fitted(rows: Sequence[Graded], model: RankingWeights, cut: float) -> RankingWeights:
    """The model with the confidence that these grades teach."""
    found = fit_confidence(rows, model, [name for name in CONFIDENCE if name not in READ_BY_HAND])
    return replace(found, confidence={**found.confidence, **READ_BY_HAND}).with_cut(cut)


def fit_text_model(
    ranking: RankingModels,
    found: Sequence[Archive],
    asked: Sequence[EvaluationQuery],
    embedder: Embedder,
    keeps_order: bool,
) -> RankingModels:
    """The ranking with a model for memories that this text model reads."""
    read = [with_text_model(archive, embedder) for archive in found]
    if not keeps_order:
        ranking = replace(ranking, with_text_model=fit_orders(read[0], asked).with_text_model)
    rows = graded_pairs(read, ranking, trains=True)
    return replace(ranking, with_text_model=fitted(rows, ranking.with_text_model, CUT_WITH_MODEL))


def compare(ours: RankingModels, theirs: RankingModels) -> str:
    """The largest distance between the weights of two rankings, by part."""
    lines = []
    for name in MODEL_NAMES:
        one, other = getattr(ours, name), getattr(theirs, name)
        for part in ("order", "confidence"):
            mine, yours = getattr(one, part), getattr(other, part)
            distance = max(abs(mine.get(key, 0.0) - yours.get(key, 0.0)) for key in {*mine, *yours})
            lines.append(f"{name}.{part}: largest difference {distance:.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
