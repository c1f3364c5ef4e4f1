"""A town whose turns are the server's own, with time that waits pass."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.doors.guarded import guarded
from bot.github.events import Event
from bot.server.clones import Clones
from bot.server.nouns import Arrival, Delivery, Instant, Lane, Result, Told, Work
from bot.server.pace import Pace
from bot.server.turn import carry_out
from bot.server.visit import Desk, Where
from tests.fakes.payloads import EventfulProject
from tests.server.places import APP
from tests.server.town import LOGIN, Town


@dataclass
class Waits:
    """Waits that pass at once, by moving the clock; ``slept`` is how long, in seconds."""

    town: Town
    slept: list[float] = field(default_factory=list)

    def __call__(self, stop: threading.Event, seconds: float) -> bool:
        if stop.is_set():
            return True
        self.slept.append(seconds)
        self.town.here.clock.now += round(seconds * 1000)
        return False


class Turned(Town):
    """``done`` are the turns: what each had to do, what became of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.stop = threading.Event()
        self.waits = Waits(self)
        self.clones = Clones(folder / "clones", 100)
        self.done: list[tuple[Work, list[Result], Told]] = []
        where = Where(self.github.url, self.git.url, LOGIN, "app")
        pace = Pace(6, self.here.clock, self.waits)
        here = self.here
        self.desk = Desk(
            here.ledger, here.tokens, self.clones, pace, where, self.stop, here.clock, guarded, write_gap=0.0
        )

    def turn(self, lane: Lane) -> None:
        pushes = self.here.register.lane(lane).pushes
        assert self.desk.pace.ready(pushes, self.stop)
        work = self.here.ledger.begin("ticket", lane, self.here.clock.now)
        if work is None:
            return
        results, told = carry_out(work, self.desk)
        self.done.append((work, results, told))
        self.here.ledger.end(work, results, told)

    def lane(self, project: EventfulProject) -> Lane:
        found = self.github.apps.where(project.repo.id)
        assert found
        return Lane(found[1], project.repo.id)

    def hear_of(self, project: EventfulProject, *events: Event) -> None:
        """Deliveries come in, in this order."""
        lane, now = self.lane(project), self.here.clock.now
        self.here.ledger.put(
            [Arrival(f"{APP}:{next(self.here.guids):08d}", lane, event, received_at=now) for event in events]
        )

    def row(self, project: EventfulProject, number: int) -> Delivery:
        """The last delivery about an issue."""
        rows = self.here.rows(self.lane(project))
        return [each for each in rows if each.event.number == number][-1]

    def pass_time(self, seconds: float) -> None:
        self.here.clock.now += round(seconds * 1000)

    def pushes(self) -> list[Instant]:
        return sorted(at for _, _, told in self.done for at in told.pushes)

    def with_attempts(self, attempts: int) -> None:
        self.desk = replace(self.desk, where=replace(self.desk.where, attempts=attempts))
