"""Many processes write threads to one branch over HTTP at once: what is lost, and how long it takes.

python -m tests.bench.bench_contention [PROCESSES [EVENTS]]     one line; fails when anything is lost or forced
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from bot.domain.changes import AnswerRecord, Changes, Request
from bot.domain.thread import Thread, ThreadId
from bot.index.protocol import Query
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, read_lines
from bot.memory.stored_index import file_hash
from tests.fakes.git_http import GitServer
from tests.memory.samples import at, issue, query, word_of

SQUASH_AFTER = 60
"""Small enough for one or two squashes to happen in between."""

LOG_MOVES = """#!/bin/sh
while read old new ref; do
    case "$old" in
        0000*) echo "yes 0 1" ;;
        *) git merge-base --is-ancestor "$old" "$new" && kept=yes || kept=no
           echo "$kept $(git rev-list --count "$old") $(git rev-list --count "$new")" ;;
    esac >> moves
done
"""


@dataclass(frozen=True)
class Outcome:
    """The result. ``moves``: for each move of the branch, whether it kept history, and its length before and after."""

    expected: int
    lost: tuple[str, ...]
    moves: tuple[tuple[bool, int, int], ...]
    retries: int
    seconds: float
    event_seconds: tuple[float, ...]

    @property
    def squashes(self) -> int:
        """Moves that replaced a sufficiently long branch by a single commit."""
        return sum(not kept and before >= SQUASH_AFTER and after == 1 for kept, before, after in self.moves)

    @property
    def forced(self) -> int:
        """Moves that discarded history without being a squash."""
        return sum(not kept for kept, _, _ in self.moves) - self.squashes

    def summary(self) -> str:
        """The result in one line."""
        slowest = max(self.event_seconds)
        return (
            f"{self.expected - len(self.lost)} of {self.expected} kept, {self.retries} retries, "
            f"{len(self.moves)} pushes, {self.squashes} squashes, {self.forced} forced; {self.seconds:.1f} s in all, "
            f"an event {median(self.event_seconds):.2f} s at the median and {slowest:.2f} s at most"
        )


def thread_of(writer: int, turn: int) -> Thread:
    """The thread of this event; neighbouring numbers share shards with threads of other writers."""
    return issue(1 + writer + 37 * turn, turn)


def request_on(key: ThreadId) -> Request:
    """A request on this thread; here too, neighbouring numbers share shards with other writers."""
    assert isinstance(key, int)
    return Request(key, key, "search", "octocat", at(key / 1_000))


def remember_threads(url: str, token: str, writer: int, turns: int) -> tuple[int, list[float]]:
    """Run after run, each with its own clone; returns how often another writer was first, and the seconds of each."""
    random.seed(writer)
    retries, seconds = 0, []

    def wait(duration: float) -> None:
        nonlocal retries
        retries += 1
        time.sleep(duration)

    for turn in range(turns):
        thread, started = thread_of(writer, turn), time.monotonic()
        with BranchStore(url, "precedent", token, squash_after=SQUASH_AFTER) as store:
            memory = Memory(store, sleep=wait).open([thread.id])
            pending_answer = AnswerRecord(thread.id, "pending", at(turn), text_hash="x")
            memory.stage(Changes((thread,), (pending_answer,), (request_on(thread.id),), cursor=at(turn)))
            memory.commit(f"Remember {thread.id}")
        seconds.append(time.monotonic() - started)
    return retries, seconds


def contend(folder: Path, processes: int, turns: int) -> Outcome:
    """Let ``processes`` handle ``turns`` events each, all at once."""
    with GitServer(folder) as server:
        repository = server.create("octocat/hello")
        hook = repository / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(LOG_MOVES)
        hook.chmod(0o755)
        url, started = f"{server.url}/octocat/hello.git", time.monotonic()
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            runs = [pool.submit(remember_threads, url, server.token, writer, turns) for writer in range(processes)]
            results = [run.result() for run in runs]
        seconds = time.monotonic() - started
        expected = [thread_of(writer, turn) for writer in range(processes) for turn in range(turns)]
        with BranchStore(url, "precedent", server.token) as store:
            lost = missing(store, {thread.id: thread for thread in expected})
    moves = (line.split() for line in (repository / "moves").read_text().splitlines())
    return Outcome(
        len(expected),
        tuple(lost),
        tuple((kept == "yes", int(before), int(after)) for kept, before, after in moves),
        sum(retries for retries, _ in results),
        seconds,
        tuple(second for _, times in results for second in times),
    )


def missing(store: BranchStore, expected: dict[ThreadId, Thread]) -> list[str]:
    """Everything that the branch should hold and does not."""
    memory = Memory(store).open(expected)
    snapshot = memory.state.base.snapshot
    shards = snapshot.read({DIGESTS.path(key) for key in expected})
    digests = {key for data in shards.values() for key in read_lines(data)[0]}
    index = {path.name: file_hash(path) for path in snapshot.checkout("index").iterdir()}
    records, entries, answers = memory.records(expected), memory.entries(expected), memory.state.answers(expected)
    requests, recent = memory.requests(expected), memory.state.manifest.requests_since(at(0))
    lost = [f"record {key}" for key, thread in expected.items() if records.get(key) != thread]
    lost += [f"digest {key}" for key in expected if key not in digests]
    lost += [f"entry {key}" for key in expected if key not in entries]
    lost += [f"answer {key}" for key in expected if key not in answers]
    lost += [f"wish {key}" for key in expected if requests.get(key) != (request_on(key),)]
    lost += [f"recent wish {key}" for key in expected if request_on(key) not in recent]
    lost += [f"hit {key}" for key in expected if [hit.entry.id for hit in memory.search(words_of(key))] != [key]]
    lost += [f"count {memory.state.manifest.threads}"] if memory.state.manifest.threads != len(expected) else []
    lost += ["index files"] if index != memory.state.manifest.index else []
    return lost + memory.notes


def words_of(key: ThreadId) -> Query:
    return query(word_of(key))


def main(arguments: list[str]) -> None:
    processes, turns = [int(word) for word in arguments] or [20, 10]
    with tempfile.TemporaryDirectory() as temporary:
        outcome = contend(Path(temporary), processes, turns)
    print(f"{processes} processes x {turns} events: {outcome.summary()}")
    if outcome.lost or outcome.forced:
        raise SystemExit(f"lost: {', '.join(outcome.lost[:20])}")


if __name__ == "__main__":
    main(sys.argv[1:])
