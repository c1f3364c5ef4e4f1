"""How right clusters are, and what they cost, on the development archive.

python -m tests.bench.bench_clusters [--size N] [--seconds N] [--reading FOLDER] [--seed N]

Pairs of one cluster are set against the groups that people's marks of duplicates make: once with all signs, once with
texts alone, so that no mark is seen. A ``--size`` beyond the archive tells it again with other names; with
``--seconds`` only the newest threads are compared, in that time. ``--reading`` writes 50 clusters for readers, drawn
with the seed.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from bot.domain.changes import Changes
from bot.domain.cluster import Cluster, ClusterLinks
from bot.domain.thread import Thread, ThreadId
from bot.evaluation.labels import marks
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.clusters import link_threads
from bot.recall.clusters import DUPLICATE, HEARD, NAMED, SAID, Opinions, build_clusters, clusters_of
from tests.bench.figures import Spread
from tests.bench.history import NOW, history
from tests.bench.resampled import Resampler

SPOKEN = frozenset({NAMED, DUPLICATE, SAID, HEARD})
DRAWN, CHARS = 50, 600
NEW = 30
"""New issues, each taken in by a run of its own."""


def threads_of(size: int) -> list[Thread]:
    """The archive, or where more are wanted than it has, the archive told again."""
    _, known, _ = history(size)
    return known if len(known) >= size else list(Resampler(known).threads(size, NOW))


def groups_of(threads: Sequence[Thread]) -> dict[ThreadId, ThreadId]:
    """Thread → the head of its group, for threads that people called duplicates, whichever way."""
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
    """The pairs of which one was linked in the other by anybody."""
    return {frozenset((mark.thread, mark.target)) for thread in threads for mark in marks(thread)}


def silent(links: Mapping[ThreadId, ClusterLinks]) -> dict[ThreadId, ClusterLinks]:
    """The signs without what people said."""
    kept = {key: tuple(link for link in one.links if link.sign not in SPOKEN) for key, one in links.items()}
    return {key: replace(links[key], links=found) for key, found in kept.items() if found}


def figures(
    clusters: Iterable[Cluster], groups: Mapping[ThreadId, ThreadId], linked: set[frozenset[ThreadId]]
) -> dict[str, object]:
    """Pairs within a cluster: ``known`` have two threads of known groups, ``right`` of one group."""
    clusters = list(clusters)
    pairs = [pair for one in clusters for pair in combinations([member.id for member in one.members], 2)]
    known = [pair for pair in pairs if pair[0] in groups and pair[1] in groups]
    right = sum(groups[one] == groups[other] for one, other in known)
    told = sum(
        (one in groups and groups.get(one) == groups.get(o)) or frozenset((one, o)) in linked for one, o in pairs
    )
    return {
        "clusters": len(clusters),
        "members": sum(len(one.members) for one in clusters),
        "of three or more": sum(len(one.members) > 2 for one in clusters),
        "largest": max((len(one.members) for one in clusters), default=0),
        "pairs": len(pairs),
        "pairs of known groups": len(known),
        "of one group": right,
        "precision": round(right / max(1, len(known)), 3),
        "linked by anybody": round(told / max(1, len(pairs)), 3),
    }


def written(clusters: Sequence[Cluster], memory: Memory, seed: int) -> str:
    """Clusters drawn at random, with the beginning of each member and what holds it."""
    drawn = Random(seed).sample(list(clusters), min(DRAWN, len(clusters)))
    texts = memory.state.records(one.id for cluster in drawn for one in cluster.members)
    lines = [f"# {len(drawn)} of {len(clusters)} clusters, seed {seed}", ""]
    lines += ["For each member but the canonical one: does it report the same thing? yes / no / cannot tell", ""]
    for number, cluster in enumerate(drawn, 1):
        lines += [f"## {number}. {cluster.id}: {len(cluster.members)} threads of {cluster.people} people", ""]
        for one in cluster.members:
            thread = texts[one.id]
            assert isinstance(thread, Thread)
            is_canonical = " (canonical)" if one.id == cluster.canonical else ""
            lines += [f"### #{one.id}{is_canonical} {thread.title}", "", f"by {one.author}, {one.at:%Y-%m-%d}"]
            lines += [f"- {why}" for why in one.why]
            lines += ["", *(f"    {line}" for line in thread.body[:CHARS].splitlines()), ""]
    return "\n".join(lines)


def each_new(memory: Memory, threads: Sequence[Thread]) -> Spread:
    """Milliseconds that a new issue costs: it is staged, the index takes it in, it is compared."""
    times, newest = [], max(thread.created_at for thread in threads)
    highest = max(thread.id for thread in threads if isinstance(thread.id, int))
    for turn, origin in enumerate(Random(1).sample(list(threads), NEW), 1):
        moment = newest + timedelta(minutes=turn)
        one = replace(origin, id=highest + turn, author="newcomer", created_at=moment, updated_at=moment, comments=())
        memory.stage(Changes(records=(one,)))
        memory.rarity(["a"])
        started = process_time()
        link_threads(memory, perf_counter, 1e9)
        times.append(1000 * (process_time() - started))
    return Spread.of(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=11_109)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--reading", type=Path)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given, given.store or Path(folder) / "store")


def opened(store: Path, threads: Sequence[Thread]) -> Memory:
    """A memory of these threads."""
    memory = Memory(FolderStore(store)).open()
    if not memory.state.manifest.threads:
        memory.stage(Changes(records=tuple(threads)))
        memory.commit("Remember")
    return memory


def measure(given: argparse.Namespace, store: Path) -> None:
    threads = threads_of(given.size)
    memory = opened(store, threads)
    compare(memory, given.seconds)
    memory.commit("Compare")
    links = memory.cluster_links()
    started = process_time()
    clusters = clusters_of(memory)
    print(json.dumps({"building, ms of CPU": _ms(process_time() - started), "threads with signs": len(links)}))
    groups, linked = groups_of(threads), linked_of(threads)
    entries = memory.entries({key for one in links.values() for key in (one.id, *(link.to for link in one.links))})
    masked = build_clusters(silent(links), entries, Opinions())
    print(json.dumps({"all signs": figures(clusters, groups, linked)}, indent=1))
    print(json.dumps({"texts alone": figures(masked, groups, linked)}, indent=1))
    print(json.dumps({"signs": Counter(link.sign for one in links.values() for link in one.links)}))
    if given.reading:
        given.reading.mkdir(parents=True, exist_ok=True)
        (given.reading / "reading.md").write_text(written(clusters, memory, given.seed), encoding="utf-8")
        (given.reading / "reading-texts-alone.md").write_text(written(masked, memory, given.seed), encoding="utf-8")
    print("ms of CPU for a new issue:", each_new(memory, threads))
    memory.close()


def compare(memory: Memory, seconds: float) -> None:
    """Compare threads for so many seconds, and tell what that cost."""
    before, started, used, count = peak(), perf_counter(), process_time(), 0

    def tick(more: int) -> None:
        nonlocal count
        count += more
        if count % 500 == 0:
            print(f"{count:,} compared after {perf_counter() - started:.0f} s", flush=True)

    link_threads(memory, perf_counter, seconds, tick)
    wall, cpu = perf_counter() - started, process_time() - used
    print(json.dumps({"compared": count, "of": memory.state.manifest.threads, "seconds": round(wall, 1)}))
    told = {"ms of CPU for each": _ms(cpu / max(1, count)), "peak MB": round(peak()), "before": round(before)}
    print(json.dumps(told))


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
