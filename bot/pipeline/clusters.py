"""Looks for the links that hold clusters together, in runs that nobody waits for: changed threads first, then older."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from bot.domain.changes import Changes
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Thread
from bot.memory.memory import Memory
from bot.pipeline.room import Room
from bot.recall.cluster_links import find_links

LINK_SECONDS = 20.0
"""How long a run compares threads. The next run continues."""

BATCH_SIZE = 100
"""Threads whose records are read together."""


class Clusters(Room):
    """Which issues report the same thing."""

    def look(self) -> None:
        run = self.run
        if self.facts.event.is_maintenance:
            link_threads(run.memory, run.now, run.clock.seconds, LINK_SECONDS)


def link_threads(
    memory: Memory,
    now: datetime,
    clock: Callable[[], float],
    seconds: float,
    tick: Callable[[int], None] = lambda _: None,
) -> int:
    """Stage the links of threads not compared yet, as far as time allows. Returns how many were compared.

    Nothing happens while the history is being read: a thread is compared with all older ones.
    """
    until, count = clock() + seconds, 0
    waiting = {} if memory.state.manifest.reading else memory.uncompared()
    known = list(waiting.values())
    while count < len(known) and clock() < until:
        links = _find_batch(known[count : count + BATCH_SIZE], memory, lambda: clock() >= until)
        count += len(links)
        memory.stage(Changes(links=tuple(replace(each, found_at=now) for each in links)))
        tick(len(links))
    return count


def _find_batch(known: list[ClusterLinks], memory: Memory, is_late: Callable[[], bool]) -> list[ClusterLinks]:
    """The links of the first of these threads, at least one. Those of a damaged record stay until it is read again."""
    records = memory.state.records([each.id for each in known])
    links: list[ClusterLinks] = []
    for before in known:
        if links and is_late():
            break
        record = records.get(before.id)
        links.append(find_links(record, memory, memory.state.repo) if isinstance(record, Thread) else before)
    return links
