"""Peak memory of an import and of a search as processes of their own, beside what they are built on.

python -m tests.bench.bench_memory [--threads 10000] [--runs 3] [--json FILE]

Each peer is a process too: one that imports the libraries and ends, a plain Whoosh index that is made of the same file,
and a query of SQLite FTS5. What an event takes is measured by bench_event, where there is one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.domain.thread import Thread
from bot.domain.thread_json import archive_fields, without_defaults
from tests.bench.bench_event import LIBRARIES
from tests.bench.bench_index import FTS5, WHOOSH, full_text
from tests.bench.bench_startup import FTS
from tests.bench.figures import Limit, Peer, Report, Result, Spread, report_main
from tests.bench.history import ROOT, history
from tests.bench.launcher import Launcher

WORDS = ("login", "loop", "cookie")
PLAIN = """
import json, os, sys
from whoosh.analysis import StemmingAnalyzer
from whoosh.fields import TEXT, Schema
from whoosh.index import create_in
os.makedirs(sys.argv[2], exist_ok=True)
text = TEXT(analyzer=StemmingAnalyzer())
with create_in(sys.argv[2], Schema(title=text, body=text)).writer() as writer:
    for line in open(sys.argv[1], encoding="utf-8"):
        thread = json.loads(line)
        writer.add_document(title=thread.get("title", ""), body=thread.get("body", ""))
"""


class Processes:
    """Runs Python in processes that inherit nothing of this one's memory."""

    def __init__(self, folder: Path) -> None:
        self._launcher, self._folder = Launcher(), folder
        cache = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        self._environment = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"} | cache

    def peak(self, runs: int, *arguments: str) -> Spread:
        """Megabytes at the highest, of so many runs."""
        command = [sys.executable, *arguments]
        return Spread.of(self._launcher.run(command, self._environment, self._folder).peak_mb for _ in range(runs))

    def close(self) -> None:
        self._launcher.close()


def results(processes: Processes, folder: Path, runs: int) -> Iterator[Result]:
    archive, store = str(folder / "threads.jsonl"), str(folder / "store")
    libraries = Peer(
        "import of its libraries", f"Python {sys.version.split()[0]}", processes.peak(runs, "-c", LIBRARIES)
    )
    whoosh = Peer(*WHOOSH, processes.peak(runs, "-c", PLAIN, archive, str(folder / "plain")))
    imported = processes.peak(1, "-m", "bot", "import", archive, "--store", store, "--no-learn")
    what, most = "peak memory of an import", Limit("most", 400.0)
    yield Result("memory-import", "memory", what, "MB", imported, libraries, most)
    yield Result("memory-import-whoosh", "memory", what, "MB", imported, whoosh, most)
    search = ("-m", "bot", "search", *WORDS, "--store", store)
    processes.peak(1, *search)  # which makes what later ones open
    fts5 = Peer(*FTS5, processes.peak(runs, "-c", FTS, str(folder / "fts.db"), " OR ".join(WORDS)))
    what, searched = "peak memory of a search from a shell", processes.peak(runs, *search)
    yield Result("memory-search", "memory", what, "MB", searched, libraries, Limit("most", 150.0))
    yield Result("memory-search-fts5", "memory", what, "MB", searched, fts5)


def written(path: Path, threads: Sequence[Thread]) -> None:
    lines = (json.dumps(without_defaults(archive_fields(thread))) for thread in threads)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measured(count: int, runs: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as name:
        folder = Path(name)
        processes = Processes(folder)  # before anything is in memory
        data, threads, _ = history(count)
        written(folder / "threads.jsonl", threads)
        full_text(folder / "fts.db", threads)
        found = tuple(results(processes, folder, runs))
        processes.close()
    return Report(data, found)


if __name__ == "__main__":
    sys.exit(report_main(__doc__, measured, threads=10_000, runs=3))
