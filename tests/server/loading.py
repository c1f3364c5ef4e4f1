"""Loads of deliveries, workers that only book them, and what the ledger shows afterwards: losses, order, overlaps.

`python -m tests.server.loading FOLDER` is such a worker, until it is told to end.
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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bot.doors.guarded import guarded
from bot.server.locks import locks
from bot.server.nouns import Delivery, Lane, Result, Told, TurnRow
from bot.server.options import Options
from bot.server.ports import Ledger
from bot.server.run import Queue, clock, opened
from bot.server.tickets import DbosDispatch
from tests.server.client import Sent, issue_event, signature
from tests.server.doorway import ROOT

JOBS = 8


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


@dataclass(frozen=True)
class Findings:
    """What went wrong. ``lost``: had 202 and is not in the ledger, or was never done."""

    rows: int
    lost: int
    disordered: int
    overlaps: int
    turns: int


def examine(ledger: Ledger, accepted: Sequence[str]) -> Findings:
    """Look through the whole ledger; ``accepted`` are the GUIDs that had 202."""
    rows = ledger.deliveries(limit=10**6)
    done = {row.id.partition(":")[2] for row in rows if row.state == "done"}
    lanes = _turns(ledger, rows)
    return Findings(
        len(rows),
        len(set(accepted) - done),
        sum(_is_disordered(turns) for turns in lanes.values()),
        sum(_overlaps([turn for turn, _ in turns]) for turns in lanes.values()),
        sum(len(turns) for turns in lanes.values()),
    )


Turns = list[tuple[TurnRow, list[int]]]


def _turns(ledger: Ledger, rows: Sequence[Delivery]) -> dict[Lane, Turns]:
    """Of each lane its turns by the time that they began, each with the numbers of its deliveries."""
    by_turn: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        by_turn[row.turn].append(row.seq)
    lanes: dict[Lane, Turns] = defaultdict(list)
    for name, seqs in by_turn.items():
        found = ledger.delivery(seqs[0])
        if name and found and found[1]:
            lanes[found[1].lane].append((found[1], sorted(seqs)))
    for turns in lanes.values():
        turns.sort(key=lambda one: (one[0].began, one[1][0]))
    return lanes


def _is_disordered(turns: Turns) -> bool:
    seqs = [seq for _, each in turns for seq in each]
    return seqs != sorted(seqs)


def _overlaps(turns: Sequence[TurnRow]) -> int:
    return sum(after.began < before.ended for before, after in pairwise(turns))


def wait_until_done(ledger: Ledger, seconds: float) -> bool:
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
def booking(folder: Path, count: int = 1) -> Iterator[None]:
    """So many worker processes beside."""
    command = [sys.executable, "-m", "tests.server.loading", str(folder)]
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


def _book(queue: Queue, ticket: str, lane: Lane) -> None:
    work = queue.ledger.begin(ticket, lane, clock())
    if work is None:
        return
    time.sleep(random.uniform(0, 0.01))
    results = [Result(one.seq, "done", "", said="silent") for one in work.deliveries]
    queue.tickets.cancel(queue.ledger.end(work, results, Told()))


def main(folder: Path) -> None:
    os.nice(10)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    name = f"booking-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with opened(Options(data=folder), name) as queue:
        dispatch = DbosDispatch(queue.database, name, locks(queue.database, folder / "workers"), JOBS)
        dispatch.start(lambda ticket, lane: print(guarded(lambda: _book(queue, ticket, lane)), end="", file=sys.stderr))
        print("ready", flush=True)
        stop.wait()
        dispatch.stop(5)
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
