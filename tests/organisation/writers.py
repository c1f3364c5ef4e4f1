"""Two processes write the same threads to one index in an object store, and are killed again and again.

python -m tests.organisation.writers [--threads 10000] [--seed N] prints what was written, and ends with 1 if a thread
is lost, is there twice, or has not its latest revision. Each thread is written by both processes, by one in a later
revision, and every fiftieth is gone in it.
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
    """Write all threads from the ``begin``-th batch on, in an order of its own; a line after each batch."""
    numbers = list(range(total))
    random.Random(writer).shuffle(numbers)
    with open_candidates(URI, TENANT) as index:
        for batch in range(begin, -(-total // BATCH)):
            some = numbers[batch * BATCH : (batch + 1) * BATCH]
            index.upsert([thread(number, 1 + (number + writer) % 2) for number in some])
            print(batch, flush=True)
            if batch % COMPACTS == COMPACTS - 1:
                index.compact()


@dataclass
class Writer:
    """A process that writes, and how far it has come."""

    number: int
    total: int
    folder: Path
    done: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def told(self) -> Path:
        return self.folder / f"writer-{self.number}"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.organisation.writers", "--write", str(self.number)]
        given = [*command, "--threads", str(self.total), "--begin", str(self.done)]
        with self.told.open("wb") as told, (self.folder / f"errors-{self.number}").open("ab") as errors:
            self.process = subprocess.Popen(given, cwd=ROOT, stdout=told, stderr=errors)

    def kill(self) -> None:
        """End it at once; the batch that it was at is written again."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.look()

    def look(self) -> None:
        lines = self.told.read_bytes().split()
        self.done = max(self.done, int(lines[-1]) + 1 if lines else 0)

    @property
    def has_written(self) -> bool:
        """Since it was started: a machine with much to do takes longer for the start than for the work."""
        return self.told.stat().st_size > 0

    @property
    def is_finished(self) -> bool:
        assert self.process
        code = self.process.poll()
        if code:
            raise RuntimeError((self.folder / f"errors-{self.number}").read_text())
        return code == 0


def race(total: int, seed: int, folder: Path, longest: float = 12) -> tuple[int, float]:
    """Let both write, and kill one at most every ``longest`` seconds; how many kills, in how many seconds."""
    chance, kills, begun = random.Random(seed), 0, time.monotonic()
    writers = [Writer(number, total, folder) for number in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        while left := [writer for writer in writers if not writer.is_finished]:
            time.sleep(chance.uniform(1, longest))
            writer = chance.choice(left)
            if writer.has_written and (not kills or chance.random() < 0.5) and not writer.is_finished:
                writer.kill()
                writer.start()
                kills += 1
    finally:
        for writer in writers:
            writer.kill()
    return kills, time.monotonic() - begun


def wrong(total: int) -> list[str]:
    """What is not as it should be in the table, and in what a search finds."""
    database = lancedb.connect(URI + "/" + TENANT)
    tables = [name for name in database.list_tables(limit=1_000).tables if name.startswith("threads-")]
    with open_candidates(URI, TENANT) as index:
        found = index.search(["crash"], range(REPOSITORIES), limit=2 * total)
        stale = index.search(["revision1"], range(REPOSITORIES), limit=total)
    rows = max((database.open_table(name).to_arrow().to_pylist() for name in tables), key=len)
    keys = [row["key"] for row in rows]
    return [
        *([] if len(set(keys)) == total else [f"{total - len(set(keys))} threads are lost"]),
        *([] if len(keys) == len(set(keys)) else [f"{len(keys) - len(set(keys))} are there twice"]),
        *([] if all(row["revision"] == 2 for row in rows) else ["an earlier revision won"]),
        *([] if len(found) == sum(number % 50 != 0 for number in range(total)) else [f"{len(found)} are found"]),
        *([] if not stale else [f"{len(stale)} are found by an earlier text"]),
    ]


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--write", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.write is not None:
        write(chosen.write, chosen.threads, chosen.begin)
        return 0
    with s3() as (objects, environment):
        os.environ.update(environment)
        kills, seconds = race(chosen.threads, chosen.seed, chosen.folder)
        faults = wrong(chosen.threads)
    upserts = f"{2 * chosen.threads:,} upserts by two processes in {seconds:.0f} s"
    print(f"{upserts}, {kills} kills, {objects.requests:,} requests", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
