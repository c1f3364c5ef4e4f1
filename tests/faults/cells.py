"""One cell of the table: a call, a fault that it meets, and what came of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.exchange import Recorded
from tests.faults.scenes import SCENES, Event, Scene
from tests.faults.theatre import Theatre

ENOUGH = ("401", "primary403", "secondary403", "429", "limit200", "secondary200")
"""Faults after which a run asks GitHub for nothing more of that kind."""


@dataclass(frozen=True)
class Call:
    """A request that the product makes: what it is for, in which scene, and which requests are it."""

    name: str
    scene: str
    match: str

    @property
    def is_read(self) -> bool:
        return self.match.startswith("GET")

    @property
    def is_graphql(self) -> bool:
        return self.match.endswith("/graphql")


@dataclass(frozen=True)
class Fault:
    """A fault as the table names it. ``times`` None: it lasts through the run."""

    name: str
    kind: str
    times: int | None = None
    seconds: float = 3600.0
    to: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of it. ``code`` and ``says`` are of the disturbed run, ``done`` tells when what was due came about: in
    this run (``now``), in the next one (``later``), or ``never``; ``remembers``: whether memory had
    the event's issue as it is after the disturbed run already; ``buried``: memory took an issue for gone in the end."""

    code: int
    says: str
    done: str
    remembers: bool
    buried: bool = False


@dataclass
class Played:
    """A cell that was played: what came of it, and what must never be."""

    outcome: Outcome
    log: str
    wrong: list[str] = field(default_factory=list)


class Stages:
    """A theatre for each scene, told once, open until `close`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="precedent-faults-")
        self._open: dict[str, tuple[Theatre, Event]] = {}

    def at(self, scene: Scene) -> tuple[Theatre, Event]:
        if scene.name not in self._open:
            folder = Path(self._folder.name) / scene.name.replace(" ", "-")
            folder.mkdir()
            theatre = Theatre(folder)
            theatre.github.add_project("octo-org/other")
            event = scene.tell(theatre)
            theatre.keep()
            self._open[scene.name] = theatre, event
        theatre, event = self._open[scene.name]
        theatre.set_back()
        return theatre, event

    def close(self) -> None:
        for theatre, _ in self._open.values():
            theatre.close()
        self._folder.cleanup()


@contextmanager
def stages() -> Iterator[Stages]:
    opened = Stages()
    try:
        yield opened
    finally:
        opened.close()


def play(call: Call, fault: Fault, on: Stages) -> Played:
    """The run that meets the fault, and the next one, which meets none."""
    scene = SCENES[call.scene]
    theatre, event = on.at(scene)
    github = theatre.github
    github.faults.add(call.match, fault.kind, fault.times, seconds=fault.seconds, to=fault.to)
    code = theatre.act(*event)
    wrong = [] if github.faults.injected else ["the call was not made"]
    return after(code, scene, theatre, wrong + _too_much(theatre, call, fault), event[2] or scene.due)


def after(
    code: int,
    scene: Scene,
    theatre: Theatre,
    wrong: list[str],
    number: int,
    mend: Callable[[Theatre], object] = Theatre.calm,
) -> Played:
    """What came of the run that just ended with ``code``, and of the next one, once the trouble is over and somebody
    mended what has to be; ``number`` is the event's issue."""
    log, said = theatre.log, _complaints(theatre.log)
    theatre.calm()
    mend(theatre)
    now = scene.done(theatre, scene.due)
    remembers = not [line for line in theatre.lacks() if line.startswith(f"{number} ")]
    theatre.github.clock.advance(300)
    newest = max(issue.updated_at for issue in theatre.github.repo.issues.values())
    wrong = wrong + _next(theatre, scene, newest)
    then = scene.done(theatre, scene.due)
    done = "now" if now else "later" if then else "never"
    buried = "is buried" in str(wrong)
    wrong = [line for line in wrong if "is buried" not in line and line != f"{scene.strange} is missing"]
    return Played(Outcome(code, said, done, remembers, buried), log, wrong + _forbidden(log))


def _complaints(log: str) -> str:
    """The lines that the runner shows as errors and notices."""
    return " | ".join(re.findall(r"^::(?:error|notice)::(.*)$", log, re.MULTILINE))


def _too_much(theatre: Theatre, call: Call, fault: Fault) -> list[str]:
    """Requests that should not have been made."""
    asked = theatre.github.recent
    struck = len(theatre.github.faults.injected)
    wrong = []
    if fault.kind in ENOUGH and (more := _after_the_first(call, fault, asked)):
        wrong.append(f"asked for more after {fault.name}: {more}")
    if struck > (12 if call.is_read or call.scene == "first" else 2):
        wrong.append(f"asked {struck} times in vain")
    posted = [r for r in asked if r.method == "POST" and r.path.endswith("{issue_number}/comments")]
    if len(posted) > 2:
        wrong.append("a comment was posted again")
    return wrong


def _after_the_first(call: Call, fault: Fault, asked: list[Recorded]) -> list[Recorded]:
    """The requests after the one that met the fault; of an hourly limit those of the same kind."""
    met = [r.path == "/graphql" if call.is_graphql else r.status in (401, 403, 429) for r in asked].index(True)
    is_hourly = fault.kind in ("primary403", "limit200")
    return [r for r in asked[met + 1 :] if not is_hourly or (r.path == "/graphql") == call.is_graphql]


def _next(theatre: Theatre, scene: Scene, newest: str) -> list[str]:
    """What is wrong after a run that nothing disturbs: all is remembered and said once, the cursor is at ``newest``."""
    wrong = []
    if code := theatre.act("schedule"):
        wrong.append(f"the next run ended with {code}: {_complaints(theatre.log)}")
    wrong += theatre.lacks(newest)
    seals = [text for text in theatre.stage.comments(scene.due) if "reply" not in text.splitlines()[0]]
    if len(seals) > 1:
        wrong.append(f"{len(seals)} comments")
    return wrong + [str(found) for found in theatre.github.violations]


def _forbidden(log: str) -> list[str]:
    return [words for words in ("Traceback", "this is a bug", "ghs_fake") if words in log]
