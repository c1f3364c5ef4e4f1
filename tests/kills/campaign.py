"""One kill after the other: a fresh repository, a run that is killed, the runs that follow, and the verdict."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.kills.points import Hit, Length, Point, place_of
from tests.kills.process import ActionProcess
from tests.kills.repository import SCENARIOS, STATES, Event, Prepared, Repository
from tests.kills.verdict import branch_faults, incomplete, owed_later, said, too_many

SOON, LATER = 30, 180
"""Seconds of the fake's clock to the next run: within ``POSTING_WINDOW`` of a promise, and past it."""

PATIENCE = 120.0
TRIES = 4


@dataclass(frozen=True, slots=True)
class Grounds:
    """What all kills of a campaign have in common: the prepared states, and what each scenario is undisturbed."""

    prepared: Prepared
    lengths: Mapping[str, Length]
    schedule: float
    """Seconds of a run of the schedule, which follow most kills: they tell how busy the machine is."""


@dataclass
class _Pace:
    """How much slower runs are at this moment than they were when they were measured."""

    factor: float = 1.0


_PACE = _Pace()


def measure(prepared: Prepared, folder: Path, scenarios: Iterable[str] = SCENARIOS) -> Grounds:
    """Run each scenario undisturbed, with a second run after it."""
    lengths, schedule = {}, 0.0
    for scenario in scenarios:
        with _fresh(prepared, folder, scenario) as repository:
            event = repository.happen(scenario)
            repository.gate.begin()
            started = time.monotonic()
            code = repository.start(event).wait(PATIENCE)
            seconds = time.monotonic() - started
            asked = tuple(step.name for step in repository.gate.steps)
            told, replies = said(repository, event.comment)
            faults = _faults(repository, event)
            if code or faults or not told or replies != (scenario == "command"):
                raise SystemExit(f"the scenario {scenario} fails without any kill: {code} {faults} {told} {replies}")
            lengths[scenario] = Length(seconds, asked, told, replies)
            started = time.monotonic()
            repository.start(Event("schedule")).wait(PATIENCE)
            schedule = time.monotonic() - started
    return Grounds(prepared, lengths, schedule)


def strike_all(points: list[Point], grounds: Grounds, folder: Path, processes: int = 1) -> Iterator[Hit]:
    """Each kill with what came of it, as they are done."""
    strike = partial(strike_one, grounds=grounds, folder=folder)
    if processes == 1:
        yield from map(strike, points)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(strike, points)


def strike_one(point: Point, grounds: Grounds, folder: Path) -> Hit:
    """One kill. A run that was over before it was hit is no kill: it is tried again, a little earlier."""
    for turn in range(TRIES):
        aimed = replace(point, share=point.share * (1 - 0.15 * turn))
        with _fresh(grounds.prepared, folder, point.scenario) as repository:
            hit = _Kill(aimed, repository, grounds).carry_out()
        if hit:
            return hit
    return Hit(point, place="the run was over", faults=["no kill: the run was over before it each time"])


class _Kill:
    """One kill on one fresh repository."""

    def __init__(self, point: Point, repository: Repository, grounds: Grounds) -> None:
        self.point, self.repository, self.grounds = point, repository, grounds
        self.length = grounds.lengths[point.scenario]
        self.hit = Hit(point)
        self.event = repository.happen(point.scenario)

    def carry_out(self) -> Hit | None:
        started = time.monotonic()
        victim = self._killed()
        if victim is None:
            return None
        try:
            self._look_after_death()
            self._go_on()
        finally:
            victim.mark_dead()
        self.hit.seconds = time.monotonic() - started
        return self.hit

    def _killed(self) -> ActionProcess | None:
        """The run, dead; None when it was over before."""
        point, gate = self.point, self.repository.gate
        struck: list[bool] = []
        born: list[ActionProcess] = []

        def strike() -> None:
            struck.append(not born[0].is_over)
            born[0].kill(alone=point.alone)

        gate.look = self._watch
        gate.begin(point.request if point.moment else 0, point.moment, strike)
        born.append(self.repository.start(self.event))
        if point.moment:
            born[0].wait(PATIENCE)
        else:
            if point.request:
                gate.wait_for(point.request, lambda: born[0].is_over, PATIENCE)
            born[0].wait(point.share * (1 if point.request else self.length.seconds * _PACE.factor))
            strike()
            born[0].wait(PATIENCE)
        if not gate.rest():
            self.hit.faults.append("the servers did not come to rest")
        return born[0] if any(struck) else None

    def _watch(self) -> None:
        """At every moment: no issue has two comments of ours."""
        self._note("at once", too_many(self.repository, self.event.comment))

    def _look_after_death(self) -> None:
        gate, repository = self.repository.gate, self.repository
        self.hit.place, self.hit.requests = place_of(gate.steps, self.length), len(gate.steps)
        left = repository.left()
        self.hit.left, self.hit.left_folders = sum(left.values()), len(left)
        self._note("after the kill", [*too_many(repository, self.event.comment), *branch_faults(repository)])

    def _go_on(self) -> None:
        """The runs that follow, until the comment has to stand, and what holds then."""
        repository = self.repository
        pauses = [SOON, LATER] if self.point.soon else [LATER]
        for turn, pause in enumerate(pauses):
            repository.github.clock.advance(pause)
            rule = owed_later(repository, self.event.comment)
            self._run_next("schedule" if turn else self.point.next)
            if self._stands():
                break
            if rule and turn + 1 < len(pauses):
                self.hit.waited.append(rule)
                continue
            wanted = f"{self.length.told} and {self.length.replies} replies"
            found = " and ".join(map(str, said(repository, self.event.comment)))
            self._note(f"after run {self.hit.runs}", [f"{found} replies stand instead of {wanted}"])
        self._note("at the end", _faults(repository, self.event))
        self.hit.comments = sum(map(len, repository.comments().values()))

    def _run_next(self, what: str) -> None:
        repository, before = self.repository, set(self.repository.left())
        event = repository.open_another() if what == "another" else Event("schedule")
        repository.gate.begin()
        started = time.monotonic()
        process = repository.start(event)
        code = process.wait(PATIENCE)
        if what == "schedule":
            _PACE.factor = (time.monotonic() - started) / self.grounds.schedule
        self.hit.runs += 1
        if code is None:
            process.kill()
        if code:
            said_last = repository.log.read_text(encoding="utf-8", errors="replace")[-300:]
            self._note(f"run {self.hit.runs}", [f"exit code {code}: {said_last}"])
        self._note(f"run {self.hit.runs}", [f"it left {name}" for name in set(repository.left()) - before])

    def _stands(self) -> bool:
        return said(self.repository, self.event.comment) == (self.length.told, self.length.replies)

    def _note(self, when: str, faults: Iterable[str]) -> None:
        self.hit.faults += [f"{when}: {fault}" for fault in faults]


def _faults(repository: Repository, event: Event) -> list[str]:
    return [*too_many(repository, event.comment), *branch_faults(repository), *incomplete(repository)]


@contextmanager
def _fresh(prepared: Prepared, folder: Path, scenario: str) -> Iterator[Repository]:
    """A fresh repository in a folder of its own, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"{scenario}-", dir=folder, ignore_cleanup_errors=True) as own:
        repository = Repository(Path(own), prepared, STATES[scenario])
        try:
            yield repository
        finally:
            repository.close()
