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
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles
from time import perf_counter

from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import TEXT, Schema
from whoosh.index import create_in

from bot.archive import thread_from_archive
from bot.evaluation.replay import History, Past
from bot.memory.documents import document_of
from bot.memory.learned import Learned
from bot.memory.whoosh import build, open_index
from bot.model import Thread, ThreadId
from bot.numeric.towers import train
from bot.numeric.word_vectors import encode
from bot.ranking import shipped
from bot.reading.digest import digest
from bot.reading.words import body_terms, terms
from bot.recall.query import similar_query
from bot.recall.troubleshoot import candidates

ARCHIVE = Path(__file__).resolve().parents[3] / "shared/data/rust_pre2015"
QUERIES = 300
SEED = 20150101
LATER = datetime(2100, 1, 1, tzinfo=UTC)


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
    print(f"{len(threads):,} threads, {QUERIES} queries (title × 3 + body)")
    report("build, s (plain Whoosh)", ours_seconds, plain_seconds, 1.0)
    report("size, MB (plain Whoosh)", size(ours), size(plain), 0.75)
    tell("size, MB, deflated as git does", packed_size(ours), "target ≤ 11")
    learned = trained(threads)
    everything = folder / "everything"
    build(everything, (document_of(thread, digests[thread.id], learned.vectors(thread)) for thread in threads))
    print_sizes(everything, learned)
    asked = random.Random(SEED).sample(list(threads), QUERIES)
    print_searches(ours, everything, asked, learned, build_fts(threads))
    print_candidates(everything, threads, asked, learned)
    print_updates(everything, threads, learned)


def trained(threads: Sequence[Thread]) -> Learned:
    """What a repository of these threads learns; its ranking is the shipped one."""
    texts = [(terms(thread.title), body_terms(thread.body)) for thread in threads]
    start = perf_counter()
    words = train(texts)
    tell("train the vectors, s", perf_counter() - start, "target ≤ 15")
    return Learned(shipped(), words)


def print_sizes(folder: Path, learned: Learned) -> None:
    words = b"" if learned.words is None else encode(learned.words)
    print("with the vectors of texts and titles")
    tell("size with the words, MB", size(folder) + len(words) / 1e6, "target ≤ 60")
    tell("size, MB, deflated as git does", packed_size(folder) + len(zlib.compress(words)) / 1e6)
    opened = [1e3 * seconds(lambda: open_index(folder).close()) for _ in range(50)]
    tell("open, ms", median(opened), "target ≤ 10")


def print_searches(
    bare: Path, everything: Path, asked: Sequence[Thread], learned: Learned, table: sqlite3.Connection
) -> None:
    """By terms alone, and with the blend of a question as it is asked, beside the same terms in FTS5."""
    model = learned.ranking.model(has_vectors=True)
    by_terms = [similar_query(thread) for thread in asked]
    blended = [similar_query(thread, learned.vectors(thread), model) for thread in asked]
    theirs = [1e3 * seconds(lambda found=list(query.terms): search_fts(table, found)) for query in by_terms]
    for what, folder, queries in (("search", bare, by_terms), ("blend of two arms", everything, blended)):
        search = partial(open_index(folder).search, before=LATER)
        ours = [1e3 * seconds(partial(search, query)) for query in queries]
        report(f"{what} p50, ms (FTS5)", median(ours), median(theirs), 1.0)
        report(f"{what} p90, ms (FTS5)", quantiles(ours, n=10)[-1], quantiles(theirs, n=10)[-1], 1.0)


def print_candidates(folder: Path, threads: Sequence[Thread], asked: Sequence[Thread], learned: Learned) -> None:
    """The whole way from a thread to its candidates in order, among those that were there before it."""
    index = open_index(folder)
    past = Past(History(threads, ()), len(threads), learned, index)
    times = [1e3 * seconds(lambda thread=thread: candidates(thread, past, thread.created_at, ())) for thread in asked]
    index.close()
    tell("candidates p50, ms", median(times), f"target ≤ 20 (p90 {quantiles(times, n=10)[-1]:.1f})")


def print_updates(folder: Path, threads: Sequence[Thread], learned: Learned) -> None:
    times = []
    for thread in random.Random(SEED).sample(list(threads), 200):
        changed = replace(thread, title=thread.title + " again")
        document = document_of(changed, vectors=learned.vectors(changed))
        index = open_index(folder)
        times.append(1e3 * seconds(lambda document=document, index=index: index.update([document])))
        index.close()
    tell("update + commit p50, ms", median(times), f"target ≤ 20 (p95 {quantiles(times, n=20)[-1]:.1f})")


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


def search_fts(table: sqlite3.Connection, wanted: Sequence[str]) -> list[tuple[int]]:
    words = " OR ".join(f'"{term}"' for term in wanted)
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


def tell(what: str, value: float, remark: str = "") -> None:
    print(f"{what:34}{value:9.2f}   {remark}".rstrip())


def report(what: str, ours: float, theirs: float, target: float) -> None:
    print(f"{what:34}{ours:9.2f}{theirs:9.2f}   ratio {ours / theirs:.2f}, target ≤ {target}")


if __name__ == "__main__":
    main()
