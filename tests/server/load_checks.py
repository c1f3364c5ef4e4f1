"""Loads of deliveries, workers that only write them down, and checks afterwards for losses, order and overlaps.

`python -m tests.server.load_checks FOLDER [URL]` runs such a worker until it is stopped, on the queue in this folder
or in the PostgreSQL database at this URL. Each worker keeps a journal of the runs it holds and when: the inbox would
not show two runs at once, as it lets only one of them end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from bot.server.log import run_guarded
from bot.server.model import Lease, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.storage.inbox import Inbox
from bot.server.work.worker import Worker
from tests.server.client import Sent
from tests.server.web_process import ROOT

JOBS = 8
PACE = (0.005, 0.03)
"""Minimum and maximum seconds of a run: long enough that two at once would show."""

Item = TypeVar("Item")


def deliveries(count: int, repositories: int, rng: random.Random) -> list[tuple[str, int, int]]:
    """(guid, repository, number) of ``count`` deliveries over random repositories."""
    return [
        (str(uuid.UUID(int=rng.getrandbits(128))), 100 + rng.randrange(repositories), number)
        for number in range(1, count + 1)
    ]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Deliveries of one repository that a worker had in hand, by number; times are nanoseconds of one clock."""

    repository: str
    seqs: tuple[int, ...]
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class Findings:
    """How often what went wrong, with the number of ``rows`` in the inbox and of ``runs``.

    ``lost``: answered with 202 but never done. ``twice``: done more than once. ``disordered``: done after a later
    delivery of its repository. ``overlaps``: runs that began before the last run of their repository ended.
    ``swapped``: stored before a delivery of its repository that had its 202 before this one was sent.
    """

    rows: int
    runs: int
    lost: int = 0
    twice: int = 0
    disordered: int = 0
    overlaps: int = 0
    swapped: int = 0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.twice or self.disordered or self.overlaps or self.swapped)


def examine(inbox: Inbox, folder: Path, sent: Sequence[Sent] = ()) -> Findings:
    """Check the whole inbox, the journals in ``folder`` and what was ``sent``."""
    rows = inbox.deliveries(limit=10**6)
    seqs = {row.id.partition(":")[2]: row.seq for row in rows}
    accepted = {one.guid for one in sent if one.answer.status == 202}
    entries = journal(folder)
    done = Counter(seq for one in entries for seq in one.seqs)
    lost = {row.seq for row in rows if row.state != "done" or not done[row.seq]}
    repositories = group_by(entries, lambda one: one.repository).values()
    sent_to = group_by((one for one in sent if one.guid in seqs), lambda one: one.repository).values()
    return Findings(
        rows=len(rows),
        runs=len(entries),
        lost=len(lost) + len(accepted - seqs.keys()),
        twice=sum(count > 1 for count in done.values()),
        disordered=sum(map(count_disordered, repositories)),
        overlaps=sum(map(count_overlaps, repositories)),
        swapped=sum(count_swapped(each, seqs) for each in sent_to),
    )


def group_by(items: Iterable[Item], key: Callable[[Item], Hashable]) -> dict[Hashable, list[Item]]:
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def count_disordered(entries: Iterable[JournalEntry]) -> int:
    """How many deliveries of a repository came after one with a higher number."""
    seqs = [seq for entry in sorted(entries, key=lambda entry: entry.began) for seq in entry.seqs]
    return sum(seq < highest for seq, highest in zip(seqs[1:], accumulate(seqs, max), strict=False))


def count_overlaps(entries: Iterable[JournalEntry]) -> int:
    """How many runs of a repository began before all earlier ones had ended."""
    runs = sorted(entries, key=lambda entry: entry.began)
    ends = accumulate((entry.ended for entry in runs), max)
    return sum(entry.began < end for entry, end in zip(runs[1:], ends, strict=False))


def count_swapped(sent: Iterable[Sent], seqs: Mapping[str, int]) -> int:
    """How many deliveries of a repository have a lower number than one answered before they were sent."""
    count, highest = 0, 0
    first = {sending.guid: sending for sending in sorted(sent, key=lambda sending: -sending.at)}.values()
    answered = sorted(first, key=lambda sending: sending.at + sending.answer.seconds, reverse=True)
    for sending in sorted(first, key=lambda sending: sending.at):
        while answered and answered[-1].at + answered[-1].answer.seconds <= sending.at:
            highest = max(highest, seqs[answered.pop().guid])
        count += seqs[sending.guid] < highest
    return count


def journal(folder: Path) -> list[JournalEntry]:
    """The entries of all workers."""
    lines = [line for path in folder.glob("journal-*") for line in path.read_text("ascii").splitlines()]
    return [
        JournalEntry(repository, tuple(seqs), began, ended) for repository, seqs, began, ended in map(json.loads, lines)
    ]


def wait_until_done(inbox: Inbox, seconds: float) -> bool:
    """Wait until nothing is waiting or working; False when the time runs out."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        counts = inbox.counts()
        if not counts.get("waiting", 0) and not counts.get("working", 0):
            return True
        time.sleep(0.2)
    return False


def milliseconds(sent: Sequence[Sent], share: float) -> float:
    """The milliseconds within which this share of the answers came."""
    seconds = sorted(each.answer.seconds for each in sent)
    return 1000 * seconds[min(len(seconds) - 1, int(share * len(seconds)))]


@contextmanager
def journal_workers(folder: Path, count: int = 1, database: str = "") -> Iterator[None]:
    """Run ``count`` worker processes; ``database`` is a PostgreSQL URL, or "" for SQLite in the folder."""
    command = [sys.executable, "-m", "tests.server.load_checks", str(folder), *filter(None, [database])]
    workers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for worker in workers:
            assert worker.stdout
            worker.stdout.readline()
        yield
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.communicate(timeout=30)


class JournalWriter:
    """What these workers do in a run: take the work, wait a moment, write it down and end it."""

    def __init__(self, inbox: Inbox, folder: Path) -> None:
        self._inbox = inbox
        self._journal = (folder / f"journal-{os.getpid()}").open("a", encoding="ascii")
        self._lock = threading.Lock()

    def run(self, lease: Lease) -> None:
        work = self._inbox.begin(lease)
        if work is None:
            return
        began = time.monotonic_ns()
        time.sleep(random.uniform(*PACE))
        results = [Result(delivery.seq, "done", "", said="silent") for delivery in work.deliveries]
        line = json.dumps([lease.key, [delivery.seq for delivery in work.deliveries], began, time.monotonic_ns()])
        with self._lock:
            self._journal.write(f"{line}\n")
            self._journal.flush()
        self._inbox.end(work, results, RunReport())


def main(folder: Path, database: str = "") -> None:
    os.nice(10)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    name = f"booking-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with open_inbox(ServerOptions(data=folder, database_url=database), name) as inbox:
        writer = JournalWriter(inbox, folder)
        print("ready", flush=True)
        Worker(
            inbox, lambda lease: print(run_guarded(lambda: writer.run(lease)), end="", file=sys.stderr), stop, JOBS
        ).run_until_stopped()
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
