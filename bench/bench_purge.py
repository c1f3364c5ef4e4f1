"""Measures how fast old deliveries are deleted, and how long storing a new one takes meanwhile.

python -m bench.bench_purge [ROWS] [--only sqlite,postgres] [--json]

Another process purges, as a worker does, while this one stores 100 deliveries a second, one in each transaction. They
are compared with the times before the purge. Exits with 1 if the purge is slower than deliveries arrive.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

from bench.bench_receive import KINDS
from bench.bench_receive import database as new_database
from bot.github.events import Event
from bot.server.model import Delivery, RepositoryKey
from bot.server.storage.database import Database
from bot.server.storage.database import machine_clock as clock
from bot.server.storage.inbox import Inbox

RATE = 100
"""Deliveries a second that the purge must keep up with."""

BEFORE = 10.0
"""Seconds for measuring the times without a purge."""

PER_RUN = 3
"""Deliveries in each run; runs are purged with them."""

_COLUMNS = (
    "id, repository, event, action, number, is_pull, comment_id, moved_to, name, received_at, next_at,"
    " request, extra, state, finished_at, said, url, matches, nearest"
)
_DELIVERIES = """
insert into deliveries ({columns}) {numbers}
 select '7:' || n, '1-' || (n % 500), 'issues', 'opened', n, 0, 0, '', 'octo-org/hello-world', n, n, 'request', '[]',
 'done', n, 'created', 'https://github.example/octo-org/hello-world/issues/1#issuecomment-1', '[[1,0.5],[2,0.4]]',
 '[[1,0.5,"title, files"],[2,0.4,"title"],[3,0.3,"files"]]' from numbers
"""
_RUNS = """
insert into runs (id, repository, worker, began, ended, stages, notes) {numbers}
 select 'run-' || n, '1-' || (n % 500), 'worker', n, n + 1, '[["clone",0.5],["look",0.7],["say",0.2]]', '[]'
 from numbers
"""
_NUMBERS = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {many})"


@dataclass(frozen=True, slots=True)
class PurgeFigures:
    """``rate``: rows purged a second. Times are milliseconds to store a delivery, ``alone`` and ``beside`` a purge."""

    kind: str
    rows: int
    rate: float
    alone_p50: float
    alone_p99: float
    beside_p50: float
    beside_p99: float
    beside_most: float


def fill(database: Database, rows: int) -> None:
    """Add so many deliveries that were done long ago, with their runs."""
    for sql, many in ((_DELIVERIES, rows), (_RUNS, rows // PER_RUN)):
        numbers = _NUMBERS.replace("{many}", str(many))
        database.change(sql.replace("{numbers}", numbers).replace("{columns}", _COLUMNS))


def timed_purge(url: str) -> tuple[int, float]:
    """Purge old deliveries; returns how many, and the seconds it took."""
    inbox = Inbox(Database(url), "purging", clock)
    inbox.database.row("select 1 as connected")
    began = time.perf_counter()
    return inbox.purge(clock() - 60_000), time.perf_counter() - began


def storing(inbox: Inbox) -> Iterator[float]:
    """Store deliveries at the given rate, and yield the milliseconds from when each was due until it was stored."""
    due = time.perf_counter()
    while True:
        repository = RepositoryKey(2, int(1000 * due) % 50 + 1)
        inbox.put([Delivery(f"7:{uuid.uuid4()}", repository, Event("issues", "opened", 1), received_at=clock())])
        yield 1e3 * (time.perf_counter() - due)
        due += 1 / RATE
        time.sleep(max(0.0, due - time.perf_counter()))


def measured(kind: str, url: str, rows: int, other: Executor) -> PurgeFigures:
    filling = Database(url)
    filling.make_tables()
    fill(filling, rows)
    filling.close()
    storage = Database(url, hurry=True)
    inbox = Inbox(storage, "bench", clock)
    alone, until = list[float](), time.monotonic() + BEFORE
    for ms in storing(inbox):
        alone.append(ms)
        if time.monotonic() > until:
            break
    beside, purging = list[float](), other.submit(timed_purge, url)
    for ms in storing(inbox):
        beside.append(ms)
        if purging.done():
            break
    storage.close()
    purged, seconds = purging.result()
    if purged != rows:
        raise SystemExit(f"bench_purge: {purged:,} of {rows:,} were purged")
    times = (share(alone, 0.5), share(alone, 0.99), share(beside, 0.5), share(beside, 0.99), max(beside))
    return PurgeFigures(kind, purged, purged / seconds, *times)


def share(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(part * len(times)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=300_000)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of database")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    chosen = parser.parse_args()
    results = list[PurgeFigures]()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        other.submit(time.sleep, 0).result()
        for kind in chosen.only.split(","):
            with contextlib.ExitStack() as at_end:
                folder = Path(at_end.enter_context(tempfile.TemporaryDirectory(prefix="precedent-bench-")))
                url = new_database(kind, at_end) or f"sqlite:///{folder / 'queue.sqlite'}"
                results.append(measured(kind, url, chosen.rows, other))
    if chosen.json:
        print(json.dumps(list(map(asdict, results))))
    else:
        print(f"{'':9} {'rows':>8} {'rows/s':>8}  put alone, ms: p50, p99   beside a purge: p50, p99, max")
        for line in results:
            print(
                f"{line.kind:9} {line.rows:>8,} {line.rate:>8,.0f}  {line.alone_p50:>18.1f} {line.alone_p99:>6.1f}"
                f"  {line.beside_p50:>18.1f} {line.beside_p99:>6.1f} {line.beside_most:>6.1f}"
            )
    return 1 if any(line.rate < RATE for line in results) else 0


if __name__ == "__main__":
    sys.exit(main())
