"""Many processes write threads to one branch over HTTP at once: what is lost, and which moves of it are forced."""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from bot.domain.changes import Changes, Request
from bot.domain.post import Post
from bot.domain.thread import Thread, ThreadId
from bot.memory.branch_store import MAX_GROWTH, BranchStore, Growth
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
    """The result. ``forced``: how many moves of the branch discarded history without being a squash."""

    lost: list[str]
    moves: int
    forced: int


def thread_of(writer: int, turn: int) -> Thread:
    """The thread of this event; neighbouring numbers share shards with threads of other writers."""
    return issue(1 + writer + 37 * turn, turn)


def request_on(key: ThreadId) -> Request:
    """A request on this thread; here too, neighbouring numbers share shards with other writers."""
    assert isinstance(key, int)
    return Request(key, key, "search", "octocat", at(key / 1_000))


def remember_threads(url: str, token: str, writer: int, turns: int) -> None:
    """Run after run, each with its own clone."""
    random.seed(writer)
    for turn in range(turns):
        thread = thread_of(writer, turn)
        with BranchStore(url, "precedent", token, limit=Growth(SQUASH_AFTER, MAX_GROWTH.bytes)) as store:
            memory = Memory(store).open([thread.id])
            promise = Post(thread.id, "pending", at(turn), content="x")
            memory.stage(Changes((thread,), (promise,), (request_on(thread.id),), cursor=at(turn)))
            memory.commit(f"Remember {thread.id}")


def contend(folder: Path, processes: int, turns: int) -> Outcome:
    """Let ``processes`` handle ``turns`` events each, all at once."""
    with GitServer(folder) as server:
        repository = server.create("octocat/hello")
        hook = repository / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(LOG_MOVES)
        hook.chmod(0o755)
        url = f"{server.url}/octocat/hello.git"
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            for run in [pool.submit(remember_threads, url, server.token, writer, turns) for writer in range(processes)]:
                run.result()
        expected = [thread_of(writer, turn) for writer in range(processes) for turn in range(turns)]
        with BranchStore(url, "precedent", server.token) as store:
            lost = missing(store, {thread.id: thread for thread in expected})
    moves = [line.split() for line in (repository / "moves").read_text().splitlines()]
    replaced = [(int(before), int(after)) for kept, before, after in moves if kept == "no"]
    return Outcome(lost, len(moves), sum(before < SQUASH_AFTER or after != 1 for before, after in replaced))


def missing(store: BranchStore, expected: dict[ThreadId, Thread]) -> list[str]:
    """Everything that the branch should hold and does not."""
    memory = Memory(store).open(expected)
    snapshot = memory.state.base.snapshot
    shards = snapshot.read({DIGESTS.path(key) for key in expected})
    digests = {key for data in shards.values() for key in read_lines(data)[0]}
    index = {path.name: file_hash(path) for path in snapshot.checkout("index").iterdir()}
    records, entries, comments = memory.records(expected), memory.entries(expected), memory.state.comments(expected)
    requests, recent = memory.requests(expected), memory.state.manifest.requests_since(at(0))
    lost = [f"record {key}" for key, thread in expected.items() if records.get(key) != thread]
    lost += [f"digest {key}" for key in expected if key not in digests]
    lost += [f"entry {key}" for key in expected if key not in entries]
    lost += [f"post {key}" for key in expected if key not in comments]
    lost += [f"request {key}" for key in expected if requests.get(key) != (request_on(key),)]
    lost += [f"recent request {key}" for key in expected if request_on(key) not in recent]
    hits = {key: [hit.entry.id for hit in memory.search(query(word_of(key)))] for key in expected}
    lost += [f"hit {key}" for key in expected if hits[key] != [key]]
    lost += [f"count {memory.state.manifest.threads}"] if memory.state.manifest.threads != len(expected) else []
    lost += ["index files"] if index != memory.state.manifest.index else []
    return lost + memory.notes
