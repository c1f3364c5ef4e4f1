"""Whether a flood of issues by one account gets into the answers, and what the defence against it costs.

python -m tests.bench.poison [--queries N] [--issues 500] [--kinds NAME ...] [--json FILE]

The history is the first THREADS issues of the development archive. What is asked are issues of its last part: those
with a known duplicate, and others. The flood stands between; vectors are learned with it. Every attack is measured with
the defence and without it: then everybody is taken for known, so that nothing is a lone issue.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bot.domain.thread import Outcome, RepositoryAddress, Thread, ThreadId
from bot.evaluation.evaluate import mask_citations
from bot.evaluation.labels import first_original
from bot.evaluation.metrics import RankMetrics, percentile
from bot.evaluation.replay import PastLibrary, ReplayHistory
from bot.index import build_index, open_index
from bot.index.document import bare_document
from bot.index.protocol import IndexDocument
from bot.memory.model_store import LearnedModel
from bot.ranking.weights import shipped
from bot.ranking.word_vectors import train_embeddings
from bot.reading.analyzer import terms
from bot.recall.mentions import referenced_numbers
from bot.recall.similar import find_candidates, judge_candidates
from bot.settings.schema import Settings
from bot.sources.archive_file import read_archive
from tests.bench.attackers import FIRST_NUMBER, KINDS, Tracker

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "rust_pre2015"
THREADS = 3_500
LEARNED = 2_000
"""So many threads come before the flood; what is asked comes after it."""

SEED = 7


@dataclass(frozen=True)
class Asked:
    """An issue of the last part, and the older ones that it is a known duplicate of; none of most."""

    thread: Thread
    right: frozenset[ThreadId]


@dataclass(frozen=True)
class Answer:
    """What one issue got: the rank of the right one, what was shown, the time in milliseconds."""

    rank: int | None
    shown: tuple[ThreadId, ...]
    ms: float


Figures = dict[str, float]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "--queries", type=int, default=100, help="issues that are asked, half of them known duplicates"
    )
    options.add_argument("--issues", type=int, default=500, help="issues of the flood")
    options.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS))
    options.add_argument("--json", type=Path, help="where to write all figures")
    given = options.parse_args()
    started = time.monotonic()
    found = measured(given.queries, given.issues, given.kinds)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{time.monotonic() - started:.0f} s")


def measured(queries: int, issues: int, kinds: Iterable[str]) -> dict[str, dict[str, Figures]]:
    """The figures of each attack, without and with the defence; each is printed as it is known."""
    history = ReplayHistory.read(
        sorted(read_archive(DATA / "issues.jsonl.gz"), key=lambda one: one.created_at)[:THREADS]
    )
    asked = _asked(history, queries)
    tracker = Tracker(history.threads[:LEARNED], [one.thread for one in asked])
    found: dict[str, dict[str, Figures]] = {}
    print(_HEAD)
    calm: dict[str, list[Answer]] = {}
    for kind in ("none", *kinds):
        flood = KINDS[kind](tracker, issues, random.Random(SEED)) if kind != "none" else []
        found[kind] = {}
        for name, answers in _answered(history, flood, asked):
            calm.setdefault(name, answers)
            found[kind][name] = _figures(answers, asked, calm[name])
            print(_row(kind, name, found[kind][name]), flush=True)
    return found


def _asked(history: ReplayHistory, count: int) -> list[Asked]:
    """A random half with known duplicates and a random half of all issues, in the order of their creation."""
    late = {thread.id: thread for thread in history.threads[LEARNED:]}
    known = {thread.id: thread.created_at for thread in history.threads}
    lines = (DATA / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    right = {row["id"]: frozenset(row["relevant"]) & known.keys() for row in map(json.loads, lines)}
    chance = random.Random(SEED)
    marked = sorted(key for key in late if right.get(key))
    others = sorted(key for key in late if not right.get(key))
    chosen = [*chance.sample(marked, min(len(marked), count // 2)), *chance.sample(others, count - count // 2)]
    asked = [Asked(mask_citations(late[key], right.get(key, ())), right.get(key, frozenset())) for key in chosen]
    return sorted(asked, key=lambda one: one.thread.created_at)


def _answered(
    history: ReplayHistory, flood: Sequence[Thread], asked: Sequence[Asked]
) -> Iterator[tuple[str, list[Answer]]]:
    """What is answered without the defence and with it, over one index each and the same vectors."""
    threads = sorted((*history.threads, *flood), key=lambda one: (one.created_at, str(one.id)))
    documents = {document.entry.id: document for document in (*history.documents, *map(_document, flood))}
    poisoned = ReplayHistory(threads, [documents[one.id] for one in threads])
    before = poisoned.documents[: LEARNED + len(flood)]
    words = train_embeddings([(one.title, one.body) for one in before])
    learned = LearnedModel(shipped(), words, None)
    encoded = [replace(one, vectors=learned.term_vectors(one.title, one.body)) for one in poisoned.documents]
    for name, held in (("without", list(map(_open_to_all, encoded))), ("with", encoded)):
        with _library(poisoned, held, learned) as past:
            yield name, [_answer(one, past) for one in asked]


@contextmanager
def _library(
    history: ReplayHistory, documents: Sequence[IndexDocument], learned: LearnedModel
) -> Iterator[PastLibrary]:
    with tempfile.TemporaryDirectory(prefix="precedent-") as folder:
        build_index(Path(folder), documents)
        index = open_index(Path(folder))
        try:
            yield PastLibrary(history, len(documents), learned, index)
        finally:
            index.close()


def _document(thread: Thread) -> IndexDocument:
    found = bare_document(thread, Outcome())
    target, at = first_original(thread) or (None, None)
    return replace(found, entry=replace(found.entry, duplicate_of=target, duplicate_at=at))


def _open_to_all(document: IndexDocument) -> IndexDocument:
    """The document as if its author were known: whatever the thread says counts from its beginning on."""
    return replace(document, entry=replace(document.entry, unvouched_until=None))


def _answer(one: Asked, library: PastLibrary) -> Answer:
    before, limits = one.thread.created_at, Settings().troubleshooting
    skip = referenced_numbers(one.thread, RepositoryAddress())
    started = time.perf_counter()
    ranking = find_candidates(one.thread, library, before, skip)
    ms = 1000 * (time.perf_counter() - started)
    places = (n for n, c in enumerate(ranking.candidates, 1) if one.right.intersection((c.entry.id, *c.folded)))
    found = judge_candidates(one.thread, ranking, library, before) if terms(one.thread.title) else []
    good = [each.thread for each in found if each.is_shown(limits.similarity_threshold)]
    seen = [thread.id for thread in good if thread.is_closed][: limits.max_results]
    still_open = [thread.id for thread in good if not thread.is_closed][: limits.open_results]
    return Answer(next(places, None), (*seen, *still_open), ms)


def _figures(answers: Sequence[Answer], asked: Sequence[Asked], calm: Sequence[Answer]) -> Figures:
    spoken = [answer for answer in answers if answer.shown]
    shown = [key for answer in spoken for key in answer.shown]
    poisoned = [key for key in shown if _is_poison(key)]
    ranks = [answer.rank for answer, one in zip(answers, asked, strict=True) if one.right]
    metrics: Mapping[str, object] = RankMetrics.of(ranks).as_dict()
    honest = {(n, key) for n, answer in enumerate(calm) for key in answer.shown}
    kept = honest & {(n, key) for n, answer in enumerate(answers) for key in answer.shown}
    return {
        "comments": len(spoken) / len(answers),
        "comments_poisoned": sum(any(map(_is_poison, a.shown)) for a in spoken) / len(answers),
        "hits_poisoned": len(poisoned) / max(1, len(shown)),
        "honest_hits_kept": len(kept) / max(1, len(honest)),
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
