"""How fast deliveries are stored, beside DBOS on its own with the same database and the same promises about power loss.

python -m tests.bench.bench_queue [--seconds S] [--rounds N] [--postgres] [--json FILE]

Both store alternately in the same minute of the same machine, so what else it does slows both. A delivery is a row and
a ticket in one transaction; groups are what the writer thread makes of a burst. Ends with 1 below `LEAST`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

from dbos import DBOSClient, EnqueueOptions

from bot.github.events import Event
from bot.server.database import Database
from bot.server.database import machine_clock as clock
from bot.server.inbox import Inbox
from bot.server.model import Arrival, RepositoryKey
from bot.server.queue import QUEUE, RELEASE, TURN, JsonSerializer, Tickets, prepare
from tests.bench.figures import Limit, Peer, Report, Result, Spread
from tests.server import postgres

GROUPS = (1, 8, 32)
LANES = 40
ALONE = "DBOS on its own"
LEAST = 0.5
"""Of what DBOS does on its own; one at a time there are two rows for each of its one."""


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=1.0, help="how long each of them stores in a round")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--postgres", action="store_true", help="in PostgreSQL instead of SQLite")
    options.add_argument("--json", type=Path, help="for programs to read; the verdict is then the reader's")
    chosen = options.parse_args()
    with ExitStack() as at_end:
        folder = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
        url = at_end.enter_context(server()) if chosen.postgres else f"sqlite:///{folder / 'queue.sqlite'}"
        database = Database(url)
        at_end.callback(database.close)
        prepare(database, folder)
        speeds = measured(ways(database), chosen.seconds, chosen.rounds)
    rates = {name: statistics.median(found) for name, found in speeds.items()}
    base = rates[ALONE]
    print(table(rates, base))
    if chosen.json:
        kind = "PostgreSQL" if chosen.postgres else "SQLite"
        Report(f"Deliveries into {kind}, {chosen.rounds} rounds by turns", tuple(results(speeds))).write(chosen.json)
        return 0
    return 0 if min(rates.values()) >= LEAST * base else 1


@contextmanager
def server() -> Iterator[str]:
    running = postgres.start()
    try:
        with running.database() as url:
            yield url
    finally:
        running.stop()


def ways(database: Database) -> dict[str, Callable[[], int]]:
    """Each stores something and says how much."""
    bare = DBOSClient(
        system_database_url=database.url,
        system_database_engine=database.engine,
        serializer=JsonSerializer(),
        application_name="bench",
        use_listen_notify=False,
    )
    ledger = Inbox(database, Tickets(database), "bench", clock)

    def enqueue() -> int:
        name = str(uuid.uuid4())
        words: EnqueueOptions = {"workflow_name": TURN, "queue_name": QUEUE, "app_version": RELEASE}
        bare.enqueue({**words, "workflow_id": name, "queue_partition_key": "9-1"}, name, "9-1")
        return 1

    def put(many: int) -> Callable[[], int]:
        return lambda: sum(ledger.put([arrival(number) for number in range(many)]))

    return {ALONE: enqueue, **{f"in groups of {many}": put(many) for many in GROUPS}}


def arrival(number: int) -> Arrival:
    event = Event("issues", "opened", number + 1)
    return Arrival(
        f"9:{uuid.uuid4()}", RepositoryKey(9, number % LANES + 1), event, "octo-org/hello-world", True, clock(), "r"
    )


def measured(ways: dict[str, Callable[[], int]], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Deliveries a second, of each way and round. Every round begins with another of them."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for store in ways.values():
        speed(store, 0.2)
    names = list(ways)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            speeds[name].append(speed(ways[name], seconds))
    return speeds


def results(speeds: dict[str, list[float]]) -> Iterator[Result]:
    """Milliseconds of a delivery, which is less of a rate that is more."""

    def spread(name: str) -> Spread:
        return Spread.of(1e3 / rate for rate in speeds[name])

    peer = Peer(ALONE, version("dbos"), spread(ALONE))
    for name in speeds:
        if name != ALONE:
            key = name.replace(" ", "-")
            yield Result(key, "server", f"store a delivery {name}", "ms", spread(name), peer, Limit("ratio", 1 / LEAST))


def table(rates: dict[str, float], base: float) -> str:
    """Medians, and what they are of the first."""
    lines = [f"{'':>18}  {'a second':>10}  {'ratio':>6}"]
    lines += [f"{name:>18}  {rate:10,.0f}  {rate / base:6.2f}" for name, rate in rates.items()]
    return "\n".join([*lines, f"the least ratio that is good: {LEAST}"])


def speed(store: Callable[[], int], seconds: float) -> float:
    """Deliveries a second."""
    stored, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        stored += store()
    return stored / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
