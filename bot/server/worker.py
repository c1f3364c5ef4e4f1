"""What turns are made with, and what they are made into: the seam between the worker and its work."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.server.database import machine_clock
from bot.server.health import WORKER
from bot.server.model import Dispatch, Guard, Inbox, Instant, RepositoryKey, Tickets, Tokens
from bot.server.options import ServerOptions


@dataclass(frozen=True, slots=True)
class WorkerDependencies:
    """What turns are made with. ``stop`` is set when the process ends; ``slots`` is how many may work at once."""

    options: ServerOptions
    inbox: Inbox
    tickets: Tickets
    tokens: Tokens
    own_login: str
    slots: RunSemaphore
    stop: threading.Event
    guarded: Guarded
    clock: Callable[[], Instant] = machine_clock


@dataclass(frozen=True, slots=True)
class RunFunctions:
    """``turn`` does the turn of a ticket in a lane, and never raises; ``forget`` removes what is on disk of a lane."""

    turn: Callable[[str, RepositoryKey], None]
    forget: Callable[[RepositoryKey], None]


Turns = Callable[[WorkerDependencies], RunFunctions]


# How many turns may work at once in one worker, and for how long the longest of them has.


HANGING = 900.0
"""Seconds after which a turn has come to a stop; a first reading of a repository takes five minutes at most."""


class RunSemaphore:
    """So many turns at once; the others wait. ``clock`` is in seconds."""

    def __init__(self, jobs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = threading.BoundedSemaphore(jobs)
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[object, tuple[str, float]] = {}

    @contextmanager
    def taken(self, what: str) -> Iterator[None]:
        """Wait for a slot and keep it; ``what`` is shown of the one that hangs."""
        key = object()
        with self._free:
            with self._lock:
                self._began[key] = (what, self._clock())
            try:
                yield
            finally:
                with self._lock:
                    del self._began[key]

    @property
    def busy(self) -> int:
        """How many are taken."""
        with self._lock:
            return len(self._began)

    def longest(self) -> tuple[str, float]:
        """What has been at work for the longest time, and for how many seconds; ("", 0.0) when nothing is."""
        with self._lock:
            what, began = min(self._began.values(), key=lambda taken: taken[1], default=("", self._clock()))
        return what, max(0.0, self._clock() - began)


# The life of one worker: it holds its place, takes over from the dead, sweeps if it leads, and drains when told to.


BEAT = 0.5
"""Seconds between two looks at ourselves and the others."""

PULSE = 5.0
DRAIN = 8.0
"""Seconds that turns have to end in after we were told to stop; within ten all is over."""

LOST = 70
"""The exit code of a worker that cannot vouch for itself (EX_SOFTWARE of sysexits.h). Others take its lanes over."""

Guarded = Callable[[Callable[[], object]], str]
log = logging.getLogger(__name__)


class Ended(BaseException):
    """This process has to end at once, with the code. No handler of errors holds it up."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker works with. ``run`` does a turn and never raises; ``guarded`` makes a line of what does."""

    guard: Guard
    dispatch: Dispatch
    inbox: Inbox
    run: Callable[[str, RepositoryKey], None]
    slots: RunSemaphore
    guarded: Guarded


@dataclass(slots=True)
class LeaderTasks:
    """What only the worker that leads does: ``chore``, at once and then about every ``minutes``, in a thread."""

    chore: Callable[[], object]
    minutes: float
    guarded: Guarded
    next_at: float = 0.0
    thread: threading.Thread | None = None

    def go(self, now: float) -> None:
        """Begin a round when it is time, unless the last one is still under way."""
        if now < self.next_at or (self.thread is not None and self.thread.is_alive()):
            return
        self.next_at = now + self.minutes * 60 * random.uniform(0.9, 1.1)
        self.thread = threading.Thread(target=self._round, name="rounds", daemon=True)
        self.thread.start()

    def _round(self) -> None:
        if line := self.guarded(self.chore):
            log.warning("what was missed could not be looked for: %s", line)


@dataclass(slots=True)
class Worker:
    """One worker process. ``parent``: the process id of who started it and has to live, 0 for nobody."""

    post: WorkerSetup
    rounds: LeaderTasks
    stop: threading.Event
    parent: int = 0
    drain: float = DRAIN
    began: Instant = field(default_factory=lambda: time.time_ns() // 1_000_000)
    _pulse_at: float = 0.0

    def live(self) -> bool:
        """Work until ``stop``; whether all that was begun ended in time. Raises `Ended` when it may not go on."""
        self.post.guard.hold()
        self.post.dispatch.start(self.post.run)
        log.info("working", extra={"worker": self.post.guard.name})
        while not self.stop.wait(BEAT):
            self._look()
        ended = self.post.dispatch.stop(self.drain)
        if ended:  # there is nothing to take over
            self.post.guarded(lambda: self.post.guard.mark_dead(self.post.guard.name))
        log.info("drained" if ended else "some turns did not end in time: they are begun anew", extra=self._told())
        return ended

    def _look(self) -> None:
        """One beat: ourselves first, as who is not sure of its place must touch nothing."""
        if not self.post.guard.check():
            log.error("this worker has lost its place: it ends", extra=self._told())
            raise Ended(LOST)
        what, seconds = self.post.slots.longest()
        if seconds > HANGING:
            log.error("a turn has hung for %d s: this worker ends", seconds, extra=self._told() | {"lane": what})
            raise Ended(LOST)
        if self.parent and os.getppid() != self.parent:
            log.warning("who started this worker is gone: it drains", extra=self._told())
            self.stop.set()
            return
        for task in (self._take_over, self._sweep, self._pulse_and_rouse):
            if line := self.post.guarded(task):
                log.warning("%s", line, extra=self._told())

    def _take_over(self) -> None:
        """What dead workers had begun goes on; a place that was not given back stays taken and is tried again."""
        for name in self.post.guard.dead():
            count = self.post.dispatch.recover(name)
            self.post.guard.mark_dead(name)
            level = logging.WARNING if count else logging.INFO
            log.log(level, "took over from a worker that ended", extra=self._told() | {"ended": name, "tickets": count})

    def _sweep(self) -> None:
        if self.post.guard.is_leader():
            self.rounds.go(time.monotonic())

    def _pulse_and_rouse(self) -> None:
        """Say that we live; where that can be written down again, so can what could not be before."""
        now = time.monotonic()
        if now < self._pulse_at:
            return
        self._pulse_at = now + PULSE
        note = {"pid": os.getpid(), "began": self.began, "busy": self.post.slots.busy}
        self.post.inbox.heartbeat(f"{WORKER}{self.post.guard.name}", note)
        if count := self.post.dispatch.wake():
            log.warning("tickets whose end was not written down run again", extra=self._told() | {"tickets": count})

    def _told(self) -> dict[str, object]:
        return {"worker": self.post.guard.name}
