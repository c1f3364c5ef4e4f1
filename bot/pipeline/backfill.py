"""Reading history into memory, in checkpoints, so that a run that has to stop loses nothing and a later one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.changes import AnswerRecord, Changes, HistoryProgress, Request
from bot.domain.thread import Record, Thread, ThreadId
from bot.github.errors import ForgeError, RateLimited
from bot.github.history import HistorySource
from bot.github.updates import Updates
from bot.memory.memory import Memory

CHECKPOINT_THREADS = 1_000
CHECKPOINT_SECONDS = 60.0
FIRST_SECONDS = 300.0
"""How long a run reads history that was not started for it: an event's while there is no memory, the schedule's while
a rebuild is not at its end."""

LONGEST_WAIT = timedelta(seconds=90)
"""A reading by hand waits for a limit that is over by then, such as a secondary one; for a longer one it stops."""

WAITS = 10
TOLD_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Clock:
    """``seconds`` is a monotonic clock, ``tell`` shows progress to whoever watches, ``sleep`` waits so many seconds."""

    seconds: Callable[[], float]
    tell: Callable[[str], None]
    sleep: Callable[[float], None]


@dataclass(slots=True)
class HistoryRead:
    """What a reading brought: the ids that it met, how many records of memory changed by it, and whether that is all.

    ``stopped`` is the fault that ended it early; without one, its time was over.
    """

    seen: set[ThreadId] = field(default_factory=set)
    changed: int = 0
    complete: bool = False
    stopped: ForgeError | None = None

    @property
    def why(self) -> str:
        """Why it is not all."""
        return str(self.stopped or "the history is longer than one run reads")


@dataclass(slots=True)
class Deadline:
    """How long a reading may take, and when it is time for a checkpoint and for a word of progress.

    ``now`` is when the run began, ``limit`` after how many seconds it stops: None for never, and it then waits for
    limits of GitHub's that are soon over. ``within``: how old an issue may be that is owed an answer.
    """

    clock: Clock
    now: datetime
    limit: float | None = None
    total: int | None = None
    within: timedelta = timedelta()
    _begun: float = field(init=False)
    _saved: float = field(init=False)
    _told: float = field(init=False)
    _unsaved: int = 0

    def __post_init__(self) -> None:
        self._begun = self._saved = self._told = self.clock.seconds()

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.elapsed > self.limit

    @property
    def elapsed(self) -> float:
        return self.clock.seconds() - self._begun

    def saves(self, threads: int) -> bool:
        """Whether it is time for a checkpoint, with so many threads more."""
        self._unsaved += threads
        is_due = self._unsaved >= CHECKPOINT_THREADS or self.clock.seconds() - self._saved >= CHECKPOINT_SECONDS
        if is_due:
            self._unsaved, self._saved = 0, self.clock.seconds()
        return is_due

    def tell(self, done: int) -> None:
        """Say how far it has come, now and then."""
        if self.clock.seconds() - self._told < TOLD_EVERY:
            return
        self._told = self.clock.seconds()
        words = f"{done:,} threads read, {self.elapsed:.0f} s"
        if self.total and done:
            left = self.elapsed * max(0, self.total - done) / done
            words = f"{done:,} of {self.total:,} threads read, {self.elapsed:.0f} s, about {left:.0f} s to go"
        self.clock.tell(words)

    def waits(self, limit: RateLimited) -> bool:
        """Wait until a limit is over, if that is worth it."""
        pause = (limit.until or datetime.max.replace(tzinfo=self.now.tzinfo)) - self.now
        pause -= timedelta(seconds=self.elapsed)
        if self.limit is not None or not -LONGEST_WAIT <= pause <= LONGEST_WAIT:
            return False
        seconds = max(0.0, pause.total_seconds()) + 1
        self.clock.tell(f"GitHub asks for a pause of {seconds:.0f} s")
        self.clock.sleep(seconds)
        return True


def backfill(
    memory: Memory,
    history: HistorySource,
    pace: Deadline,
    since: datetime | None,
    unheard: Callable[[Iterable[Record]], tuple[Request, ...]],
    reading: HistoryProgress | None = None,
) -> HistoryRead:
    """Remember everything that changed since then; a checkpoint is written every 1,000 threads or 60 seconds.

    ``unheard`` finds what is asked on threads; it is kept with them. With a ``reading`` memory keeps how far that has
    come, and that it was begun, so that a later run goes on with it even if nothing could be read; without one only the
    cursor moves. Faults of GitHub's end it and are in the result; what was read until then is written. Raises
    StoreError.
    """
    read = HistoryRead()
    if reading and memory.cursor:  # without a cursor the next run reads everything anyway
        memory.stage(Changes(reading=reading))

    def save() -> None:
        memory.commit(f"Checkpoint: {memory.size} threads")

    try:
        for news in _batches(history, pace, since, save):
            read.seen |= {record.id for record in news.records}
            owed, stored_requests = _owed(news, memory, pace), unheard(news.records)
            changes = Changes(news.records, owed, stored_requests, cursor=news.cursor, reading=_further(reading, news))
            read.changed += len(memory.stage(changes))
            read.complete = news.complete
            pace.total = pace.total or news.total
            pace.tell(len(read.seen))
            if pace.saves(len(news.records)):
                save()
            if pace.is_over:
                break
    except ForgeError as error:
        read.stopped = error
    memory.commit(f"Remember {memory.size} threads" if read.complete else f"Checkpoint: {memory.size} threads")
    return read


def _owed(news: Updates, memory: Memory, pace: Deadline) -> tuple[AnswerRecord, ...]:
    """The promise of an answer to each fresh issue among these, written with it: the run may end before it answers.

    What could not be read is promised too, so that it is asked for again.
    """
    threads = (record for record in news.records if isinstance(record, Thread) and record.kind.traits.is_suggested)
    ages = {thread.id: thread.created_at for thread in threads} | dict(news.unread)
    fresh = [key for key, created_at in ages.items() if created_at > pace.now - pace.within]
    known = memory.answers(fresh) if fresh else {}
    return tuple(AnswerRecord(key, "pending", pace.now, "it was read as history") for key in fresh if key not in known)


def _batches(
    history: HistorySource, pace: Deadline, since: datetime | None, save: Callable[[], None]
) -> Iterator[Updates]:
    for _ in range(WAITS):
        try:
            for news in history.since(since):
                yield news
                since = news.cursor or since
            return
        except RateLimited as error:
            save()
            if not pace.waits(error):
                raise
    raise RateLimited("GitHub asked for a pause too often", "a later run goes on from here")


def _further(reading: HistoryProgress | None, news: Updates) -> HistoryProgress | None:
    """How far these bring the reading; memory puts it to what it knows of it. What was listed was met, read or not."""
    return replace(reading, upto=news.cursor or reading.upto, seen=news.listed) if reading else None
