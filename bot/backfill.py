"""Reading history into memory, in checkpoints, so that a run that has to stop loses nothing and a later one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.github.catch_up import News
from bot.github.errors import ForgeError, RateLimited
from bot.github.history import History
from bot.kept import LARGEST, Changes, Reading, Said
from bot.memory.memory import Memory
from bot.model import Kind, Record, Thread, ThreadId, Tombstone

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
class Read:
    """What a reading brought: the ids that it met, how many records of memory changed by it, and whether that is all.

    ``stopped`` is the fault that ended it early; without one, its time was over.
    """

    seen: set[ThreadId] = field(default_factory=set)
    changed: int = 0
    complete: bool = False
    stopped: ForgeError | None = None


@dataclass(slots=True)
class Pace:
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
    memory: Memory, history: History, pace: Pace, since: datetime | None, reading: Reading | None = None
) -> Read:
    """Remember everything that changed since then; a checkpoint is written every 1,000 threads or 60 seconds.

    With a ``reading`` memory keeps how far that has come; without one only the cursor moves. Faults of GitHub's end it
    and are in the result; what was read until then is written. Raises StoreError.
    """
    read = Read()

    def save() -> None:
        memory.commit(f"Checkpoint: {memory.size} threads")

    try:
        for news in _batches(history, pace, since, save):
            read.seen |= {record.id for record in news.records}
            owed = _owed(news, memory, pace)
            changes = Changes(records=news.records, said=owed, cursor=news.cursor, reading=_further(reading, news))
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


def _owed(news: News, memory: Memory, pace: Pace) -> tuple[Said, ...]:
    """The promise of an answer to each fresh issue among these, written with it: the run may end before it answers."""
    threads = (record for record in news.records if isinstance(record, Thread) and record.kind is Kind.ISSUE)
    fresh = [thread.id for thread in threads if thread.created_at > pace.now - pace.within]
    known = memory.said(fresh) if fresh else {}
    return tuple(Said(key, "pending", pace.now, "it was read as history") for key in fresh if key not in known)


def _batches(history: History, pace: Pace, since: datetime | None, save: Callable[[], None]) -> Iterator[News]:
    """The batches of history, and after a pause that GitHub asked for the next ones."""
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
    raise RateLimited("GitHub asked for a pause too often: a later run goes on from here")


def _further(reading: Reading | None, news: News) -> Reading | None:
    """How far these bring the reading; memory puts it to what it knows of it."""
    numbers = frozenset(record.id for record in news.records if isinstance(record.id, int))
    return replace(reading, upto=news.cursor or reading.upto, seen=numbers) if reading else None


def bury(memory: Memory, whole: Reading) -> int:
    """Put a tombstone where a whole reading did not find a thread of this number space any more. Returns how many.

    What changed since the reading began was remembered by another run, and is not gone.
    """
    gone: list[Record] = [
        Tombstone(record.id, whole.began)
        for record in memory.every_record()
        if isinstance(record, Thread)
        and isinstance(record.id, int)
        and record.kind is Kind.ISSUE
        and record.id not in whole.seen
        and record.id < LARGEST
        and record.revised_at < whole.began
    ]
    if gone:
        memory.stage(Changes(records=tuple(gone)))
    return len(gone)
