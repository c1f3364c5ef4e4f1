"""Twenty processes write at once to one branch over HTTP: what is kept, and how long it takes.

``python -m tests.bench.contention [PROCESSES [WRITES]]`` prints one line, and fails when a record is lost.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bot.memory.branch import BranchStore
from bot.memory.store import Moved
from tests.fakes.git_http import GitServer

NOTE_FORCED_MOVES = """#!/bin/sh
case "$2" in 0000*) ;; *) git merge-base --is-ancestor "$2" "$3" || echo "$2" >> forced ;; esac
"""


def write_records(url: str, token: str, writer: int, writes: int) -> int:
    """Store ``writes`` records, one commit each, and count them in a shared file; how often somebody was first."""
    moved = 0
    rng = random.Random(writer)
    with BranchStore(url, "precedent", token) as store:
        for turn in range(writes):
            wait = 0.05
            while True:
                snapshot = store.open(["count"])
                count = int(snapshot.read(["count"]).get("count", b"0")) + 1
                try:
                    record = {f"records/{writer:04d}/{turn}.json": b"{}\n", "count": b"%d" % count}
                    store.write(snapshot, record, f"{writer} {turn}")
                    break
                except Moved:
                    moved += 1
                    time.sleep(rng.uniform(0, wait))
                    wait = min(2.0, wait * 1.5)
    return moved


def contend(folder: Path, processes: int, writes: int) -> str:
    """Let them write, and what came of it in one line; SystemExit when something was lost."""
    with GitServer(folder) as server:
        repository = server.create("octocat/hello")
        hook = repository / "hooks" / "update"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(NOTE_FORCED_MOVES)
        hook.chmod(0o755)
        url = f"{server.url}/octocat/hello.git"
        begun = time.monotonic()
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            work = [pool.submit(write_records, url, server.token, writer, writes) for writer in range(processes)]
            moved = sum(done.result() for done in work)
        seconds = time.monotonic() - begun
        with BranchStore(url, "precedent", server.token) as store:
            snapshot = store.open([""])
            kept = len(snapshot.paths("records"))
            count = int(snapshot.read(["count"])["count"])
    forced = len((repository / "forced").read_text().splitlines()) if (repository / "forced").exists() else 0
    counting = ["git", "-C", str(repository), "rev-list", "--count", "precedent"]
    commits = subprocess.run(counting, capture_output=True, check=True)
    told = (
        f"{processes} processes x {writes} writes: {kept} records, counted {count}, {int(commits.stdout)} commits, "
        f"{forced} forced, {moved} times second, {seconds:.1f} s"
    )
    if not kept == count == processes * writes:
        raise SystemExit(f"lost: {told}")
    return told


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as temporary:
        print(contend(Path(temporary), *(given or [20, 10])))
