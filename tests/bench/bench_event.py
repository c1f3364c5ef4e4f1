"""One whole event at 10,000 threads, against Python's start, a plain clone of the branch and an empty push, in one run.

Prints medians: time and its ratio, peak memory, bytes fetched and pushed. Needs the archives beside the checkout.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bot.archive import thread_from_archive
from bot.comment.links import Links
from bot.comment.render import Renderer
from bot.kept import Changes
from bot.learning import learn
from bot.memory.branch import BranchStore
from bot.memory.memory import Memory
from bot.model import Thread
from bot.recall.mentioned import Place
from bot.settings import Settings
from tests.acceptance.stage import REPOSITORY, Stage
from tests.bench.launcher import Launcher

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT.parent / "shared" / "data" / "rust_pre2015" / "issues.jsonl.gz"
FIRST = 20_000
"""The number of the first new issue, beyond all of the archive."""


@dataclass(slots=True)
class Figures:
    """One value for each event (or each round of the peer)."""

    seconds: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    fetched: list[int] = field(default_factory=list)
    pushed: list[int] = field(default_factory=list)


def threads() -> Iterator[Thread]:
    with gzip.open(ARCHIVE, "rt", encoding="utf-8") as lines:
        yield from map(thread_from_archive, map(json.loads, lines))


def fill(stage: Stage, remembered: list[Thread]) -> None:
    """The branch with all records, digests, what was learned of them and the index, as one run leaves it."""
    memory = Memory(BranchStore(f"{stage.git.url}/{REPOSITORY}.git", "precedent", stage.git.token)).open()
    newest = max(thread.created_at for thread in remembered)
    memory.stage(Changes(records=tuple(remembered), cursor=max(newest, datetime(2015, 1, 1, tzinfo=UTC))))
    learn(memory, Settings(), Renderer(links=Links(repo=REPOSITORY), commands=False), Place(REPOSITORY), seconds=3)
    memory.commit("Begin")
    memory.close()
    subprocess.run(["git", "-C", str(stage.bare), "repack", "-adq"], check=True)


def one_event(stage: Stage, launcher: Launcher, thread: Thread, number: int, figures: Figures) -> None:
    stage.github.repo.next_number = number
    stage.github.open_issue(thread.author, thread.title, thread.body, thread.created_at)
    stage.github.write_event(stage.folder / "event.json", "issues", "opened", number)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= stage.environment("issues")
    stage.git.mark()
    measured = launcher.run([sys.executable, "-m", "bot", "action"], environment, ROOT)
    figures.seconds.append(measured.seconds)
    figures.peak_mb.append(measured.peak_mb)
    figures.fetched.append(stage.git.bytes_out)
    figures.pushed.append(stage.git.bytes_in)


def one_peer(stage: Stage, launcher: Launcher, figures: Figures) -> None:
    """Python with the Action's imports, a plain clone of the whole branch, and a push that has nothing to send."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(stage.folder), "GIT_CONFIG_GLOBAL": os.devnull}
    imports = "import bot.doors.action"
    url, folder = stage.git.remote(REPOSITORY), stage.folder / "clone"
    clone = ["git", "clone", "-q", "--depth", "1", "--branch", "precedent", url, str(folder)]
    push = ["git", "-C", str(folder), "push", "-q", "origin", "precedent"]
    figures.seconds.append(
        sum(
            launcher.run(command, environment, ROOT).seconds
            for command in ([sys.executable, "-c", imports], clone, push)
        )
    )
    shutil.rmtree(folder)


def report(events: Figures, peer: Figures) -> None:
    seconds, peers = statistics.median(events.seconds), statistics.median(peer.seconds)
    late = sorted(events.seconds)[int(len(events.seconds) * 0.95)]
    fetched, pushed = statistics.median(events.fetched) / 1e6, statistics.median(events.pushed) / 1e3
    print(f"one event    {seconds:.2f} s (p95 {late:.2f})")
    print(f"its peer     {peers:.2f} s; ratio {seconds / peers:.2f} (goal: at most 1.0)")
    print(f"peak memory  {max(events.peak_mb):.0f} MB (goal: at most 150)")
    print(f"fetched      {fetched:.2f} MB median, {max(events.fetched) / 1e6:.2f} most (goal: 15)")
    print(f"pushed       {pushed:.1f} KB median, {max(events.pushed) / 1e3:.1f} most (goal: 100)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100)
    given = parser.parse_args()
    if not ARCHIVE.exists():
        print(f"no archive at {ARCHIVE}: nothing was measured")
        return 0
    launcher = Launcher()
    everything = sorted(threads(), key=lambda thread: thread.created_at)
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        stage = Stage(Path(folder), "2015-01-01T00:00:00Z", validate=False)
        events, peer = Figures(), Figures()
        fill(stage, everything[: given.threads])
        fresh = everything[given.threads :]
        for count in range(given.events):
            one_event(stage, launcher, fresh[count % len(fresh)], FIRST + count, events)
            if count % 5 == 0:
                one_peer(stage, launcher, peer)
        stage.close()
        launcher.close()
        report(events, peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
