"""Where the kills are: spread over the length of a run, and at each request, before it is served and after it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.kills.repository import SCENARIOS
from tests.kills.watched import ANSWERED, ARRIVES, Step


@dataclass(frozen=True, slots=True)
class Length:
    """What a run of a scenario is when nobody kills it: its seconds, and what it asks the servers."""

    seconds: float
    requests: tuple[str, ...]
    told: str
    replies: int


@dataclass(frozen=True, slots=True)
class Point:
    """One kill. ``request`` 0: ``share`` of a whole run's length after its start.

    Else at that request, when it ``arrives`` or is ``answered``; or, without a ``moment``, ``share`` seconds after its
    answer. ``alone``: the git programs that the run has started live on. ``soon``: the next run begins after thirty
    seconds, else after three minutes. ``next``: what the next run is for.
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
    def words(self) -> str:
        if not self.request:
            return f"{self.share:.0%} of a run"
        return f"request {self.request}, {self.moment}" if self.moment else f"{self.share:.2f} s after {self.request}"


@dataclass(slots=True)
class Hit:
    """What came of one kill. ``place``: where it struck; ``waited``: the rules by which runs put the comment off."""

    point: Point
    place: str = ""
    requests: int = 0
    runs: int = 0
    waited: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    left: int = 0
    left_folders: int = 0
    comments: int = 0
    seconds: float = 0.0


def points(times: int, seed: int, lengths: Mapping[str, Length]) -> list[Point]:
    """The kills of a seed: half of them spread over the time of a run, the others over its requests."""
    chance = random.Random(seed)
    order = [scenario for scenario in SCENARIOS for _ in range(3 if scenario == "opened" else 2)]
    of: dict[str, list[int]] = {}
    for case in range(times):
        of.setdefault(order[case % len(order)], []).append(case)
    found = []
    for scenario, cases in of.items():
        by_time, by_request = cases[::2], cases[1::2]
        for place, case in enumerate(by_time):
            share = (place + chance.random()) / len(by_time)
            found.append(_varied(Point(case, scenario, share=share), chance))
        moments = _moments(len(lengths[scenario].requests), chance)
        for place, case in enumerate(by_request):
            request, moment = moments[place % len(moments)]
            share = 0.0 if moment else chance.uniform(0, 0.3)
            found.append(_varied(Point(case, scenario, request, moment, share), chance))
    return sorted(found, key=lambda point: point.case)


def _moments(requests: int, chance: random.Random) -> list[tuple[int, str]]:
    """Each request in each way, in an order of chance: the last ones, of push and comment, come first."""
    every = [(number, moment) for number in range(1, requests + 1) for moment in (ARRIVES, ANSWERED, "")]
    chance.shuffle(every)
    return sorted(every, key=lambda pair: pair[0] <= requests - 3)


def _varied(point: Point, chance: random.Random) -> Point:
    following = chance.choice(("schedule", "schedule", "another"))
    return Point(
        point.case,
        point.scenario,
        point.request,
        point.moment,
        point.share,
        alone=chance.random() < 0.2,
        soon=chance.random() < 0.25,
        next=following,
    )


def place_of(steps: Sequence[Step], length: Length) -> str:
    """Where in its work a run was that had asked this much."""
    if not steps:
        return "before the first request"
    comments, pushes = [step for step in steps if step.is_comment], [step for step in steps if step.is_push]
    if comments:
        return "after the comment" if comments[-1].done else "in the comment"
    if pushes and not pushes[-1].done:
        return "in a push"
    whole = sum(Step(name).is_push for name in length.requests)
    if len(pushes) >= whole:
        return "between the push and the comment"
    return "between two pushes" if pushes else "before the push"
