"""Two processes write the same threads to one index in an object store, and are killed again and again.

python -m tests.organisation.killed_writers [--threads 10000] [--seed N] prints what was written, and ends with 1 if a
thread is lost, duplicated, or not in its latest revision. Both processes write each thread, one of them in a later
revision in which every fiftieth is gone.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import lancedb

from bot.domain.kinds import Kind
from bot.domain.organisation import OrganisationThread
from bot.organisation.lance import open_candidates
from tests.fakes.s3 import s3

ROOT = Path(__file__).resolve().parents[2]
URI, TENANT = "s3://index/organisation", "17"
BATCH = 10
COMPACTS = 25
"""Batches after which a writer compacts."""

REPOSITORIES = 20
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def thread(number: int, revision: int) -> OrganisationThread:
    return OrganisationThread(
        repository=number % REPOSITORIES,
        id=number // REPOSITORIES + 1,
        revision=revision,
        name="octo-org/sdk",
        kind=Kind.ISSUE,
        title="Crash",
        author="ada",
        created_at=NOON,
        terms=("crash", f"revision{revision}", f"thread{number}"),
        is_gone=revision == 2 and number % 50 == 0,
    )


def write(writer: int, total: int, begin: int) -> None:
    """Write all threads from batch ``begin`` on, in an order of its own; print a line after each batch."""
    numbers = list(range(total))
    random.Random(writer).shuffle(numbers)
    with open_candidates(URI, TENANT) as index:
        for batch in range(begin, -(-total // BATCH)):
            numbers_of_batch = numbers[batch * BATCH : (batch + 1) * BATCH]
            index.upsert([thread(number, 1 + (number + writer) % 2) for number in numbers_of_batch])
            print(batch, flush=True)
            if batch % COMPACTS == COMPACTS - 1:
                index.compact()


@dataclass
class Writer:
    """A process that writes, and its progress."""

    number: int
    total: int
    folder: Path
    done: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def progress_file(self) -> Path:
        return self.folder / f"writer-{self.number}"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.organisation.killed_writers", "--write", str(self.number)]
        arguments = [*command, "--threads", str(self.total), "--begin", str(self.done)]
        with self.progress_file.open("wb") as output, (self.folder / f"errors-{self.number}").open("ab") as errors:
            self.process = subprocess.Popen(arguments, cwd=ROOT, stdout=output, stderr=errors)

    def kill(self) -> None:
        """Kill the process; its current batch is written again."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.read_progress()

    def read_progress(self) -> None:
        lines = self.progress_file.read_bytes().split()
        self.done = max(self.done, int(lines[-1]) + 1 if lines else 0)

    @property
    def has_written(self) -> bool:
        """Whether it wrote since its start, which takes longer than the work on a busy machine."""
        return self.progress_file.stat().st_size > 0

    @property
    def is_finished(self) -> bool:
        assert self.process
        code = self.process.poll()
        if code:
            raise RuntimeError((self.folder / f"errors-{self.number}").read_text())
        return code == 0


def race_writers(total: int, seed: int, folder: Path, longest: float = 12) -> tuple[int, float]:
    """Let both write, and kill one at most every ``longest`` seconds; return the kills and the seconds."""
    random_source, kills, begun = random.Random(seed), 0, time.monotonic()
    writers = [Writer(number, total, folder) for number in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        while unfinished := [writer for writer in writers if not writer.is_finished]:
            time.sleep(random_source.uniform(1, longest))
            writer = random_source.choice(unfinished)
            if writer.has_written and (not kills or random_source.random() < 0.5) and not writer.is_finished:
                writer.kill()
                writer.start()
                kills += 1
    finally:
        for writer in writers:
            writer.kill()
    return kills, time.monotonic() - begun


def faults_in_table(total: int) -> list[str]:
    """Return what is wrong in the table, and in the results of a search."""
    database = lancedb.connect(URI + "/" + TENANT)
    tables = [name for name in database.list_tables(limit=1_000).tables if name.startswith("threads-")]
    with open_candidates(URI, TENANT) as index:
        matches = index.search(["crash"], range(REPOSITORIES), limit=2 * total)
        stale = index.search(["revision1"], range(REPOSITORIES), limit=total)
    rows = max((database.open_table(name).to_arrow().to_pylist() for name in tables), key=len)
    keys = [row["key"] for row in rows]
    return [
        *([] if len(set(keys)) == total else [f"{total - len(set(keys))} threads are lost"]),
        *([] if len(keys) == len(set(keys)) else [f"{len(keys) - len(set(keys))} are there twice"]),
        *([] if all(row["revision"] == 2 for row in rows) else ["an earlier revision won"]),
        *([] if len(matches) == sum(number % 50 != 0 for number in range(total)) else [f"{len(matches)} are found"]),
        *([] if not stale else [f"{len(stale)} are found by an earlier text"]),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--write", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.write is not None:
        write(options.write, options.threads, options.begin)
        return 0
    with s3() as (objects, environment):
        os.environ.update(environment)
        kills, seconds = race_writers(options.threads, options.seed, options.folder)
        faults = faults_in_table(options.threads)
    upserts = f"{2 * options.threads:,} upserts by two processes in {seconds:.0f} s"
    print(f"{upserts}, {kills} kills, {objects.requests:,} requests", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
