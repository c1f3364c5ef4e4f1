"""Measures whether a flood of issues by one account gets into the answers, and what the defence against it costs.

python -m bench.flood [--queries N] [--issues 500] [--kinds NAME ...] [--json FILE]

Needs the archives next to the checkout. The history is the first THREADS issues of the development archive. The queries
are issues of its last part, with and without a known duplicate. The flood comes before them. Every attack is measured
with the defence and without it; without it, everybody counts as known, so that no issue is unvouched.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.archives import ARCHIVE, need_archives
from bench.attackers import FIRST_NUMBER, KINDS, Tracker
from bot.domain.thread import Outcome, RepositoryAddress, Thread, ThreadId
from bot.evaluation.evaluate import mask_citations
from bot.evaluation.labels import first_original
from bot.evaluation.metrics import RankMetrics, percentile
from bot.evaluation.replay import PastLibrary, ReplayHistory, past_library
from bot.index.document import bare_document
from bot.index.protocol import IndexDocument
from bot.reading.analyzer import terms
from bot.recall.mentions import referenced_numbers
from bot.recall.similar import find_candidates, judge_candidates
from bot.settings.schema import Settings
from bot.sources.archive_file import read_archive

THREADS = 3_500
BEFORE = 2_000
"""Threads before the flood; the queries come after it."""

SEED = 7


@dataclass(frozen=True)
class PoisonQuery:
    """An issue of the last part, and the older ones that it is a known duplicate of, if any."""

    thread: Thread
    right: frozenset[ThreadId]


@dataclass(frozen=True)
class Answer:
    """The result for one issue: the rank of the right one, the shown threads, the time in milliseconds."""

    rank: int | None
    shown: tuple[ThreadId, ...]
    ms: float


Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=100, help="issues that are asked, half of them known duplicates")
    parser.add_argument("--issues", type=int, default=500, help="issues of the flood")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS))
    parser.add_argument("--json", type=Path, help="where to write all figures")
    options = parser.parse_args()
    need_archives()
    started = time.monotonic()
    figures = measured(options.queries, options.issues, options.kinds)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"{time.monotonic() - started:.0f} s")


def measured(queries: int, issues: int, kinds: Iterable[str]) -> dict[str, dict[str, Figures]]:
    """The figures of each attack, without and with the defence, printed as they come."""
    history = ReplayHistory.read(sorted(read_archive(ARCHIVE), key=lambda thread: thread.created_at)[:THREADS])
    query_list = _draw_queries(history, queries)
    tracker = Tracker(history.threads[:BEFORE], [query.thread for query in query_list])
    figures: dict[str, dict[str, Figures]] = {}
    print(_HEAD)
    baseline: dict[str, list[Answer]] = {}
    for kind in ("none", *kinds):
        flood = KINDS[kind](tracker, issues, random.Random(SEED)) if kind != "none" else []
        figures[kind] = {}
        for name, answers in _answer_all(history, flood, query_list):
            baseline.setdefault(name, answers)
            figures[kind][name] = _figures(answers, query_list, baseline[name])
            print(_row(kind, name, figures[kind][name]), flush=True)
    return figures


def _draw_queries(history: ReplayHistory, count: int) -> list[PoisonQuery]:
    """Half random issues with known duplicates and half random others, in the order of their creation."""
    late = {thread.id: thread for thread in history.threads[BEFORE:]}
    created = {thread.id: thread.created_at for thread in history.threads}
    lines = ARCHIVE.with_name("queries.jsonl").read_text(encoding="utf-8").splitlines()
    right = {row["id"]: frozenset(row["relevant"]) & created.keys() for row in map(json.loads, lines)}
    rng = random.Random(SEED)
    marked = sorted(key for key in late if right.get(key))
    others = sorted(key for key in late if not right.get(key))
    chosen = [*rng.sample(marked, min(len(marked), count // 2)), *rng.sample(others, count - count // 2)]
    query_list = [
        PoisonQuery(mask_citations(late[key], right.get(key, ())), right.get(key, frozenset())) for key in chosen
    ]
    return sorted(query_list, key=lambda query: query.thread.created_at)


def _answer_all(
    history: ReplayHistory, flood: Sequence[Thread], query_list: Sequence[PoisonQuery]
) -> Iterator[tuple[str, list[Answer]]]:
    """The answers without the defence and with it, over one index each."""
    threads = sorted((*history.threads, *flood), key=lambda thread: (thread.created_at, str(thread.id)))
    documents = {document.entry.id: document for document in (*history.documents, *map(_document, flood))}
    defended = [documents[thread.id] for thread in threads]
    for name, shown in (("without", list(map(_open_to_all, defended))), ("with", defended)):
        with past_library(ReplayHistory(threads, shown)) as past:
            yield name, [_answer(query, past) for query in query_list]


def _document(thread: Thread) -> IndexDocument:
    document = bare_document(thread, Outcome())
    target, at = first_original(thread) or (None, None)
    return replace(document, entry=replace(document.entry, duplicate_of=target, duplicate_at=at))


def _open_to_all(document: IndexDocument) -> IndexDocument:
    """The document as if its author were known, so that it counts from its creation."""
    return replace(document, entry=replace(document.entry, unvouched_until=None))


def _answer(query: PoisonQuery, library: PastLibrary) -> Answer:
    before, limits = query.thread.created_at, Settings().similar
    skip = referenced_numbers(query.thread, RepositoryAddress())
    started = time.perf_counter()
    ranking = find_candidates(query.thread, library, before, skip)
    ms = 1000 * (time.perf_counter() - started)
    ranks = (n for n, c in enumerate(ranking.candidates, 1) if query.right.intersection((c.entry.id, *c.folded)))
    similar = judge_candidates(query.thread, ranking, library, before) if terms(query.thread.title) else []
    good = [each.thread for each in similar if each.is_shown(limits.threshold)]
    closed = [thread.id for thread in good if thread.is_closed][: limits.max]
    still_open = [thread.id for thread in good if not thread.is_closed][: limits.open]
    return Answer(next(ranks, None), (*closed, *still_open), ms)


def _figures(answers: Sequence[Answer], query_list: Sequence[PoisonQuery], baseline: Sequence[Answer]) -> Figures:
    commented = [answer for answer in answers if answer.shown]
    shown = [key for answer in commented for key in answer.shown]
    poisoned = [key for key in shown if _is_poison(key)]
    ranks = [answer.rank for answer, query in zip(answers, query_list, strict=True) if query.right]
    metrics: Mapping[str, object] = RankMetrics.of(ranks).as_dict()
    honest = {(n, key) for n, answer in enumerate(baseline) for key in answer.shown}
    kept_hits = honest & {(n, key) for n, answer in enumerate(answers) for key in answer.shown}
    return {
        "comments": len(commented) / len(answers),
        "comments_poisoned": sum(any(map(_is_poison, a.shown)) for a in commented) / len(answers),
        "hits_poisoned": len(poisoned) / max(1, len(shown)),
        "honest_hits_kept": len(kept_hits) / max(1, len(honest)),
        **{name: float(metrics[name]) for name in ("rr@1", "rr@5", "rr@10", "mrr")},  # type: ignore[arg-type]
        "candidates": sum(rank is not None for rank in ranks) / max(1, len(ranks)),
        "ms_p50": percentile([answer.ms for answer in answers], 0.5) or 0.0,
    }


def _is_poison(key: ThreadId) -> bool:
    return isinstance(key, int) and key >= FIRST_NUMBER


_HEAD = (
    f"{'attack':12}{'defence':9}{'comments':>9}{'poisoned':>9}{'of hits':>9}{'kept':>7}"
    f"{'RR@1':>7}{'RR@5':>7}{'RR@10':>7}{'MRR':>7}{'cand.':>7}{'ms':>6}"
)


def _row(kind: str, name: str, f: Figures) -> str:
    shares = f"{f['comments']:9.3f}{f['comments_poisoned']:9.3f}{f['hits_poisoned']:9.3f}{f['honest_hits_kept']:7.3f}"
    ranks = "".join(f"{f[key]:7.3f}" for key in ("rr@1", "rr@5", "rr@10", "mrr", "candidates"))
    return f"{kind:12}{name:9}{shares}{ranks}{f['ms_p50']:6.1f}"


if __name__ == "__main__":
    main()
