"""Measures how long it takes to index a log of 50,000 mixed lines, and to search it in a new process.

python -m bench.bench_logs [--lines N] [--json FILE]

The log is generated, the same in each run: issue-agent sessions, hook logs and transcripts with tool calls and their
output, and a few broken lines. Each search alternates with a search of the file by `rg`, or else `grep -c`, so that
other load on the machine affects both.
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

from bench.archives import ROOT
from bench.figures import Limit, Peer, Report, Result, Spread, single
from bot.local_cache.session_index import SessionIndex
from bot.sources.sessions.files import find_sessions

BEGIN = datetime(2026, 1, 5, 8, tzinfo=UTC)
SEARCHES = ("authentication", "retry", "webhook signature", "why does the index not match", "zyzzogeton quux")
RUNS = 7
MAX_SECONDS = 0.3
"""Seconds that a search may take in a new process."""

SEARCH = """
import sys
from pathlib import Path
from bot.local_cache.session_index import SessionIndex
from bot.sources.sessions.files import find_sessions
logs = SessionIndex(Path(sys.argv[1]))
logs.refresh(find_sessions([sys.argv[2]], sys.argv[2]))
print(len(logs.search(sys.argv[3], 5)))
"""


def words() -> list[str]:
    """The words of this repository's documentation, most frequent first, and as many identifiers."""
    text = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    counts: dict[str, int] = {}
    for word in re.findall(r"[A-Za-z]{2,}", text):
        counts[word] = counts.get(word, 0) + 1
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    made = [
        f"{first}_{other}{number}"
        for number, (first, other) in enumerate(zip(by_frequency, reversed(by_frequency), strict=True))
    ]
    return by_frequency + made


class Writer:
    """Draws sentences in which a word's frequency falls with its rank, as in real texts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._words = words()
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))

    def text(self, count: int) -> str:
        sentence = " ".join(self.random.choices(self._words, cum_weights=self._weights, k=count))
        return f"{sentence} authentication" if self.random.random() < 0.01 else sentence

    def length(self, usual: int) -> int:
        return max(3, min(2_000, round(self.random.lognormvariate(0, 0.8) * usual)))


def lines(count: int) -> Iterator[str]:
    """So many lines of logs, of all kinds that we read."""
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
        text_part = {"type": "text", "text": writer.text(writer.length(60))}
        call = {"type": "tool_use", "name": "Edit", "input": {"file_path": f"/work/app/src/part{number % 300}.py"}}
        return base | {"type": "assistant", "message": {"role": "assistant", "content": [text_part, call]}}
    return base | {"type": "user", "message": {"role": "user", "content": writer.text(writer.length(20))}}


def finder(path: Path, word: str) -> list[str]:
    """The command that searches the file for a word."""
    program = shutil.which("rg")
    return [program, "-c", "-e", word, str(path)] if program else ["grep", "-c", "-e", word, str(path)]


def timed(command: Sequence[str]) -> tuple[float, str]:
    started = perf_counter()
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if result.stderr:
        raise SystemExit(result.stderr)
    return perf_counter() - started, result.stdout.strip()


def index(path: Path, folder: Path) -> float:
    started = perf_counter()
    logs = SessionIndex(path)
    logs.refresh(find_sessions([str(folder)], str(folder)))
    logs.close()
    return perf_counter() - started


def time_searches(database: Path, folder: Path, log: Path) -> tuple[list[float], list[float]]:
    """The slowest search by its median: the seconds of each run, and those of the other tool."""
    slowest: tuple[list[float], list[float]] = ([0.0], [0.0])
    for query in SEARCHES:
        ours, theirs, count = [], [], ""
        for _ in range(RUNS):
            seconds, count = timed([sys.executable, "-c", SEARCH, str(database), str(folder), query])
            ours.append(seconds)
            theirs.append(timed(finder(log, query.split()[0]))[0])
        ours_s, peer_s = statistics.median(ours), statistics.median(theirs)
        tool = Path(finder(log, query)[0]).name
        print(f"search {query!r:32} {ours_s:6.3f} s   {count} found   {ours_s / peer_s:6.2f} x {tool} ({peer_s:.3f} s)")
        if ours_s > statistics.median(slowest[0]):
            slowest = (ours, theirs)
    return slowest


def results(indexed: float, added: float, slowest: tuple[list[float], list[float]], log: Path) -> list[Result]:
    tool = Path(finder(log, "x")[0]).name
    output = subprocess.run([finder(log, "x")[0], "--version"], capture_output=True, text=True, check=False).stdout
    version = next(iter(re.findall(r"\d+\.[\d.]*\d", output)), "")
    ours, theirs = map(Spread.of, slowest)
    peer = Peer(tool, version, theirs)
    return [
        Result("logs", "logs", "slowest search in logs, as a process", "s", ours, peer, Limit("median", MAX_SECONDS)),
        Result("logs-index", "logs", "all logs indexed once", "s", single(indexed)),
        Result("logs-more", "logs", "100 lines more indexed", "s", single(added)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="precedent-logs-") as temporary:
        folder, database = Path(temporary, "logs"), Path(temporary, "cache", "logs.sqlite")
        folder.mkdir()
        log = folder / "mixed.jsonl"
        log.write_text("\n".join(lines(options.lines)) + "\n", encoding="utf-8")
        data = f"{options.lines:,} mixed lines of logs, {log.stat().st_size / 1e6:.1f} MB"
        print(data)
        indexed = index(database, folder)
        print(f"indexed once      {indexed:6.2f} s   {database.stat().st_size / 1e6:.1f} MB")
        with log.open("a", encoding="utf-8") as handle:
            handle.writelines(f"{line}\n" for line in lines(100))
        added = index(database, folder)
        print(f"100 lines more    {added:6.2f} s")
        times = time_searches(database, folder, log)
        if options.json:
            Report(data, tuple(results(indexed, added, times, log))).write(options.json)
            return 0
    slowest = statistics.median(times[0])
    verdict = "" if slowest <= MAX_SECONDS else f"   MISSED: at most {MAX_SECONDS} s"
    print(f"slowest search    {slowest:6.3f} s{verdict}")
    return 0 if slowest <= MAX_SECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
