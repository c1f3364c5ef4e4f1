"""How the memory branch grows: many events, each remembered in a run of its own, with the squash as shipped.

python -m tests.bench.bench_growth [--threads 3000] [--events 2000]     a line for every 200 events
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bot.kept import Changes, Said
from bot.memory.branch import BranchStore, Growth
from bot.memory.memory import Memory
from bot.model import Message, Thread, ThreadId
from tests.bench.bench_event import ARCHIVE, threads

BRANCH = "refs/heads/precedent"
TOLD_EVERY = 200


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def remember(remote: Path, changes: Changes, keys: list[ThreadId]) -> int:
    """One run, from the fetch to the push. How many bytes of content the branch took in by it, deflated."""
    with BranchStore(str(remote), "precedent", None) as store:
        memory = Memory(store).open(keys)
        memory.stage(changes)
        before = grown(remote)
        memory.commit("Remember")
    after = grown(remote)
    return after.bytes - before.bytes if after.commits == before.commits + 1 else 0


def grown(remote: Path) -> Growth:
    """What the tip says of the branch; nothing where there is none."""
    found = subprocess.run(
        ["git", "-C", str(remote), "log", "-1", "--format=%B", BRANCH], capture_output=True, check=False
    )
    return Growth.of(found.stdout.decode()) if found.returncode == 0 else Growth()


def events(known: list[Thread], fresh: list[Thread], count: int) -> Iterator[Changes]:
    """By turns a new issue with its promise, a comment on it, and its closing."""
    for turn in range(count):
        thread = fresh[turn // 3 % len(fresh)]
        thread = replace(thread, id=100_000 + turn // 3, comments=())
        now = known[-1].created_at + timedelta(minutes=10 * (turn + 1))
        opened = replace(
            thread,
            created_at=now - timedelta(minutes=10 * (turn % 3)),
            updated_at=now,
            closed_at=None,
            state="open",
            events=(),
        )
        said = (
            Message("octocat", "NONE", now, "It also happens with the newest version.", turn + 1) if turn % 3 else None
        )
        record = replace(opened, comments=(said,)) if said else opened
        promise = () if turn % 3 else (Said(record.id, "pending", now, text_hash="x", trying_since=now),)
        yield Changes(records=(record,), said=promise, cursor=now)


def packed(remote: Path) -> float:
    """MB of what a clone of the branch as it stands gets, and nothing that was left behind."""
    size = subprocess.run(
        ["git", "-C", str(remote), "pack-objects", "--revs", "--stdout", "-q"],
        input=f"{BRANCH}\n".encode(),
        check=True,
        capture_output=True,
    ).stdout
    return len(size) / 1e6


def files(remote: Path) -> list[str]:
    """The paths of the branch as it stands."""
    return git(remote, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def bare(folder: Path) -> Path:
    """An empty repository that serves partial clones, and tidies nothing up by itself."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    for setting in ("uploadpack.allowFilter=true", "uploadpack.allowAnySHA1InWant=true", "gc.auto=0"):
        git(folder, "config", *setting.split("="))
    return folder


def grow(remote: Path, known: list[Thread], fresh: list[Thread], count: int) -> None:
    """Remember everything that is known, then play the events."""
    remember(remote, Changes(records=tuple(known), cursor=known[-1].created_at), [])
    print(f"    0 events: {packed(remote):.1f} MB, {len(files(remote))} files", flush=True)
    taken, squashes, commits = [], 0, 1
    for number, changes in enumerate(events(known, fresh, count), 1):
        taken.append(remember(remote, changes, [record.id for record in changes.records]))
        now = grown(remote).commits
        squashes, commits = squashes + (now < commits), now
        if number % TOLD_EVERY == 0 or number == count:
            names = files(remote)
            print(
                f"{number:5} events: {packed(remote):.1f} MB with a history of {commits} commits, {len(names)} files, "
                f"{sum(name.startswith('index/') for name in names)} of the index; {squashes} squashes; "
                f"{statistics.median(taken) / 1e3:.1f} KB an event, {max(taken) / 1e3:.0f} at most",
                flush=True,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=3_000)
    parser.add_argument("--events", type=int, default=2_000)
    given = parser.parse_args()
    if not ARCHIVE.exists():
        print(f"no archive at {ARCHIVE}: nothing was measured")
        return 0
    everything = sorted(threads(), key=lambda thread: thread.created_at)
    with tempfile.TemporaryDirectory(prefix="precedent-bench-") as folder:
        grow(bare(Path(folder) / "remote.git"), everything[: given.threads], everything[given.threads :], given.events)
    return 0


if __name__ == "__main__":
    sys.exit(main())
