"""The nouns of the webhook server: lanes, deliveries, turns and what became of them. No text of an issue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from bot.errors import WorldError
from bot.github.app import AppInfo, DeliveryInfo, InstallationInfo, InstallationToken
from bot.github.events import Event

Instant = int
"""Milliseconds since 1970, UTC; 0 for never."""

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
    """A row of the ledger. ``seq`` is the order of arrival.

    ``attempts``: tries that failed and count. ``begun``: how often it was begun since it last ended, so 1 or more
    while it waits means that a worker died with it. ``turn`` is the `Work` that has it, or had it last. ``matches``
    are issues that were shown, each with its similarity in 0..1; ``nearest`` those most like it, shown or not, each
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
    """What one turn has to do, oldest first.

    ``id`` is new for each beginning: who began before and lost the lane cannot end it.
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
    """What a turn leaves beside its results: stages in seconds, times of its pushes, counts of requests.

    ``notes`` are lines of ours, with no text of an issue. ``rate_left`` is -1 where GitHub did not say. ``cursor`` is
    how far memory has read. ``again_at``: when to look again, 0 for when something happens; ``backoff``: how long that
    is from now, kept for the turn that comes then, in milliseconds.
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
    """A turn as the ledger keeps it. ``ended`` is 0 while it runs, or when its worker died. Stages are in seconds."""

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
    """What is known of a repository. ``pushes`` are the last six, oldest first; ``backoff`` is the last `Told`'s."""

    lane: RepositoryKey
    name: str = ""
    private: bool = True
    cursor: Instant = 0
    pushes: tuple[Instant, ...] = ()
    last_run: Instant = 0
    rate_left: int = -1
    backoff: int = 0


# What the parts of the webhook server ask of each other: tickets, who lives, the ledger, tokens, the App.


Tallies = Mapping[tuple[str, tuple[str, ...]], float]
"""(name, labels) → how much."""

Note = Mapping[str, str | int]
"""What a pulse says: no secret, no word of anybody."""

STATES: tuple[State, ...] = get_args(State)
COUNTED = 100_000
"""Most deliveries of a state that are counted, unless more are asked for: it is done every few seconds."""


class Full(Exception):
    """Too much waits to be stored: answered with 503."""


class Stopping(WorldError):
    """The process ends: what was begun goes on elsewhere."""


class Tickets(Protocol):
    """Wake-up calls for lanes; contract: tests/server/test_queue_contract.py."""

    def add(self, transaction: object, ticket: str, lane: RepositoryKey, delay: float = 0.0) -> None:
        """Within the caller's transaction. The same id again is nothing. After ``delay`` seconds at the earliest."""
        ...

    def cancel(self, tickets: Sequence[str]) -> None:
        """Those not begun yet are never begun."""
        ...

    def live(self) -> frozenset[str]:
        """The keys of lanes with a ticket that waits, is delayed or is being worked on."""
        ...

    def purge(self, before: Instant) -> int:
        """Forget tickets that ended before then, at most 5,000; how many."""
        ...


class Dispatch(Protocol):
    """Runs tickets: one lane one at a time over all workers, at most ``jobs`` at once here."""

    def start(self, run: Callable[[str, RepositoryKey], None]) -> None:
        """Hand each ticket, with its lane, to ``run``, which never raises."""
        ...

    def recover(self, worker: str) -> int:
        """Tickets that this dead worker had begun run again; how many. Idempotent."""
        ...

    def wake(self) -> int:
        """Tickets that were begun here, and whose begin or end could not be written down, run again; how many.

        They keep their lanes from everybody else meanwhile. To be asked again and again.
        """
        ...

    def stop(self, seconds: float) -> bool:
        """Begin nothing more, wait so long for what runs; whether all ended, and is known to have."""
        ...


class Guard(Protocol):
    """Who lives. A hold ends with its process, however it dies."""

    name: str

    def hold(self) -> None:
        """Take our own place; registered for others to see."""
        ...

    def check(self) -> bool:
        """Whether we still hold it. Where not, this process has to end at once."""
        ...

    def dead(self) -> list[str]:
        """Workers whose place can be taken; each is taken, so that nobody else gets it."""
        ...

    def mark_dead(self, worker: str) -> None:
        """Forget a dead one and give its place back."""
        ...

    def is_leader(self) -> bool:
        """Whether this worker is the one that sweeps."""
        ...


class Inbox(Protocol):
    """What is to be done and what became of it. Every method may raise WorldError, when the database is away."""

    def put(self, arrivals: Sequence[Arrival]) -> list[bool]:
        """Rows and tickets in one transaction, durable on return. False for each that is known by its id already."""
        ...

    def begin(self, ticket: str, lane: RepositoryKey, now: Instant) -> PendingWork | None:
        """The waiting deliveries of the lane that are due, oldest first, at most 50; None where there are none.

        What a dead turn of this lane left is among them. The oldest comes alone when it was begun and never ended; one
        that was begun 20 times without an end is dead, with that reason.
        """
        ...

    def put_off(self, ticket: str, lane: RepositoryKey, seconds: float) -> None:
        """A new ticket for the lane after so many seconds, as this one was not used."""
        ...

    def end(self, work: PendingWork, results: Sequence[Result], told: RunReport) -> list[str]:
        """Write outcomes, turn, tallies and register; returns the ids of tickets that are not needed any more.

        Adds one ticket when anything waits in the lane, delayed to its time, and a catch-up when ``told.again_at``.
        Does nothing when another turn has begun since.
        """
        ...

    def register(self) -> Installations:
        """Installations and repositories."""
        ...

    def deliveries(
        self, *, state: State | None = None, lane: RepositoryKey | None = None, before: int = 0, limit: int = 50
    ) -> list[Delivery]:
        """The latest first; ``before`` is the number of the last one of the page before, 0 for the first page."""
        ...

    def delivery(self, seq: int) -> tuple[Delivery, RunRow | None] | None:
        """A delivery and the turn that had it last, None where there is none."""
        ...

    def known(self, ids: Sequence[str]) -> frozenset[str]:
        """Which of these came in."""
        ...

    def retry(self, seqs: Sequence[int]) -> int:
        """Dead → waiting, tries at nought, with a ticket; how many."""
        ...

    def drop(self, seqs: Sequence[int], why: str) -> int:
        """Waiting or dead → dropped; how many."""
        ...

    def counts(self, most: int = COUNTED, of: Sequence[State] = STATES) -> Mapping[State, int]:
        """How many deliveries are in each of these states; ``most`` stands for so many or more."""
        ...

    def oldest_waiting(self) -> Instant:
        """Since when the first one that is due could have been begun, 0 where none is."""
        ...

    def mend(self, live: frozenset[str], before: Instant) -> int:
        """A ticket for each lane with something unfinished from before then and none in ``live``; how many."""
        ...

    def count_up(self, values: Tallies) -> None:
        """Add to counters; they never shrink."""
        ...

    def counters(self) -> Tallies:
        """All counters, of all processes together."""
        ...

    def heartbeat(self, name: str, note: Note) -> None:
        """Replace what is known of a worker, the App, the clock, the sweep."""
        ...

    def heartbeats(self) -> Mapping[str, tuple[Instant, Note]]:
        """What was said last under each name, and when."""
        ...

    def purge(self, before: Instant) -> int:
        """Forget what ended before then, but the dead; how many deliveries."""
        ...


class Installations(Protocol):
    """Where the App is installed, and what is known of each repository."""

    def installed(self, installation: int, account: str, state: Literal["active", "suspended", "gone"]) -> None:
        """Keep what became of an installation."""
        ...

    def state(self, installation: int) -> str:
        """What became of it last; "active" for one never heard of."""
        ...

    def pause(self, installation: int, resource: str, until: Instant) -> None:
        """A rate limit of this resource holds for its lanes until then; one of `OF_ALL` has them begin nothing."""
        ...

    def paused_until(self, installation: int, resources: Sequence[str]) -> Instant:
        """Until when a limit of any of these holds, 0 where none ever did."""
        ...

    def seen(self, lane: RepositoryKey, name: str, *, private: bool) -> None:
        """Keep what a repository is called now; one that was gone is back."""
        ...

    def gone(self, lane: RepositoryKey, why: str) -> int:
        """Its waiting deliveries are dropped with this reason; how many."""
        ...

    def lane(self, lane: RepositoryKey) -> RepositoryRow:
        """One of them; for one never heard of a row with nothing but the lane."""
        ...

    def lanes(self, *, active_since: Instant = 0) -> list[RepositoryRow]:
        """Those that are not gone and had a turn since then; all for 0."""
        ...


class Tokens(Protocol):
    """Tokens for one repository each, kept in memory only."""

    def grant(self, lane: RepositoryKey, now: Instant) -> Grant:
        """Good for ten minutes at least. Raises NotInstalled, ForgeError."""
        ...

    def forget(self, lane: RepositoryKey | None = None, installation: int = 0) -> None:
        """Those of a lane, of an installation, or all."""
        ...


class AppApi(Protocol):
    """What we ask GitHub as an App: `bot.github.app.App`. Every method may raise ForgeError."""

    def about(self) -> AppInfo:
        """Who the App is, what it may do and hears of, and how far GitHub's clock is ahead of ours."""
        ...

    def create_token(self, installation: int, repository: int) -> InstallationToken:
        """A new token for this repository alone. Raises NotInstalled (404, 422, 403 for a suspended installation)."""
        ...

    def installations(self) -> Iterator[InstallationInfo]:
        """All accounts that the App is installed for."""
        ...

    def repositories(self, installation: int) -> Iterator[tuple[int, str, bool]]:
        """Number, "owner/name" and whether it is private, of each that the installation may see."""
        ...

    def deliveries(self, until: Instant) -> Iterator[DeliveryInfo]:
        """Attempts of GitHub to deliver, newest first, back to that time."""
        ...

    def redeliver(self, delivery: int) -> None:
        """Have GitHub deliver it once more, by the ``id`` of an attempt."""
        ...
