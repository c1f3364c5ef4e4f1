"""Looks for the links that hold clusters together, in runs that nobody waits for: changed threads first, then older."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.changes import Changes
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Thread, ThreadId
from bot.memory.memory import Memory
from bot.pipeline.room import Room
from bot.recall.cluster_links import find_links

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Earlier than the links of any thread, so that stored links stay."""

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
    waiting = [] if memory.state.manifest.reading else list(memory.state.uncompared())
    while count < len(waiting) and clock() < until:
        batch = waiting[count : count + BATCH_SIZE]
        links = _find_batch([key for key, _ in batch], memory, lambda: clock() >= until)
        count += len(links)
        reached = [key for key, is_next in batch[: len(links)] if is_next]
        down_to: ThreadId | None = 1 if count == len(waiting) else reached[-1] if reached else None
        memory.stage(Changes(links=tuple(replace(each, found_at=now) for each in links), linked_to=down_to))
        tick(len(links))
    return count


def _find_batch(keys: list[ThreadId], memory: Memory, is_late: Callable[[], bool]) -> list[ClusterLinks]:
    """The links of the first of these threads, at least one. A damaged record has none until it is read again."""
    records = memory.state.records(keys)
    links: list[ClusterLinks] = []
    for key in keys:
        if links and is_late():
            break
        record = records.get(key)
        if isinstance(record, Thread):
            links.append(find_links(record, memory, memory.state.repo))
        else:
            links.append(ClusterLinks(key, record.revised_at if record else EPOCH))
    return links
