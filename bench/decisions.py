"""Measures how many labelled decisions are found, and prints a sample of the found ones for people to check.

``python -m bench.decisions [--sample 60] [--seed 1] [--archive NAME]``, which needs the archives next to the checkout.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.archives import DATA, need_archives
from bot.domain.thread import Decision, Thread
from bot.domain.thread_json import thread_from_archive
from bot.reading.endings.decisions import decisions

_NEIGHBOURS = 160
_WORD = re.compile(r"\w+")


def read_archives(data: Path, *, labelled: bool = False) -> Iterator[tuple[str, Thread]]:
    """Every thread, or only those of labelled archives, once, with the name of the first archive that holds it."""
    paths = sorted((data / "threads").glob("*.jsonl.gz"))
    if not labelled:
        paths.append(data / "rust_pre2015" / "issues.jsonl.gz")
    seen: set[tuple[object, str]] = set()
    for path in paths:
        name = path.parent.name if path.name == "issues.jsonl.gz" else path.name.removesuffix(".jsonl.gz")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for thread in map(thread_from_archive, map(json.loads, lines)):
                if (thread.id, thread.title) not in seen:
                    seen.add((thread.id, thread.title))
                    yield name, thread


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def agrees(sentence: str, labelled: str) -> bool:
    """Whether one of two sentences contains the other, or most of its words: readers quote loosely."""
    left, right = Counter(words(sentence)), Counter(words(labelled))
    shorter = min(left.total(), right.total())
    return shorter > 0 and (left & right).total() >= 0.8 * shorter


def judged(data: Path, threads: dict[tuple[str, object], Thread]) -> Iterator[tuple[dict[str, Any], bool, bool]]:
    """Each label with a decision, whether the labelled sentence is found, and whether any is."""
    for label in map(json.loads, (data / "endings.jsonl").read_text(encoding="utf-8").splitlines()):
        labelled = label.get("decisions")
        if labelled:
            found_decisions = decisions(threads[label["archive"], label["id"]])
            yield (
                label,
                any(agrees(each.text, text) for each in found_decisions for text in labelled),
                bool(found_decisions),
            )


def recall(data: Path) -> tuple[int, int]:
    """For how many labelled threads the labelled decision is found, and how many there are."""
    threads = {(name, thread.id): thread for name, thread in read_archives(data, labelled=True)}
    hits = [hit for _, hit, _ in judged(data, threads)]
    return sum(hits), len(hits)


def print_recall(data: Path, threads: dict[tuple[str, object], Thread]) -> None:
    total = same = some = 0
    for label, hit, any_found in judged(data, threads):
        total, same, some = total + 1, same + hit, some + any_found
        print(f"{'ok  ' if hit else 'miss'} {label['archive']} #{label['id']}: {label['decisions'][0]:.90}")
    print(f"\nof {total} labelled threads: the labelled decision {same} ({same / total:.0%}), any {some}")


def neighbours(thread: Thread, decision: Decision) -> tuple[str, str]:
    """The text before and after a decision in its message."""
    text = " ".join((thread.body if decision.comment is None else thread.comments[decision.comment].text).split())
    at = text.find(decision.text[:40])
    end = at + len(decision.text)
    return text[max(0, at - _NEIGHBOURS) : max(0, at)], text[end : end + _NEIGHBOURS]


def print_sample(threads: dict[tuple[str, object], Thread], size: int, seed: int) -> None:
    """Print sentences drawn uniformly from all found ones, so that each archive has its share."""
    pool = [(name, thread, each) for (name, _), thread in threads.items() for each in decisions(thread)]
    counts = Counter(name for name, _, _ in pool)
    holding = Counter(name for name, _ in {(name, thread.id) for name, thread, _ in pool})
    for name, total in Counter(name for name, _ in threads).items():
        print(f"{name:20} {total:6} threads, {holding[name]:5} with a decision, {counts[name]:5} sentences")
    for number, (name, thread, each) in enumerate(random.Random(seed).sample(pool, min(size, len(pool))), 1):
        before, after = neighbours(thread, each)
        where = "opening" if each.comment is None else f"{each.comment + 1} of {len(thread.comments)}"
        print(f"\n{number}. {name} #{thread.id} {thread.title!s:.90}\n   {each.role}, {where}: … {before}")
        print(f"   >>> {each.text}\n   {after} …")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--archive", help="draw from this archive only")
    options = parser.parse_args()
    need_archives()
    threads = {(name, thread.id): thread for name, thread in read_archives(DATA)}
    print_recall(DATA, threads)
    if options.archive:
        threads = {key: thread for key, thread in threads.items() if key[0] == options.archive}
    print_sample(threads, options.sample, options.seed)


if __name__ == "__main__":
    main()
