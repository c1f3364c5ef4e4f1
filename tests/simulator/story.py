"""One history, determined by a seed: what people do, when and how often events arrive, and what goes wrong."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from bot.memory.branch_store import MAX_GROWTH
from tests.simulator.displays import is_shown
from tests.simulator.invariants import has_pending_work
from tests.simulator.observed_github import ObservedGitHub
from tests.simulator.people import EARLY_CHANGES, STEPS, SUBJECTS, People, add_earlier_issues, make_small_change
from tests.simulator.points import Points
from tests.simulator.scene import Delivery, RunResult, Scene

LATE = 20 * 24 * 3600
"""Seconds after which a run may still be re-run, with a payload of that age."""

SQUASH = MAX_GROWTH.commits
"""Commits after which the branch is squashed."""

COMMENTS = "POST */comments"
API_FAULTS = (
    *(("GET *", kind) for kind in ("drop", "5xx", "secondary403", "429", "primary403", "401")),
    *((COMMENTS, kind) for kind in ("drop", "drop", "dup", "dup", "dup", "5xx", "5xx", "secondary403", "429")),
    *(("PATCH *", kind) for kind in ("drop", "dup", "5xx")),
    *(("POST */reactions", kind) for kind in ("dup", "5xx")),
    ("POST */graphql", "5xx"),
)
GIT_FAULTS = (
    ("POST *git-receive-pack", "dup"), ("POST *git-receive-pack", "drop"), ("POST *git-receive-pack", "5xx"),
    ("GET *info/refs", "5xx"), ("POST *git-upload-pack", "drop"), ("GET *info/refs", "401"),
)  # fmt: skip
RACE_POINTS = ("git push", "git fast-import", "git fetch", "http.client.send", "25", "12", "35")


@dataclass(frozen=True)
class Disturbance:
    """How much goes wrong in a history, as probabilities."""

    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    crash: float = 0.0
    fault: float = 0.0
    race: float = 0.0


CALM = Disturbance()
DISTURBANCES = (
    CALM,
    Disturbance(lost=0.3, twice=0.25, late=0.3),
    Disturbance(crash=0.6, lost=0.4, twice=0.1),
    Disturbance(fault=0.7, twice=0.2),
    Disturbance(race=0.6, twice=0.3, late=0.2),
    Disturbance(lost=0.15, twice=0.15, late=0.2, crash=0.25, fault=0.25, race=0.15),
)


class Story:
    """One history on its scene; everything random is drawn from ``chance``."""

    def __init__(self, scene: Scene, seed: int, report: Callable[[str], None] = lambda line: None) -> None:
        self.seed, self.chance, self.report, self.counts = seed, random.Random(seed), report, Counter[str]()
        draw = self.chance.random
        self.is_long = draw() < 0.03
        self.is_http = draw() < 0.2
        self.is_checked = draw() < 0.05
        self.squashes = draw() < 0.08
        self.start = "empty" if draw() < 0.15 else ("old" if self.squashes else "warm")
        self.disturbance = self.chance.choices(DISTURBANCES, (2, 3, 4, 3, 3, 5))[0]
        self.scene = scene
        scene.start(f"{seed}s", *STARTS[self.start], http=self.is_http, validate=self.is_checked)
        if self.start == "empty":
            add_earlier_issues(self.fake, self.chance.choice((0, 0, 2)))
        self.scene.clock_skew = self.chance.choice((0, 0, 0, -40, -3, 2, 45))
        self.people = People(self.scene, self.chance)
        self.people.report, self.people.is_calm = report, self.disturbance is CALM and draw() < 0.7
        self.queue: list[Delivery] = []
        self.delivered: set[bytes] = set()
        self.last: Delivery | None = None
        self.changes_since_run = 0
        self.costly: list[str] = []

    @property
    def fake(self) -> ObservedGitHub:
        return self.scene.fake

    def play(self) -> None:
        """Play the history up to the end of all disturbances."""
        turns = self.chance.randint(12, 22) if self.is_long else self.chance.randint(2, 5)
        budget = turns if self.is_long else self.chance.choice((2, 2, 3, 3, 4))
        for _ in range(turns):
            self.pass_time(self.chance.choice(STEPS))
            for _ in range(2 if self.chance.random() < 0.3 else 1):
                self.counts["happenings"] += 1
                event = self.people.act()
                self.changes_since_run += 1
                if event:
                    self._send(event)
                self.pass_time(self.chance.choice((0, 0, 1, 5)))
            while self.queue and budget and (self.disturbance is CALM or self.chance.random() < 0.6):
                budget -= 1
                self.run(self._next())
        self._deliver_leftovers(budget)

    def pass_time(self, seconds: int) -> None:
        if seconds:
            self.fake.clock.advance(seconds)

    def run(self, event: Delivery) -> RunResult:
        """One run with its disturbances."""
        self.last = event
        self.counts["events delivered"] += 1
        if event.payload in self.delivered:
            self.counts["events repeated"] += 1
        self.delivered.add(event.payload)
        points = Points()
        self._disturb(points)
        self.report(f"  {self.fake.clock.now[5:19]} run {len(self.scene.runs) + 1} on {event.label}")
        was_shown = event.number is not None and is_shown(self.scene, event.number)
        result = self.scene.run_action(event, points)
        self._count_run(result)
        self._count_cost(result, was_shown=was_shown)
        self.fake.faults.clear()
        self.scene.git.faults.clear()
        return result

    def settle(self, *, fully: bool) -> list[RunResult]:
        """Undisturbed runs until no work is left, at most three; ``fully``: until each promise is settled, and
        runs have also read what earlier runs wrote, which counts as news on its issue."""
        results = []
        for _ in range(3):
            self.pass_time(900)
            results.append(self.scene.run_action(self.scene.make_delivery("schedule")))
            self.report(f"  {self.fake.clock.now[5:19]} settling run: {summary(results[-1])}")
            self.counts["settling runs"] += 1
            if not has_pending_work(self.scene, fully=fully) and not (fully and results[-1].requests.writes):
                break
        return results

    def reported_gone(self) -> set[int]:
        """The issues whose removal was reported to a run that completed."""
        return {
            result.delivery.number
            for result in self.scene.runs
            if result.delivery.action in ("deleted", "transferred")
            and result.delivery.name == "issues"
            and result.delivery.number
            and result.is_done
        }

    def count_comments(self) -> None:
        for key, ids in self.fake.created.items():
            self.counts["replies written" if key.slot else "comments written"] += len(ids)
        self.counts[f"histories that begin {self.start}"] += 1
        self.counts[f"histories with git over {'HTTP' if self.is_http else 'a path'}"] += 1
        self.counts["requests to the API"] += len(self.fake.requests)
        self.counts["pushes"] += len(self.scene.branch.moves())

    # -- parts -----------------------------------------------------------------------------------------------------

    def _send(self, event: Delivery) -> None:
        """Queue an event, or lose it, double it, or put it out of order."""
        fate, disturbance = self.chance.random(), self.disturbance
        if fate < disturbance.lost:
            self.counts["events lost"] += 1
            self.report("    (that event is lost)")
            return
        self.queue.append(event)
        if fate < disturbance.lost + disturbance.twice:
            self.queue.append(event)
        elif fate < disturbance.lost + disturbance.twice + disturbance.late:
            self.chance.shuffle(self.queue)

    def _next(self) -> Delivery:
        if self.disturbance is not CALM and self.chance.random() < 0.12:
            return self.scene.make_delivery("schedule")
        if self.disturbance is not CALM and self.chance.random() < 0.04 and (number := self._open_number()):
            return self._dispatch_answer(number)
        if self.disturbance is not CALM and self.chance.random() < 0.05:
            self.counts["rebuilds"] += 1
            payload = b'{"inputs": {"run": "rebuild"}}'
            return Delivery("workflow_dispatch", "", None, payload, "workflow_dispatch rebuild")
        return self.queue.pop(0)

    def _open_number(self) -> int | None:
        numbers = [number for number, issue in self.fake.repo.issues.items() if not issue.pull]
        return self.chance.choice(sorted(numbers)) if numbers else None

    def _dispatch_answer(self, number: int) -> Delivery:
        payload = b'{"inputs": {"run": "answer", "issue": "%d"}}' % number
        return Delivery("workflow_dispatch", "", number, payload, f"workflow_dispatch answer #{number}")

    def _deliver_leftovers(self, budget: int) -> None:
        """Events still in the queue arrive very late, or never."""
        if not self.queue:
            return
        if self.disturbance.late and self.chance.random() < 0.4:
            self.pass_time(LATE)
            self.counts["events 20 days late"] += 1
            self.run(self.queue.pop(self.chance.randrange(len(self.queue))))
        elif budget:
            self.run(self.queue.pop(0))
        self.counts["events lost"] += len(self.queue)
        self.queue.clear()

    def _disturb(self, points: Points) -> None:
        disturbance, draw = self.disturbance, self.chance.random
        if draw() < disturbance.crash:
            points.dies_at = self.chance.randint(1, 95)
        if draw() < disturbance.fault:
            faults = API_FAULTS + (GIT_FAULTS * 2 if self.is_http else ())
            match, kind = self.chance.choice(faults)
            plan = self.scene.git.faults if (match, kind) in GIT_FAULTS else self.fake.faults
            plan.add(match, kind, self.chance.choice((1, 1, 2, None)), self.chance.choice((0, 0, 0, 1, 2)), seconds=60)
            self.report(f"    (fault: {kind} for {match})")
        if draw() < disturbance.race:
            other = (
                self.queue.pop(0) if self.queue and draw() < 0.7 else self.last or self.scene.make_delivery("schedule")
            )
            point = self.chance.choice(RACE_POINTS)
            self.report(f"    (another run on {other.label} comes in between at {point})")
            points.interrupts[point] = lambda: self._interrupt(other, point)

    def _interrupt(self, other: Delivery, point: str) -> None:
        self.counts[f"race at {'a numbered point' if point.isdigit() else point}"] += 1
        result = self.scene.run_concurrently(other)
        self.report(f"    the other run: {summary(result)}")

    def _count_cost(self, result: RunResult, *, was_shown: bool) -> None:
        """(5) A single undisturbed event costs at most two reads and one write.

        Not counted: looking up where a fix is, once, when it is first shown. One read more is allowed for the open pull
        requests of open issues that are shown, and, if another thread changed too (such as by our own comment), for the
        timeline of a closed thread or its comments to find ours. Histories with replies are exempt, since the number of
        comments then tells nothing, and so is a thread that a comment of ours shows, which costs what it takes to keep
        that comment true.
        """
        is_alone, self.changes_since_run = self.changes_since_run == 1, 0
        is_asked = any(key.slot for key in self.fake.created) or was_shown
        if is_asked or not (is_alone and self.people.is_calm and self.start == "warm" and result.delivery.number):
            return
        reads = [
            path
            for path in result.requests.read_paths
            if not any(part in path for part in ("/commits", "/pulls", "/releases", "/tags", "/compare"))
        ]
        writes = [path for _, path, _ in result.requests.sent]
        self.counts["usual events, undisturbed"] += 1
        comments = {path for path in reads if path.endswith("/comments")}
        own_paths = {f"{path}/{result.delivery.number}/comments" for path in reads if path.endswith("/issues")}
        reads_thread = bool(comments & own_paths) or any(path.endswith("/timeline") for path in reads)
        most = 2 + (reads_thread and bool(comments - own_paths)) + ("/graphql" in reads)
        if len(reads) > most or len(writes) > 1:
            self.costly.append(f"(5) {result.delivery.label} cost {reads} and {writes}")

    def _count_run(self, result: RunResult) -> None:
        self.report(f"    {summary(result)}")
        self.counts["runs"] += 1
        if result.points.died:
            self.counts[f"crash before {result.points.kind}"] += 1
        for kind, request in [*self.fake.faults.injected, *self.scene.git.faults.injected]:
            self.counts[f"fault {kind} {'git' if 'git-' in request or 'info/refs' in request else 'API'}"] += 1
        self.fake.faults.injected.clear()
        self.scene.git.faults.injected.clear()


def summary(result: RunResult) -> str:
    """What one run did, in one line."""
    end = f"died at {result.points.died}" if result.points.died else f"exit code {result.code}"
    lines = [line for line in result.log.splitlines() if line.startswith(("Issue", "::error")) or "limit" in line]
    return f"{end}; {result.requests.reads} reads, {result.requests.writes} writes; " + " | ".join(
        line[:110] for line in lines[:6]
    )


def remember_earlier_issues(scene: Scene) -> None:
    add_earlier_issues(scene.fake, len(SUBJECTS))
    scene.run_action(scene.make_delivery("schedule"))


def age_branch(scene: Scene) -> None:
    """Bring the branch close to its squash."""
    for turn in range(EARLY_CHANGES):
        make_small_change(scene.fake, turn)
        scene.run_action(scene.make_delivery("issues", "labeled", len(SUBJECTS)))
    scene.branch.lengthen(SQUASH - 3)


STARTS: dict[str, tuple[Callable[[Scene], None], ...]] = {
    "empty": (),
    "warm": (remember_earlier_issues,),
    "old": (remember_earlier_issues, age_branch),
}
"""The states of memory with which histories begin."""
