"""Reads history into memory with checkpoints, so that a run that stops loses nothing and a later one continues."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.changes import Changes, HistoryProgress, Request
from bot.domain.post import Post
from bot.domain.thread import Record, Thread, ThreadId
from bot.github.errors import ForgeError, RateLimited
from bot.github.history import HistorySource
from bot.github.updates import Updates
from bot.memory.memory import Memory

CHECKPOINT_THREADS = 1_000
CHECKPOINT_SECONDS = 60.0
HISTORY_SECONDS = 300.0
"""How long a run reads history if it was not started to do so: an event's run without a memory, or a scheduled run
while a rebuild is unfinished."""

MAX_PAUSE = timedelta(seconds=90)
"""How long bulk reading that was started by hand waits for a rate limit to end. If a limit lasts longer, it stops."""

MAX_ATTEMPTS = 10
PROGRESS_INTERVAL = 5.0


@dataclass(frozen=True, slots=True)
class Clock:
    """``seconds`` is a monotonic clock, ``tell`` shows progress, ``sleep`` waits that many seconds."""

    seconds: Callable[[], float]
    tell: Callable[[str], None]
    sleep: Callable[[float], None]


@dataclass(slots=True)
class HistoryRead:
    """The result of a reading: the ids read, how many records changed, and whether it is complete.

    ``total``: how many threads there were to read, None if unknown. ``stopped`` is the fault that ended it early; None
    if it ran out of time.
    """

    seen: set[ThreadId] = field(default_factory=set)
    total: int | None = None
    changed: int = 0
    complete: bool = False
    stopped: ForgeError | None = None

    @property
    def why(self) -> str:
        """Why it is not complete."""
        return str(self.stopped or "the history is longer than one run reads")


@dataclass(slots=True)
class Deadline:
    """How long a reading may take, and when a checkpoint or a progress line is due.

    ``now`` is the start of the run. The reading stops after ``limit`` seconds; with None it never does, and waits for
    short GitHub limits to end. ``max_age`` is the maximum age of an issue that is owed an answer.
    """

    clock: Clock
    now: datetime
    limit: float | None = None
    total: int | None = None
    max_age: timedelta = timedelta()
    _started_at: float = field(init=False)
    _saved_at: float = field(init=False)
    _shown_at: float = field(init=False)
    _unsaved: int = 0

    def __post_init__(self) -> None:
        self._started_at = self._saved_at = self._shown_at = self.clock.seconds()

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.elapsed > self.limit

    @property
    def elapsed(self) -> float:
        return self.clock.seconds() - self._started_at

    def is_checkpoint_due(self, threads: int) -> bool:
        """Whether a checkpoint is due after ``threads`` more threads."""
        self._unsaved += threads
        is_due = self._unsaved >= CHECKPOINT_THREADS or self.clock.seconds() - self._saved_at >= CHECKPOINT_SECONDS
        if is_due:
            self._unsaved, self._saved_at = 0, self.clock.seconds()
        return is_due

    def show_progress(self, done: int) -> None:
        """Show the progress, at most every PROGRESS_INTERVAL seconds."""
        if self.clock.seconds() - self._shown_at < PROGRESS_INTERVAL:
            return
        self._shown_at = self.clock.seconds()
        line = f"{done:,} threads read, {self.elapsed:.0f} s"
        if self.total and done:
            left = self.elapsed * max(0, self.total - done) / done
            line = f"{done:,} of {self.total:,} threads read, {self.elapsed:.0f} s, about {left:.0f} s to go"
        self.clock.tell(line)

    def wait_for(self, limit: RateLimited) -> bool:
        """Wait for the limit to end, if that is soon. Returns whether it waited."""
        pause = (limit.until or datetime.max.replace(tzinfo=self.now.tzinfo)) - self.now
        pause -= timedelta(seconds=self.elapsed)
        if self.limit is not None or not -MAX_PAUSE <= pause <= MAX_PAUSE:
            return False
        seconds = max(0.0, pause.total_seconds()) + 1
        self.clock.tell(f"GitHub asks for a pause of {seconds:.0f} s")
        self.clock.sleep(seconds)
        return True


def backfill(
    memory: Memory,
    history: HistorySource,
    deadline: Deadline,
    since: datetime | None,
    find_requests: Callable[[Iterable[Record]], tuple[Request, ...]],
    reading: HistoryProgress | None = None,
) -> HistoryRead:
    """Remember everything that changed since then, with a checkpoint every 1,000 threads or 60 seconds.

    ``find_requests`` finds the requests to store with the threads. With a ``reading``, memory keeps its progress from
    the start, so that a later run continues even if nothing could be read; without one only the cursor moves. A GitHub
    fault ends the reading and is in the result; everything read before is written. Raises StoreError.
    """
    read = HistoryRead()
    if reading and memory.state.manifest.cursor:  # without a cursor the next run reads everything anyway
        memory.stage(Changes(reading=reading))

    def save() -> None:
        memory.commit(f"Checkpoint: {memory.state.manifest.threads} threads")

    try:
        for updates in _batches(history, deadline, since, save):
            read.seen |= {record.id for record in updates.records}
            posts, stored_requests = _promised_comments(updates, memory, deadline), find_requests(updates.records)
            changes = Changes(
                updates.records, posts, stored_requests, cursor=updates.cursor, reading=_advance(reading, updates)
            )
            read.changed += len(memory.stage(changes))
            read.complete = updates.complete
            read.total = deadline.total = deadline.total or updates.total
            deadline.show_progress(len(read.seen))
            if deadline.is_checkpoint_due(len(updates.records)):
                save()
            if deadline.is_over:
                break
    except ForgeError as error:
        read.stopped = error
    verb = "Remember" if read.complete else "Checkpoint:"
    memory.commit(f"{verb} {memory.state.manifest.threads} threads")
    return read


def _promised_comments(updates: Updates, memory: Memory, deadline: Deadline) -> tuple[Post, ...]:
    """Promises of comments on the fresh issues among these, stored with them, as the run may end before it answers.

    Issues that could not be read get one too, so that they are fetched again.
    """
    threads = (record for record in updates.records if isinstance(record, Thread) and record.kind.traits.is_answered)
    ages = {thread.id: thread.created_at for thread in threads} | dict(updates.unread)
    fresh = [key for key, created_at in ages.items() if created_at > deadline.now - deadline.max_age]
    known = memory.state.comments(fresh) if fresh else {}
    return tuple(
        Post(key, "pending", deadline.now, reason="it was read as history") for key in fresh if key not in known
    )


def _batches(
    history: HistorySource, deadline: Deadline, since: datetime | None, save: Callable[[], None]
) -> Iterator[Updates]:
    for _ in range(MAX_ATTEMPTS):
        try:
            for updates in history.since(since):
                yield updates
                since = updates.cursor or since
            return
        except RateLimited as error:
            save()
            if not deadline.wait_for(error):
                raise
    raise RateLimited("GitHub asked for a pause too often", "a later run continues from here")


def _advance(reading: HistoryProgress | None, updates: Updates) -> HistoryProgress | None:
    """The progress after these updates; memory adds it to what it has. Every listed issue counts as read."""
    return replace(reading, upto=updates.cursor or reading.upto, seen=updates.listed) if reading else None
