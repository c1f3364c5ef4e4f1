"""Looks for what holds clusters together, in runs that nobody waits for: of changed threads, then of older ones."""

from __future__ import annotations

from collections.abc import Callable

from bot.domain.changes import Changes
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Thread, ThreadId
from bot.memory.memory import Memory
from bot.recall.cluster_links import find_links

LINK_SECONDS = 20.0
"""How long a run compares threads. The next one goes on."""

BATCH = 100
"""Threads whose records are read together."""


def link_threads(
    memory: Memory, clock: Callable[[], float], seconds: float, tick: Callable[[int], None] = lambda _: None
) -> int:
    """Stage the signs of the threads that are still to be compared, as far as the time allows. How many were compared.

    Nothing happens while the history is being read: a thread is compared with all older ones.
    """
    until, count = clock() + seconds, 0
    waiting = [] if memory.state.manifest.reading else list(memory.state.uncompared())
    for start in range(0, len(waiting), BATCH):
        if clock() >= until:
            return count
        batch = waiting[start : start + BATCH]
        _link(batch, memory, is_last=start + BATCH >= len(waiting))
        count += len(batch)
        tick(len(batch))
    return count


def _link(batch: list[tuple[ThreadId, bool]], memory: Memory, *, is_last: bool) -> None:
    records = memory.state.records(key for key, _ in batch)
    links = []
    for key, _ in batch:
        record = records.get(key)
        if isinstance(record, Thread):
            links.append(find_links(record, memory, memory.state.repo))
        elif record:
            links.append(ClusterLinks(key, record.revised_at))
    reached = [key for key, is_next in batch if is_next]
    down_to: ThreadId | None = 0 if is_last else reached[-1] if reached else None
    memory.stage(Changes(links=tuple(links), linked_to=down_to))
