"""Measures the work queue: storing deliveries, claiming among many waiting repositories, urgent work behind a backlog.

python -m bench.bench_queue [--seconds S] [--rounds N] [--waiting N,…] [--postgres] [--json FILE]

The peers alternate with ours on the same database: a bare INSERT with its commit, the lower bound for a delivery, and
SELECT 1 on the connection of the claims. Urgent issues are compared with the length of a run. Exits with 1 if a limit
is exceeded.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

from bench import figures
from bench.figures import Limit, Peer, Report, Spread, Table
from bot.github.events import Event
from bot.server.model import Delivery, Lease, Priority, RepositoryKey, Result, RunReport
from bot.server.storage.database import Database
from bot.server.storage.database import machine_clock as clock
from bot.server.storage.inbox import Inbox
from bot.server.work.worker import Worker
from tests.server import postgres

GROUPS = (1, 8, 32)
REPOSITORIES = 40
BARE, SELECT = "a bare INSERT", "SELECT 1"
WAITING = (10_000, 100_000)
CLAIMS = 1_000
"""Claims to time for each number of waiting repositories."""

BACKLOG, URGENT, RUN = 2_000, 50, 0.2
"""Repositories waiting to catch up, new issues that arrive meanwhile, and seconds of a run."""

JOBS = 2
"""Simultaneous runs of each of the two workers."""

MAX_STORING, MAX_GROWTH, MAX_WAIT = 3.0, 2.0, 1.5
"""Highest ratios: storing a delivery to a bare INSERT; a claim among 100,000 to one among 10,000; the 95th percentile
of waits to a run."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each way stores in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--waiting", default=",".join(map(str, WAITING)), help="repositories that wait")
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL instead of SQLite")
    parser.add_argument("--json", type=Path, help="for programs to read; the verdict is then the reader's")
    options = parser.parse_args()
    kind = "PostgreSQL" if options.postgres else "SQLite"
    with ExitStack() as at_end:
        folder = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
        url = at_end.enter_context(server()) if options.postgres else f"sqlite:///{folder / 'queue.sqlite'}"
        database = Database(url)
        at_end.callback(database.close)
        database.make_tables()
        results = list(storing_results(measure_speeds(storing_ways(database), options.seconds, options.rounds), kind))
        claims = {count: time_claims(database, count) for count in map(int, options.waiting.split(","))}
        results += claim_results(claims, kind)
        waits = time_urgent_issues(url)
        results += waiting_results(waits, kind)
    report = Report(f"The work queue in {kind}", tuple(results), (of_claims(claims, kind),))
    for each in results:
        comparison = f", {each.ratio:.2f} x {each.peer.name}" if each.peer else ""
        print(f"{each.what}: median {each.ours.median:.3f}, p95 {each.ours.p95:.3f} {each.unit}{comparison}")
    for row in report.tables[0].rows:
        print("  ".join(row))
    if options.json:
        report.write(options.json)
        return 0
    return 0 if all(each.is_within in (True, None) for each in results) else 1


@contextmanager
def server() -> Iterator[str]:
    running = postgres.start()
    try:
        with running.database() as url:
            yield url
    finally:
        running.stop()


def arrival(
    number: int, repositories: int = REPOSITORIES, action: str = "opened", priority: Priority = Priority.CHANGE
) -> Delivery:
    repository, event = RepositoryKey(9, number % repositories + 1), Event("issues", action, number + 1)
    return Delivery(f"9:{uuid.uuid4()}", repository, event, "octo-org/hello-world", clock(), "r", priority=priority)


def storing_ways(database: Database) -> dict[str, Callable[[], int]]:
    """Ways of storing; each returns how many deliveries it stored."""
    inbox = Inbox(database, "bench", clock)
    database.change("create table bare (id text primary key, said text not null)")

    def bare() -> int:
        database.change("insert into bare (id, said) values (:id, :said)", id=str(uuid.uuid4()), said="x" * 200)
        return 1

    def put(count: int) -> Callable[[], int]:
        return lambda: sum(inbox.put([arrival(number) for number in range(count)]))

    return {BARE: bare, **{f"in groups of {count}": put(count) for count in GROUPS}}


def measure_speeds(storing_ways: dict[str, Callable[[], int]], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Deliveries a second, for each way and round. Every round begins with a different way."""
    speeds: dict[str, list[float]] = {name: [] for name in storing_ways}
    for store in storing_ways.values():
        storing_speed(store, 0.2)
    names = list(storing_ways)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            speeds[name].append(storing_speed(storing_ways[name], seconds))
    return speeds


def storing_speed(store: Callable[[], int], seconds: float) -> float:
    """Deliveries a second."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        count += store()
    return count / (time.perf_counter() - began)


def storing_results(speeds: dict[str, list[float]], kind: str) -> Iterator[figures.Result]:
    """Milliseconds for a delivery, compared with a bare row."""

    def spread(name: str) -> Spread:
        return Spread.of(1e3 / rate for rate in speeds[name])

    for name in speeds:
        if name != BARE:
            title, key = f"store a delivery {name} ({kind})", f"{name} {kind}".lower().replace(" ", "-")
            peer, limit = Peer(BARE, version("sqlalchemy"), spread(BARE)), Limit("ratio", MAX_STORING)
            yield figures.Result(key, "server", title, "ms", spread(name), peer, limit)


def time_claims(database: Database, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds for a claim and its finish while so many repositories wait, and for SELECT 1 in between."""
    inbox = Inbox(database, "bench", clock)
    with database.transaction() as filling:
        filling.change("delete from queue")
        now = clock()
        rows = [{"key": f"8-{n}", "p": n % 4, "at": now - n % 977, "h": int(n % 4 == 3)} for n in range(count)]
        sql = "insert into queue (key, priority, since, due, ready, history) values (:key, :p, :at, :at, 1, :h)"
        filling.change_each(sql, rows)
    if database.is_postgres:
        database.change("analyze queue")
    ours, theirs = list[float](), list[float]()
    for _ in range(CLAIMS):
        began = time.perf_counter()
        lease = inbox.queue.claim("bench")
        assert lease
        with database.transaction():
            assert inbox.queue.lock(lease)
            inbox.queue.finish(lease, clock() + 3_600_000, lease.priority)
        between = time.perf_counter()
        database.row("select 1 as one")
        ours.append(1e3 * (between - began))
        theirs.append(1e3 * (time.perf_counter() - between))
    return ours, theirs


def claim_results(claims: dict[int, tuple[list[float], list[float]]], kind: str) -> Iterator[figures.Result]:
    """Claims for each number of waiting repositories against SELECT 1, and the growth from the fewest to the most."""
    for count, (ours, theirs) in claims.items():
        name, title = f"claim-{count}-{kind}".lower(), f"claim and finish, {count:,} repositories wait ({kind})"
        yield figures.Result(name, "server", title, "ms", Spread.of(ours), Peer(SELECT, "", Spread.of(theirs)))
    fewest, most = min(claims), max(claims)
    peer = Peer(f"{fewest:,} wait", "", Spread.of(claims[fewest][0]))
    title = f"claim and finish, {most:,} against {fewest:,} ({kind})"
    limit = Limit("ratio", MAX_GROWTH)
    yield figures.Result(f"growth-{kind}".lower(), "server", title, "ms", Spread.of(claims[most][0]), peer, limit)


def of_claims(claims: dict[int, tuple[list[float], list[float]]], kind: str) -> Table:
    head = ("Repositories wait", "claim p50, ms", "p99", "SELECT 1 p50", "p99")
    rows = [(f"{count:,}", *(_short(values, at) for values in both for at in (0.5, 0.99)))
            for count, both in claims.items()]  # fmt: skip
    return Table("server", f"Claim and finish in {kind}", head, tuple(rows))


def _short(values: Sequence[float], share: float) -> str:
    return f"{sorted(values)[min(len(values) - 1, int(share * len(values)))]:.2f}"


def time_urgent_issues(url: str) -> list[float]:
    """Seconds that each new issue waited while 2,000 repositories were waiting to catch up, with two workers."""
    database = Database(url)
    inbox = Inbox(database, "receiver", clock)
    with database.transaction() as emptying:
        emptying.change("delete from queue")
        emptying.change("delete from deliveries")
    catching_up = [arrival(n, BACKLOG, "", Priority.CATCH_UP) for n in range(BACKLOG)]
    for start in range(0, BACKLOG, 500):
        inbox.put(catching_up[start : start + 500])
    begun: dict[str, float] = {}
    stop, workers = threading.Event(), []
    for name in ("one", "two"):
        worker_database = Database(url)
        workers.append((worker_database, Inbox(worker_database, name, clock)))

    def run(own_inbox: Inbox, lease: Lease) -> None:
        work = own_inbox.begin(lease)
        if work:
            begun.update({each.id: time.monotonic() for each in work.deliveries})
            time.sleep(RUN)
            own_inbox.end(work, [Result(each.seq, "done", "") for each in work.deliveries], RunReport())

    threads = [
        threading.Thread(
            target=Worker(
                own_inbox, lambda lease, own_inbox=own_inbox: run(own_inbox, lease), stop, JOBS
            ).run_until_stopped
        )
        for _, own_inbox in workers
    ]
    for thread in threads:
        thread.start()
    time.sleep(2)
    arrived: dict[str, float] = {}
    for number in range(URGENT):
        new = Delivery(
            f"9:{uuid.uuid4()}", RepositoryKey(10, number + 1), Event("issues", "opened", 1), priority=Priority.URGENT
        )
        arrived[new.id] = time.monotonic()
        inbox.put([new])
        time.sleep(0.13)
    until = time.monotonic() + 60
    while not arrived.keys() <= begun.keys() and time.monotonic() < until:
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    for each in (database, *(worker_database for worker_database, _ in workers)):
        each.close()
    return [begun[name] - at for name, at in arrived.items()]


def waiting_results(waits: Sequence[float], kind: str) -> Iterator[figures.Result]:
    """The 95th percentile of the waits of new issues, as a multiple of a run."""
    late = statistics.quantiles(waits, n=20, method="inclusive")[-1]
    title = f"a new issue waits, of 100 the 95th, behind {BACKLOG:,} repositories ({kind})"
    peer, limit = Peer("a run", "", Spread.of([1e3 * RUN])), Limit("ratio", MAX_WAIT)
    yield figures.Result(f"urgent-{kind}".lower(), "server", title, "ms", Spread.of([1e3 * late]), peer, limit)


if __name__ == "__main__":
    sys.exit(main())
