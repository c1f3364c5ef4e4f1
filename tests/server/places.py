"""GitHub with an App that is installed in places, and a ledger in memory beside it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from bot.github.app import App
from bot.github.events import Event
from bot.server.identity import KeptTokens
from bot.server.memory_ledger import MemoryLedger
from bot.server.memory_queue import MemoryTickets
from bot.server.nouns import Arrival, Delivery, Instant, Lane, Told, Work
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair

APP = 77


@dataclass
class Clock:
    """Our own time, in milliseconds; GitHub's fake follows the real one."""

    now: Instant

    def __call__(self) -> Instant:
        return self.now


@dataclass
class Places:
    """What an installation's lane works with; ``forgotten`` are the lanes whose clones were removed."""

    github: FakeGitHub
    api: App
    clock: Clock
    tickets: MemoryTickets = field(default_factory=MemoryTickets)
    forgotten: list[Lane] = field(default_factory=list)
    guids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.ledger = MemoryLedger(self.tickets, now=self.clock)
        self.tokens = KeptTokens(self.api)
        self.register = self.ledger.register()

    def arrive(self, lane: Lane, event: str = "issues", action: str = "opened", number: int = 1, **extra: str) -> str:
        """A delivery comes in; its id."""
        name = f"{APP}:{next(self.guids):08d}"
        told = Event(event, action, None if extra else number)
        self.ledger.put([Arrival(name, lane, told, received_at=self.clock.now, extra=tuple(extra.items()))])
        return name

    def begin(self, lane: Lane) -> Work:
        """What waits in a lane."""
        work = self.ledger.begin("ticket", lane, self.clock.now)
        assert work is not None, f"nothing waits in {lane}"
        return work

    def know(self, *lanes: Lane) -> None:
        """The lanes have had turns."""
        for lane in lanes:
            self.register.seen(lane, f"octocat/{lane.repository}", private=False)
            self.arrive(lane)
            work = self.begin(lane)
            self.ledger.end(work, [], Told())
            self.ledger.drop([each.seq for each in work.deliveries], "for the test")

    def waiting(self, lane: Lane) -> list[str]:
        """The events that wait in a lane."""
        return [each.event.name for each in self.rows(lane) if each.state == "waiting"]

    def rows(self, lane: Lane) -> Sequence[Delivery]:
        return sorted(self.ledger.deliveries(lane=lane), key=lambda each: each.seq)


def places(github: FakeGitHub) -> Places:
    """With the App installed nowhere; its ``api`` is to be closed."""
    github.clock.now = None
    github.add_app(APP, "precedent", public_key=key_pair()[1]).installations.clear()
    return Places(github, App(APP, key_pair()[0], github.url), Clock(github.clock.epoch * 1000))
