"""Looks for what holds clusters together, in runs that nobody waits for: of changed threads, then of older ones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from bot.domain.changes import Changes
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Thread, ThreadId
from bot.memory.memory import Memory
from bot.recall.cluster_links import find_links

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Earlier than the signs of any thread, so that those that are stored stay."""

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
    while count < len(waiting) and clock() < until:
        batch = waiting[count : count + BATCH]
        links = _find([key for key, _ in batch], memory, lambda: clock() >= until)
        count += len(links)
        reached = [key for key, is_next in batch[: len(links)] if is_next]
        down_to: ThreadId | None = 0 if count == len(waiting) else reached[-1] if reached else None
        memory.stage(Changes(links=tuple(links), linked_to=down_to))
        tick(len(links))
    return count


def _find(keys: list[ThreadId], memory: Memory, is_late: Callable[[], bool]) -> list[ClusterLinks]:
    """The signs of the first of these threads, at least of one. A damaged record has none until it is read again."""
    records = memory.state.records(keys)
    found: list[ClusterLinks] = []
    for key in keys:
        if found and is_late():
            break
        record = records.get(key)
        if isinstance(record, Thread):
            found.append(find_links(record, memory, memory.state.repo))
        else:
            found.append(ClusterLinks(key, record.revised_at if record else LONG_AGO))
    return found
