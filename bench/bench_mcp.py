"""Measures how soon the tools for agents give their first answer, compared with the import of their library.

python -m bench.bench_mcp [--threads N] [--runs N] [--json FILE]

The client is the library's own, over stdio: start, `initialize`, the list of tools, two searches. The peer is the
import of the library's server, which every such server needs. The threads are the sample's; --threads resamples them
to that number.
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

from bench.archives import ROOT
from bench.figures import Limit, Peer, Report, Result, Spread
from bench.resampled import Resampler
from bot.domain.changes import Changes
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PEER = "import mcp.server"
LIMIT = 1_000.0
"""Milliseconds until the first answer."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        times = measure(Path(folder), options.threads, options.runs)
    print(table(times))
    if options.json:
        resampled = f", resampled to {options.threads:,} threads" if options.threads else ""
        data = f"The sample{resampled}; {options.runs} sessions"
        Report(data, (first_answer(times),)).write(options.json)


def measure(folder: Path, count: int, runs: int) -> dict[str, list[float]]:
    """Milliseconds from the start of the process; the commands alternate, so that other load affects all of them."""
    sample = list(read_archive(ROOT / "sample/history.jsonl"))
    threads = list(Resampler(sample).threads(count, NOW)) if count else sample
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("bench")
    memory.close()
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    first = asyncio.run(session(folder, environment))
    times = {f"{name}, the first time": [ms] for name, ms in first.items()}
    for _ in range(runs):
        times.setdefault("python", []).append(time_python("pass", environment))
        times.setdefault(PEER, []).append(time_python(PEER, environment))
        for name, ms in asyncio.run(session(folder, environment)).items():
            times.setdefault(name, []).append(ms)
    return times


async def session(folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Milliseconds until each answer."""
    start = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp", "--store", "store"], env=environment, cwd=folder
    )
    started = perf_counter()
    times: dict[str, float] = {}
    async with Client(start, mode="legacy") as client:
        times["initialized"] = (perf_counter() - started) * 1000
        await client.list_tools()
        times["tools listed"] = (perf_counter() - started) * 1000
        for name in ("first search", "second search"):
            answer = await client.call_tool("search_memories", {"query": "login loop cookie"})
            if answer.is_error or not (answer.structured_content or {}).get("hits"):
                raise SystemExit(f"nothing was found: {answer.content}")
            times[name] = (perf_counter() - started) * 1000
    return times


def time_python(code: str, environment: Mapping[str, str]) -> float:
    started = perf_counter()
    subprocess.run((sys.executable, "-c", code), env=os.environ | environment, check=True)
    return (perf_counter() - started) * 1000


def first_answer(times: Mapping[str, Sequence[float]]) -> Result:
    """The time from the start of the process to the first search result."""
    peer = Peer(f"python -c '{PEER}'", version("mcp"), Spread.of(times[PEER]))
    ours = Spread.of(times["first search"])
    return Result("agent", "start", "first answer to an agent", "ms", ours, peer, Limit("median", LIMIT))


def table(times: Mapping[str, Sequence[float]]) -> str:
    lines = ["milliseconds from the start of the process, half and nine of ten runs"]
    for name, values in times.items():
        ninth = quantiles(values, n=10)[-1] if len(values) > 1 else values[0]
        lines.append(f"{name:40}{median(values):8.1f}{ninth:8.1f}")
    first_search, peer = median(times["first search"]), median(times[PEER])
    lines.append(
        f"the first answer is {first_search / peer:.2f} times '{PEER}', {first_search / LIMIT:.2f} of the limit"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
