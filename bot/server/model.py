"""The values of the webhook server: repository keys, deliveries, runs and results. None contains issue text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Literal, get_args

from bot.domain.name_patterns import fits_any
from bot.domain.organisation import Visibility
from bot.errors import WorldError
from bot.github.budget import Rates
from bot.github.events import Event
from bot.organisation.scope import Share

Instant = int
"""Milliseconds since 1970, UTC; 0 for never."""

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
"""Milliseconds, the unit of `Instant`."""


def moment_text(instant: Instant) -> str:
    """Return a moment as ISO 8601 in UTC, to the second; "" for never."""
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="seconds") if instant else ""


State = Literal["waiting", "working", "done", "dead", "dropped"]


class Priority(IntEnum):
    """How urgent work is; the lower, the sooner."""

    URGENT = 0
    """A new issue, or a command."""
    CHANGE = 1
    CATCH_UP = 2
    """Missed changes, and the server's own tasks."""
    HISTORY = 3
    """The next part of a whole history."""


_KEY = re.compile(r"(0|[1-9][0-9]*)-(0|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True, order=True)
class RepositoryKey:
    """One repository within one installation, by GitHub's numbers. Its deliveries are handled one after another.

    ``number`` 0 stands for the installation itself.
    """

    installation: int
    number: int

    @property
    def text(self) -> str:
        """As text: partition of the queue, folder of the clone, key of the token."""
        return f"{self.installation}-{self.number}"

    @classmethod
    def of(cls, text: str) -> RepositoryKey:
        """The key with this text. Raises ValueError for anything else."""
        match = _KEY.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a repository key")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Refused:
    """A request answered with an error. ``status`` is 400, 403, 405, 408, 411, 413, 415 or 503."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class DroppedDelivery:
    """A delivery answered with 202 and not stored.

    ``why``: "unknown event", "our own comment", "ping", "not the default branch", "the repository is excluded".
    """

    why: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery: ids, what `Event` needs to know where to look, and what became of it.

    ``id`` is "APP:GUID", or "APP:catch-up-KEY-NNN" for one of our own. ``event`` has no ``comment_author``, as authors
    are not stored. ``name`` is "owner/name" from the payload; it is shown, but never used to reach the repository.
    ``request`` is in every log line about it. ``extra`` has for an installation itself ("added", "17,18"),
    ("account", "octo-org").

    Once it is stored, ``seq`` is the order of arrival. ``attempts`` counts the failed tries. ``begun`` is 0 once a run
    of it ended. While it waits, 1 means that a worker died in a run of it and others; 2 or more, that it died in a run
    of it alone, one more each time. ``run`` is its current or last run. ``matches`` are the issues that were shown,
    each with its similarity in 0..1; ``nearest`` the most similar ones, shown or not, each also with the kinds of its
    reasons, without their words.
    """

    id: str
    repository: RepositoryKey
    event: Event
    name: str = ""
    received_at: Instant = 0
    request: str = ""
    extra: tuple[tuple[str, str], ...] = ()
    priority: Priority = Priority.CHANGE
    seq: int = 0
    state: State = "waiting"
    attempts: int = 0
    begun: int = 0
    next_at: Instant = 0
    finished_at: Instant = 0
    run: str = ""
    reason: str = ""
    said: str = ""
    url: str = ""
    matches: tuple[tuple[int, float], ...] = ()
    nearest: tuple[tuple[int, float, str], ...] = ()


def guid_of(delivery: Delivery) -> str:
    """GitHub's GUID of a delivery, as shown on the App's page; our own name for one that we made."""
    return delivery.id.partition(":")[2]


def delivery_fields(deliveries: Sequence[Delivery]) -> dict[str, str]:
    """The log fields for these deliveries: their requests, and GitHub's GUIDs or our own names for them."""
    requests = dict.fromkeys(each.request for each in deliveries if each.request)
    return {"request": " ".join(requests), "delivery": " ".join(map(guid_of, deliveries))}


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on ``key``, until it is finished, or runs out because nobody renewed it.

    ``id`` is new for each claim: whoever lost the key can finish nothing. ``is_history``: its run reads a
    whole history; only some of these are leased at once. ``is_slow``: its last run took so long that the next one may.
    """

    key: str
    id: str
    priority: Priority
    since: Instant
    is_history: bool = False
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class PendingWork:
    """The deliveries of one run, oldest first."""

    lease: Lease
    repository: RepositoryKey
    deliveries: tuple[Delivery, ...]
    began_at: Instant

    @property
    def id(self) -> str:
        """The id of the run: one run for each lease."""
        return self.lease.id


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a delivery.

    "waiting" is tried again at ``next_at``; ``counts`` says whether the try counts towards the limit.
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
class HistoryPart:
    """Progress in an unfinished history: ``read`` threads so far, in this run or earlier.

    Threads still unread: ``before`` the run, and ``left`` after it; -1 if GitHub did not say.
    """

    read: int
    before: int = -1
    left: int = -1


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run reports besides its results: stages in seconds, times of its pushes, counts of requests.

    ``notes`` are our own lines, without text of an issue. ``cursor`` is how far memory has read, ``threads`` how many
    it holds, -1 if unknown. ``requeue_after`` is when to look again, 0 for not before something happens; ``urgency`` is
    the priority of that, unless it is at once, which continues a history; ``backoff`` is the delay until then in
    milliseconds, for the next run. ``is_unread``: the repository's history was never read completely; None if the run
    did not get that far. ``history``: the part of a history that it read, None if none is left. ``rates``: what is
    left of GitHub's limits. ``changed``: the threads that it changed in memory.
    """

    stages: tuple[tuple[str, float], ...] = ()
    pushes: tuple[Instant, ...] = ()
    reads: int = 0
    writes: int = 0
    cursor: Instant = 0
    notes: tuple[str, ...] = ()
    requeue_after: Instant = 0
    backoff: int = 0
    urgency: Priority = Priority.CATCH_UP
    rates: Rates = field(default_factory=dict)
    threads: int = -1
    is_unread: bool | None = False
    history: HistoryPart | None = None
    changed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Grant:
    """A token for one repository, with the repository's name and visibility when it was made (``asked_at``).

    The token is in no repr, log or store.
    """

    repository: RepositoryKey
    token: str = field(repr=False)
    name: str = ""
    expires_at: Instant = 0
    visibility: Visibility = Visibility.PRIVATE
    asked_at: Instant = 0


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the inbox stores it. ``ended`` is 0 while it runs and if its worker died. Stages are in seconds."""

    id: str
    repository: RepositoryKey
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
    """The state of a repository. ``pushes`` are the last six, oldest first; ``backoff`` is from the last report.

    ``is_unread``: its history was never read completely. ``threads`` are those in memory, -1 if not known. ``history``
    is the `HistoryEstimate` as stored, "" while no history is read. ``shares`` say which repositories may show its
    threads although it is private (`bot.organisation.scope`); not ``is_sharing``: its settings cannot be read, so none
    counts. ``people`` are those whom its settings ignore.
    """

    repository: RepositoryKey
    name: str = ""
    cursor: Instant = 0
    pushes: tuple[Instant, ...] = ()
    last_run: Instant = 0
    backoff: int = 0
    is_unread: bool = True
    threads: int = -1
    history: str = ""
    visibility: Visibility = Visibility.PRIVATE
    shares: tuple[Share, ...] = ()
    is_sharing: bool = True
    people: tuple[str, ...] = ()
    is_gone: bool = False

    @property
    def agreed(self) -> tuple[Share, ...]:
        """The shares that count now."""
        return self.shares if self.is_sharing else ()


Counters = Mapping[tuple[str, tuple[str, ...]], float]
"""(name, labels) → how much."""

Note = Mapping[str, str | int]
"""The content of a heartbeat: no secret, no text of an issue."""

WORKER_PREFIX = "worker:"
"""Prefix of the names of workers' heartbeats; each worker sends one every five seconds."""

STATES: tuple[State, ...] = get_args(State)
MAX_COUNT = 100_000
"""By default, counting stops at this many deliveries of a state, since it happens every few seconds."""


class ReceiveQueueFull(Exception):
    """Too many deliveries wait to be stored. Answered with 503."""


class ServerStopping(WorldError):
    """The process is ending; another one continues its work."""

    def __init__(self) -> None:
        super().__init__("the server stopped: the next one continues")


EXCLUDED = "the repository is excluded"
"""Why a delivery is dropped."""


@dataclass(frozen=True, slots=True)
class RepositoryScope:
    """Patterns of "owner/name". ``exclude`` wins over ``include``; an empty ``include`` means all repositories.

    Repositories in ``observed`` are remembered, and nothing is written there but the memory branch.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    observed: tuple[str, ...] = ()

    def includes(self, name: str) -> bool:
        """Whether the server works on this repository. An unknown name, "", is left to whoever knows it later."""
        if not name:
            return True
        return (not self.include or fits_any(name, self.include)) and not fits_any(name, self.exclude)

    def observes(self, name: str) -> bool:
        """Whether nothing is written there but the memory branch."""
        return fits_any(name, self.observed)

    @property
    def digest(self) -> str:
        """A short text that changes with the patterns that say which repositories are worked on."""
        return hashlib.sha256(repr((self.include, self.exclude)).encode()).hexdigest()[:16]


ALL_REPOSITORIES = RepositoryScope()
"""All repositories, none of them only observed."""
