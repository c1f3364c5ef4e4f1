"""A log of 50,000 mixed lines: how long it takes to index it, and to search it as a process of its own.

python -m tests.bench.bench_logs [--lines N] [--json FILE]

The log is made, the same in each run: issue-agent sessions, hook logs and transcripts with tool calls and their output,
and a few broken lines. Each search is set beside a search through the file by `rg`, or `grep -c` where that is absent,
in turn with it, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from time import perf_counter

from bot.local_cache.sessions import SessionIndex
from bot.sources.session_files import find_sessions
from tests.bench.figures import Limit, Peer, Report, Result, Spread, one

ROOT = Path(__file__).resolve().parents[2]
BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
SEARCHES = ("authentication", "retry", "webhook signature", "why does the index not match", "zyzzogeton quux")
RUNS = 7
WANTED = 0.3
"""Seconds that a search may take as a process of its own."""

SEARCH = """
import sys
from pathlib import Path
from bot.local_cache.sessions import SessionIndex
from bot.sources.session_files import find_sessions
logs = SessionIndex(Path(sys.argv[1]))
logs.refresh(find_sessions([sys.argv[2]], sys.argv[2]))
print(len(logs.search(sys.argv[3], 5)))
"""


def words() -> list[str]:
    """What this repository's documentation says, most frequent words first, and as many identifiers."""
    said = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    counts: dict[str, int] = {}
    for word in re.findall(r"[A-Za-z]{2,}", said):
        counts[word] = counts.get(word, 0) + 1
    known = sorted(counts, key=lambda word: (-counts[word], word))
    made = [f"{one}_{other}{number}" for number, (one, other) in enumerate(zip(known, reversed(known), strict=True))]
    return known + made


class Writer:
    """Draws sentences in which a word's frequency falls with its rank, as in texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._words = words()
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))

    def text(self, count: int) -> str:
        said = " ".join(self.random.choices(self._words, cum_weights=self._weights, k=count))
        return f"{said} authentication" if self.random.random() < 0.01 else said

    def length(self, usual: int) -> int:
        return max(3, min(2_000, round(self.random.lognormvariate(0, 0.8) * usual)))


def lines(count: int) -> Iterator[str]:
    """So many lines of logs, a mixture of all that is read."""
    writer = Writer(7)
    for number in range(count):
        at = BEGIN + timedelta(seconds=9 * number)
        draw = writer.random.random()
        if draw < 0.01:
            yield '{"type":"user","message":{"role":"us'
        elif draw < 0.3:
            yield json.dumps(hook(writer, number, at))
        elif draw < 0.6:
            yield json.dumps(agent(writer, number, at))
        else:
            yield json.dumps(transcript(writer, number, at))


def hook(writer: Writer, number: int, at: datetime) -> dict[str, object]:
    base = {"timestamp": at.isoformat(), "session_id": f"hook-{number // 120}"}
    if number % 2:
        return base | {"event": "UserPromptSubmit", "data": {"prompt": writer.text(writer.length(20))}}
    return base | {"event": "AssistantResponse", "data": {"response": writer.text(writer.length(70))}}


def agent(writer: Writer, number: int, at: datetime) -> dict[str, object]:
    text = {"type": "text", "text": writer.text(writer.length(60))}
    call = {"type": "toolCall", "name": "edit", "arguments": {"path": f"src/module{number % 400}.py"}}
    thought = {"type": "thinking", "thinking": writer.text(40)}
    role, content = ("assistant", [thought, text, call]) if number % 3 else ("user", [text])
    message = {"role": role, "content": content, "timestamp": int(at.timestamp() * 1_000)}
    return {"type": "message", "id": f"{number:08x}", "message": message}


def transcript(writer: Writer, number: int, at: datetime) -> dict[str, object]:
    base = {
        "sessionId": f"chat-{number // 200}",
        "timestamp": at.isoformat().replace("+00:00", "Z"),
        "cwd": "/work/app",
    }
    if number % 3 == 0:
        output = {"type": "tool_result", "tool_use_id": "x", "content": writer.text(150)}
        return base | {"type": "user", "message": {"role": "user", "content": [output]}}
    if number % 3 == 1:
        said = {"type": "text", "text": writer.text(writer.length(60))}
        call = {"type": "tool_use", "name": "Edit", "input": {"file_path": f"/work/app/src/part{number % 300}.py"}}
        return base | {"type": "assistant", "message": {"role": "assistant", "content": [said, call]}}
    return base | {"type": "user", "message": {"role": "user", "content": writer.text(writer.length(20))}}


def finder(path: Path, word: str) -> list[str]:
    """The command that looks through the file for a word."""
    found = shutil.which("rg")
    return [found, "-c", "-e", word, str(path)] if found else ["grep", "-c", "-e", word, str(path)]


def timed(command: Sequence[str]) -> tuple[float, str]:
    begun = perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.stderr:
        raise SystemExit(done.stderr)
    return perf_counter() - begun, done.stdout.strip()


def index(path: Path, folder: Path) -> float:
    begun = perf_counter()
    logs = SessionIndex(path)
    logs.refresh(find_sessions([str(folder)], str(folder)))
    logs.close()
    return perf_counter() - begun


def searched(database: Path, folder: Path, log: Path) -> tuple[list[float], list[float]]:
    """The slowest of the searches by the median of its runs: the seconds of each run, and those of the other tool."""
    slowest: tuple[list[float], list[float]] = ([0.0], [0.0])
    for said in SEARCHES:
        ours, theirs, found = [], [], ""
        for _ in range(RUNS):
            seconds, found = timed([sys.executable, "-c", SEARCH, str(database), str(folder), said])
            ours.append(seconds)
            theirs.append(timed(finder(log, said.split()[0]))[0])
        mine, other = statistics.median(ours), statistics.median(theirs)
        tool = Path(finder(log, said)[0]).name
        print(f"search {said!r:32} {mine:6.3f} s   {found} found   {mine / other:6.2f} x {tool} ({other:.3f} s)")
        if mine > statistics.median(slowest[0]):
            slowest = (ours, theirs)
    return slowest


def results(indexed: float, more: float, slowest: tuple[list[float], list[float]], log: Path) -> list[Result]:
    tool = Path(finder(log, "x")[0]).name
    told = subprocess.run([finder(log, "x")[0], "--version"], capture_output=True, text=True, check=False).stdout
    version = next(iter(re.findall(r"\d+\.[\d.]*\d", told)), "")
    ours, theirs = map(Spread.of, slowest)
    peer = Peer(tool, version, theirs)
    return [
        Result("logs", "logs", "slowest search in logs, as a process", "s", ours, peer, Limit("median", WANTED)),
        Result("logs-index", "logs", "all logs indexed once", "s", one(indexed)),
        Result("logs-more", "logs", "100 lines more indexed", "s", one(more)),
    ]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, default=50_000)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-logs-") as temporary:
        folder, database = Path(temporary, "logs"), Path(temporary, "cache", "logs.sqlite")
        folder.mkdir()
        log = folder / "mixed.jsonl"
        log.write_text("\n".join(lines(chosen.lines)) + "\n", encoding="utf-8")
        data = f"{chosen.lines:,} mixed lines of logs, {log.stat().st_size / 1e6:.1f} MB"
        print(data)
        indexed = index(database, folder)
        print(f"indexed once      {indexed:6.2f} s   {database.stat().st_size / 1e6:.1f} MB")
        with log.open("a", encoding="utf-8") as handle:
            handle.writelines(f"{line}\n" for line in lines(100))
        more = index(database, folder)
        print(f"100 lines more    {more:6.2f} s")
        found = searched(database, folder, log)
        if chosen.json:
            Report(data, tuple(results(indexed, more, found, log))).write(chosen.json)
            return 0
    slowest = statistics.median(found[0])
    verdict = "" if slowest <= WANTED else f"   MISSED: at most {WANTED} s"
    print(f"slowest search    {slowest:6.3f} s{verdict}")
    return 0 if slowest <= WANTED else 1


if __name__ == "__main__":
    raise SystemExit(main())
