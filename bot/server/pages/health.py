"""Checks the server: queue, disk, clock, token and workers, each fine or with a line that says why not.

The server is ready while it can store deliveries: once stored, they can wait for everything else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from bot.errors import WorldError
from bot.server.log import CHECK_FAILED
from bot.server.model import Instant
from bot.server.options import ServerOptions
from bot.server.storage.branches import describe_free_space
from bot.server.storage.heartbeats import APP_HEARTBEAT, OBSTACLE, WORKER_TIMEOUT, LastNotes, live_workers
from bot.server.storage.inbox import Inbox

RECEIVER_HEARTBEAT = "receiver"
"""The heartbeat that proves that the database accepts writes."""

MAX_CONFIRMATION_AGE = 2 * 3_600_000
"""Milliseconds after which GitHub's last answer to the App is too old."""

MAX_CLOCK_SKEW_SECONDS = 30
"""Seconds that our clock may be off before GitHub rejects our signature."""

MAX_QUEUE_WAIT = 2 * 3_600_000
"""Milliseconds after which a due delivery is overdue: retries and rate limits take an hour and a half."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. ``line`` says in a few words how things are, and what to do if they are not ``ok``.

    ``stores`` is False if nothing can be stored until the problem is fixed.
    """

    name: str
    ok: bool
    line: str
    stores: bool = True


def readiness_checks(inbox: Inbox, options: ServerOptions, now: Instant) -> list[Check]:
    """Run all checks: queue, disk, clock, token, workers, in this order. Never raises."""
    queue = _queue(inbox, options, now)
    try:
        heartbeats = inbox.heartbeats.all()
    except WorldError:
        unknown = "unknown while the database is unavailable"
        return [queue, _disk(options), *(Check(name, False, unknown) for name in ("clock", "token", "workers"))]
    return [queue, _disk(options), _clock(heartbeats), _token(heartbeats, now, options), _workers(heartbeats, now)]


def obstacles(heartbeats: LastNotes, now: Instant) -> list[str]:
    """Why live workers begin no run, for each that does not."""
    return [str(note[OBSTACLE]) for note in live_workers(heartbeats, now) if note.get(OBSTACLE)]


def refusal_reason(inbox: Inbox, options: ServerOptions) -> str:
    """Return why no more deliveries can be stored; "" if they can. Raises WorldError."""
    disk = _disk(options)
    if not disk.ok:
        return f"disk: {disk.line}"
    return "too many deliveries are waiting" if _waiting(inbox, options) >= options.backlog else ""


def _waiting(inbox: Inbox, options: ServerOptions) -> int:
    return inbox.counts(options.backlog, ["waiting"])["waiting"]


def _queue(inbox: Inbox, options: ServerOptions, now: Instant) -> Check:
    try:
        waiting, oldest = _waiting(inbox, options), inbox.oldest_waiting()
        inbox.heartbeats.store(RECEIVER_HEARTBEAT, {})
    except WorldError as error:
        return Check("queue", False, str(error), stores=False)
    if waiting >= options.backlog:
        line = f"{waiting:,} deliveries are waiting and no more are accepted: check that the workers are running"
        return Check("queue", False, line, stores=False)
    minutes = (now - oldest) // 60_000
    if oldest and now - oldest > MAX_QUEUE_WAIT:
        return Check(
            "queue",
            False,
            f"the oldest of {waiting:,} waiting deliveries arrived {minutes:,} minutes ago: check the workers",
        )
    return Check("queue", True, f"{waiting:,} waiting" if waiting else "nothing is waiting")


def _disk(options: ServerOptions) -> Check:
    has_room, line = describe_free_space(options.data)
    return Check("disk", has_room, line, stores=has_room)


def _clock(heartbeats: LastNotes) -> Check:
    ahead = heartbeats[APP_HEARTBEAT][1].get("ahead") if APP_HEARTBEAT in heartbeats else None
    if not isinstance(ahead, int):
        return Check("clock", True, "not compared with GitHub's yet")
    if abs(ahead) > MAX_CLOCK_SKEW_SECONDS:
        return Check("clock", False, f"{abs(ahead)} s {'behind' if ahead > 0 else 'ahead of'} GitHub's: correct it")
    return Check("clock", True, f"within {max(1, abs(ahead))} s of GitHub's")


def _token(heartbeats: LastNotes, now: Instant, options: ServerOptions) -> Check:
    if APP_HEARTBEAT not in heartbeats:
        return Check("token", False, "GitHub has not confirmed the App yet: check a worker's log")
    at, note = heartbeats[APP_HEARTBEAT]
    if fault := note.get("fault"):
        return Check("token", False, str(fault))
    if now - at > max(MAX_CONFIRMATION_AGE, 2 * options.sweep_minutes * 60_000):
        return Check(
            "token", False, f"GitHub last confirmed the App {(now - at) // 3_600_000} hours ago: check a worker's log"
        )
    return Check("token", True, f"authenticated as {note.get('slug') or 'the App'}")


def _workers(heartbeats: LastNotes, now: Instant) -> Check:
    count = len(live_workers(heartbeats, now))
    if not count:
        return Check("workers", False, "none is running: deliveries are kept until one starts")
    if blocked := obstacles(heartbeats, now):
        return Check("workers", False, f"{len(blocked)} of {count} begin no runs: {blocked[0]}")
    return Check("workers", True, f"{count} running")


class CachedChecks:
    """Runs the checks, one at a time and at most once in ``max_age`` milliseconds, however many callers ask.

    Each new problem is logged once, because some callers see only its name; but not that workers are missing while they
    start.
    """

    def __init__(
        self, run_checks: Callable[[Instant], list[Check]], clock: Callable[[], Instant], max_age: int = 2_000
    ) -> None:
        self._run_checks = run_checks
        self._clock = clock
        self._max_age = max_age
        self._lock = Lock()
        self._at: Instant = 0
        self._began = clock()
        self._results: list[Check] = []
        self._reported: dict[str, str] = {}

    def results(self) -> list[Check]:
        """Return the results, which may be a moment old."""
        with self._lock:
            now = self._clock()
            if not self._results or not 0 <= now - self._at < self._max_age:
                self._at, self._results = now, self._run_checks(now)
                starts = now - self._began < WORKER_TIMEOUT
                bad = (check for check in self._results if not check.ok and not (starts and check.name == "workers"))
                self._log_changes({check.name: check.line for check in bad})
            return self._results

    def _log_changes(self, problems: dict[str, str]) -> None:
        for name, line in problems.items():
            if name not in self._reported:
                log.warning("%s: %s: %s", CHECK_FAILED, name, line)
        for name in self._reported.keys() - problems.keys():
            log.info("check passes again: %s", name)
        self._reported = problems
