"""One history, told by a seed: what people do, which events come when and how often, and what goes wrong meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulator.displays import is_shown
from tests.simulator.eye import Watched
from tests.simulator.memories import waits
from tests.simulator.people import STEPS, SUBJECTS, TURNS, People, grow, settle_in
from tests.simulator.points import Points
from tests.simulator.scene import Delivery, Ground, Ran, Scene, main_branch

LATE = 20 * 24 * 3600
"""Seconds after which a run may be started again: its payload is that old."""

SQUASH = 10
"""Commits after which the branch becomes one, in histories with settings of their own."""

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
RACED = ("git push", "git fast-import", "git fetch", "http.client.send", "25", "12", "35")


@dataclass
class Tally:
    """What a history was made of."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, times: int = 1) -> None:
        self.counts[name] += times


@dataclass(frozen=True)
class Manner:
    """How rough a history is. All are shares of one."""

    lost: float = 0.0
    twice: float = 0.0
    late: float = 0.0
    crash: float = 0.0
    fault: float = 0.0
    race: float = 0.0


CALM = Manner()
MANNERS = (
    CALM,
    Manner(lost=0.3, twice=0.25, late=0.3),
    Manner(crash=0.6, lost=0.4, twice=0.1),
    Manner(fault=0.7, twice=0.2),
    Manner(race=0.6, twice=0.3, late=0.2),
    Manner(lost=0.15, twice=0.15, late=0.2, crash=0.25, fault=0.25, race=0.15),
)


class Story:
    """One history on its scene; everything by chance is drawn from ``chance``."""

    def __init__(self, ground: Ground, seed: int, tell: Callable[[str], None] = lambda line: None) -> None:
        self.seed, self.chance, self.tell, self.count_up = seed, random.Random(seed), tell, Tally()
        draw = self.chance.random
        self.is_long = draw() < 0.03
        self.is_http = draw() < 0.2
        self.is_checked = draw() < 0.05
        self.squashes = draw() < 0.08
        self.start = "empty" if draw() < 0.15 else ("old" if self.squashes else "warm")
        self.manner = self.chance.choices(MANNERS, (2, 3, 4, 3, 3, 5))[0]
        make_start(ground, self.start)
        self.scene = Scene(ground, f"{seed}s", self.start, http=self.is_http, validate=self.is_checked)
        settle_in(self.scene.fake, len(SUBJECTS) if self.start != "empty" else self.chance.choice((0, 0, 2)))
        for turn in range(TURNS if self.start == "old" else 0):
            grow(self.scene.fake, turn)
        self.scene.skew = self.chance.choice((0, 0, 0, -40, -3, 2, 45))
        self.people = People(self.scene, self.chance)
        self.people.story, self.people.is_calm = tell, self.manner is CALM and draw() < 0.7
        self.queue: list[Delivery] = []
        self.told: set[bytes] = set()
        self.last: Delivery | None = None
        self.since = 0
        self.costly: list[str] = []

    @property
    def fake(self) -> Watched:
        return self.scene.fake

    def play(self) -> None:
        """Everything up to the end of all disturbance."""
        turns = self.chance.randint(12, 22) if self.is_long else self.chance.randint(2, 5)
        budget = turns if self.is_long else self.chance.choice((2, 2, 3, 3, 4))
        for _ in range(turns):
            self.pass_time(self.chance.choice(STEPS))
            for _ in range(2 if self.chance.random() < 0.3 else 1):
                self.count_up.add("happenings")
                event = self.people.act()
                self.since += 1
                if event:
                    self._send(event)
                self.pass_time(self.chance.choice((0, 0, 1, 5)))
            while self.queue and budget and (self.manner is CALM or self.chance.random() < 0.6):
                budget -= 1
                self.run(self._next())
        self._late_ones(budget)

    def pass_time(self, seconds: int) -> None:
        if seconds:
            self.fake.clock.advance(seconds)

    def run(self, event: Delivery) -> Ran:
        """One run with whatever disturbs it."""
        self.last = event
        self.count_up.add("events delivered")
        if event.payload in self.told:
            self.count_up.add("events repeated")
        self.told.add(event.payload)
        points = Points()
        self._disturb(points)
        self.tell(f"  {self.fake.clock.now[5:19]} run {len(self.scene.runs) + 1} on {event.label}")
        was_shown = event.number is not None and is_shown(self.scene, event.number)
        ran = self.scene.act(event, points)
        self._note(ran)
        self._count_cost(ran, was_shown=was_shown)
        self.fake.faults.clear()
        self.scene.ground.git.faults.clear()
        return ran

    def settle(self, *, fully: bool) -> list[Ran]:
        """Undisturbed runs until nothing waits any more, at most three; ``fully``: until each promise is seen kept, and
        what a run wrote is seen too, which is news on its issue."""
        ran = []
        for _ in range(3):
            self.pass_time(900)
            ran.append(self.scene.act(self.scene.deliver("schedule")))
            self.tell(f"  {self.fake.clock.now[5:19]} settling run: {summary(ran[-1])}")
            self.count_up.add("settling runs")
            if not waits(self.scene, fully=fully) and not (fully and ran[-1].seen.writes):
                break
        return ran

    def told_gone(self) -> set[int]:
        """The issues of whose going memory was told by a run that came to its end."""
        return {
            ran.delivery.number
            for ran in self.scene.runs
            if ran.delivery.action in ("deleted", "transferred")
            and ran.delivery.name == "issues"
            and ran.delivery.number
            and ran.is_done
        }

    def count_comments(self) -> None:
        for (_, reply), made in self.fake.created.items():
            self.count_up.add("replies written" if reply else "comments written", len(made))
        self.count_up.add(f"histories that begin {self.start}")
        self.count_up.add(f"histories with git over {'HTTP' if self.is_http else 'a path'}")
        self.count_up.add("requests to the API", len(self.fake.requests))
        self.count_up.add("pushes", len(self.scene.bare.moves()))

    # -- parts -----------------------------------------------------------------------------------------------------

    def _send(self, event: Delivery) -> None:
        """What becomes of an event on its way: lost, doubled, or put somewhere among the others."""
        fate, manner = self.chance.random(), self.manner
        if fate < manner.lost:
            self.count_up.add("events lost")
            self.tell("    (that event is lost)")
            return
        self.queue.append(event)
        if fate < manner.lost + manner.twice:
            self.queue.append(event)
        elif fate < manner.lost + manner.twice + manner.late:
            self.chance.shuffle(self.queue)

    def _next(self) -> Delivery:
        if self.manner is not CALM and self.chance.random() < 0.12:
            return self.scene.deliver("schedule")
        if self.manner is not CALM and self.chance.random() < 0.04 and (number := self._open_number()):
            return self._by_hand(number)
        if self.manner is not CALM and self.chance.random() < 0.05:
            self.count_up.add("rebuilds")
            payload = b'{"inputs": {"run": "rebuild"}}'
            return Delivery("workflow_dispatch", "", None, payload, "workflow_dispatch rebuild")
        return self.queue.pop(0)

    def _open_number(self) -> int | None:
        found = [number for number, issue in self.fake.repo.issues.items() if not issue.pull]
        return self.chance.choice(sorted(found)) if found else None

    def _by_hand(self, number: int) -> Delivery:
        payload = b'{"inputs": {"run": "answer", "issue": "%d"}}' % number
        return Delivery("workflow_dispatch", "", number, payload, f"workflow_dispatch answer #{number}")

    def _late_ones(self, budget: int) -> None:
        """What is still under way comes very late, or never."""
        if not self.queue:
            return
        if self.manner.late and self.chance.random() < 0.4:
            self.pass_time(LATE)
            self.count_up.add("events 20 days late")
            self.run(self.queue.pop(self.chance.randrange(len(self.queue))))
        elif budget:
            self.run(self.queue.pop(0))
        self.count_up.add("events lost", len(self.queue))
        self.queue.clear()

    def _disturb(self, points: Points) -> None:
        manner, draw = self.manner, self.chance.random
        if draw() < manner.crash:
            points.dies_at = self.chance.randint(1, 95)
        if draw() < manner.fault:
            faults = API_FAULTS + (GIT_FAULTS * 2 if self.is_http else ())
            match, kind = self.chance.choice(faults)
            plan = self.scene.ground.git.faults if (match, kind) in GIT_FAULTS else self.fake.faults
            plan.add(match, kind, self.chance.choice((1, 1, 2, None)), self.chance.choice((0, 0, 0, 1, 2)), seconds=60)
            self.tell(f"    (fault: {kind} for {match})")
        if draw() < manner.race:
            other = self.queue.pop(0) if self.queue and draw() < 0.7 else self.last or self.scene.deliver("schedule")
            point = self.chance.choice(RACED)
            self.tell(f"    (another run on {other.label} comes in between at {point})")
            points.interrupts[point] = lambda: self._interrupt(other, point)

    def _interrupt(self, other: Delivery, point: str) -> None:
        self.count_up.add(f"race at {'a numbered point' if point.isdigit() else point}")
        ran = self.scene.act_beside(other)
        self.tell(f"    the other run: {summary(ran)}")

    def _count_cost(self, ran: Ran, *, was_shown: bool) -> None:
        """(5) An event alone, where nothing is disturbed, costs two reads and one write at most.

        Where a fix is, is looked up once, when it is first told; folding a comment that is taken back is one more. So
        is looking up the open pull requests of open issues that are shown, and where another thread changed too, such
        as by our own comment, the timeline of a thread that was closed, or its comments to find ours. Who asks gets a
        reply of its own, and where replies stand numbers of comments tell nothing. What a comment of ours shows
        costs what it takes to keep that true.
        """
        alone, self.since = self.since == 1, 0
        is_asked = any(reply for _, reply in self.fake.created) or was_shown
        if is_asked or not (alone and self.people.is_calm and self.start == "warm" and ran.delivery.number):
            return
        reads = [
            path
            for path in ran.seen.read
            if not any(part in path for part in ("/commits", "/pulls", "/releases", "/tags", "/compare"))
        ]
        writes = [path for _, path, _ in ran.seen.sent if path != "/graphql"]
        self.count_up.add("usual events, undisturbed")
        comments = {path for path in reads if path.endswith("/comments")}
        own = {f"{path}/{ran.delivery.number}/comments" for path in reads if path.endswith("/issues")}
        is_whole = bool(comments & own) or any(path.endswith("/timeline") for path in reads)
        most = 2 + (is_whole and bool(comments - own)) + ("/graphql" in reads)
        if len(reads) > most or len(writes) > 1:
            self.costly.append(f"(5) {ran.delivery.label} cost {reads} and {writes}")

    def _note(self, ran: Ran) -> None:
        self.tell(f"    {summary(ran)}")
        self.count_up.add("runs", 1)
        if ran.points.died:
            self.count_up.add(f"crash before {ran.points.kind}")
        for kind, request in [*self.fake.faults.injected, *self.scene.ground.git.faults.injected]:
            self.count_up.add(f"fault {kind} {'git' if 'git-' in request or 'info/refs' in request else 'API'}")
        self.fake.faults.injected.clear()
        self.scene.ground.git.faults.injected.clear()


def summary(ran: Ran) -> str:
    """What one run did, in a line."""
    end = f"died at {ran.points.died}" if ran.points.died else f"exit code {ran.code}"
    told = [line for line in ran.log.splitlines() if line.startswith(("Issue", "::error")) or "limit" in line]
    return f"{end}; {ran.seen.reads} reads, {ran.seen.writes} writes; " + " | ".join(line[:110] for line in told[:6])


def make_start(ground: Ground, start: str) -> None:
    """Make the branch that histories begin with, once for each worker."""
    if ground.has(start):
        return
    scene = Scene(ground, "0", "empty")
    settle_in(scene.fake, len(SUBJECTS))
    scene.act(scene.deliver("schedule"))
    if start == "old":
        _grow(scene)
    scene.close()
    ground.keep(start)


def _grow(scene: Scene) -> None:
    """Bring the branch near to its squash, and put the settings on the default branch that say so."""
    for turn in range(TURNS):
        grow(scene.fake, turn)
        scene.act(scene.deliver("issues", "labeled", len(SUBJECTS)))
    main_branch(scene.bare, {".github/precedent.yml": f"memory:\n  squash_commits: {SQUASH}\n"})
