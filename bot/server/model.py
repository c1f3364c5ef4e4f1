"""The values of the webhook server: lanes, deliveries, runs and what became of them. No text of an issue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from bot.errors import WorldError
from bot.github.events import Event

Instant = int
"""Milliseconds since 1970, UTC; 0 for never."""

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000

State = Literal["waiting", "working", "done", "dead", "dropped"]

_LANE = re.compile(r"(0|[1-9][0-9]*)-(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, order=True)
class RepositoryKey:
    """One repository within one installation, by GitHub's numbers: what runs one after another.

    ``repository`` 0 is the installation's own lane.
    """

    installation: int
    repository: int

    @property
    def key(self) -> str:
        """The lane as text: partition of the queue, folder of the clone, key of the token."""
        return f"{self.installation}-{self.repository}"

    @classmethod
    def of(cls, key: str) -> RepositoryKey:
        """The lane with this key. Raises ValueError for anything that is none."""
        found = _LANE.fullmatch(key)
        if found is None:
            raise ValueError(f"{key!r} is no lane")
        return cls(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is kept of a delivery: ids, and what `Event` needs to know where to look.

    ``id`` is "APP:GUID", one of our own making "APP:catch-up-LANE-NNN". ``event`` has no ``comment_author``: who
    wrote what is not kept. ``name`` is "owner/name" as the payload says it, which is shown, and never used to reach the
    repository. ``request`` is in every log line about it. ``extra`` is for an installation's own lane only:
    ("added", "17,18"), ("account", "octo-org").
    """

    id: str
    lane: RepositoryKey
    event: Event
    name: str = ""
    private: bool = True
    received_at: Instant = 0
    request: str = ""
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Answered with an error. ``status`` is 400, 403, 405, 408, 411, 413, 415 or 503."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Answered with 202 and not kept.

    ``why`` is counted: "unknown event", "our own comment", "ping", "not the default branch".
    """

    why: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A row of the inbox. ``seq`` is the order of arrival.

    ``attempts``: tries that failed and count. ``begun``: how often it was begun since it last ended, so 1 or more
    while it waits means that a worker died with it. ``turn`` is the run that has it, or had it last. ``matches`` are
    issues that were shown, each with its similarity in 0..1; ``nearest`` those most like it, shown or not, each
    with why too: which kinds of reasons, and none of their words.
    """

    seq: int
    id: str
    lane: RepositoryKey
    event: Event
    name: str
    private: bool
    state: State
    received_at: Instant
    attempts: int = 0
    begun: int = 0
    next_at: Instant = 0
    finished_at: Instant = 0
    turn: str = ""
    reason: str = ""
    said: str = ""
    url: str = ""
    matches: tuple[tuple[int, float], ...] = ()
    nearest: tuple[tuple[int, float, str], ...] = ()
    request: str = ""
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What one run has to do, oldest first.

    ``id`` is new for each beginning: whoever began before and lost the lane cannot end it.
    """

    id: str
    ticket: str
    lane: RepositoryKey
    deliveries: tuple[Delivery, ...]
    began_at: Instant


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a delivery.

    "waiting" is tried again at ``next_at``; ``counts``: the try counts towards the last one.
    """

    seq: int
    state: State
    reason: str
    next_at: Instant = 0
    counts: bool = True
    said: str = ""
    url: str = ""
    matches: tuple[tuple[int, float], ...] = ()
    nearest: tuple[tuple[int, float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run leaves beside its results: stages in seconds, times of its pushes, counts of requests.

    ``notes`` are lines of ours, with no text of an issue. ``rate_left`` is -1 where GitHub did not say. ``cursor`` is
    how far memory has read. ``requeue_after``: when to look again, 0 for when something happens; ``backoff``: how long
    that is from now, kept for the run that comes then, in milliseconds.
    """

    stages: tuple[tuple[str, float], ...] = ()
    pushes: tuple[Instant, ...] = ()
    reads: int = 0
    writes: int = 0
    rate_left: int = -1
    cursor: Instant = 0
    notes: tuple[str, ...] = ()
    requeue_after: Instant = 0
    backoff: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """A token for one repository, and what it is called now. The token is in no repr, log or store."""

    lane: RepositoryKey
    token: str = field(repr=False)
    name: str = ""
    private: bool = True
    expires_at: Instant = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the inbox keeps it. ``ended`` is 0 while it runs, or when its worker died. Stages are in seconds."""

    id: str
    ticket: str
    lane: RepositoryKey
    worker: str
    began: Instant
    ended: Instant = 0
    stages: tuple[tuple[str, float], ...] = ()
    pushes: tuple[Instant, ...] = ()
    reads: int = 0
    writes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """What is known of a repository. ``pushes`` are the last six, oldest first; ``backoff`` is the last report's."""

    lane: RepositoryKey
    name: str = ""
    private: bool = True
    cursor: Instant = 0
    pushes: tuple[Instant, ...] = ()
    last_run: Instant = 0
    rate_left: int = -1
    backoff: int = 0


Tallies = Mapping[tuple[str, tuple[str, ...]], float]
"""(name, labels) → how much."""

Guarded = Callable[[Callable[[], object]], str]
"""Runs a call, and gives one line about what went wrong, or ""."""

Note = Mapping[str, str | int]
"""What a heartbeat says: no secret, no text of an issue."""

WORKER = "worker:"
"""What the names of workers' heartbeats begin with; each worker sends one every five seconds."""

STATES: tuple[State, ...] = get_args(State)
COUNTED = 100_000
"""Most deliveries of a state that are counted, unless more are asked for: it is done every few seconds."""


class Full(Exception):
    """Too much waits to be stored: answered with 503."""


class Stopping(WorldError):
    """The process ends: what was begun goes on elsewhere."""
