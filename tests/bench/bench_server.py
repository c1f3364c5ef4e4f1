"""Bursts of deliveries: how soon each has its 202, and what becomes of them; with workers that only book them beside.

Our own client keeps account of each delivery. wrk and hey, where installed, send faster than a client in Python can:
wrk deliveries that differ (tests/server/load.lua), hey one and the same. The same machine's answers to /healthz in the
same run tell what it can do. Ends with 1 when a delivery is lost, done twice or out of order, when runs of one
repository overlap, or when the 99th of a hundred answers took longer than `--within`.
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
from tests.server.client import Answer, Sent, burst, delivered, issue_event, lines
from tests.server.doorway import ROOT, running
from tests.server.loading import Findings, booking, deliveries, examine, milliseconds, wait_until_done, write_requests

WAIT = 600.0
"""Seconds within which a burst has to be sent, and then worked off."""

LUA = ROOT / "tests" / "server" / "load.lua"
HEADERS_OF_HTTP = ("Host", "Content-Length", "Content-Type")


@dataclass(frozen=True, slots=True)
class Size:
    """How much is sent: ``warm`` deliveries before anything is measured, so that the workers are at work already."""

    deliveries: int = 2000
    repositories: int = 50
    at_once: int = 32
    workers: int = 2
    warm: int = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table; milliseconds. ``rows`` are those of the burst, ``expected`` how many it has to leave."""

    sender: str
    answered: int
    refused: int
    p50: float
    p99: float
    max: float
    expected: int
    found: Findings | None = None

    @property
    def is_well(self) -> bool:
        return not self.refused and (self.found is None or (self.found.is_well and self.found.rows == self.expected))


@contextmanager
def serving(size: Size) -> Iterator[tuple[Path, int]]:
    """A folder with a queue in SQLite, and the port of a server on it, with workers that have worked."""
    with (
        tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder,
        running(Path(folder)) as (port, _),
        booking(Path(folder), size.workers),
    ):
        asyncio.run(burst(port, deliveries(size.warm, size.repositories, random.Random(1)), size.at_once))
        examined(Path(folder))
        yield Path(folder), port


def examined(folder: Path, sent: list[Sent] | None = None) -> Findings:
    """What is found once everything is done; those of the warm-up are among the rows."""
    with open_inbox(ServerOptions(data=folder), "bench") as inbox:
        if not wait_until_done(inbox, WAIT):
            raise SystemExit("bench_server: the workers did not come to an end")
        return examine(inbox, folder, sent or [])


async def plain(port: int, count: int, at_once: int) -> list[Sent]:
    """As many requests that need no work at all."""
    left, sent = iter(range(count)), list[Sent]()
    async with lines(port, at_once) as opened_lines:

        async def one(place: int) -> None:
            for number in left:
                answer: Answer = await opened_lines[place].ask("GET", "/healthz", {"Host": "localhost"})
                sent.append(Sent("", 0, number, answer))

        await asyncio.gather(*map(one, range(at_once)))
    return sent


def summed(sender: str, sent: list[Sent], status: int, expected: int, found: Findings | None = None) -> Line:
    good = sum(one.answer.status == status for one in sent)
    times = (milliseconds(sent, share) for share in (0.5, 0.99, 1))
    return Line(sender, good, len(sent) - good, *times, expected, found)


def with_our_client(size: Size) -> Iterator[Line]:
    """The burst of which everything is known, and as many requests that need no work."""
    with serving(size) as (folder, port):
        yield summed("/healthz", asyncio.run(plain(port, size.deliveries, size.at_once)), 200, 0)
        wanted = deliveries(size.deliveries, size.repositories, random.Random(2))
        sent = asyncio.run(burst(port, wanted, size.at_once))
        yield summed("client", sent, 202, size.warm + len(wanted), examined(folder, sent))


def with_wrk(size: Size) -> Iterator[Line]:
    """As fast as wrk can."""
    with serving(size) as (folder, port):
        requests, sign = folder / "requests.txt", folder / "sent"
        write_requests(requests, deliveries(size.deliveries, size.repositories, random.Random(3)))
        command = ["wrk", "-t2", f"-c{size.at_once}", f"-d{WAIT:.0f}s", "-s", str(LUA), f"http://127.0.0.1:{port}"]
        given = ["--", str(requests), str(size.at_once), str(sign)]
        with subprocess.Popen([*command, *given], stdout=subprocess.PIPE, text=True) as wrk:
            while wrk.poll() is None and len(list(folder.glob("sent-*"))) < 2:
                time.sleep(0.05)
            wrk.send_signal(signal.SIGINT)
            said = json.loads(wrk.communicate()[0].splitlines()[-1])
        found = examined(folder)
    refused = said["refused"] + said["failed"]
    times = (said[name] for name in ("p50", "p99", "max"))
    yield Line("wrk", said["answered"] - said["refused"], refused, *times, size.warm + size.deliveries, found)


def with_hey(size: Size) -> Iterator[Line]:
    """One delivery again and again: it is stored once."""
    body = json.dumps(issue_event(1, 99)).encode()
    headers = {name: value for name, value in delivered(body).items() if name not in HEADERS_OF_HTTP}
    count = size.deliveries - size.deliveries % size.at_once
    with serving(size) as (folder, port):
        command = ["hey", "-n", str(count), "-c", str(size.at_once), "-m", "POST", "-T", "application/json"]
        command += [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
        command += ["-d", body.decode(), f"http://127.0.0.1:{port}/webhook"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = examined(folder)
    answered = sum(map(int, re.findall(r"\[202\]\s+(\d+)", said)))
    p50, p99 = (1000 * _after(rf"{share}%\S*\s+in\s+([\d.]+)", said) for share in (50, 99))
    slowest = 1000 * _after(r"Slowest:\s+([\d.]+)", said)
    yield Line("hey, the same", answered, count - answered, p50, p99, slowest, size.warm + 1, found)


def _after(pattern: str, text: str) -> float:
    return float(next(iter(re.findall(pattern, text)), "nan"))


def table(measured: list[Line]) -> str:
    """Times in milliseconds; of the rest every number but those of rows and runs should be 0."""
    names = ("rows", "runs", "lost", "twice", "disordered", "swapped", "overlaps")
    rows = [("", "202", "refused", "p50", "p99", "max", *names)]
    for line in measured:
        found = asdict(line.found) if line.found else {}
        times = (f"{value:.0f}" for value in (line.p50, line.p99, line.max))
        rows.append(
            (line.sender, f"{line.answered:,}", str(line.refused), *times, *(str(found.get(n, "")) for n in names))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main() -> int:
    usual = Size()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("deliveries", type=int, nargs="?", default=usual.deliveries)
    parser.add_argument("repositories", type=int, nargs="?", default=usual.repositories)
    parser.add_argument("--at-once", type=int, default=usual.at_once, help="connections")
    parser.add_argument("--workers", type=int, default=usual.workers, help="worker processes beside")
    parser.add_argument("--within", type=float, default=200.0, help="milliseconds for 99 of 100 answers")
    parser.add_argument("--json", action="store_true", help="for programs to read")
    chosen = parser.parse_args()
    size = Size(chosen.deliveries, chosen.repositories, chosen.at_once, chosen.workers)
    measured = list(with_our_client(size))
    measured += with_wrk(size) if shutil.which("wrk") else ()
    measured += with_hey(size) if shutil.which("hey") else ()
    absent = [name for name in ("wrk", "hey") if not shutil.which(name)]
    late = [line.sender for line in measured if not line.p99 <= chosen.within]
    bad = [line.sender for line in measured if not line.is_well]
    if chosen.json:
        said = {"size": asdict(size), "within": chosen.within, "left_out": absent, "late": late, "bad": bad}
        print(json.dumps(said | {"measured": [asdict(line) for line in measured]}, indent=2))
    else:
        print(f"{size.deliveries:,} deliveries over {size.repositories} repositories, {size.at_once} at once; ms")
        print(table(measured))
        print("not installed, so left out:", ", ".join(absent) or "nothing")
        print(f"slower than {chosen.within:g} ms:", ", ".join(late) or "none", "| wrong:", ", ".join(bad) or "none")
    return 1 if late or bad else 0


if __name__ == "__main__":
    sys.exit(main())
