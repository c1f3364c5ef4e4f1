"""How soon the tools for agents answer for the first time, beside what they are built on; all in this one run.

python -m tests.bench.bench_mcp [--threads N] [--runs N] [--json FILE]

The client is the library's own, over stdio: start, `initialize`, the list of tools, two searches. The peer is
the import of the library's server, without which no server of it answers. The threads are the sample's; with --threads
they are told again until there are so many.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from mcp import Client, StdioServerParameters

from bot.domain.changes import Changes
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive
from tests.bench.figures import Limit, Peer, Report, Result, Spread
from tests.bench.resampled import Resampler

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 1, tzinfo=UTC)
PEER = "import mcp.server"
LIMIT = 1_000.0
"""Milliseconds until the first answer."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=0)
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        found = measured(Path(folder), chosen.threads, chosen.runs)
    print(table(found))
    if chosen.json:
        again = f" told again as {chosen.threads:,} threads" if chosen.threads else ""
        data = f"The sample{again}; {chosen.runs} sessions"
        Report(data, (first_answer(found),)).write(chosen.json)


def measured(folder: Path, count: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds from the start of the process, the commands in turn so that a busy moment meets all of them."""
    sample = list(read_archive(ROOT / "sample/history.jsonl"))
    threads = list(Resampler(sample).threads(count, NOW)) if count else sample
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("bench")
    memory.close()
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    first = asyncio.run(session(folder, environment))
    found = {f"{name}, the first time": [ms] for name, ms in first.items()}
    for _ in range(runs):
        found.setdefault("python", []).append(timed("pass", environment))
        found.setdefault(PEER, []).append(timed(PEER, environment))
        for name, ms in asyncio.run(session(folder, environment)).items():
            found.setdefault(name, []).append(ms)
    return found


async def session(folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """When each answer was there."""
    start = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp", "--store", "store"], env=environment, cwd=folder
    )
    begun = perf_counter()
    times: dict[str, float] = {}
    async with Client(start, mode="legacy") as client:
        times["initialized"] = (perf_counter() - begun) * 1000
        await client.list_tools()
        times["tools listed"] = (perf_counter() - begun) * 1000
        for name in ("first search", "second search"):
            told = await client.call_tool("search_memories", {"query": "login loop cookie"})
            if told.is_error or not (told.structured_content or {}).get("hits"):
                raise SystemExit(f"nothing was found: {told.content}")
            times[name] = (perf_counter() - begun) * 1000
    return times


def timed(code: str, environment: Mapping[str, str]) -> float:
    begun = perf_counter()
    subprocess.run((sys.executable, "-c", code), env=os.environ | environment, check=True)
    return (perf_counter() - begun) * 1000


def first_answer(found: Mapping[str, Sequence[float]]) -> Result:
    """From the start of the process to what an agent waits for."""
    peer = Peer(f"python -c '{PEER}'", version("mcp"), Spread.of(found[PEER]))
    ours = Spread.of(found["first search"])
    return Result("agent", "start", "first answer to an agent", "ms", ours, peer, Limit("median", LIMIT))


def table(found: Mapping[str, Sequence[float]]) -> str:
    lines = ["milliseconds from the start of the process, half and nine of ten runs"]
    for name, times in found.items():
        ninth = quantiles(times, n=10)[-1] if len(times) > 1 else times[0]
        lines.append(f"{name:40}{median(times):8.1f}{ninth:8.1f}")
    answered, peer = median(found["first search"]), median(found[PEER])
    lines.append(f"the first answer is {answered / peer:.2f} times '{PEER}', {answered / LIMIT:.2f} of the limit")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
