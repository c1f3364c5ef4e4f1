"""Measures how many of the shown graded pairs are useful, and which pairs a reader would have been shown.

python -m bench.bench_worth [--semantic FOLDER] [--import]

Needs the archives next to the checkout. `tools/graded_pairs.py` describes the pairs. Every confidence in the first
table was fitted to the pairs of the other archives. Pairs were drawn from the surest 45 % of issues, half of them from
the surest 15 %, and are weighted accordingly for precisions of issues. `--import` reads each archive into a store as
`precedent import` does, answers as `precedent answer` does, and checks which pairs the shipped ranking shows.
`--semantic` names the folder of a text model (`tools/minilm.py`): all issues are read with it, which takes minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path

from bench.archives import need_archives
from bot.domain.changes import Changes
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.metrics import auc
from bot.local_cache.sync import text_model
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from bot.ranking.weights import shipped
from bot.recall.answer import recall
from bot.settings.schema import Settings
from bot.sources.archive_file import read_archive
from tools.fit_ranking import DATA, archives, graded_pairs, with_text_model
from tools.graded_pairs import SURER, Graded, Pair, cross_validated, read_pairs

SHARES = (5, 10, 15, 20)
DRAWN = 45
"""The pairs were drawn from this surest percentage of issues."""

CUTS = (0.5, 0.55, 0.6, 0.65, 0.7)
FOLDERS = {"rust_pre2015": "rust_pre2015/issues.jsonl.gz"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--semantic", type=Path, metavar="FOLDER", help="memories that this text model reads, too")
    parser.add_argument("--import", action="store_true", dest="imports", help="through import and answer")
    options = parser.parse_args()
    need_archives()
    embedder = text_model(options.semantic)
    if options.imports:
        through_import(read_pairs(DATA / "related.jsonl"), embedder)
        return
    loaded = archives()
    if embedder:
        loaded = [with_text_model(archive, embedder) for archive in loaded]
    rows = graded_pairs(loaded, shipped())
    model = shipped().model(has_vectors=bool(embedder))
    methods = {
        "each feature left out": cross_validated(rows, model),
        **{f"{name} alone": cross_validated(rows, model, [name]) for name in model.confidence},
        "as shipped (in-sample)": [row.confidence for row in rows],
    }
    useful, never = sum(row.pair.is_useful for row in rows), sum(not row.hit for row in rows)
    print(f"{len(rows)} pairs, {useful} useful, {never} never shown")
    for name, confidences in methods.items():
        report(name, rows, confidences)


def report(name: str, rows: Sequence[Graded], confidences: Sequence[float]) -> None:
    """Print the AUC, overall and by archive, the precision among the surest issues, and what cuts show."""
    graded = [(row.pair.is_useful, confidence) for row, confidence in zip(rows, confidences, strict=True)]
    parts: dict[str, list[tuple[bool, float]]] = {}
    for row, pair in zip(rows, graded, strict=True):
        parts.setdefault(row.pair.archive, []).append(pair)
    by_archive = "  ".join(f"{key} {area(part):.2f}" for key, part in parts.items())
    surest = "  ".join(f"{share} % {value:.2f}" for share, value in precisions(rows, confidences).items())
    print(f"{name}: AUC {area(graded):.3f} ({by_archive}); useful among the surest {surest}")
    for cut in CUTS:
        print(f"    from {cut:.2f} on: {summary([(label, confidence >= cut) for label, confidence in graded])}")


def area(graded: Sequence[tuple[bool, float]]) -> float:
    return auc([label for label, _ in graded], [confidence for _, confidence in graded]) or 0.0


def summary(graded: Sequence[tuple[bool, bool]]) -> str:
    """A summary of pairs, each of which is useful or not, and shown or not."""
    shown = [is_useful for is_useful, is_shown in graded if is_shown]
    good, useful = sum(shown), sum(is_useful for is_useful, _ in graded)
    return f"{len(shown)} shown, {good / max(1, len(shown)):.2f} of these useful, {good / useful:.2f} of the useful"


def precisions(rows: Sequence[Graded], confidences: Sequence[float]) -> dict[int, float]:
    """The useful share of hits on the surest percentages of issues; for each issue, the surest pair counts."""
    best: dict[tuple[str, int], tuple[float, bool]] = {}
    for row, confidence in zip(rows, confidences, strict=True):
        key = row.pair.archive, row.pair.id
        best[key] = max(best.get(key, (-1.0, False)), (confidence, row.pair.is_useful))
    weights = {key: 1.0 if key[1] in SURER[key[0]] else 2.0 for key in best}
    return {share: _precision(best, weights, share) for share in SHARES}


def _precision(
    best: Mapping[tuple[str, int], tuple[float, bool]], weights: Mapping[tuple[str, int], float], share: int
) -> float:
    wanted_weight = sum(weights.values()) * share / DRAWN
    taken = good = 0.0
    for key in sorted(best, key=lambda issue: -best[issue][0]):
        part = min(weights[key], wanted_weight - taken)
        taken += part
        good += part * best[key][1]
    return good / taken


def through_import(pairs: Sequence[Pair], embedder: Embedder | None) -> None:
    """Print how many pairs a store with the imported archive shows."""
    results: list[tuple[bool, bool]] = []
    for name in dict.fromkeys(pair.archive for pair in pairs):
        part = imported(name, [pair for pair in pairs if pair.archive == name], embedder)
        print(f"{name}: {summary(part)}", flush=True)
        results += part
    print(f"all: {summary(results)}")


def imported(name: str, pairs: Sequence[Pair], embedder: Embedder | None) -> list[tuple[bool, bool]]:
    """Whether each pair is useful, and whether it is shown on its issue as of its opening."""
    with tempfile.TemporaryDirectory(prefix="precedent-") as folder:
        memory = Memory(FolderStore(Path(folder) / "store"), embedder=embedder).open()
        records = tuple(read_archive(DATA / FOLDERS.get(name, f"threads/{name}.jsonl.gz")))
        memory.stage(Changes(records=records))
        memory.commit("Import")
        if embedder:
            memory.read_with_model(inf)
            memory.commit("Vectors")
        try:
            threads = memory.records({pair.id for pair in pairs})
            matches = {key: matched(thread, memory) for key, thread in threads.items() if isinstance(thread, Thread)}
        finally:
            memory.close()
    return [(pair.is_useful, pair.earlier in matches[pair.id]) for pair in pairs]


def matched(thread: Thread, memory: Memory) -> set[object]:
    """The ids of the threads shown as similar to this one."""
    context = recall(thread.as_of(thread.created_at), memory, Settings(), RepositoryAddress(), thread.created_at)
    return {match.id for match in (*context.seen_before, *context.open_now)}


if __name__ == "__main__":
    main()
