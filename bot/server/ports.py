"""What the parts of the webhook server ask of each other: tickets, who lives, the ledger, tokens, the App."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol, get_args

from bot.errors import WorldError
from bot.github.installed import AppInfo, DeliveryInfo, InstallationInfo, Minted
from bot.server.nouns import Arrival, Delivery, Grant, Instant, Lane, LaneRow, Result, State, Told, TurnRow, Work

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

    def add(self, transaction: object, ticket: str, lane: Lane, delay: float = 0.0) -> None:
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

    def start(self, run: Callable[[str, Lane], None]) -> None:
        """Hand each ticket, with its lane, to ``run``, which never raises."""
        ...

    def recover(self, worker: str) -> int:
        """Tickets that this dead worker had begun run again; how many. Idempotent."""
        ...

    def rouse(self) -> int:
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

    def bury(self, worker: str) -> None:
        """Forget a dead one and give its place back."""
        ...

    def leads(self) -> bool:
        """Whether this worker is the one that sweeps."""
        ...


class Ledger(Protocol):
    """What is to be done and what became of it. Every method may raise WorldError, when the database is away."""

    def put(self, arrivals: Sequence[Arrival]) -> list[bool]:
        """Rows and tickets in one transaction, durable on return. False for each that is known by its id already."""
        ...

    def begin(self, ticket: str, lane: Lane, now: Instant) -> Work | None:
        """The waiting deliveries of the lane that are due, oldest first, at most 50; None where there are none.

        What a dead turn of this lane left is among them. The oldest comes alone when it was begun and never ended; one
        that was begun 20 times without an end is dead, with that reason.
        """
        ...

    def put_off(self, ticket: str, lane: Lane, seconds: float) -> None:
        """A new ticket for the lane after so many seconds, as this one was not used."""
        ...

    def end(self, work: Work, results: Sequence[Result], told: Told) -> list[str]:
        """Write outcomes, turn, tallies and register; returns the ids of tickets that are not needed any more.

        Adds one ticket when anything waits in the lane, delayed to its time, and a catch-up when ``told.again_at``.
        Does nothing when another turn has begun since.
        """
        ...

    def register(self) -> Register:
        """Installations and repositories."""
        ...

    def deliveries(
        self, *, state: State | None = None, lane: Lane | None = None, before: int = 0, limit: int = 50
    ) -> list[Delivery]:
        """The latest first; ``before`` is the number of the last one of the page before, 0 for the first page."""
        ...

    def delivery(self, seq: int) -> tuple[Delivery, TurnRow | None] | None:
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

    def tally(self, values: Tallies) -> None:
        """Add to counters; they never shrink."""
        ...

    def tallies(self) -> Tallies:
        """All counters, of all processes together."""
        ...

    def pulse(self, name: str, note: Note) -> None:
        """Replace what is known of a worker, the App, the clock, the sweep."""
        ...

    def pulses(self) -> Mapping[str, tuple[Instant, Note]]:
        """What was said last under each name, and when."""
        ...

    def purge(self, before: Instant) -> int:
        """Forget what ended before then, but the dead; how many deliveries."""
        ...


class Register(Protocol):
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

    def seen(self, lane: Lane, name: str, *, private: bool) -> None:
        """Keep what a repository is called now; one that was gone is back."""
        ...

    def gone(self, lane: Lane, why: str) -> int:
        """Its waiting deliveries are dropped with this reason; how many."""
        ...

    def lane(self, lane: Lane) -> LaneRow:
        """One of them; for one never heard of a row with nothing but the lane."""
        ...

    def lanes(self, *, active_since: Instant = 0) -> list[LaneRow]:
        """Those that are not gone and had a turn since then; all for 0."""
        ...


class Tokens(Protocol):
    """Tokens for one repository each, kept in memory only."""

    def grant(self, lane: Lane, now: Instant) -> Grant:
        """Good for ten minutes at least. Raises NotInstalled, ForgeError."""
        ...

    def forget(self, lane: Lane | None = None, installation: int = 0) -> None:
        """Those of a lane, of an installation, or all."""
        ...


class AppApi(Protocol):
    """What we ask GitHub as an App: `bot.github.app.App`. Every method may raise ForgeError."""

    def about(self) -> AppInfo:
        """Who the App is, what it may do and hears of, and how far GitHub's clock is ahead of ours."""
        ...

    def mint(self, installation: int, repository: int) -> Minted:
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
