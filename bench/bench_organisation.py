"""Compares a search of all repositories of an organisation with SQLite FTS5 on the same rows, in one run.

python -m bench.bench_organisation [--threads 100000] [--json FILE]

The terms of the development archive are resampled as that many threads of 2,000 repositories, with other names, and
with new ones at the rate at which its vocabulary grows (Heaps' law). More than 100,000 threads are compared with
100,000, to see the growth. Our searches and theirs alternate; memory is measured in separate processes.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from bench.archives import ROOT
from bench.figures import Peer, Report, Result, Spread, Table, single
from bench.history import NOW, history
from bench.launcher import Launcher, Measured
from bench.resampled import BETA, REPLACED, SEED
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Outcome, Thread
from bot.organisation.lance import LanceCandidates, open_candidates
from bot.organisation.rows import row_of, thread_of
from bot.reading.analyzer import body_terms, terms

USUAL = 100_000
REPOSITORIES = 2_000
SCOPES = (1, 20, 1_000)
TERMS = 30
QUERIES = 100
CHANGES = 100
TAIL = 5_000
"""Threads written after the index was built, searched without it."""

FTS5 = ("SQLite FTS5", sqlite3.sqlite_version)
PARTS = ("build-ours", "build-theirs", "search", "memory-ours", "memory-theirs")
TOKENS = "unicode61 remove_diacritics 0 tokenchars '!#$%&*+,-./:;<=>?@[]^_`{|}~\\'"


class OrganisationGenerator:
    """Generates threads of an organisation from those of the archive, always the same ones."""

    def __init__(self, threads: Sequence[Thread]) -> None:
        self._chance = Random(SEED)
        self._known = [(thread, [*terms(thread.title) * 3, *body_terms(thread.body)]) for thread in threads]
        self._words = [term for _, each in self._known for term in each]
        self._vocabulary = len(set(self._words))
        self._new: list[str] = []
        self._weights = [(rank + 1) ** -0.7 for rank in range(REPOSITORIES)]

    def threads(self, count: int) -> Iterator[OrganisationThread]:
        repositories = self._chance.choices(range(1, REPOSITORIES + 1), self._weights, k=count)
        for number, repository in enumerate(repositories, 1):
            thread, words = self._chance.choice(self._known)
            yield OrganisationThread(
                repository=repository,
                id=number,
                revision=1,
                name=f"octo-org/repository-{repository}",
                kind=Kind.ISSUE,
                title=thread.title,
                author=thread.author,
                created_at=NOW - timedelta(minutes=count - number),
                closed_at=NOW,
                state_reason="completed",
                terms=tuple(self._again(words, number)),
                errors=tuple(word for word in words if word[:1] == "e" and word[1:].isdigit())[:5],
                names=tuple(word for word in words if "_" in word)[:20],
                outcome=Outcome(
                    OutcomeKind.FIXED, 1, number, thread.body[:200], thread.author, fix="#12", release="v1.2"
                ),
                url=f"https://github.com/octo-org/repository-{repository}/issues/{number}",
            )

    def _again(self, words: Sequence[str], number: int) -> list[str]:
        size = max(1.0, number / len(self._known))
        fresh = BETA * self._vocabulary * size ** (BETA - 1) / len(self._words) if size > 1 else 0.0
        changed = list(words)
        for position in range(len(changed)):
            draw = self._chance.random()
            if draw < fresh:
                self._new.append(f"{self._chance.choice(self._words)[:12]}{len(self._new)}")
                changed[position] = self._new[-1]
            elif draw < 2 * fresh and self._new:
                changed[position] = self._chance.choice(self._new[-4_000:])
            elif draw < REPLACED:
                changed[position] = self._chance.choice(self._words)
        return changed


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=USUAL)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        figures = PART_RUNNERS[options.part](options.folder)
        (options.folder / f"{options.part}.json").write_text(json.dumps(figures))
        return 0
    report = measured(options.threads)
    print(report.as_text())
    for table in report.tables:
        print(f"\n{table.title}", *map("\t".join, (table.head, *table.rows)), sep="\n")
    if options.json:
        report.write(options.json)
    return 0


def measured(count: int) -> Report:
    launcher = Launcher()
    try:
        by_size = {size: measure_size(size, launcher) for size in sorted({min(USUAL, count), count})}
    finally:
        launcher.close()
    tables = (growth(*by_size.values()),) if len(by_size) > 1 else ()
    title = f"{count:,} threads of {REPOSITORIES:,} repositories, {TERMS} terms asked, the best 200"
    return Report(title, tuple(by_size[count].values()), tables)


def measure_size(count: int, launcher: Launcher) -> dict[str, Result]:
    with tempfile.TemporaryDirectory(prefix="precedent-organisation-") as name:
        folder = Path(name)
        started = perf_counter()
        ask(folder, write_threads(folder, OrganisationGenerator(history(1_000_000)[1]).threads(count)))
        log(f"{count:,} threads told in {perf_counter() - started:.0f} s")
        memory, figures = {}, {}
        for part in PARTS:
            memory[part] = run(launcher, part, folder)
            figures[part] = json.loads((folder / f"{part}.json").read_text())
            log(f"{part}: {memory[part].seconds:.0f} s, {memory[part].peak_mb:.0f} MB")
        return {result.name: result for result in results(count, figures, memory)}


def run(launcher: Launcher, part: str, folder: Path) -> Measured:
    command = [sys.executable, "-m", "bench.bench_organisation", "--part", part, "--folder", str(folder)]
    return launcher.run(command, os.environ, ROOT)


def results(count: int, figures: dict[str, Any], memory: dict[str, Measured]) -> Iterator[Result]:
    def result(name: str, title: str, unit: str, ours: Spread, theirs: Spread | None, *, more: bool = False) -> Result:
        peer = Peer(*FTS5, theirs) if theirs else None
        return Result(f"organisation-{name}", "server", title, unit, ours, peer, higher_is_better=more)

    ours, theirs, search = figures["build-ours"], figures["build-theirs"], figures["search"]
    speeds = [single(count / figure["seconds"]) for figure in (ours, theirs)]
    yield result("ingest", "read an organisation's threads into its index", "per s", *speeds, more=True)
    yield result("disk", "size of an organisation's index", "MB", single(ours["mb"]), single(theirs["mb"]))
    for part, title in (("build", "building"), ("memory", "searching")):
        peaks = [single(memory[f"{part}-{side}"].peak_mb) for side in ("ours", "theirs")]
        yield result(f"{part}-peak", f"peak memory of {title} it", "MB", *peaks)
    for scope in SCOPES:
        pair = [Spread.of(search[f"{side}-{scope}"]) for side in ("ours", "theirs")]
        noun = "repository" if scope == 1 else "repositories"
        yield result(f"search-{scope}", f"search it within {scope:,} {noun}", "ms", *pair)
    tail = [Spread.of(search[name]) for name in ("ours-tail", "theirs-tail")]
    yield result("search-tail", f"search within 20 repositories, {TAIL:,} threads not yet in the index", "ms", *tail)
    yield result(
        "upsert", "write one thread", "ms", *(Spread.of(search[f"{side}-upsert"]) for side in ("ours", "theirs"))
    )
    yield result("batch", "write 500 threads", "ms", Spread.of(search["ours-batch"]), None)
    yield result("rarity", "rarity of the terms", "ms", Spread.of(search["rarity"]), None)
    yield result("compact", f"take {TAIL:,} threads into the index", "s", single(search["compact"]), None)


def growth(small: dict[str, Result], large: dict[str, Result]) -> Table:
    """The factor by which each figure, ours and theirs, grows with the number of threads."""

    def times(before: Spread, after: Spread) -> str:
        return f"{after.median / before.median:.2f}"

    rows = [
        (
            large[name].what,
            times(result.ours, large[name].ours),
            times(result.peer.spread, large[name].peer.spread) if result.peer and large[name].peer else "",  # type: ignore[union-attr]
        )
        for name, result in small.items()
    ]
    return Table("server", "Growth from 100,000 threads, as a factor", ("", "ours", "SQLite FTS5"), tuple(rows))


def write_threads(folder: Path, threads: Iterable[OrganisationThread]) -> list[OrganisationThread]:
    """Write the threads to a file for later processes; returns those to search for."""
    rng, chosen = Random(SEED), list[OrganisationThread]()
    with (folder / "threads").open("wb") as file:
        for number, thread in enumerate(threads):
            pickle.dump(thread, file)
            if len(set(thread.terms)) >= TERMS:
                if len(chosen) < QUERIES:
                    chosen.append(thread)
                elif (position := rng.randrange(number)) < QUERIES:
                    chosen[position] = thread
    return chosen


def ask(folder: Path, threads: Sequence[OrganisationThread]) -> None:
    rng = Random(SEED)
    queries = [rng.sample(sorted(set(thread.terms)), TERMS) for thread in threads]
    (folder / "queries").write_bytes(pickle.dumps((queries, threads)))


def read_threads(folder: Path) -> Iterator[OrganisationThread]:
    with (folder / "threads").open("rb") as file:
        try:
            while True:
                yield pickle.load(file)
        except EOFError:
            return


def open_ours(folder: Path) -> LanceCandidates:
    return open_candidates(str(folder / "ours"), "1")


def build_ours(folder: Path) -> dict[str, float]:
    with open_ours(folder) as index:
        seconds = timed(lambda: index.rebuild(read_threads(folder))) / 1e3
    return {"seconds": seconds, "mb": megabytes(folder / "ours")}


def build_theirs(folder: Path) -> dict[str, float]:
    seconds = timed(partial(fill, folder)) / 1e3
    return {"seconds": seconds, "mb": megabytes(folder / "theirs")}


def fill(folder: Path) -> None:
    (folder / "theirs").mkdir()
    with table_of(folder) as table:
        table.executescript(
            f"""CREATE TABLE threads (id INTEGER PRIMARY KEY, key TEXT UNIQUE, repository INTEGER, revision INTEGER,
                                     created INTEGER, terms TEXT, document TEXT);
            CREATE INDEX places ON threads (repository);
            CREATE VIRTUAL TABLE words USING fts5 (terms, content = 'threads', content_rowid = 'id',
                                                   tokenize = "{TOKENS}");"""
        )
        rows = map(row_of, read_threads(folder))
        table.executemany(
            "INSERT INTO threads (key, repository, revision, created, terms, document)"
            " VALUES (:key, :repository, :revision, :created, :terms, :document)",
            rows,
        )
        table.execute("INSERT INTO words (words) VALUES ('rebuild')")
        table.commit()


def table_of(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "theirs" / "index.db")


def search_theirs(table: sqlite3.Connection, words: Sequence[str], scope: Iterable[int]) -> int:
    """The same columns of the best 200, decoded as threads."""
    match_query = " OR ".join(f'"{word}"' for word in words)
    table.row_factory = sqlite3.Row
    rows = table.execute(
        "SELECT repository, revision, threads.terms, document FROM words JOIN threads ON threads.id = words.rowid"
        f" WHERE words MATCH ? AND repository IN ({', '.join(map(str, scope))}) ORDER BY bm25(words) LIMIT 200",
        (match_query,),
    )
    return sum(thread_of(dict(row)) is not None for row in rows)


def update_theirs(table: sqlite3.Connection, thread: OrganisationThread) -> None:
    row = row_of(thread)
    old = table.execute("SELECT id, terms FROM threads WHERE key = ?", (row["key"],)).fetchone()
    table.execute("INSERT INTO words (words, rowid, terms) VALUES ('delete', ?, ?)", tuple(old))
    table.execute("UPDATE threads SET terms = ?, document = ? WHERE id = ?", (row["terms"], row["document"], old[0]))
    table.execute("INSERT INTO words (rowid, terms) VALUES (?, ?)", (old[0], row["terms"]))
    table.commit()


def search(folder: Path) -> dict[str, Any]:
    queries, threads = pickle.loads((folder / "queries").read_bytes())
    times: dict[str, Any] = {}
    with open_ours(folder) as index, table_of(folder) as table:
        for scope in SCOPES:
            take_turns(times, str(scope), index, table, scopes(queries, scope))
        times["rarity"] = [timed(partial(index.rarity, words)) for words in queries]
        times["ours-upsert"] = [timed(partial(index.upsert, [thread])) for thread in threads[:CHANGES]]
        times["theirs-upsert"] = [timed(partial(update_theirs, table, thread)) for thread in threads[:CHANGES]]
        changed = [thread for thread, _ in zip(read_threads(folder), range(TAIL), strict=False)]
        batches = [changed[start : start + 500] for start in range(0, len(changed), 500)]
        times["ours-batch"] = [timed(partial(index.upsert, batch)) for batch in batches]
        take_turns(times, "tail", index, table, scopes(queries, 20))
        times["compact"] = timed(index.compact) / 1e3
    return times


def scopes(queries: Iterable[list[str]], size: int) -> list[tuple[list[str], set[int]]]:
    rng = Random(SEED)
    return [(words, set(rng.sample(range(1, REPOSITORIES + 1), size))) for words in queries]


def take_turns(
    times: dict[str, Any], name: str, index: LanceCandidates, table: sqlite3.Connection, cases: Sequence[Any]
) -> None:
    for words, scope in cases[:5]:
        index.search(words, scope)
        search_theirs(table, words, scope)
    times[f"ours-{name}"] = []
    times[f"theirs-{name}"] = []
    for words, scope in cases:
        times[f"ours-{name}"].append(timed(partial(index.search, words, scope)))
        times[f"theirs-{name}"].append(timed(partial(search_theirs, table, words, scope)))


def memory_ours(folder: Path) -> dict[str, int]:
    queries, _ = pickle.loads((folder / "queries").read_bytes())
    with open_ours(folder) as index:
        return {"found": sum(len(index.search(*each)) for each in scopes(queries, 1_000))}


def memory_theirs(folder: Path) -> dict[str, int]:
    queries, _ = pickle.loads((folder / "queries").read_bytes())
    with table_of(folder) as table:
        return {"found": sum(search_theirs(table, *each) for each in scopes(queries, 1_000))}


PART_RUNNERS: dict[str, Callable[[Path], Any]] = dict(
    zip(PARTS, (build_ours, build_theirs, search, memory_ours, memory_theirs), strict=True)
)


def timed(work: Callable[[], object]) -> float:
    """How many milliseconds ``work`` takes."""
    started = perf_counter()
    work()
    return 1e3 * (perf_counter() - started)


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
