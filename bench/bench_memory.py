"""Measures the peak memory of an import and of a search, each in a new process, compared with their libraries.

python -m bench.bench_memory [--threads 10000] [--runs 3] [--json FILE]

Each peer is a process too: an import of the libraries, a plain Whoosh index made from the same file, and a query of
SQLite FTS5. bench_event measures the memory of an event.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.archives import ROOT
from bench.bench_event import LIBRARIES
from bench.bench_index import FTS5, WHOOSH, full_text
from bench.bench_startup import FTS
from bench.figures import Limit, Peer, Report, Result, Spread, report_main
from bench.history import history
from bench.launcher import Launcher
from bot.domain.thread import Thread
from bot.domain.thread_json import archive_fields, without_defaults

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
    """Runs Python in processes that do not inherit this one's memory."""

    def __init__(self, folder: Path) -> None:
        self._launcher, self._folder = Launcher(), folder
        cache = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
        self._environment = {"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"} | cache

    def peak(self, runs: int, *arguments: str) -> Spread:
        """Peak megabytes of so many runs."""
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
    title, limit = "peak memory of an import", Limit("most", 400.0)
    yield Result("memory-import", "memory", title, "MB", imported, libraries, limit)
    yield Result("memory-import-whoosh", "memory", title, "MB", imported, whoosh, limit)
    search = ("-m", "bot", "search", *WORDS, "--store", store)
    processes.peak(1, *search)  # which creates the cache that later ones open
    fts5 = Peer(*FTS5, processes.peak(runs, "-c", FTS, str(folder / "fts.db"), " OR ".join(WORDS)))
    title, searched = "peak memory of a search from a shell", processes.peak(runs, *search)
    yield Result("memory-search", "memory", title, "MB", searched, libraries, Limit("most", 150.0))
    yield Result("memory-search-fts5", "memory", title, "MB", searched, fts5)


def write_threads(path: Path, threads: Sequence[Thread]) -> None:
    lines = (json.dumps(without_defaults(archive_fields(thread))) for thread in threads)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measured(count: int, runs: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as name:
        folder = Path(name)
        processes = Processes(folder)  # before anything is loaded
        data, threads, _ = history(count)
        write_threads(folder / "threads.jsonl", threads)
        full_text(folder / "fts.db", threads)
        figures = tuple(results(processes, folder, runs))
        processes.close()
    return Report(data, figures)


if __name__ == "__main__":
    sys.exit(report_main(__doc__, measured, threads=10_000, runs=3))
