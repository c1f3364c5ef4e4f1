"""When to kill: at moments spread over the length of a run, and at each request, before and after it is served."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.kills.gated_servers import ANSWERED, ARRIVES, Step
from tests.kills.kill_stage import STARTS


@dataclass(frozen=True, slots=True)
class UndisturbedRun:
    """A scenario's run without a kill: its seconds and requests, the seals of our comment, the number of replies."""

    seconds: float
    requests: tuple[str, ...]
    seals: str
    replies: int


@dataclass(frozen=True, slots=True)
class Point:
    """One kill. With ``request`` 0 it comes at ``share`` of an undisturbed run's length.

    Otherwise it comes at that request, when it ``arrives`` or is ``answered``; without a ``moment``, ``share`` seconds
    after its answer. ``alone``: the git programs that the run started live on. ``soon``: the next run begins after
    thirty seconds instead of three minutes. ``next``: what the next run is for.
    """

    case: int
    scenario: str
    request: int = 0
    moment: str = ""
    share: float = 0.0
    alone: bool = False
    soon: bool = False
    next: str = "schedule"

    @property
    def label(self) -> str:
        if not self.request:
            return f"{self.share:.0%} of a run"
        return f"request {self.request}, {self.moment}" if self.moment else f"{self.share:.2f} s after {self.request}"


@dataclass(slots=True)
class KillResult:
    """The result of one kill. ``place``: how far the run had got. ``waited``: the rules by which later runs waited."""

    point: Point
    place: str = ""
    runs: int = 0
    waited: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    comments: int = 0


def choose_points(times: int, seed: int, undisturbed_runs: Mapping[str, UndisturbedRun]) -> list[Point]:
    """The kills of a seed: half of them spread over the length of a run, the others over its requests."""
    chance = random.Random(seed)
    order = [scenario for scenario in STARTS for _ in range(3 if scenario == "opened" else 2)]
    cases_of: dict[str, list[int]] = {}
    for case in range(times):
        cases_of.setdefault(order[case % len(order)], []).append(case)
    chosen = []
    for scenario, cases in cases_of.items():
        by_time, by_request = cases[::2], cases[1::2]
        for index, case in enumerate(by_time):
            share = (index + chance.random()) / len(by_time)
            chosen.append(_varied(Point(case, scenario, share=share), chance))
        moments = _moments(len(undisturbed_runs[scenario].requests), chance)
        for index, case in enumerate(by_request):
            request, moment = moments[index % len(moments)]
            share = 0.0 if moment else chance.uniform(0, 0.3)
            chosen.append(_varied(Point(case, scenario, request, moment, share), chance))
    return sorted(chosen, key=lambda point: point.case)


def _moments(requests: int, chance: random.Random) -> list[tuple[int, str]]:
    """Each request with each moment, shuffled; the last requests (push and comment) come first."""
    every = [(number, moment) for number in range(1, requests + 1) for moment in (ARRIVES, ANSWERED, "")]
    chance.shuffle(every)
    return sorted(every, key=lambda pair: pair[0] <= requests - 3)


def _varied(point: Point, chance: random.Random) -> Point:
    following = chance.choice(("schedule", "schedule", "another"))
    return replace(point, alone=chance.random() < 0.2, soon=chance.random() < 0.25, next=following)


def place_of(steps: Sequence[Step], undisturbed_run: UndisturbedRun) -> str:
    """How far a run had got after these requests."""
    if not steps:
        return "before the first request"
    comments, pushes = [step for step in steps if step.is_comment], [step for step in steps if step.is_push]
    if comments:
        return "after the comment" if comments[-1].done else "in the comment"
    if pushes and not pushes[-1].done:
        return "in a push"
    push_count = sum(Step(name).is_push for name in undisturbed_run.requests)
    if len(pushes) >= push_count:
        return "between the push and the comment"
    return "between two pushes" if pushes else "before the push"
