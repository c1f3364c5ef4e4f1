"""Measures how correct clusters are, and what they cost, on the development archive.

python -m bench.bench_clusters [--size N] [--seconds N] [--reading FOLDER] [--seed N]

Needs the archives next to the checkout. It compares pairs in a cluster with the groups that people's duplicate marks
form: once with all signs, once with texts alone, so that no mark is seen. A ``--size`` beyond the archive resamples it
with new names. With ``--seconds``, only the newest threads are compared, in that time. ``--reading`` writes 50
clusters, drawn with the seed, for readers.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from bench.archives import need_archives
from bench.figures import Spread
from bench.history import NOW, history
from bench.resampled import Resampler
from bot.domain.changes import Changes
from bot.domain.cluster import Cluster, ClusterLinks
from bot.domain.thread import Thread, ThreadId
from bot.evaluation.labels import marks
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.clusters import link_threads
from bot.recall.clusters import DUPLICATE, NAMED, STATED, STATED_BY_REPORTER, Opinions, build_clusters, clusters_of

BY_PEOPLE = frozenset({NAMED, DUPLICATE, STATED, STATED_BY_REPORTER})
DRAWN, CHARS = 50, 600
NEW = 30
"""New issues, each handled by a separate run."""


def threads_of(size: int) -> list[Thread]:
    """The archive, resampled if it has fewer threads than ``size``."""
    _, threads, _ = history(size)
    return threads if len(threads) >= size else list(Resampler(threads).threads(size, NOW))


def groups_of(threads: Sequence[Thread]) -> dict[ThreadId, ThreadId]:
    """Thread → the head of its group, for threads that people called duplicates of each other, in either direction."""
    head: dict[ThreadId, ThreadId] = {}

    def top(key: ThreadId) -> ThreadId:
        while head.setdefault(key, key) != key:
            key = head[key]
        return key

    for thread in threads:
        for mark in marks(thread):
            if mark.is_duplicate:
                head[top(mark.thread)] = top(mark.target)
    return {key: top(key) for key in head}


def linked_of(threads: Sequence[Thread]) -> set[frozenset[ThreadId]]:
    """The pairs of threads in which anybody linked one from the other."""
    return {frozenset((mark.thread, mark.target)) for thread in threads for mark in marks(thread)}


def without_mentions(links: Mapping[ThreadId, ClusterLinks]) -> dict[ThreadId, ClusterLinks]:
    """The signs in the texts alone, without links by people."""
    remaining = {key: tuple(link for link in entry.links if link.sign not in BY_PEOPLE) for key, entry in links.items()}
    return {key: replace(links[key], links=own_links) for key, own_links in remaining.items() if own_links}


def figures(
    clusters: Iterable[Cluster], groups: Mapping[ThreadId, ThreadId], linked: set[frozenset[ThreadId]]
) -> dict[str, object]:
    """Figures for pairs in a cluster: ``known_pairs`` have both threads in groups, ``right`` of them in one group."""
    clusters = list(clusters)
    pairs = [pair for cluster in clusters for pair in combinations([member.id for member in cluster.members], 2)]
    known_pairs = [pair for pair in pairs if pair[0] in groups and pair[1] in groups]
    right = sum(groups[cluster] == groups[other] for cluster, other in known_pairs)
    linked_count = sum(
        (cluster in groups and groups.get(cluster) == groups.get(o)) or frozenset((cluster, o)) in linked
        for cluster, o in pairs
    )
    return {
        "clusters": len(clusters),
        "members": sum(len(cluster.members) for cluster in clusters),
        "of three or more": sum(len(cluster.members) > 2 for cluster in clusters),
        "largest": max((len(cluster.members) for cluster in clusters), default=0),
        "pairs": len(pairs),
        "pairs of known groups": len(known_pairs),
        "of one group": right,
        "precision": round(right / max(1, len(known_pairs)), 3),
        "linked by anybody": round(linked_count / max(1, len(pairs)), 3),
    }


def describe(clusters: Sequence[Cluster], memory: Memory, seed: int) -> str:
    """Randomly drawn clusters in Markdown, with the beginning of each member and the reasons for it."""
    drawn = Random(seed).sample(list(clusters), min(DRAWN, len(clusters)))
    texts = memory.state.records(member.id for cluster in drawn for member in cluster.members)
    lines = [f"# {len(drawn)} of {len(clusters)} clusters, seed {seed}", ""]
    lines += ["For each member but the canonical one: does it report the same thing? yes / no / cannot tell", ""]
    for number, cluster in enumerate(drawn, 1):
        lines += [f"## {number}. {cluster.id}: {len(cluster.members)} threads of {cluster.people} people", ""]
        for member in cluster.members:
            thread = texts[member.id]
            assert isinstance(thread, Thread)
            is_canonical = " (canonical)" if member.id == cluster.canonical else ""
            lines += [f"### #{member.id}{is_canonical} {thread.title}", "", f"by {member.author}, {member.at:%Y-%m-%d}"]
            lines += [f"- {why}" for why in member.why]
            lines += ["", *(f"    {line}" for line in thread.body[:CHARS].splitlines()), ""]
    return "\n".join(lines)


def time_new_issues(memory: Memory, threads: Sequence[Thread]) -> Spread:
    """Milliseconds for comparing a new issue, after it was staged and indexed."""
    times, newest = [], max(thread.created_at for thread in threads)
    highest = max(thread.id for thread in threads if isinstance(thread.id, int))
    for turn, origin in enumerate(Random(1).sample(list(threads), NEW), 1):
        moment = newest + timedelta(minutes=turn)
        issue = replace(origin, id=highest + turn, author="newcomer", created_at=moment, updated_at=moment, comments=())
        memory.stage(Changes(records=(issue,)))
        memory.rarity(["a"])
        started = process_time()
        link_threads(memory, datetime.now(UTC), perf_counter, 1e9)
        times.append(1000 * (process_time() - started))
    return Spread.of(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=11_109)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--reading", type=Path)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    need_archives()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, options.store or Path(folder) / "store")


def open_memory(store: Path, threads: Sequence[Thread]) -> Memory:
    """Open a memory of these threads."""
    memory = Memory(FolderStore(store)).open()
    if not memory.state.manifest.threads:
        memory.stage(Changes(records=tuple(threads)))
        memory.commit("Remember")
    return memory


def measure(options: argparse.Namespace, store: Path) -> None:
    threads = threads_of(options.size)
    memory = open_memory(store, threads)
    compare(memory, options.seconds)
    memory.commit("Compare")
    links = memory.cluster_links()
    started = process_time()
    clusters = clusters_of(memory)
    print(json.dumps({"building, ms of CPU": _ms(process_time() - started), "threads with signs": len(links)}))
    groups, linked = groups_of(threads), linked_of(threads)
    entries = memory.entries(
        {key for entry in links.values() for key in (entry.id, *(link.to for link in entry.links))}
    )
    masked = build_clusters(without_mentions(links), entries, Opinions())
    print(json.dumps({"all signs": figures(clusters, groups, linked)}, indent=1))
    print(json.dumps({"texts alone": figures(masked, groups, linked)}, indent=1))
    print(json.dumps({"signs": Counter(link.sign for entry in links.values() for link in entry.links)}))
    if options.reading:
        options.reading.mkdir(parents=True, exist_ok=True)
        (options.reading / "reading.md").write_text(describe(clusters, memory, options.seed), encoding="utf-8")
        (options.reading / "reading-texts-alone.md").write_text(
            describe(masked, memory, options.seed), encoding="utf-8"
        )
    print("ms of CPU for a new issue:", time_new_issues(memory, threads))
    memory.close()


def compare(memory: Memory, seconds: float) -> None:
    """Compare threads for so many seconds, and print what that cost."""
    before, started, used, count = peak(), perf_counter(), process_time(), 0

    def tick(more: int) -> None:
        nonlocal count
        count += more
        if count % 500 == 0:
            print(f"{count:,} compared after {perf_counter() - started:.0f} s", flush=True)

    link_threads(memory, datetime.now(UTC), perf_counter, seconds, tick)
    wall, cpu = perf_counter() - started, process_time() - used
    print(json.dumps({"compared": count, "of": memory.state.manifest.threads, "seconds": round(wall, 1)}))
    costs = {"ms of CPU for each": _ms(cpu / max(1, count)), "peak MB": round(peak()), "before": round(before)}
    print(json.dumps(costs))


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def peak() -> float:
    """This process's peak memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
