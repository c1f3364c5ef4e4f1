"""Measures how soon `precedent serve` answers deliveries at a constant rate with 202, while workers record them.

python -m bench.bench_receive [--rate N] [--seconds S] [--only sqlite,postgres] [--within MS] [--json]

The peer is a Starlette application that does one INSERT for each request (bench/bare_web.py), on the same
database; half of its time comes before ours and half after it, without workers. A time starts when a delivery was due,
so that waiting behind a slow one counts. Our PostgreSQL waits for the disk. Exits with 1 if a delivery is refused,
lost, done twice or out of order, or if the 99th percentile of answers exceeds `--within`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from tests.ports import free_port
from tests.server import postgres
from tests.server.client import Connection, Sent, delivery_headers, issue_event
from tests.server.load_checks import Findings, deliveries, examine, journal_workers, milliseconds, wait_until_done
from tests.server.server_process import ROOT, ServerStage, until

KINDS = ("sqlite", "postgres")
CONNECTIONS = 100
"""Connections: GitHub keeps many. If all are in use, a delivery waits, which counts."""

WAIT = 600.0
"""Seconds for draining the queue."""

WARM = 100
"""Deliveries before the measurement."""


@dataclass(frozen=True, slots=True)
class Load:
    """``rate`` deliveries a second for ``seconds`` seconds, to so many ``repositories``, with ``workers`` processes."""

    rate: int
    seconds: float
    repositories: int
    workers: int

    def planned(self, seconds: float, seed: int) -> list[tuple[str, int, int]]:
        return deliveries(round(self.rate * seconds), self.repositories, random.Random(seed))


@dataclass(frozen=True, slots=True)
class ReceiveFigures:
    """Milliseconds until the 202. ``drained``: seconds until the queue was empty."""

    who: str
    answered: int
    refused: int
    p50: float
    p99: float
    most: float
    drained: float = 0.0
    found: Findings | None = None

    @classmethod
    def of(cls, who: str, sent: Sequence[Sent]) -> ReceiveFigures:
        good = sum(delivery.answer.status == 202 for delivery in sent)
        return cls(who, good, len(sent) - good, *(milliseconds(sent, share) for share in (0.5, 0.99, 1)))

    @property
    def is_clean(self) -> bool:
        return not self.refused and (self.found is None or self.found.is_clean)


async def send_at_rate(port: int, planned: Sequence[tuple[str, int, int]], rate: float) -> list[Sent]:
    """Send deliveries (guid, repository, number) at this rate, whether or not earlier ones were answered."""
    requests = []
    for _, repository, number in planned:
        body = json.dumps(issue_event(number, repository)).encode()
        requests.append((delivery_headers(body), body))
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await Connection.open(port))
    sent: list[Sent] = []

    async def deliver(index: int, due: float) -> None:
        (guid, repository, number), (headers, body) = planned[index], requests[index]
        connection = await free.get()
        answer = await connection.ask("POST", "/webhook", headers | {"X-GitHub-Delivery": guid}, body)
        sent.append(Sent(guid, repository, number, replace(answer, seconds=time.perf_counter() - due), due))
        if answer.closed:
            await connection.close()
            connection = await Connection.open(port)
        free.put_nowait(connection)

    began, going = time.perf_counter(), set[asyncio.Task[None]]()
    for index in range(len(planned)):
        due = began + index / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(deliver(index, due))
        going.add(task)
        task.add_done_callback(going.discard)
    await asyncio.gather(*going)
    while not free.empty():
        await free.get_nowait().close()
    return sent


@contextlib.contextmanager
def bare(url: str) -> Iterator[int]:
    """Run the peer; yields its port."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.bare_web", url, str(port)], cwd=ROOT)
    try:
        until(lambda: answers(port))
        yield port
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
        return True
    return False


def measured(kind: str, folder: Path, url: str, load: Load) -> Iterator[ReceiveFigures]:
    """The peer and ours in turn on one database; ``url`` is "" for SQLite in the folder."""
    peers = list[Sent]()
    with bare(url or f"sqlite:///{folder / 'bare.sqlite'}") as port:
        asyncio.run(send_at_rate(port, load.planned(WARM / load.rate, 1), load.rate))
        peers += asyncio.run(send_at_rate(port, load.planned(load.seconds / 2, 2), load.rate))
        ours = with_ours(folder, url, load)
        peers += asyncio.run(send_at_rate(port, load.planned(load.seconds / 2, 3), load.rate))
    yield ReceiveFigures.of(f"bare {kind}", peers)
    yield replace(ours, who=f"ours {kind}")


def with_ours(folder: Path, url: str, load: Load) -> ReceiveFigures:
    """Run the server in a separate process, with workers that only record deliveries, until the queue is empty."""
    stage = ServerStage(folder, "bot", url)
    options = ServerOptions(data=stage.data, database_url=url)
    try:
        stage.start(workers=0)
        with journal_workers(stage.data, load.workers, url), open_inbox(options, "bench") as inbox:
            asyncio.run(send_at_rate(stage.port, load.planned(WARM / load.rate, 4), load.rate))
            wait_until_done(inbox, WAIT)
            sent = asyncio.run(send_at_rate(stage.port, load.planned(load.seconds, 5), load.rate))
            began = time.monotonic()
            if not wait_until_done(inbox, WAIT):
                raise SystemExit("bench_receive: the workers did not come to an end")
            drained = time.monotonic() - began
            return replace(ReceiveFigures.of("", sent), drained=drained, found=examine(inbox, stage.data, sent))
    finally:
        stage.close()


def database(kind: str, at_end: contextlib.ExitStack) -> str:
    """The URL of a new database in PostgreSQL; "" for SQLite."""
    if kind == "sqlite":
        return ""
    server = postgres.start(durable=True)
    at_end.callback(server.stop)
    return at_end.enter_context(server.database())


def table(lines: Sequence[ReceiveFigures]) -> str:
    """The results as a table, with times in milliseconds."""
    head = f"{'':15} {'202':>7} {'refused':>8} {'p50':>7} {'p99':>7} {'max':>7} {'drained, s':>11}  found"
    rows = (
        f"{line.who:15} {line.answered:>7,} {line.refused:>8} {line.p50:>7.1f} {line.p99:>7.1f} {line.most:>7.1f}"
        f" {line.drained:>11.1f}  {line.found or ''}"
        for line in lines
    )
    return "\n".join([head, *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=300, help="deliveries a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repositories", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2, help="worker processes beside")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of database")
    parser.add_argument("--within", type=float, default=100.0, help="milliseconds for 99 of 100 answers")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    chosen = parser.parse_args()
    load = Load(chosen.rate, chosen.seconds, chosen.repositories, chosen.workers)
    lines = list[ReceiveFigures]()
    for kind in chosen.only.split(","):
        with contextlib.ExitStack() as at_end:
            folder = Path(at_end.enter_context(tempfile.TemporaryDirectory(prefix="precedent-bench-")))
            lines += measured(kind, folder, database(kind, at_end), load)
    late = [line.who for line in lines if line.who.startswith("ours") and not line.p99 <= chosen.within]
    bad = [line.who for line in lines if not line.is_clean]
    if chosen.json:
        print(json.dumps({"load": asdict(load), "late": late, "bad": bad, "measured": list(map(asdict, lines))}))
    else:
        print(f"{load.rate} deliveries a second for {load.seconds:g} s, {load.workers} workers beside; ms")
        print(table(lines))
        print(f"slower than {chosen.within:g} ms:", ", ".join(late) or "none", "| wrong:", ", ".join(bad) or "none")
    return 1 if late or bad else 0


if __name__ == "__main__":
    sys.exit(main())
