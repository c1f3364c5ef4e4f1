"""Reading history into memory, in checkpoints, so that a run that has to stop loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.github.catch_up import News
from bot.github.errors import ForgeError
from bot.github.history import History
from bot.kept import Changes
from bot.memory.memory import Memory
from bot.model import Kind, Record, Thread, ThreadId, Tombstone

CHECKPOINT_THREADS = 1_000
CHECKPOINT_SECONDS = 60.0
FIRST_SECONDS = 300.0
"""How long an event's run reads history when there is no memory yet; a rebuild by hand has no such limit."""


@dataclass(frozen=True, slots=True)
class Clock:
    """``seconds`` is a monotonic clock, ``tell`` shows progress to whoever watches."""

    seconds: Callable[[], float]
    tell: Callable[[str], None]


def backfill(
    memory: Memory, history: History, clock: Clock, since: datetime | None, limit: float | None
) -> set[ThreadId] | None:
    """Remember everything that changed since then; a checkpoint is written every 1,000 threads or 60 seconds.

    Returns the ids that were seen, or None when ``limit`` seconds were over before the end: the cursor then stands
    where the next run goes on. Raises ForgeError or StoreError; what was written until then stays.
    """
    started = saved = clock.seconds()
    seen: set[ThreadId] = set()
    waiting = 0
    for news in _until_trouble(memory, history, since):
        memory.stage(Changes(records=news.records, cursor=news.cursor))
        seen |= {record.id for record in news.records}
        waiting += len(news.records)
        now = clock.seconds()
        if waiting >= CHECKPOINT_THREADS or now - saved >= CHECKPOINT_SECONDS:
            memory.commit(f"Checkpoint: {memory.size} threads")
            waiting, saved = 0, now
        clock.tell(f"{len(seen):,} threads read, {memory.size:,} in memory, {now - started:.0f} s")
        if limit is not None and now - started > limit and not news.complete:
            memory.commit(f"Checkpoint: {memory.size} threads")
            return None
    memory.commit(f"Remember {memory.size} threads")
    return seen


def _until_trouble(memory: Memory, history: History, since: datetime | None) -> Iterator[News]:
    """The batches of history; when GitHub stops giving them, what was read so far is written first."""
    try:
        yield from history.since(since)
    except ForgeError:
        memory.commit(f"Checkpoint: {memory.size} threads")
        raise


def bury(memory: Memory, seen: set[ThreadId], now: datetime) -> int:
    """Put a tombstone where a full reading did not find a thread of this number space any more. Returns how many.

    ``now`` is when the reading began: what changed since then was remembered by another run, and is not gone.
    """
    gone: list[Record] = [
        Tombstone(record.id, now)
        for record in memory.every_record()
        if isinstance(record, Thread)
        and isinstance(record.id, int)
        and record.kind is Kind.ISSUE
        and record.id not in seen
        and record.revised_at < now
    ]
    if gone:
        memory.stage(Changes(records=tuple(gone)))
    return len(gone)
