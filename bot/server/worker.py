"""The life of one worker: it holds its lease, takes over from dead workers, may lead, and drains when it stops."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.github.client import WRITE_GAP
from bot.server.clone_cache import CloneCache
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.leases import WorkerLeases
from bot.server.log import guarded
from bot.server.model import WORKER, Instant, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.queue import Dispatch
from bot.server.rate_limiter import RateLimiter

BEAT = 0.5
"""Seconds between two checks of our own lease and those of others."""

HEARTBEAT = 5.0
DRAIN = 8.0
"""Seconds in which runs have to end after a stop was requested; the process ends within ten."""

HANGING = 900.0
"""Seconds after which a run counts as hanging; a first reading of a repository takes at most five minutes."""

LOST = 70
"""The exit code of a worker that cannot vouch for itself (EX_SOFTWARE of sysexits.h). Others take its lanes over."""

log = logging.getLogger(__name__)


class RunSemaphore:
    """Limits how many runs go on at once; the others wait. ``clock`` is in seconds."""

    def __init__(self, jobs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = threading.BoundedSemaphore(jobs)
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[object, tuple[str, float]] = {}

    @contextmanager
    def taken(self, what: str) -> Iterator[None]:
        """Wait for a slot and keep it; ``what`` names the run if it hangs."""
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
        """How many slots are taken."""
        with self._lock:
            return len(self._began)

    def longest(self) -> tuple[str, float]:
        """The run that has taken the longest, and for how many seconds; ("", 0.0) without any."""
        with self._lock:
            what, began = min(self._began.values(), key=lambda taken: taken[1], default=("", self._clock()))
        return what, max(0.0, self._clock() - began)


class Ended(BaseException):
    """The process has to end at once with this code. No ``except Exception`` catches it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """Everything that runs need. ``stop`` is set when the process ends; ``slots`` limits the runs at once.

    ``write_gap``: seconds between two writes to GitHub.
    """

    options: ServerOptions
    inbox: Inbox
    tokens: TokenCache
    clones: CloneCache
    pace: RateLimiter
    slots: RunSemaphore
    own_login: str
    stop: threading.Event
    now: Callable[[], Instant]
    write_gap: float = WRITE_GAP


Run = Callable[[str, RepositoryKey, RunDependencies], None]
"""Does the run of a ticket in a lane, and never raises."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Everything that a worker needs. ``run`` never raises."""

    leases: WorkerLeases
    dispatch: Dispatch
    inbox: Inbox
    run: Callable[[str, RepositoryKey], None]
    slots: RunSemaphore


@dataclass(slots=True)
class LeaderTasks:
    """Tasks of the leader: runs ``task`` at once and then about every ``minutes``, in a thread."""

    task: Callable[[], object]
    minutes: float
    next_at: float = 0.0
    thread: threading.Thread | None = None

    def go(self, now: float) -> None:
        """Begin a round when it is due, unless the last one is still running."""
        if now < self.next_at or (self.thread is not None and self.thread.is_alive()):
            return
        self.next_at = now + self.minutes * 60 * random.uniform(0.9, 1.1)
        self.thread = threading.Thread(target=self._round, name="leader", daemon=True)
        self.thread.start()

    def _round(self) -> None:
        if line := guarded(self.task):
            log.warning("the resync failed: %s", line)


@dataclass(slots=True)
class Worker:
    """One worker process. ``parent``: id of the process that started it and has to stay alive; 0 for none."""

    setup: WorkerSetup
    leader_tasks: LeaderTasks
    stop: threading.Event
    parent: int = 0
    drain: float = DRAIN
    began: Instant = field(default_factory=lambda: time.time_ns() // 1_000_000)
    _heartbeat_at: float = 0.0

    def live(self) -> bool:
        """Work until ``stop``. Returns whether all runs ended in time. Raises `Ended` when the worker may not go on."""
        self.setup.leases.hold()
        self.setup.dispatch.start(self.setup.run)
        log.info("working", extra={"worker": self.setup.leases.name})
        while not self.stop.wait(BEAT):
            self._look()
        ended = self.setup.dispatch.stop(self.drain)
        if ended:  # there is nothing to take over
            guarded(lambda: self.setup.leases.mark_dead(self.setup.leases.name))
        log.info("drained" if ended else "some runs did not end in time: they will be run again", extra=self._name())
        return ended

    def _look(self) -> None:
        """One round: our own lease first, as a worker that may have lost it must not touch anything."""
        if not self.setup.leases.check():
            log.error("this worker has lost its lease: it ends", extra=self._name())
            raise Ended(LOST)
        what, seconds = self.setup.slots.longest()
        if seconds > HANGING:
            log.error("a run has hung for %d s: this worker ends", seconds, extra=self._name() | {"lane": what})
            raise Ended(LOST)
        if self.parent and os.getppid() != self.parent:
            log.warning("the parent process is gone: this worker drains", extra=self._name())
            self.stop.set()
            return
        for task in (self._take_over, self._lead, self._send_heartbeat):
            if line := guarded(task):
                log.warning("%s", line, extra=self._name())

    def _take_over(self) -> None:
        """Continue the tickets of dead workers. A lease that could not be released stays taken until the next try."""
        for name in self.setup.leases.dead():
            count = self.setup.dispatch.recover(name)
            self.setup.leases.mark_dead(name)
            level = logging.WARNING if count else logging.INFO
            log.log(level, "took over from a worker that ended", extra=self._name() | {"ended": name, "tickets": count})

    def _lead(self) -> None:
        if self.setup.leases.is_leader():
            self.leader_tasks.go(time.monotonic())

    def _send_heartbeat(self) -> None:
        """Write a heartbeat. If that works again, so do the writes that failed before."""
        now = time.monotonic()
        if now < self._heartbeat_at:
            return
        self._heartbeat_at = now + HEARTBEAT
        note = {"pid": os.getpid(), "began": self.began, "busy": self.setup.slots.busy}
        self.setup.inbox.heartbeat(f"{WORKER}{self.setup.leases.name}", note)
        if count := self.setup.dispatch.wake():
            log.warning("running tickets again whose end was not stored", extra=self._name() | {"tickets": count})

    def _name(self) -> dict[str, object]:
        return {"worker": self.setup.leases.name}
