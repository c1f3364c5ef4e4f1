"""Bursts of deliveries: how soon each has its 202, and what becomes of them; with workers that only book them beside.

python -m tests.bench.bench_server [DELIVERIES [REPOSITORIES]]      fails when one is lost, out of order, or overlaps

Our own client keeps account of each delivery. wrk and hey, where installed, send faster than a client in Python
can: wrk deliveries that differ (tests/server/load.lua), hey one and the same. What the machine can do is told by the
ratio to answers of /healthz in the same run.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.server.options import Options
from bot.server.run import opened
from tests.server.client import Answer, Sent, burst, delivered, issue_event, lines
from tests.server.doorway import ROOT, running
from tests.server.loading import Findings, booking, deliveries, examine, milliseconds, wait_until_done, write_requests

AT_ONCE = 32
WAIT = 300.0
LUA = ROOT / "tests" / "server" / "load.lua"
HEADERS_OF_HTTP = ("Host", "Content-Length", "Content-Type")


@contextmanager
def serving() -> Iterator[tuple[Path, int]]:
    """A folder with a queue in SQLite, and the port of a server on it, with one worker."""
    with (
        tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder,
        running(Path(folder), "--sqlite") as (port, _),
        booking(Path(folder)),
    ):
        yield Path(folder), port


def examined(folder: Path, accepted: list[str]) -> Findings:
    """What the ledger shows once everything is done."""
    with opened(Options(data=folder), "bench") as queue:
        if not wait_until_done(queue.ledger, WAIT):
            raise SystemExit("bench_server: the worker did not come to an end")
        return examine(queue.ledger, accepted)


async def plain(port: int, count: int) -> list[Sent]:
    """As many requests that need no work at all."""
    left, sent = iter(range(count)), list[Sent]()
    async with lines(port, AT_ONCE) as opened_lines:

        async def one(place: int) -> None:
            for number in left:
                answer: Answer = await opened_lines[place].ask("GET", "/healthz", {"Host": "localhost"})
                sent.append(Sent("", 0, number, answer))

        await asyncio.gather(*map(one, range(AT_ONCE)))
    return sent


def told(name: str, sent: list[Sent]) -> str:
    figures = (
        f"p50 {milliseconds(sent, 0.5):.0f}",
        f"p99 {milliseconds(sent, 0.99):.0f}",
        f"max {milliseconds(sent, 1):.0f}",
    )
    return f"{name}: {', '.join(figures)} ms"


def with_our_client(count: int, repositories: int) -> bool:
    """The burst of which everything is known; whether all went well."""
    with serving() as (folder, port):
        asyncio.run(burst(port, deliveries(50, repositories, random.Random(1)), AT_ONCE))
        nothing = asyncio.run(plain(port, count))
        sent = asyncio.run(burst(port, deliveries(count, repositories, random.Random(2)), AT_ONCE))
        accepted = [one.guid for one in sent if one.answer.status == 202]
        found = examined(folder, accepted)
    ratio = milliseconds(sent, 0.99) / milliseconds(nothing, 0.99)
    print(
        told(f"{count:,} deliveries over {repositories}, {AT_ONCE} at once", sent), f"(p99 of /healthz × {ratio:.1f})"
    )
    print(f"  {len(accepted):,} accepted, {found}")
    return len(accepted) == count and not (found.lost or found.disordered or found.overlaps)


def with_wrk(count: int, repositories: int) -> bool:
    """As fast as wrk can; every answer that it counted is in the ledger."""
    with serving() as (folder, port):
        requests = folder / "requests.txt"
        write_requests(requests, deliveries(20 * count, repositories, random.Random(3)))
        command = ["wrk", "-t2", f"-c{AT_ONCE}", "-d3s", "--latency", "-s", str(LUA), f"http://127.0.0.1:{port}"]
        said = subprocess.run([*command, "--", str(requests)], check=True, capture_output=True, text=True).stdout
        found = examined(folder, [])
    answered = int(next(iter(re.findall(r"(\d+) requests in", said)), "0"))
    slowest = next(iter(re.findall(r"99%\s+(\S+)", said)), "?")
    print(f"wrk: {answered:,} answers in 3 s, 99 % within {slowest}; {found}")
    missing = max(0, min(answered, 20 * count) - found.rows)
    return "Non-2xx" not in said and not (missing or found.disordered or found.overlaps)


def with_hey(count: int) -> bool:
    """One delivery again and again: it is stored once."""
    body = json.dumps(issue_event(1)).encode()
    headers = {name: value for name, value in delivered(body).items() if name not in HEADERS_OF_HTTP}
    with serving() as (folder, port):
        command = ["hey", "-n", str(count), "-c", str(AT_ONCE), "-m", "POST", "-T", "application/json"]
        command += [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
        command += ["-d", body.decode(), f"http://127.0.0.1:{port}/webhook"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = examined(folder, [])
    answered = sum(map(int, re.findall(r"\[202\]\s+(\d+)", said)))
    slowest = next(iter(re.findall(r"99%\S*\s+in\s+(\S+)", said)), "?")
    print(f"hey: {answered:,} times the same, 99 % within {slowest} s; {found.rows} row")
    return found.rows == 1 and answered == count - count % AT_ONCE


def main(arguments: list[str]) -> int:
    count, repositories = (
        int(arguments[place]) if len(arguments) > place else usual for place, usual in ((0, 2000), (1, 50))
    )
    well = [with_our_client(count, repositories)]
    well += [with_wrk(count, repositories)] if shutil.which("wrk") else []
    well += [with_hey(count)] if shutil.which("hey") else []
    print("not installed, so left out:", ", ".join(n for n in ("wrk", "hey") if not shutil.which(n)) or "nothing")
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
