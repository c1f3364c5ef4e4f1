"""What the index costs beside SQLite FTS5 and a plain Whoosh index, and what it finds.

python -m tests.bench.bench_index [--threads N]      ratios, all measured in this one run
python -m tests.bench.bench_index --quality          RR@k and MRR on the archive's known duplicates
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter

from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import TEXT, Schema
from whoosh.index import create_in

from bot.archive import thread_from_archive
from bot.memory.documents import document_of
from bot.memory.index import Query
from bot.memory.whoosh import build, open_index
from bot.model import Thread, ThreadId
from bot.reading.digest import digest
from bot.recall.query import similar_query

ARCHIVE = Path(__file__).resolve().parents[3] / "shared/data/rust_pre2015"
QUERIES = 300
SEED = 20150101
CHANCE = random.Random(SEED)
ARMS_USED = ("trained", "trained_title")
LENGTH = 128


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=10_000)
    options.add_argument("--quality", action="store_true")
    chosen = options.parse_args()
    threads = read_archive()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.quality:
            print_quality(Path(folder), threads)
        else:
            print_costs(Path(folder), threads[: chosen.threads])


def read_archive() -> list[Thread]:
    """The threads of the development archive, by id."""
    if not ARCHIVE.is_dir():
        raise SystemExit(f"the archive is not here: {ARCHIVE}")
    with gzip.open(ARCHIVE / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        return sorted((thread_from_archive(json.loads(line)) for line in lines), key=lambda thread: int(thread.id))


def print_costs(folder: Path, threads: Sequence[Thread]) -> None:
    digests = {thread.id: digest(thread) for thread in threads}
    ours, plain = folder / "ours", folder / "plain"
    ours_seconds = seconds(lambda: build(ours, (document_of(thread, digests[thread.id]) for thread in threads)))
    plain_seconds = seconds(lambda: build_plain(plain, threads))
    table = build_fts(threads)
    print(f"{len(threads):,} threads, {QUERIES} queries (title × 3 + body)")
    report("build, s (plain Whoosh)", ours_seconds, plain_seconds, 1.0)
    report("size, MB (plain Whoosh)", size(ours), size(plain), 0.75)
    print(f"{'size, MB, deflated as git does':34}{packed_size(ours):9.2f}   target ≤ 11")
    asked = [similar_query(thread) for thread in random.Random(SEED).sample(list(threads), QUERIES)]
    index = open_index(ours)
    index_times = [seconds(lambda query=query: index.search(query)) for query in asked]
    fts_times = [seconds(lambda terms=list(query.terms): search_fts(table, terms)) for query in asked]
    report("search p50, ms (FTS5, same terms)", 1e3 * median(index_times), 1e3 * median(fts_times), 1.0)
    report("search p90, ms", 1e3 * quantiles(index_times, n=10)[-1], 1e3 * quantiles(fts_times, n=10)[-1], 1.0)
    index.close()
    print_with_vectors(folder / "vectors", threads, [replace(query, vectors=vectors()) for query in asked])


def print_with_vectors(folder: Path, threads: Sequence[Thread], asked: Sequence[Query]) -> None:
    """The costs of everything; the vectors are noise: what is close shares no terms, so there are most hits."""
    build(folder, (replace(document_of(thread), vectors=vectors()) for thread in threads))
    print(f"with vectors of {LENGTH} numbers on {len(ARMS_USED)} arms")
    print(f"{'size, MB':34}{size(folder):9.2f}   target ≤ 60")
    print(f"{'size, MB, deflated as git does':34}{packed_size(folder):9.2f}")
    opened = [1e3 * seconds(lambda: open_index(folder).close()) for _ in range(50)]
    print(f"{'open, ms':34}{median(opened):9.2f}   target ≤ 10")
    print_searches("search", folder, asked, None)
    print_updates(folder, threads)
    print_searches("search after the updates", folder, asked, threads[-1].created_at)


def print_searches(what: str, folder: Path, asked: Sequence[Query], before: datetime | None) -> None:
    index = open_index(folder)
    times = [1e3 * seconds(lambda query=query: index.search(query, before=before)) for query in asked]
    hits = fmean(len(index.search(query, before=before)) for query in asked)
    index.close()
    p50, p90 = median(times), quantiles(times, n=10)[-1]
    print(f"{what + ' p50, ms':34}{p50:9.2f}   target ≤ 8 (p90 {p90:.1f}, {hits:.0f} hits)")


def print_updates(folder: Path, threads: Sequence[Thread]) -> None:
    times = []
    for thread in random.Random(SEED).sample(list(threads), 200):
        document = replace(document_of(replace(thread, title=thread.title + " again")), vectors=vectors())
        index = open_index(folder)
        times.append(1e3 * seconds(lambda document=document, index=index: index.update([document])))
        index.close()
    print(f"{'update + commit p50, ms':34}{median(times):9.2f}   target ≤ 20 (p95 {quantiles(times, n=20)[-1]:.1f})")


def vectors() -> dict[str, bytes]:
    return {arm: CHANCE.randbytes(LENGTH) for arm in ARMS_USED}


def print_quality(folder: Path, threads: Sequence[Thread]) -> None:
    """Rank of the first known duplicate among the threads that were created before the query."""
    build(folder, (document_of(thread, digest(thread)) for thread in threads))
    index, by_id = open_index(folder), {thread.id: thread for thread in threads}
    ranks: list[float] = []
    for line in (ARCHIVE / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)
        thread = by_id[asked["id"]]
        hits = index.search(similar_query(thread), limit=1000, before=thread.created_at)
        ranks.append(rank([hit.entry.id for hit in hits], asked["relevant"]))
    shares = "  ".join(f"RR@{k} {fmean(rank <= k for rank in ranks):.3f}" for k in (1, 5, 10, 20, 200))
    print(f"{len(ranks)} queries  {shares}  MRR {fmean(1 / rank for rank in ranks):.3f}")


def rank(found: Sequence[ThreadId], relevant: Iterable[ThreadId]) -> float:
    return min((found.index(key) + 1 for key in relevant if key in found), default=float("inf"))


def build_plain(folder: Path, threads: Sequence[Thread]) -> None:
    folder.mkdir()
    analyser = StemmingAnalyzer()
    index = create_in(str(folder), Schema(title=TEXT(analyzer=analyser), body=TEXT(analyzer=analyser)))
    with index.writer() as writer:
        for thread in threads:
            writer.add_document(title=thread.title, body=thread.body)


def build_fts(threads: Sequence[Thread]) -> sqlite3.Connection:
    """The same terms in FTS5, in memory, so that only the search is compared."""
    table = sqlite3.connect(":memory:")
    table.execute(
        """create virtual table threads using fts5(title, body, content='', tokenize="unicode61 tokenchars '._'")"""
    )
    documents = map(document_of, threads)
    rows = ((document.entry.id, " ".join(document.title), " ".join(document.body)) for document in documents)
    table.executemany("insert into threads(rowid, title, body) values (?, ?, ?)", rows)
    table.execute("insert into threads(threads) values ('optimize')")
    return table


def search_fts(table: sqlite3.Connection, terms: Sequence[str]) -> list[tuple[int]]:
    words = " OR ".join(f'"{term}"' for term in terms)
    found = "select rowid from threads where threads match ? order by bm25(threads, 8.0, 1.0) limit 200"
    return table.execute(found, (words,)).fetchall()


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def packed_size(folder: Path) -> float:
    return sum(len(zlib.compress(path.read_bytes())) for path in folder.iterdir()) / 1e6


def report(what: str, ours: float, theirs: float, target: float) -> None:
    print(f"{what:34}{ours:9.2f}{theirs:9.2f}   ratio {ours / theirs:.2f}, target ≤ {target}")


if __name__ == "__main__":
    main()
