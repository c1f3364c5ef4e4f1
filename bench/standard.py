"""Which benchmarks `make bench` runs, and with which sizes; which run only on demand, and why."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.archives import ARCHIVE
from bench.figures import Report
from bench.image_report import image_report

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
    Bench("index", "bench.bench_index", ("search", "build")),
    Bench("event", "bench.bench_event", ("event", "memory"), ("--events", "60")),
    Bench("memory", "bench.bench_memory", ("memory",)),
    Bench("growth", "bench.bench_growth", ("growth",), ("--events", "420", "--every", "20")),
    Bench("quality", "bench.bench_quality", ("quality",), needs="archive", seconds=1_800),
    Bench("shell", "bench.bench_startup", ("start",), ("--runs", "21")),
    Bench("agents", "bench.bench_mcp", ("start",)),
    Bench("logs", "bench.bench_logs", ("logs",)),
    Bench("server", "bench.bench_queue", ("server",)),
    Bench("image", "bench.bench_image", ("image",), needs="container", seconds=1_200, shape=image_report),
)

ON_DEMAND = {
    "bench_clusters": "clusters of a whole archive, many minutes; see clusters.md",
    "bench_elsewhere": "threads of other repositories, a quarter of an hour; see evaluation.md",
    "bench_organisation": "an organisation of 100,000 threads, or a million: many minutes; see organisation.md",
    "bench_purge": "deleting 300,000 old deliveries, a minute or two",
    "bench_ranking": "each step of the ranking, many minutes",
    "bench_receive": "300 deliveries a second for a minute, five minutes",
    "bench_search": "searches by words in five archives; see evaluation.md",
    "bench_worth": "graded pairs; see evaluation.md",
}
"""Script → why `make bench` leaves it out."""


def missing(bench: Bench) -> str:
    """Why a benchmark cannot run here; "" if it can."""
    if bench.module.startswith("bench.") and bench.script not in scripts():
        return f"{bench.module} is not there"
    if bench.needs == "archive" and not ARCHIVE.exists():
        return "the development archive is not beside the checkout"
    if bench.needs == "container" and not any(map(shutil.which, ("docker", "podman"))):
        return "neither Docker nor podman is installed"
    return ""


def scripts() -> set[str]:
    """The names of all benchmarks in this folder."""
    return {path.stem for path in FOLDER.glob("bench_*.py")}
