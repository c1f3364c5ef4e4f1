"""Measures the costs and the quality of the index, compared with SQLite FTS5 and a plain Whoosh index.

python -m bench.bench_index [--threads N] [--rounds N] [--json FILE]   ratios, all measured in one run
python -m bench.bench_index --quality                                  RR@k and MRR of a search by terms

The peers index the same titles and texts in their own way, and are searched for the same terms. Our searches and theirs
alternate, and so do builds, so that other load on the machine affects both. ``--quality`` needs the archives next to
the checkout.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from time import perf_counter

import whoosh
from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import TEXT, Schema
from whoosh.index import create_in, open_dir
from whoosh.query import Or, Term
from whoosh.searching import Searcher

from bench.archives import ARCHIVE, need_archives
from bench.figures import Limit, Peer, Report, Result, Spread, single
from bench.history import history
from bot.domain.thread import Thread, ThreadId
from bot.domain.thread_json import thread_from_archive
from bot.evaluation.replay import PastLibrary, ReplayHistory
from bot.index import build_index, open_index
from bot.index.document import document_of
from bot.index.protocol import Query
from bot.ranking.weights import shipped
from bot.reading.digest import digest
from bot.recall.library import similar_query
from bot.recall.similar import find_candidates

QUERIES = 300
BY_WHOOSH = 60
"""Queries for the plain Whoosh index, which is slow."""

UPDATES = 200
SEED = 20150101
LATER = datetime(2100, 1, 1, tzinfo=UTC)
WHOOSH = ("plain Whoosh", whoosh.versionstring())
FTS5 = ("SQLite FTS5", sqlite3.sqlite_version)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is built")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.quality:
            print_quality(Path(folder), read_archive())
            return
        report = costs(Path(folder), options.threads, options.rounds)
    print(report.as_text())
    if options.json:
        report.write(options.json)


def read_archive() -> list[Thread]:
    """The threads of the development archive, by id."""
    need_archives()
    with gzip.open(ARCHIVE, "rt", encoding="utf-8") as lines:
        return sorted((thread_from_archive(json.loads(line)) for line in lines), key=lambda thread: int(thread.id))


def costs(folder: Path, count: int, rounds: int) -> Report:
    """Builds, sizes, searches and updates."""
    data, threads, _ = history(count)
    queries = random.Random(SEED).sample(list(threads), QUERIES)
    results = list(builds(folder, threads, rounds))
    results += searches(folder, queries, build_fts(threads))
    results.append(full_search(folder / "ours", threads, queries))
    results.append(updates(folder / "ours", folder / "fts.db", threads))
    return Report(f"{data}; {QUERIES} of them asked, title × 3 + body", tuple(results))


def builds(folder: Path, threads: Sequence[Thread], rounds: int) -> Iterator[Result]:
    """The index of words, compared with engines that only search words."""
    digests = {thread.id: digest(thread) for thread in threads}
    builders: dict[str, Callable[[Path], object]] = {
        "ours": lambda path: build_index(path, (document_of(thread, digests[thread.id]) for thread in threads)),
        "plain": lambda path: build_plain(path, threads),
        "bare.db": lambda path: full_text(path, threads, ", content = ''"),
    }
    times: dict[str, list[float]] = {name: [] for name in builders}
    for _ in range(rounds):
        for name, build in builders.items():
            remove(folder / name)
            times[name].append(seconds(partial(build, folder / name)))
    ours, plain, fts = (Spread.of(durations) for durations in times.values())
    title = "build the index of words"
    yield Result("build-whoosh", "build", title, "s", ours, Peer(*WHOOSH, plain), Limit("ratio", 1.0))
    yield Result("build-fts5", "build", title, "s", ours, Peer(*FTS5, fts))
    paths = [folder / name for name in builders]
    sizes_of, packed_sizes = [single(size(path)) for path in paths], [single(packed_size(path)) for path in paths]
    title = "size of the index of words"
    yield Result("size-whoosh", "build", title, "MB", sizes_of[0], Peer(*WHOOSH, sizes_of[1]), Limit("ratio", 0.75))
    yield Result("size-fts5", "build", title, "MB", sizes_of[0], Peer(*FTS5, sizes_of[2]))
    title = "index of words, deflated as git does"
    yield Result(
        "packed-fts5", "build", title, "MB", packed_sizes[0], Peer(*FTS5, packed_sizes[2]), Limit("median", 11.0)
    )


def searches(folder: Path, queries: Sequence[Thread], table: sqlite3.Connection) -> Iterator[Result]:
    """Searches by terms alone, and with the blend of a real query, compared with the same terms in FTS5 and Whoosh."""
    opened = Spread.of(1e3 * seconds(lambda: open_index(folder / "ours").close()) for _ in range(50))
    yield Result("open", "search", "open the index", "ms", opened, limit=Limit("median", 10.0))
    by_terms = [similar_query(thread) for thread in queries]
    blended = [similar_query(thread, model=shipped().by_words) for thread in queries]
    index = open_index(folder / "ours")
    plain = open_dir(str(folder / "plain")).searcher()
    times: dict[str, list[float]] = {"terms": [], "blend": [], "fts5": [], "whoosh": []}
    for number, (query, blend) in enumerate(zip(by_terms, blended, strict=True)):
        tasks: dict[str, Callable[[], object]] = {
            "terms": partial(index.search, query, before=LATER),
            "fts5": partial(search_fts, table, list(query.terms)),
            "blend": partial(index.search, blend, before=LATER),
            "whoosh": partial(search_plain, plain, query),
        }
        for name, search in tasks.items():
            if name != "whoosh" or number < BY_WHOOSH:
                times[name].append(1e3 * seconds(search))
    plain.close()
    ours, blends, fts5, whooshes = (Spread.of(values) for values in times.values())
    title, blend_title = "search by words", "search by words, state and age"
    yield Result("search-fts5", "search", title, "ms", ours, Peer(*FTS5, fts5), Limit("ratio", 1.0))
    yield Result("search-whoosh", "search", title, "ms", ours, Peer(*WHOOSH, whooshes), Limit("ratio", 1.0))
    yield Result("blend-fts5", "search", blend_title, "ms", blends, Peer(*FTS5, fts5), Limit("ratio", 1.0))
    yield Result("blend-whoosh", "search", blend_title, "ms", blends, Peer(*WHOOSH, whooshes))


def full_search(folder: Path, threads: Sequence[Thread], queries: Sequence[Thread]) -> Result:
    """The whole search, from a thread to its ranked candidates among older threads."""
    index = open_index(folder)
    past = PastLibrary(ReplayHistory(threads, ()), index)
    tasks = [partial(find_candidates, thread, past, thread.created_at, ()) for thread in queries]
    times = Spread.of([1e3 * seconds(task) for task in tasks])
    index.close()
    return Result("candidates", "search", "from an issue to its candidates in order", "ms", times, None, limit_ms())


def updates(folder: Path, fts: Path, threads: Sequence[Thread]) -> Result:
    """One thread changed and written to disk."""
    full_text(fts, threads)
    table, ours, theirs = sqlite3.connect(fts), [], []
    for thread in random.Random(SEED).sample(list(threads), UPDATES):
        changed = replace(thread, title=thread.title + " again")
        document = document_of(changed)
        index = open_index(folder)
        ours.append(1e3 * seconds(partial(index.update, [document])))
        index.close()
        theirs.append(1e3 * seconds(partial(update_fts, table, changed)))
    table.close()
    peer = Peer(*FTS5, Spread.of(theirs))
    return Result("update", "build", "change one thread in the index", "ms", Spread.of(ours), peer, limit_ms())


def limit_ms() -> Limit:
    """The limit for steps that a person or a run waits for often."""
    return Limit("median", 20.0)


def print_quality(folder: Path, threads: Sequence[Thread]) -> None:
    """Print at which rank a search finds the first known duplicate, among threads older than the query."""
    build_index(folder, (document_of(thread, digest(thread)) for thread in threads))
    index, by_id = open_index(folder), {thread.id: thread for thread in threads}
    ranks: list[float] = []
    for line in ARCHIVE.with_name("queries.jsonl").read_text(encoding="utf-8").splitlines():
        query_row = json.loads(line)
        thread = by_id[query_row["id"]]
        hits = index.search(similar_query(thread), limit=1000, before=thread.created_at)
        ranks.append(rank([hit.entry.id for hit in hits], query_row["relevant"]))
    shares = "  ".join(f"RR@{k} {fmean(rank <= k for rank in ranks):.3f}" for k in (1, 5, 10, 20, 200))
    print(f"{len(ranks)} queries  {shares}  MRR {fmean(1 / rank for rank in ranks):.3f}")


def rank(ids: Sequence[ThreadId], relevant: Iterable[ThreadId]) -> float:
    return min((ids.index(key) + 1 for key in relevant if key in ids), default=float("inf"))


def build_plain(folder: Path, threads: Sequence[Thread]) -> None:
    folder.mkdir()
    analyser = StemmingAnalyzer()
    index = create_in(str(folder), Schema(title=TEXT(analyzer=analyser), body=TEXT(analyzer=analyser)))
    with index.writer() as writer:
        for thread in threads:
            writer.add_document(title=thread.title, body=thread.body)


def search_plain(searcher: Searcher, query: Query) -> list[tuple[int, float]]:
    """The best 200 by the library's own BM25F, for the same terms."""
    words_query = Or([Term(field, term) for term in query.terms for field in ("title", "body")])
    return list(searcher.search(words_query, limit=200).items())


def full_text(path: Path, threads: Sequence[Thread], options: str = "") -> None:
    """The same titles and texts in an SQLite file, with its stemmer; it keeps the texts unless an option says no."""
    table = sqlite3.connect(path)
    table.execute(f"CREATE VIRTUAL TABLE threads USING fts5 (title, body, tokenize = 'porter unicode61'{options})")
    rows = ((thread.id, thread.title, thread.body) for thread in threads)
    table.executemany("INSERT INTO threads (rowid, title, body) VALUES (?, ?, ?)", rows)
    table.commit()
    table.close()


def update_fts(table: sqlite3.Connection, thread: Thread) -> None:
    table.execute("UPDATE threads SET title = ?, body = ? WHERE rowid = ?", (thread.title, thread.body, thread.id))
    table.commit()


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


def search_fts(table: sqlite3.Connection, query_terms: Sequence[str]) -> list[tuple[int]]:
    words = " OR ".join(f'"{term}"' for term in query_terms)
    statement = "select rowid from threads where threads match ? order by bm25(threads, 8.0, 1.0) limit 200"
    return table.execute(statement, (words,)).fetchall()


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def files(path: Path) -> list[Path]:
    return list(path.iterdir()) if path.is_dir() else [path]


def size(path: Path) -> float:
    return sum(file.stat().st_size for file in files(path)) / 1e6


def packed_size(path: Path) -> float:
    return sum(len(zlib.compress(file.read_bytes())) for file in files(path)) / 1e6


if __name__ == "__main__":
    main()
