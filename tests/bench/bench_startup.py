"""How soon a search from a shell has answered, beside what it is built on; everything in this one run, as processes.

python -m tests.bench.bench_startup [--threads N] [--runs N] [--json FILE]

The peer is `python -c "import whoosh"` four times over and one query of SQLite FTS5 in a process of its own, on the
same titles and texts. The threads are the sample's, told again until there are so many.
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

from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.memory.branch_store import BranchStore
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive
from tests.bench.bench_index import FTS5, WHOOSH, full_text
from tests.bench.figures import Limit, Peer, Report, Result, Spread
from tests.bench.resampled import Resampler
from tests.memory.remotes import bare_repository, commit

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 1, tzinfo=UTC)
WORDS = ("login", "loop", "cookie")
FTS = """
import sqlite3, sys
found = sqlite3.connect(sys.argv[1]).execute(
    "SELECT rowid, title, bm25(threads) FROM threads WHERE threads MATCH ? ORDER BY 3 LIMIT 10", (sys.argv[2],)
).fetchall()
print(found)
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=10_000)
    options.add_argument("--runs", type=int, default=31)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        found = measured(Path(folder), chosen.threads, chosen.runs)
    print(table(found, chosen.threads))
    if chosen.json:
        data = f"The sample told again as {chosen.threads:,} threads; each command {chosen.runs} times"
        Report(data, tuple(results(found))).write(chosen.json)


def measured(folder: Path, count: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each command, the commands in turn so that a busy moment meets all of them."""
    sample = list(read_archive(ROOT / "sample/history.jsonl"))
    threads = list(Resampler(sample).threads(count, NOW))
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("bench")
    memory.close()
    full_text(folder / "fts.db", threads)
    checkout = branch_of(folder, threads)
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}
    search = (str(Path(sys.executable).with_name("precedent")), "search", *WORDS)
    commands = {
        "python": (sys.executable, "-c", "pass"),
        "import whoosh": (sys.executable, "-c", "import whoosh"),
        "fts5": (sys.executable, "-c", FTS, str(folder / "fts.db"), " OR ".join(WORDS)),
        "search --store": (*search, "--store", str(folder / "store")),
        "search --store --json": (*search, "--store", str(folder / "store"), "--json"),
        "search in a checkout": search,
    }
    first = {name: timed(command, environment, checkout) for name, command in commands.items() if "search" in name}
    found: dict[str, list[float]] = {f"{name}, the first time": [ms] for name, ms in first.items()}
    for _ in range(runs):
        for name, command in commands.items():
            found.setdefault(name, []).append(timed(command, environment, checkout))
    return found


def timed(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> float:
    started = perf_counter()
    environment = {**environment, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    ms = (perf_counter() - started) * 1000
    if done.returncode or ("search" in command and not done.stdout):
        raise SystemExit(f"{command} failed: {done.stderr.decode()}")
    return ms


def branch_of(folder: Path, threads: Sequence[Thread]) -> Path:
    """A checkout of a repository whose branch holds the threads, with all settings in its file of settings."""
    bare = bare_repository(folder / "remote.git")
    files = {"README.md": b"# Hello\n", ".github/precedent.yml": (ROOT / "config.example.yml").read_bytes()}
    commit(bare, {path: ("100644", text) for path, text in files.items()}, "refs/heads/main")
    with BranchStore(str(bare), "precedent") as store:
        memory = Memory(store).open()
        memory.stage(Changes(records=tuple(threads)))
        memory.commit("bench")
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(bare), str(folder / "checkout")], check=True)
    return folder / "checkout"


def results(found: Mapping[str, Sequence[float]]) -> Iterator[Result]:
    """The limit as a peer: what four imports of Whoosh and one query of FTS5 take together."""
    parts = zip(found["import whoosh"], found["fts5"], strict=True)
    allowed = Spread.of(4 * imported + asked for imported, asked in parts)
    both = Peer("4 × import whoosh + one FTS5 query", f"{WHOOSH[1]}, {FTS5[1]}", allowed)
    query = Peer("a query of SQLite FTS5, as a process", FTS5[1], Spread.of(found["fts5"]))
    for name, what in (("search --store", "search in a folder"), ("search in a checkout", "search in a checkout")):
        ours = Spread.of(found[name])
        key = name.replace(" ", "-").replace("--", "")
        yield Result(key, "start", f"precedent {what}, to its end", "ms", ours, both, Limit("ratio", 1.0))
        yield Result(f"{key}-fts5", "start", f"precedent {what}, to its end", "ms", ours, query)


def table(found: Mapping[str, Sequence[float]], count: int) -> str:
    half = {name: median(times) for name, times in found.items()}
    limit = 4 * half["import whoosh"] + half["fts5"]
    lines = [f"{count:,} threads; milliseconds, half and nine of ten runs"]
    for name, times in found.items():
        ninth = quantiles(times, n=10)[-1] if len(times) > 1 else times[0]
        lines.append(f"{name:40}{half[name]:8.1f}{ninth:8.1f}")
    lines.append(f"limit: 4 x import whoosh + one FTS5 query = {limit:.1f}")
    strict = 4 * half["import whoosh"] + max(0.0, half["fts5"] - half["python"])
    lines.append(f"the same without the start of Python in the query = {strict:.1f}")
    lines += [
        f"{name:40}{half[name] / limit:8.2f} of the limit, {half[name] / strict:.2f} of the stricter one"
        for name in ("search --store", "search --store --json", "search in a checkout")
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
