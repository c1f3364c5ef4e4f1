"""Two processes write the same threads to one index in an object store, and are killed again and again.

Both write each thread, one of them in a later revision in which every fiftieth is gone.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import lancedb

from bot.domain.kinds import Kind
from bot.domain.organisation import OrganisationThread
from bot.organisation.lance import open_candidates

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
        arguments = [sys.executable, "-m", "tests.organisation.killed_writers"]
        arguments += map(str, (self.number, self.total, self.done))
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


def race_writers(total: int, folder: Path) -> int:
    """Let both write, and kill one at most every three seconds; return the number of kills."""
    random_source, kills = random.Random(1), 0
    writers = [Writer(number, total, folder) for number in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        while unfinished := [writer for writer in writers if not writer.is_finished]:
            time.sleep(random_source.uniform(1, 3))
            writer = random_source.choice(unfinished)
            if writer.has_written and (not kills or random_source.random() < 0.5) and not writer.is_finished:
                writer.kill()
                writer.start()
                kills += 1
    finally:
        for writer in writers:
            writer.kill()
    return kills


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


if __name__ == "__main__":
    write(*map(int, sys.argv[1:]))
