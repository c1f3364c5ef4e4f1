"""Fits the shipped ranking to the development data and writes bot/ranking.json.

    python -m tools.fit_ranking [--check] [--keep-orders]

The order is fitted to the queries whose earlier duplicate is known, the confidence to the hits of replayed issues and
to what people linked later. `--check` fits them and says how far they are from what is shipped, without writing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.archive import thread_from_archive
from bot.doors.progress import progress
from bot.evaluation.backtest import Seen, Watch, newest, replay
from bot.evaluation.calibrate import by_share, recut
from bot.evaluation.evaluate import Query, Trial, evaluate
from bot.evaluation.examples import fit
from bot.evaluation.labels import Links, Mark
from bot.evaluation.replay import History
from bot.model import Thread, ThreadId
from bot.numeric.fitting import fit_probability
from bot.ranking import LINKED, Model, Ranking, ranking_fields, shipped
from bot.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared/data"
TARGET = ROOT / "bot/ranking.json"
SHARE = 1 / 12
CUT_YEAR = 2014
"""The cut is set on the last year of the large archive, when there was most to be compared with."""

SAMPLE = 2_400
"""Issues of the large archive that are replayed; of the small ones all."""

SKIPPED = 20
"""The first issues of an archive have nothing to be compared with."""

SEED = 20_150_101
READ_BY_HAND = {"closed": -0.6}
"""By what people link, an issue that was closed a month ago is hardly ever related: they link what is open, so it says
little. Of 124 shown pairs that were read by hand 77 % of the open ones and 42 % of the closed ones were related, at the
same confidence; this weight makes them alike."""

NOT_FITTED = {"semantic": 4.0, "semantic_title": 1.0}
"""No downloaded model was at hand: a guess, until a repository's own history says better."""


@dataclass(frozen=True)
class Archive:
    """A history with all that people said of it: in the threads, and in the labels that came with the archive."""

    name: str
    history: History
    links: Links


def read_archive(path: Path, name: str) -> Archive:
    """An archive of the development data."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    history = History.read(map(thread_from_archive, rows))
    found = Links.read(history.threads)
    return Archive(name, history, found.joined(_labels(rows, {thread.id: thread for thread in history.threads})))


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


def queries() -> list[Query]:
    """The development queries."""
    lines = (DATA / "rust_pre2015/queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [Query(row["id"], frozenset(row["relevant"])) for row in map(json.loads, lines)]


def fit_orders(large: Archive, asked: Sequence[Query]) -> Ranking:
    """The orders, from nothing."""
    with progress("Queries", len(asked)) as tick:
        _, examples = evaluate(large.history, asked, Trial({query.id: shipped() for query in asked}), tick)
    found = fit(examples, None, 1.0)
    return replace(found, with_vectors=replace(found.with_vectors, order={**NOT_FITTED, **found.with_vectors.order}))


def replayed(archive: Archive, ranking: Ranking, trains: bool) -> list[Seen]:
    """A sample of an archive, with the candidates and the evidence of each issue."""
    issues = newest(archive.history, len(archive.history.threads))[SKIPPED:]
    asked = random.Random(SEED).sample(issues, min(SAMPLE, len(issues)))
    watch = Watch(ranking, Settings(), trains=trains)
    with progress(archive.name, len(asked)) as tick:
        return list(replay(archive.history, archive.links, asked, watch, tick))


def fit_model(seen: Sequence[Seen], of_large: Sequence[Seen], model: Model) -> Model:
    """Confidence, intercept and cut of a model whose order is given."""
    pairs = [
        (c.evidence, hit.related) for one in seen for c, hit in zip(one.candidates, one.replayed.hits, strict=True)
    ]
    rows, labels = [evidence for evidence, _ in pairs], [related for _, related in pairs]
    weights, intercept = fit_probability(rows, labels, LINKED)
    fitted = replace(model, confidence=weights, intercept=intercept)
    late = [recut(one, fitted, 0.0).replayed for one in of_large if one.replayed.created_at.year == CUT_YEAR]
    found = by_share(late, fitted, SHARE).model
    return replace(found, confidence={**found.confidence, **READ_BY_HAND})


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--keep-orders", action="store_true", help="fit the confidences alone")
    chosen = options.parse_args()
    large, *small = archives()
    asked = queries()
    ranking = shipped() if chosen.keep_orders else fit_orders(large, asked)
    for has_vectors in (True, False):
        name = "with_vectors" if has_vectors else "by_words"
        of_large = replayed(large, ranking, has_vectors)
        seen = [*of_large, *(one for archive in small for one in replayed(archive, ranking, has_vectors))]
        fitted = fit_model(seen, of_large, ranking.model(has_vectors))
        ranking = Ranking(fitted if has_vectors else ranking.with_vectors, ranking.by_words if has_vectors else fitted)
        print(f"{name}: {len(seen):,} issues replayed, cut {fitted.cut:.4f}")
    provenance = {
        "order": f"{len(asked)} queries of {len(large.history.threads):,} Rust issues up to 2015, listwise softmax",
        "confidence": f"hits of {SAMPLE:,} of these issues and of all of "
        + ", ".join(f"{archive.name} ({len(archive.history.threads)})" for archive in small),
        "cut": f"one in {1 / SHARE:.0f} of the Rust issues of {CUT_YEAR} has a hit if closed ones count as open",
        "closed": "124 pairs that were read by hand",
        "not fitted": "semantic, semantic_title",
    }
    text = json.dumps(ranking_fields(replace(ranking, provenance=provenance)), indent=1) + "\n"
    if chosen.check:
        print(compare(ranking, shipped()))
    else:
        TARGET.write_text(text, encoding="utf-8")


def compare(ours: Ranking, theirs: Ranking) -> str:
    """The largest distance between the weights of two rankings, by part."""
    lines = []
    for name, one, other in (
        ("with_vectors", ours.with_vectors, theirs.with_vectors),
        ("by_words", ours.by_words, theirs.by_words),
    ):
        for part in ("order", "confidence"):
            mine, yours = getattr(one, part), getattr(other, part)
            distance = max(abs(mine.get(key, 0.0) - yours.get(key, 0.0)) for key in {*mine, *yours})
            lines.append(f"{name}.{part}: largest difference {distance:.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
