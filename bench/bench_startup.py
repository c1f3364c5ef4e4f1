"""Measures how soon a search from a shell answers, compared with its libraries; all in one run, as processes.

python -m bench.bench_startup [--threads N] [--runs N] [--json FILE]

The peer is four times `python -c "import whoosh"` plus one query of SQLite FTS5 in a process, on the same titles and
texts. The threads are the sample's, resampled to that number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from bench.archives import ROOT
from bench.bench_index import FTS5, WHOOSH, full_text
from bench.figures import Limit, Peer, Report, Result, Spread
from bench.resampled import Resampler
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.memory.branch_store import BranchStore
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive
from tests.memory.remotes import bare_repository, commit

NOW = datetime(2026, 11, 1, tzinfo=UTC)
WORDS = ("login", "loop", "cookie")
STANDARD_LIBRARY = "import argparse, datetime, json, pathlib, sqlite3, subprocess, typing"
FTS = """
import sqlite3, sys
found = sqlite3.connect(sys.argv[1]).execute(
    "SELECT rowid, title, bm25(threads) FROM threads WHERE threads MATCH ? ORDER BY 3 LIMIT 10", (sys.argv[2],)
).fetchall()
print(found)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=31)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        times = measure(Path(folder), options.threads, options.runs)
    print(table(times, options.threads))
    if options.json:
        data = (
            f"The sample, resampled to {options.threads:,} threads; each command {options.runs} times. Python with the"
            f" modules of its library that a search loads takes {median(times['standard library']):.0f} ms of it. In a"
            " checkout, a search also waits for git, which reads the address of the remote"
        )
        Report(data, tuple(results(times))).write(options.json)


def measure(folder: Path, count: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each command; the commands alternate, so that other load affects all of them."""
    sample = list(read_archive(ROOT / "sample/history.jsonl"))
    threads = list(Resampler(sample).threads(count, NOW))
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("bench")
    memory.close()
    full_text(folder / "fts.db", threads)
    checkout = checkout_with_branch(folder, threads)
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    search = (str(Path(sys.executable).with_name("precedent")), "search", *WORDS)
    commands = {
        "python": (sys.executable, "-c", "pass"),
        "standard library": (sys.executable, "-c", STANDARD_LIBRARY),
        "import whoosh": (sys.executable, "-c", "import whoosh"),
        "fts5": (sys.executable, "-c", FTS, str(folder / "fts.db"), " OR ".join(WORDS)),
        "search --store": (*search, "--store", str(folder / "store")),
        "search --store --json": (*search, "--store", str(folder / "store"), "--json"),
        "search in a checkout": search,
    }
    first = {
        name: time_command(command, environment, checkout) for name, command in commands.items() if "search" in name
    }
    times: dict[str, list[float]] = {f"{name}, the first time": [ms] for name, ms in first.items()}
    for _ in range(runs):
        for name, command in commands.items():
            times.setdefault(name, []).append(time_command(command, environment, checkout))
    return times


def time_command(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    started = perf_counter()
    environment = {**environment, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    ms = (perf_counter() - started) * 1000
    if result.returncode or ("search" in command and not result.stdout):
        raise SystemExit(f"{command} failed: {result.stderr.decode()}")
    return ms


def checkout_with_branch(folder: Path, threads: Sequence[Thread]) -> Path:
    """A checkout of a repository whose branch holds the threads, with a complete settings file."""
    bare = bare_repository(folder / "remote.git")
    files = {"README.md": b"# Hello\n", ".github/precedent.yml": (ROOT / "config.example.yml").read_bytes()}
    commit(bare, {path: ("100644", text) for path, text in files.items()}, "refs/heads/main")
    with BranchStore(str(bare), "precedent") as store:
        memory = Memory(store).open()
        memory.stage(Changes(records=tuple(threads)))
        memory.commit("bench")
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(bare), str(folder / "checkout")], check=True)
    return folder / "checkout"


def results(times: Mapping[str, Sequence[float]]) -> Iterator[Result]:
    """The limit as a peer: the time of four imports of Whoosh plus one query of FTS5."""
    parts = zip(times["import whoosh"], times["fts5"], strict=True)
    allowed = Spread.of(4 * imported + queried for imported, queried in parts)
    both = Peer("4 × import whoosh + one FTS5 query", f"{WHOOSH[1]}, {FTS5[1]}", allowed)
    query = Peer("a query of SQLite FTS5, as a process", FTS5[1], Spread.of(times["fts5"]))
    for name, title in (("search --store", "search in a folder"), ("search in a checkout", "search in a checkout")):
        ours = Spread.of(times[name])
        key = name.replace(" ", "-").replace("--", "")
        yield Result(key, "start", f"precedent {title}, to its end", "ms", ours, both, Limit("ratio", 1.0))
        yield Result(f"{key}-fts5", "start", f"precedent {title}, to its end", "ms", ours, query)


def table(times: Mapping[str, Sequence[float]], count: int) -> str:
    medians = {name: median(values) for name, values in times.items()}
    limit = 4 * medians["import whoosh"] + medians["fts5"]
    lines = [f"{count:,} threads; milliseconds, half and nine of ten runs"]
    for name, values in times.items():
        ninth = quantiles(values, n=10)[-1] if len(values) > 1 else values[0]
        lines.append(f"{name:40}{medians[name]:8.1f}{ninth:8.1f}")
    lines.append(f"limit: 4 x import whoosh + one FTS5 query = {limit:.1f}")
    strict = 4 * medians["import whoosh"] + max(0.0, medians["fts5"] - medians["python"])
    lines.append(f"the same without the start of Python in the query = {strict:.1f}")
    lines += [
        f"{name:40}{medians[name] / limit:8.2f} of the limit, {medians[name] / strict:.2f} of the stricter one"
        for name in ("search --store", "search --store --json", "search in a checkout")
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
