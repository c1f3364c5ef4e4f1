"""Loads of deliveries, workers that only book them, and what is found afterwards: losses, order, overlaps.

`python -m tests.server.loading FOLDER [URL]` is such a worker, until it is told to end, of the queue in this folder or
of the PostgreSQL database of this URL. Workers keep a journal of their own
of what they had in hand when: the ledger would not tell of two at once, as it lets only one of them end.
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

from bot.server.inbox import Inbox
from bot.server.log import run_guarded
from bot.server.model import Lease, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.worker import Worker
from tests.server.client import Sent, issue_event, signature
from tests.server.doorway import ROOT

JOBS = 8
PACE = (0.005, 0.03)
"""Seconds that a run takes, at least and at most: two at once would be seen."""

Item = TypeVar("Item")


def deliveries(count: int, repositories: int, chance: random.Random) -> list[tuple[str, int, int]]:
    """(guid, repository, number) of so many, mixed."""
    return [
        (str(uuid.UUID(int=chance.getrandbits(128))), 100 + chance.randrange(repositories), number)
        for number in range(1, count + 1)
    ]


def write_requests(path: Path, wanted: Iterable[tuple[str, int, int]]) -> None:
    """The file that load.lua reads."""
    with path.open("w", encoding="ascii") as file:
        for guid, repository, number in wanted:
            body = json.dumps(issue_event(number, repository))
            file.write(f"{guid}\t{signature(body.encode())}\t{body}\n")


@dataclass(frozen=True, slots=True)
class Held:
    """Deliveries of one repository that a worker had in hand, by their numbers; times are nanoseconds of one clock."""

    repository: str
    seqs: tuple[int, ...]
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class Findings:
    """What went wrong, besides ``rows`` in the ledger and ``runs`` of the workers.

    ``lost``: had 202 and was never done. ``twice``: was done more than once. ``disordered``: was done after one of its
    repository that came later. ``overlaps``: runs of a repository that began before the one before had ended.
    ``swapped``: was stored before one of its repository that had its 202 before this one was sent.
    """

    rows: int
    runs: int
    lost: int = 0
    twice: int = 0
    disordered: int = 0
    overlaps: int = 0
    swapped: int = 0

    @property
    def is_well(self) -> bool:
        return not (self.lost or self.twice or self.disordered or self.overlaps or self.swapped)


def examine(ledger: Inbox, folder: Path, sent: Sequence[Sent] = ()) -> Findings:
    """Look through the whole ledger, the journals in ``folder`` and what was ``sent``."""
    rows = ledger.deliveries(limit=10**6)
    seqs = {row.id.partition(":")[2]: row.seq for row in rows}
    accepted = {one.guid for one in sent if one.answer.status == 202}
    held = journal(folder)
    done = Counter(seq for one in held for seq in one.seqs)
    lost = {row.seq for row in rows if row.state != "done" or not done[row.seq]}
    repositories = grouped(held, lambda one: one.repository).values()
    sent_to = grouped((one for one in sent if one.guid in seqs), lambda one: one.repository).values()
    return Findings(
        rows=len(rows),
        runs=len(held),
        lost=len(lost) + len(accepted - seqs.keys()),
        twice=sum(count > 1 for count in done.values()),
        disordered=sum(map(disordered, repositories)),
        overlaps=sum(map(overlaps, repositories)),
        swapped=sum(swapped(each, seqs) for each in sent_to),
    )


def grouped(items: Iterable[Item], key: Callable[[Item], Hashable]) -> dict[Hashable, list[Item]]:
    groups: dict[Hashable, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def disordered(held: Iterable[Held]) -> int:
    """How many of a repository came after one with a higher number."""
    seqs = [seq for one in sorted(held, key=lambda one: one.began) for seq in one.seqs]
    return sum(seq < highest for seq, highest in zip(seqs[1:], accumulate(seqs, max), strict=False))


def overlaps(held: Iterable[Held]) -> int:
    """How many runs of a repository began before all earlier ones had ended."""
    runs = sorted(held, key=lambda one: one.began)
    ends = accumulate((one.ended for one in runs), max)
    return sum(one.began < end for one, end in zip(runs[1:], ends, strict=False))


def swapped(sent: Iterable[Sent], seqs: Mapping[str, int]) -> int:
    """How many of a repository have a lower number than one that was answered before they were sent."""
    found, highest = 0, 0
    first = {one.guid: one for one in sorted(sent, key=lambda one: -one.at)}.values()
    answered = sorted(first, key=lambda one: one.at + one.answer.seconds, reverse=True)
    for one in sorted(first, key=lambda one: one.at):
        while answered and answered[-1].at + answered[-1].answer.seconds <= one.at:
            highest = max(highest, seqs[answered.pop().guid])
        found += seqs[one.guid] < highest
    return found


def journal(folder: Path) -> list[Held]:
    """What all workers wrote down."""
    lines = [line for path in folder.glob("journal-*") for line in path.read_text("ascii").splitlines()]
    return [Held(repository, tuple(seqs), began, ended) for repository, seqs, began, ended in map(json.loads, lines)]


def wait_until_done(ledger: Inbox, seconds: float) -> bool:
    """Whether nothing waits or is at work any more within this time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        counts = ledger.counts()
        if not counts.get("waiting", 0) and not counts.get("working", 0):
            return True
        time.sleep(0.2)
    return False


def milliseconds(sent: Sequence[Sent], share: float) -> float:
    """The time within which this share of the answers came."""
    took = sorted(one.answer.seconds for one in sent)
    return 1000 * took[min(len(took) - 1, int(share * len(took)))]


@contextmanager
def booking(folder: Path, count: int = 1, database: str = "") -> Iterator[None]:
    """So many worker processes beside; ``database`` is the URL of one in PostgreSQL, "" for SQLite in the folder."""
    command = [sys.executable, "-m", "tests.server.loading", str(folder), *filter(None, [database])]
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


class Booker:
    """What a worker does of a run: take what waits, be at it for a moment, write it down and end it."""

    def __init__(self, inbox: Inbox, folder: Path) -> None:
        self._inbox = inbox
        self._journal = (folder / f"journal-{os.getpid()}").open("a", encoding="ascii")
        self._lock = threading.Lock()

    def book(self, lease: Lease) -> None:
        work = self._inbox.begin(lease)
        if work is None:
            return
        began = time.monotonic_ns()
        time.sleep(random.uniform(*PACE))
        results = [Result(one.seq, "done", "", said="silent") for one in work.deliveries]
        line = json.dumps([lease.key, [one.seq for one in work.deliveries], began, time.monotonic_ns()])
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
        booker = Booker(inbox, folder)
        print("ready", flush=True)
        Worker(
            inbox, lambda lease: print(run_guarded(lambda: booker.book(lease)), end="", file=sys.stderr), stop, JOBS
        ).run_until_stopped()
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
