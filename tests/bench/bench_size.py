"""Compares a large repository with one of 10,000 threads, both resampled, in one run.

Prints for both: the time and peak memory of an import, the size and layout of the branch, searches, and one event:
time, peak memory, bytes fetched and pushed, with the ratio of the two. Events alternate between them, so that other
load on the machine affects both. Needs the archives next to the checkout.

python -m tests.bench.bench_size [--threads 100000] [--events 10]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from time import perf_counter

from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.changes import Changes
from bot.domain.thread import RepositoryAddress, Thread
from bot.index.protocol import VECTOR_FIELDS
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.pipeline.learn import learn
from bot.recall.library import similar_query
from bot.settings.schema import Settings
from tests.acceptance.stage import REPOSITORY, Stage
from tests.bench.bench_event import Figures, one_event
from tests.bench.history import ARCHIVE, ROOT, history
from tests.bench.launcher import Launcher, Measured
from tests.bench.resampled import Resampler

USUAL = 10_000
BATCH = 2_000
"""Threads in one commit of an import."""

LATER = datetime(2100, 1, 1, tzinfo=UTC)
NOW = datetime(2015, 1, 1, tzinfo=UTC)
SEARCHES = 50


@dataclass
class Case:
    """The measurements of a repository of one size."""

    threads: int
    import_cost: Measured = field(default_factory=lambda: Measured(0, 0))
    branch_mb: float = 0.0
    files: int = 0
    widest: tuple[str, int] = ("", 0)
    largest: list[tuple[int, str]] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)
    events: Figures = field(default_factory=Figures)


def archive_threads() -> tuple[list[Thread], list[Thread]]:
    """The threads to resample, and those that are opened later."""
    return history(USUAL)[1:]


def batches(count: int) -> Iterator[tuple[Thread, ...]]:
    origin, fresh = archive_threads()
    resampled = Resampler(origin).threads(count, fresh[0].created_at)
    while batch := tuple(islice(resampled, BATCH)):
        yield batch


def store(url: str, token: str) -> BranchStore:
    return BranchStore(f"{url}/{REPOSITORY}.git", "precedent", token)


def fill(url: str, count: int) -> None:
    """Import so many threads in batches and train on them. Runs in a separate process, to be measured."""
    memory = Memory(store(url, os.environ["GIT_TOKEN"]), repo=REPOSITORY).open()
    for number, batch in enumerate(batches(count), 1):
        memory.stage(Changes(records=batch, cursor=NOW))
        memory.commit(f"Import {number * BATCH}")
    learn(
        memory,
        Settings(),
        Renderer(links=CommentLinks(repo=REPOSITORY), commands=False),
        RepositoryAddress(REPOSITORY),
        seconds=3,
    )
    memory.commit("Learn")
    memory.close()


def measure_branch(stage: Stage, case: Case) -> None:
    """Measure the size of the branch as one commit, and its layout."""
    git = ["git", "-C", str(stage.bare)]
    subprocess.run([*git, "repack", "-adq"], check=True)
    objects = subprocess.run(
        [*git, "pack-objects", "--revs", "--stdout", "-q"], input=b"precedent\n", capture_output=True, check=True
    )
    case.branch_mb = len(objects.stdout) / 1e6
    rows = subprocess.run([*git, "ls-tree", "-rl", "precedent"], capture_output=True, check=True, text=True).stdout
    sizes = {name: int(head.split()[3]) for head, name in (row.split("\t") for row in rows.splitlines())}
    widths = Counter(parent for name in sizes for parent in {name.rpartition("/")[0]})
    folders = {name.rpartition("/")[0] for name in sizes}
    widths.update(folder.rpartition("/")[0] for folder in folders if folder)
    case.files, case.widest = len(sizes), widths.most_common(1)[0]
    case.largest = sorted(((size, name) for name, size in sizes.items()), reverse=True)[:3]


def search(stage: Stage, case: Case, queries: Sequence[Thread]) -> None:
    """Time the blend of a real query, each for the first time, but with all vectors already here."""
    memory = Memory(store(stage.git.url, stage.git.token)).open()
    model = memory.ranking.model(VECTOR_FIELDS[:2] if memory.index.encoder.learned.has_words else ())
    for number, thread in enumerate(queries[: SEARCHES + 1]):
        query = similar_query(thread, memory.vectors(thread), model)
        memory.rarity(query.terms, before=LATER)  # fetches what the search needs
        started = perf_counter()
        memory.search(query, before=LATER, limit=200)
        if number:
            case.searches.append(1e3 * (perf_counter() - started))
    memory.close()


@contextmanager
def filled_stage(case: Case, launcher: Launcher) -> Iterator[Stage]:
    """A repository of the case's size; records what filling it took."""
    with tempfile.TemporaryDirectory(prefix="precedent-size-") as folder:
        stage = Stage(Path(folder), NOW.isoformat().replace("+00:00", "Z"), validate=False)
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        filling = ["--threads", str(case.threads), "--fill", stage.git.url]
        command = [sys.executable, "-m", "tests.bench.bench_size", *filling]
        case.import_cost = launcher.run(command, environment | {"GIT_TOKEN": stage.git.token}, ROOT)
        measure_branch(stage, case)
        try:
            yield stage
        finally:
            stage.close()


def measure(cases: Sequence[Case], events: int, launcher: Launcher) -> None:
    fresh = archive_threads()[1]
    with ExitStack() as opened:
        stages = [opened.enter_context(filled_stage(case, launcher)) for case in cases]
        for case, stage in zip(cases, stages, strict=True):
            search(stage, case, fresh)
        for number in range(events):
            for case, stage in zip(cases, stages, strict=True):
                one_event(stage, launcher, fresh[number], case.threads + 1 + number, case.events)


def report(usual: Case, large: Case) -> None:
    print(f"{'threads':28}{usual.threads:>12,}{large.threads:>12,}")
    print_row("import and learn, s", usual.import_cost.seconds, large.import_cost.seconds)
    print_row("its peak memory, MB", usual.import_cost.peak_mb, large.import_cost.peak_mb, "wanted: at most 400")
    print_row("branch as one pack, MB", usual.branch_mb, large.branch_mb)
    print_row("files", usual.files, large.files)
    print_row(
        "widest folder", usual.widest[1], large.widest[1], f"recommended: at most 3,000; {large.widest[0] or 'top'}"
    )
    for (small_size, _), (large_size, name) in zip(usual.largest, large.largest, strict=True):
        print_row("largest files, MB", small_size / 1e6, large_size / 1e6, f"recommended: at most 1; {name}")
    print_row("search p50, ms", statistics.median(usual.searches), statistics.median(large.searches))
    print_row("search p90, ms", *(statistics.quantiles(case.searches, n=10)[-1] for case in (usual, large)))
    print_row(
        "one event, s", statistics.median(usual.events.seconds), statistics.median(large.events.seconds), "goal: 5 x"
    )
    print_row("its peak memory, MB", max(usual.events.peak_mb), max(large.events.peak_mb), "goal: at most 400")
    fetched, pushed = (
        [case.events.fetched for case in (usual, large)],
        [case.events.pushed for case in (usual, large)],
    )
    print_row(
        "fetched, MB, median", *(statistics.median(small_size) / 1e6 for small_size in fetched), "goal: at most 20"
    )
    print_row("fetched, MB, most", *(max(small_size) / 1e6 for small_size in fetched))
    print_row("pushed, KB, median", *(statistics.median(small_size) / 1e3 for small_size in pushed))


def print_row(title: str, usual: float, large: float, remark: str = "") -> None:
    print(f"{title:28}{usual:>12,.2f}{large:>12,.2f}   x {large / usual if usual else 0:<8.2f}{remark}".rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=10)
    parser.add_argument("--fill", metavar="URL", help="only fill the repository at this server")
    options = parser.parse_args()
    if not ARCHIVE.exists():
        print(f"no archive at {ARCHIVE}: nothing was measured")
        return 0
    if options.fill:
        fill(options.fill, options.threads)
        return 0
    launcher = Launcher()
    usual, large = Case(USUAL), Case(options.threads)
    measure((usual, large), options.events, launcher)
    launcher.close()
    report(usual, large)
    return 0


if __name__ == "__main__":
    sys.exit(main())
