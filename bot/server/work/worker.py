"""The life of one worker: it claims keys, works on each with a lease that it renews, and drains when it stops."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from bot.errors import WorldError
from bot.server.log import run_guarded
from bot.server.model import WORKER_PREFIX, Lease, Note, RepositoryKey
from bot.server.storage.heartbeats import OBSTACLE
from bot.server.storage.inbox import Inbox
from bot.server.storage.queue import RENEWAL_INTERVAL, SLOW_RUN, ClaimRules

CHECK_INTERVAL = 0.5
"""Seconds between two checks of the parent process and of hanging runs."""

OUTAGE_GRACE = 15.0
"""Seconds after a start or an outage of the database in which a worker takes over no lease: all leases ran out during
the outage, and their workers need a moment to renew them."""

SLOW_CALL = 5.0
"""Seconds after which an answer of the database counts as an outage."""

GRACE_SECONDS = 1.0
"""Seconds for a run to end after its results are stored."""

HEARTBEAT_INTERVAL = 5.0
"""Seconds between two heartbeats."""

POLL_INTERVAL = 0.25
"""Seconds between two checks for work. PostgreSQL's notifications would save half of that; no pooler passes them on."""

RETRY_SECONDS = 5.0
"""Seconds until the next claim after one that failed."""

DRAIN_SECONDS = 8.0
"""Seconds in which runs have to end after a stop was requested; the process ends within ten."""

HANG_TIMEOUT = 900.0
"""Seconds after which a run counts as hanging; a run reads a history for a minute."""

EXIT_WORK_ABANDONED = 70
"""The exit code of a worker that may have lost a lease, or whose run hangs (EX_SOFTWARE of sysexits.h). Others take its
keys over."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class WorkerExit(BaseException):
    """The process has to end at once with this code. No ``except Exception`` catches it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Task:
    """Something that one worker does about every ``minutes``, while runs go on."""

    call: Callable[[], object]
    minutes: float


@dataclass(slots=True)
class Worker:
    """One worker process, which has at most ``jobs`` runs at once, and as many slow ones.

    A run gives its place back after ``slow_seconds``, so that a GitHub that hangs for some repositories does not stop
    the others. Of all places, an installation has at most three quarters. A key whose last run was slow is claimed only
    while less than half of the places for slow ones are taken.

    ``run`` handles a lease, and never raises. ``tasks`` are by key. ``parent``: id of the process that started
    it and has to stay alive; 0 for none. ``alive``: a file that it touches as long as its loop and all its threads are
    alive. ``tells`` is added to its heartbeats, and so is ``obstacle``, which returns why no run may begin now. It ends
    when another worker has taken over one of its leases, and when a run takes longer than ``hang_timeout`` seconds.
    """

    inbox: Inbox
    run: Callable[[Lease], None]
    stop: threading.Event
    jobs: int = 1
    tasks: Mapping[str, Task] = field(default_factory=dict)
    parent: int = 0
    drain: float = DRAIN_SECONDS
    alive: Path | None = None
    tells: Callable[[], Note] = dict
    obstacle: Callable[[], str] = str
    renewal_interval: float = RENEWAL_INTERVAL
    outage_grace: float = OUTAGE_GRACE
    slow_seconds: float = SLOW_RUN / 1000
    hang_timeout: float = HANG_TIMEOUT
    retry_seconds: float = RETRY_SECONDS
    _held: dict[Lease, float] = field(default_factory=dict)
    _marked: set[Lease] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _claiming: threading.Lock = field(default_factory=threading.Lock)
    _place_is_free: threading.Event = field(default_factory=threading.Event)
    _heartbeat_at: float = 0.0
    _renewed_at: float = 0.0
    _takes_over_from: float = 0.0

    @property
    def name(self) -> str:
        return self.inbox.worker

    @property
    def busy(self) -> int:
        with self._lock:
            return len(self._held)

    def run_until_stopped(self) -> bool:
        """Work until ``stop``. Returns whether all runs ended in time. Raises `WorkerExit` when it must not go on."""
        threads = [threading.Thread(target=self._work, name=f"run-{n}", daemon=True) for n in range(2 * self.jobs)]
        self._takes_over_from = time.monotonic() + self.outage_grace
        for thread in threads:
            thread.start()
        log.info("working", extra=self._log_fields())
        while not self.stop.wait(CHECK_INTERVAL):
            self._tick()
            if self.alive and all(thread.is_alive() for thread in threads):
                self.alive.touch()
        until = time.monotonic() + self.drain
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        ended = not any(thread.is_alive() for thread in threads)
        if line := run_guarded(self.inbox.abandon):
            log.warning("leases could not be released; they will expire: %s", line, extra=self._log_fields())
        log.info(
            "drained" if ended else "some runs did not end in time: they will be run again", extra=self._log_fields()
        )
        return ended

    def _work(self) -> None:
        """Do one run after the other. One thread at a time looks for work."""
        while not self.stop.is_set():
            with self._claiming:
                lease = self._wait_for_lease()
                if lease is None:
                    return
                with self._lock:
                    self._held[lease] = time.monotonic()
            if lease.key not in self.tasks:
                self._run_leased(lease, self.run)
                self._place_is_free.set()
                continue
            # Runs do not wait for a task.
            threading.Thread(target=self._run_leased, args=(lease, self._run_task), name=lease.key, daemon=True).start()

    def _wait_for_lease(self) -> Lease | None:
        """Wait for work; None when the worker stops."""
        last_reason = ""
        while not self.stop.is_set():
            reason = self.obstacle()
            if not reason:
                rules = self._claim_rules(time.monotonic())
                try:
                    lease = self._ask(partial(self.inbox.queue.claim, self.name, rules)) if rules else None
                except WorldError as error:
                    reason = str(error)
                else:
                    if lease:
                        return lease
                    self._place_is_free.wait(POLL_INTERVAL)
                    self._place_is_free.clear()
            if reason and reason != last_reason:
                log.warning("no work can be claimed: %s", reason, extra=self._log_fields())
            last_reason = reason
            if reason:
                self.stop.wait(self.retry_seconds)
        return None

    def _claim_rules(self, now: float) -> ClaimRules | None:
        """What may be claimed now; None if all places are taken."""
        with self._lock:
            runs = [(lease, self._is_slow(lease, now)) for lease in self._held if lease.key not in self.tasks]
            held = frozenset(lease.id for lease in self._held)
        slow = sum(is_slow for _, is_slow in runs)
        if len(runs) - min(slow, self.jobs) >= self.jobs:
            return None
        shares = Counter(RepositoryKey.of(lease.key).installation for lease, _ in runs)
        return ClaimRules(
            takes_slow=slow < max(1, self.jobs // 2),
            takes_over=now >= self._takes_over_from,
            full=frozenset(key for key, count in shares.items() if count >= self.jobs + self.jobs // 2),
            held=held,
        )

    def _is_slow(self, lease: Lease, now: float) -> bool:
        return lease.is_slow or now - self._held[lease] >= self.slow_seconds

    def _ask(self, call: Callable[[], T]) -> T:
        """Call the database, and note an outage."""
        began, answered = time.monotonic(), False
        try:
            answer = call()
            answered = time.monotonic() - began < SLOW_CALL
            return answer
        finally:
            if not answered:
                self._takes_over_from = time.monotonic() + self.outage_grace

    def _run_leased(self, lease: Lease, work: Callable[[Lease], None]) -> None:
        try:
            work(lease)
        finally:
            with self._lock:
                del self._held[lease]
                self._marked.discard(lease)

    def _run_task(self, lease: Lease) -> None:
        task = self.tasks[lease.key]
        if line := run_guarded(task.call):
            log.warning("%s failed: %s", lease.key, line, extra=self._log_fields())
        pause = 60 * task.minutes * random.uniform(0.9, 1.1)
        if line := run_guarded(lambda: self.inbox.give_back(lease, pause)):
            log.warning("%s will be repeated soon: %s", lease.key, line, extra=self._log_fields())

    def _tick(self) -> None:
        """One round: the leases first, as a worker that may have lost one must not touch anything."""
        now = time.monotonic()
        if now >= self._renewed_at:
            self._renewed_at = now + self.renewal_interval
            self._renew_leases(now)
        lease, seconds = self._longest_run(now)
        if lease and seconds > self.hang_timeout:
            self._end_hung(lease, seconds)
        if self.parent and os.getppid() != self.parent:
            log.warning("the parent process is gone: this worker drains", extra=self._log_fields())
            self.stop.set()
            return
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + HEARTBEAT_INTERVAL
            if line := run_guarded(lambda: self._send_heartbeat(now)):
                log.warning("%s", line, extra=self._log_fields())

    def _renew_leases(self, now: float) -> None:
        """Renew all leases. One that ran out during an outage is still ours, unless another worker took it."""
        with self._lock:
            held = {lease.id: lease for lease in self._held}
        if line := run_guarded(lambda: self._renew_or_end(held)):
            self._renewed_at = now + 1.0
            log.warning("the leases could not be renewed: %s", line, extra=self._log_fields())

    def _renew_or_end(self, held: Mapping[str, Lease]) -> None:
        lost = self._ask(lambda: self.inbox.queue.renew(self.name, list(held)))
        if lost:
            time.sleep(GRACE_SECONDS)
        with self._lock:
            keys = sorted(held[each].key for each in lost if held[each] in self._held)
        if keys:
            log.error("other workers have taken over %s: this worker exits", ", ".join(keys), extra=self._log_fields())
            raise WorkerExit(EXIT_WORK_ABANDONED)

    def _mark_slow_runs(self, now: float) -> None:
        with self._lock:
            runs = [lease for lease in self._held if lease.key not in self.tasks and self._is_slow(lease, now)]
            new = [lease for lease in runs if lease not in self._marked]
            self._marked.update(new)
        for lease in new:
            self._ask(partial(self.inbox.queue.mark_slow, lease))

    def _longest_run(self, now: float) -> tuple[Lease | None, float]:
        """The run that has taken the longest, and for how many seconds; (None, 0.0) without any."""
        with self._lock:
            runs = {lease: began for lease, began in self._held.items() if lease.key not in self.tasks}
        lease = min(runs, key=runs.__getitem__, default=None)
        return lease, now - runs[lease] if lease else 0.0

    def _end_hung(self, lease: Lease, seconds: float) -> NoReturn:
        """End this process, as nothing else ends a thread. That counts against the run that hangs, not the others."""
        fields = self._log_fields() | {"repository": lease.key}
        log.error("a run has hung for %d s: this worker exits", seconds, extra=fields)
        if line := run_guarded(lambda: self.inbox.blame(lease)) or run_guarded(self.inbox.abandon):
            log.warning("leases could not be released; they will expire: %s", line, extra=fields)
        raise WorkerExit(EXIT_WORK_ABANDONED)

    def _send_heartbeat(self, now: float) -> None:
        self._ask(lambda: self.inbox.queue.ensure(self.tasks))
        self._mark_slow_runs(now)
        obstacle = self.obstacle()
        note = {"pid": os.getpid(), "busy": self.busy, **self.tells()}
        note |= {OBSTACLE: obstacle} if obstacle else {}
        self.inbox.heartbeats.store(f"{WORKER_PREFIX}{self.name}", note)

    def _log_fields(self) -> dict[str, object]:
        return {"worker": self.name}
