"""Which benchmarks `make bench` runs, and with which sizes; which run only on demand, and why."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.figures import Report
from tests.bench.history import ARCHIVE
from tests.bench.image_report import image_report

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Bench:
    """A module that runs by itself and writes a report with ``--json FILE``.

    ``groups``: the topics of its results. ``needs``: a requirement. ``seconds``: the time limit, about five times what
    it takes on two idle cores. ``shape``: converts its output to a report.
    """

    name: str
    module: str
    groups: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    needs: str = ""
    seconds: int = 900
    shape: Callable[[Mapping[str, Any]], Report] = Report.of_json

    @property
    def script(self) -> str:
        return self.module.rpartition(".")[2]


STANDARD = (
    Bench("index", "tests.bench.bench_index", ("search", "build")),
    Bench("event", "tests.bench.bench_event", ("event", "memory"), ("--events", "60")),
    Bench("memory", "tests.bench.bench_memory", ("memory",)),
    Bench("growth", "tests.bench.bench_growth", ("growth",), ("--events", "420", "--every", "20")),
    Bench("quality", "tests.bench.bench_quality", ("quality",), needs="archive", seconds=1_800),
    Bench("shell", "tests.bench.bench_startup", ("start",), ("--runs", "21")),
    Bench("agents", "tests.bench.bench_mcp", ("start",)),
    Bench("logs", "tests.bench.bench_logs", ("logs",)),
    Bench("server", "tests.bench.bench_queue", ("server",)),
    Bench("image", "tests.bench.bench_image", ("image",), needs="container", seconds=1_200, shape=image_report),
)

ON_DEMAND = {
    "bench_clusters": "clusters of a whole archive, many minutes; see clusters.md",
    "bench_contention": "a test runs it, and it has no peer",
    "bench_elsewhere": "threads of other repositories, a quarter of an hour; see evaluation.md",
    "bench_organisation": "an organisation of 100,000 threads, or a million: many minutes; see organisation.md",
    "bench_purge": "deleting 300,000 old deliveries, a minute or two",
    "bench_ranking": "each step of the ranking, many minutes",
    "bench_receive": "300 deliveries a second for a minute, five minutes",
    "bench_search": "searches by words in five archives; see evaluation.md",
    "bench_server": "a burst of deliveries; needs wrk and hey",
    "bench_silence": "speaking or being silent, an hour",
    "bench_size": "100,000 threads, about an hour",
    "bench_worth": "graded pairs; see evaluation.md",
}
"""Script → why `make bench` leaves it out."""


def missing(bench: Bench) -> str:
    """Why a benchmark cannot run here; "" if it can."""
    if bench.module.startswith("tests.bench.") and bench.script not in scripts():
        return f"{bench.module} is not there"
    if bench.needs == "archive" and not ARCHIVE.exists():
        return "the development archive is not beside the checkout"
    if bench.needs == "container" and not any(map(shutil.which, ("docker", "podman"))):
        return "neither Docker nor podman is installed"
    return ""


def scripts() -> set[str]:
    """The names of all benchmarks in this folder."""
    return {path.stem for path in FOLDER.glob("bench_*.py")}
