"""Measures bursts of deliveries: how soon each gets its 202, and whether all are done; workers only record them.

Our own client keeps track of each delivery. wrk and hey, if installed, send faster than a client in Python: wrk sends
different deliveries (tests/server/load.lua), hey always the same. The answers to /healthz in the same run show what the
machine can do. Exits with 1 if a delivery is lost, done twice or out of order, if runs of one repository overlap, or if
the 99th percentile of answers exceeds `--within`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from tests.server.client import Answer, Sent, burst, delivery_headers, issue_event, open_connections
from tests.server.load_checks import (
    Findings,
    deliveries,
    examine,
    journal_workers,
    milliseconds,
    wait_until_done,
    write_requests,
)
from tests.server.web_process import ROOT, web_process

WAIT = 600.0
"""Seconds for sending a burst, and again for completing it."""

LUA = ROOT / "tests" / "server" / "load.lua"
HEADERS_OF_HTTP = ("Host", "Content-Length", "Content-Type")


@dataclass(frozen=True, slots=True)
class BurstSize:
    """How much is sent; ``warm`` deliveries come before the measurement, so that the workers are already running."""

    deliveries: int = 2000
    repositories: int = 50
    at_once: int = 32
    workers: int = 2
    warm: int = 50


@dataclass(frozen=True, slots=True)
class BurstLine:
    """A line of the table, in milliseconds; ``expected`` is how many rows the burst must leave."""

    sender: str
    answered: int
    refused: int
    p50: float
    p99: float
    max: float
    expected: int
    found: Findings | None = None

    @property
    def is_clean(self) -> bool:
        return not self.refused and (self.found is None or (self.found.is_clean and self.found.rows == self.expected))


@contextmanager
def serving(size: BurstSize) -> Iterator[tuple[Path, int]]:
    """A folder with a queue in SQLite, and the port of its server, with workers that are warmed up."""
    with (
        tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder,
        web_process(Path(folder)) as (port, _),
        journal_workers(Path(folder), size.workers),
    ):
        asyncio.run(burst(port, deliveries(size.warm, size.repositories, random.Random(1)), size.at_once))
        examine_when_done(Path(folder))
        yield Path(folder), port


def examine_when_done(folder: Path, sent: list[Sent] | None = None) -> Findings:
    """The findings once everything is done; the rows include those of the warm-up."""
    with open_inbox(ServerOptions(data=folder), "bench") as inbox:
        if not wait_until_done(inbox, WAIT):
            raise SystemExit("bench_server: the workers did not come to an end")
        return examine(inbox, folder, sent or [])


async def plain(port: int, count: int, at_once: int) -> list[Sent]:
    """The same number of requests that need no work."""
    left, sent = iter(range(count)), list[Sent]()
    async with open_connections(port, at_once) as opened_lines:

        async def send(index: int) -> None:
            for number in left:
                answer: Answer = await opened_lines[index].ask("GET", "/healthz", {"Host": "localhost"})
                sent.append(Sent("", 0, number, answer))

        await asyncio.gather(*map(send, range(at_once)))
    return sent


def line_of(sender: str, sent: list[Sent], status: int, expected: int, found: Findings | None = None) -> BurstLine:
    good = sum(delivery.answer.status == status for delivery in sent)
    times = (milliseconds(sent, share) for share in (0.5, 0.99, 1))
    return BurstLine(sender, good, len(sent) - good, *times, expected, found)


def with_our_client(size: BurstSize) -> Iterator[BurstLine]:
    """The burst of our client, and the same number of requests that need no work."""
    with serving(size) as (folder, port):
        yield line_of("/healthz", asyncio.run(plain(port, size.deliveries, size.at_once)), 200, 0)
        planned = deliveries(size.deliveries, size.repositories, random.Random(2))
        sent = asyncio.run(burst(port, planned, size.at_once))
        yield line_of("client", sent, 202, size.warm + len(planned), examine_when_done(folder, sent))


def with_wrk(size: BurstSize) -> Iterator[BurstLine]:
    """A burst as fast as wrk can send it."""
    with serving(size) as (folder, port):
        requests, sign = folder / "requests.txt", folder / "sent"
        write_requests(requests, deliveries(size.deliveries, size.repositories, random.Random(3)))
        command = ["wrk", "-t2", f"-c{size.at_once}", f"-d{WAIT:.0f}s", "-s", str(LUA), f"http://127.0.0.1:{port}"]
        arguments = ["--", str(requests), str(size.at_once), str(sign)]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as wrk:
            while wrk.poll() is None and len(list(folder.glob("sent-*"))) < 2:
                time.sleep(0.05)
            wrk.send_signal(signal.SIGINT)
            report = json.loads(wrk.communicate()[0].splitlines()[-1])
        found = examine_when_done(folder)
    refused = report["refused"] + report["failed"]
    times = (report[name] for name in ("p50", "p99", "max"))
    yield BurstLine("wrk", report["answered"] - report["refused"], refused, *times, size.warm + size.deliveries, found)


def with_hey(size: BurstSize) -> Iterator[BurstLine]:
    """The same delivery repeatedly: it is stored once."""
    body = json.dumps(issue_event(1, 99)).encode()
    headers = {name: value for name, value in delivery_headers(body).items() if name not in HEADERS_OF_HTTP}
    count = size.deliveries - size.deliveries % size.at_once
    with serving(size) as (folder, port):
        command = ["hey", "-n", str(count), "-c", str(size.at_once), "-m", "POST", "-T", "application/json"]
        command += [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
        command += ["-d", body.decode(), f"http://127.0.0.1:{port}/webhook"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = examine_when_done(folder)
    answered = sum(map(int, re.findall(r"\[202\]\s+(\d+)", output)))
    p50, p99 = (1000 * _after(rf"{share}%\S*\s+in\s+([\d.]+)", output) for share in (50, 99))
    slowest = 1000 * _after(r"Slowest:\s+([\d.]+)", output)
    yield BurstLine("hey, the same", answered, count - answered, p50, p99, slowest, size.warm + 1, found)


def _after(pattern: str, text: str) -> float:
    return float(next(iter(re.findall(pattern, text)), "nan"))


def table(measured: list[BurstLine]) -> str:
    """The results as a table, with times in milliseconds; all counts except rows and runs should be 0."""
    names = ("rows", "runs", "lost", "twice", "disordered", "swapped", "overlaps")
    rows = [("", "202", "refused", "p50", "p99", "max", *names)]
    for line in measured:
        counts = asdict(line.found) if line.found else {}
        times = (f"{value:.0f}" for value in (line.p50, line.p99, line.max))
        rows.append(
            (line.sender, f"{line.answered:,}", str(line.refused), *times, *(str(counts.get(n, "")) for n in names))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main() -> int:
    usual = BurstSize()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deliveries", type=int, nargs="?", default=usual.deliveries)
    parser.add_argument("repositories", type=int, nargs="?", default=usual.repositories)
    parser.add_argument("--at-once", type=int, default=usual.at_once, help="connections")
    parser.add_argument("--workers", type=int, default=usual.workers, help="worker processes beside")
    parser.add_argument("--within", type=float, default=200.0, help="milliseconds for 99 of 100 answers")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    chosen = parser.parse_args()
    size = BurstSize(chosen.deliveries, chosen.repositories, chosen.at_once, chosen.workers)
    measured = list(with_our_client(size))
    measured += with_wrk(size) if shutil.which("wrk") else ()
    measured += with_hey(size) if shutil.which("hey") else ()
    absent = [name for name in ("wrk", "hey") if not shutil.which(name)]
    late = [line.sender for line in measured if not line.p99 <= chosen.within]
    bad = [line.sender for line in measured if not line.is_clean]
    if chosen.json:
        report = {"size": asdict(size), "within": chosen.within, "left_out": absent, "late": late, "bad": bad}
        print(json.dumps(report | {"measured": [asdict(line) for line in measured]}, indent=2))
    else:
        print(f"{size.deliveries:,} deliveries over {size.repositories} repositories, {size.at_once} at once; ms")
        print(table(measured))
        print("not installed, so left out:", ", ".join(absent) or "nothing")
        print(f"slower than {chosen.within:g} ms:", ", ".join(late) or "none", "| wrong:", ", ".join(bad) or "none")
    return 1 if late or bad else 0


if __name__ == "__main__":
    sys.exit(main())
