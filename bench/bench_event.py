"""Measures an event at 10,000 threads against Python's start, a plain clone of the branch and an empty push.

python -m bench.bench_event [--threads 10000] [--events 100] [--json FILE]

Time and its ratios, peak memory, bytes fetched and pushed, all in one run. The peer does what every event must: it
starts Python, imports what the Action imports, clones the branch and pushes nothing. Git alone is the clone and the
push; at its least, it fetches the names of files without their content. Memory is compared with a process that only
imports the libraries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bench.archives import ROOT
from bench.figures import Limit, Peer, Report, Result, Spread, report_main
from bench.history import history
from bench.launcher import Launcher
from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.changes import Changes
from bot.domain.thread import RepositoryAddress, Thread
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.pipeline.learn import learn
from bot.settings.schema import Settings
from tests.acceptance.stage import REPOSITORY, Stage

LIBRARIES = "import whoosh.index, numpy, github, jinja2, yaml, markdown_it, Stemmer"
"""The Action's libraries."""

MEMORY, ROOM = Path("/dev/shm"), 2_000_000_000
FIRST = 20_000
"""The number of the first new issue, above all remembered ones."""


@dataclass(slots=True)
class Figures:
    """One value for each event, or each round of the peer."""

    seconds: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    fetched: list[int] = field(default_factory=list)
    pushed: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Peers:
    """Values for each round: Python with our imports and git, git alone, git at its least, the libraries alone."""

    imports_and_git: Figures = field(default_factory=Figures)
    git: Figures = field(default_factory=Figures)
    least: Figures = field(default_factory=Figures)
    libraries: Figures = field(default_factory=Figures)


def fill(stage: Stage, remembered: list[Thread], now: datetime) -> None:
    """Fill the branch with all records, digests, the learned model and the index, as one run leaves it."""
    memory = Memory(BranchStore(f"{stage.git.url}/{REPOSITORY}.git", "precedent", stage.git.token)).open()
    memory.stage(Changes(records=tuple(remembered), cursor=now))
    learn(
        memory,
        Settings(),
        Renderer(links=CommentLinks(repo=REPOSITORY), commands=False),
        RepositoryAddress(REPOSITORY),
        seconds=3,
    )
    memory.commit("Begin")
    memory.close()
    subprocess.run(["git", "-C", str(stage.bare), "repack", "-adq"], check=True)


def one_event(stage: Stage, launcher: Launcher, thread: Thread, number: int, figures: Figures) -> None:
    stage.github.repo.next_number = number
    stage.github.open_issue(thread.author, thread.title, thread.body, thread.created_at)
    stage.github.write_event(stage.folder / "event.json", "issues", "opened", number)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= stage.environment("issues") | {"TMPDIR": str(stage.folder)}
    stage.git.mark()
    measured = launcher.run([sys.executable, "-m", "bot", "action"], environment, ROOT)
    figures.seconds.append(measured.seconds)
    figures.peak_mb.append(measured.peak_mb)
    figures.fetched.append(stage.git.bytes_out)
    figures.pushed.append(stage.git.bytes_in)


def one_round(stage: Stage, launcher: Launcher, peers: Peers) -> None:
    """Run Python with the Action's imports, a plain clone of the whole branch, and an empty push."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(stage.folder), "GIT_CONFIG_GLOBAL": os.devnull}
    url, folder = stage.git.remote(REPOSITORY), stage.folder / "clone"
    clone = ["git", "clone", "-q", "--depth", "1", "--branch", "precedent", url, str(folder)]
    push = ["git", "-C", str(folder), "push", "-q", "origin", "precedent"]
    python = launcher.run([sys.executable, "-c", "import bot.action.main"], environment, ROOT).seconds
    stage.git.mark()
    git = sum(launcher.run(command, environment, ROOT).seconds for command in (clone, push))
    peers.imports_and_git.seconds.append(python + git)
    peers.git.seconds.append(git)
    peers.git.fetched.append(stage.git.bytes_out)
    peers.libraries.peak_mb.append(launcher.run([sys.executable, "-c", LIBRARIES], environment, ROOT).peak_mb)
    shutil.rmtree(folder)
    names_only = [*clone[:-2], "--filter=blob:none", "--no-checkout", *clone[-2:]]
    peers.least.seconds.append(sum(launcher.run(command, environment, ROOT).seconds for command in (names_only, push)))
    shutil.rmtree(folder)


def results(events: Figures, peers: Peers) -> Iterator[Result]:
    git = git_version()
    seconds = Spread.of(events.seconds)
    imports_and_git = Peer("imports, clone and empty push", git, Spread.of(peers.imports_and_git.seconds))
    alone = Peer("git clone and empty push", git, Spread.of(peers.git.seconds))
    least = Peer("git clone of names only, and empty push", git, Spread.of(peers.least.seconds))
    yield Result("event", "event", "one event, as a process", "s", seconds, imports_and_git, Limit("ratio", 1.0))
    yield Result("event-git", "event", "one event, as a process", "s", seconds, alone)
    yield Result("event-least", "event", "one event, as a process", "s", seconds, least)
    fetched = Spread.of(count / 1e6 for count in events.fetched)
    clone = Peer("git clone", git, Spread.of(count / 1e6 for count in peers.git.fetched))
    yield Result("fetched", "event", "fetched for one event", "MB", fetched, clone, Limit("most", 15.0))
    pushed = Spread.of(count / 1e3 for count in events.pushed)
    yield Result("pushed", "event", "pushed by one event", "KB", pushed, limit=Limit("median", 100.0))
    peak, libraries = Spread.of(events.peak_mb), Spread.of(peers.libraries.peak_mb)
    peer = Peer("import of its libraries", f"Python {sys.version.split()[0]}", libraries)
    yield Result("memory-event", "memory", "peak memory of one event", "MB", peak, peer, Limit("most", 150.0))


def git_version() -> str:
    output = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout
    return output.split()[2]


def memory_folder() -> Path | None:
    """A folder in memory for both sides, if there is one. A clone of the branch makes 10,000 files, which took 0.2 to
    4 seconds on one disk: that would have measured the disk."""
    return MEMORY if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM else None


def measured(count: int, number_of_events: int) -> Report:
    launcher = Launcher()  # before anything is in memory
    data, remembered, fresh = history(count)
    with tempfile.TemporaryDirectory(prefix="precedent-bench-", dir=memory_folder()) as folder:
        now = max([datetime(2015, 1, 1, tzinfo=UTC), *(thread.created_at for thread in (*remembered, *fresh))])
        stage = Stage(Path(folder), now.strftime("%Y-%m-%dT%H:%M:%SZ"), validate=False)
        events, peers = Figures(), Peers()
        fill(stage, remembered, now)
        for number in range(number_of_events):
            one_event(stage, launcher, fresh[number % len(fresh)], FIRST + number, events)
            if number % 5 == 0:
                one_round(stage, launcher, peers)
        stage.close()
        launcher.close()
    return Report(f"{number_of_events} new issues on {data}", tuple(results(events, peers)))


if __name__ == "__main__":
    sys.exit(report_main(__doc__, measured, threads=10_000, events=100))
