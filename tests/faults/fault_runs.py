"""One cell of the table: a call, a fault that it meets, and the outcome."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.exchange import RecordedRequest
from tests.faults.resettable_stage import ResettableStage
from tests.faults.scenes import SCENES, Event, Scene

STOPPING_FAULTS = ("401", "primary403", "secondary403", "429", "limit200", "secondary200")
"""Faults after which a run sends no more requests of that kind."""


@dataclass(frozen=True)
class Call:
    """A request of the product: its purpose, the scene that makes it, and the pattern it matches."""

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
    """A fault as the table names it. With ``times`` None, it lasts for the whole run."""

    name: str
    kind: str
    times: int | None = None
    seconds: float = 3600.0
    to: str = ""


@dataclass(frozen=True)
class Outcome:
    """The outcome. ``code`` and ``says`` describe the disturbed run, ``done`` when the due work was done: in this run
    (``now``), in the next one (``later``), or ``never``. ``remembers``: whether memory had the event's current issue
    right after the disturbed run. ``buried``: memory considered an issue gone in the end."""

    code: int
    says: str
    done: str
    remembers: bool
    buried: bool = False


@dataclass
class CellResult:
    """The result of playing a cell: its outcome, and problems that must never occur."""

    outcome: Outcome
    log: str
    problems: list[str] = field(default_factory=list)


class StagePool:
    """A stage for each scene, set up once, open until `close`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="precedent-faults-")
        self._open: dict[str, tuple[ResettableStage, Event]] = {}

    def stage_for(self, scene: Scene) -> tuple[ResettableStage, Event]:
        if scene.name not in self._open:
            folder = Path(self._folder.name) / scene.name.replace(" ", "-")
            folder.mkdir()
            stage = ResettableStage(folder)
            stage.github.add_project("octo-org/other")
            event = scene.set_up(stage)
            stage.save_state()
            self._open[scene.name] = stage, event
        stage, event = self._open[scene.name]
        stage.reset()
        return stage, event

    def close(self) -> None:
        for stage, _ in self._open.values():
            stage.close()
        self._folder.cleanup()


@contextmanager
def open_stages() -> Iterator[StagePool]:
    pool = StagePool()
    try:
        yield pool
    finally:
        pool.close()


def play(call: Call, fault: Fault, stages: StagePool) -> CellResult:
    """Run the Action with the fault, and then once without it."""
    scene = SCENES[call.scene]
    stage, event = stages.stage_for(scene)
    github = stage.github
    github.faults.add(call.match, fault.kind, fault.times, seconds=fault.seconds, to=fault.to)
    code = stage.act(*event)
    problems = [] if github.faults.injected else ["the call was not made"]
    return finish_cell(code, scene, stage, problems + _excess_requests(stage, call, fault), event[2] or scene.due)


def finish_cell(
    code: int,
    scene: Scene,
    stage: ResettableStage,
    problems: list[str],
    number: int,
    repair: Callable[[ResettableStage], object] = ResettableStage.clear_faults,
) -> CellResult:
    """The result of the run that just ended with ``code`` and of the next one, after the trouble ended and ``repair``
    was called. ``number`` is the event's issue."""
    log, messages = stage.log, _complaints(stage.log)
    stage.clear_faults()
    repair(stage)
    is_done_now = scene.done(stage, scene.due)
    remembers = not [line for line in stage.memory_problems() if line.startswith(f"{number} ")]
    stage.github.clock.advance(300)
    newest = max(issue.updated_at for issue in stage.github.repo.issues.values())
    problems = problems + _run_next(stage, scene, newest)
    is_done_next = scene.done(stage, scene.due)
    done = "now" if is_done_now else "later" if is_done_next else "never"
    buried = "is buried" in str(problems)
    problems = [line for line in problems if "is buried" not in line and line != f"{scene.optional_issue} is missing"]
    return CellResult(Outcome(code, messages, done, remembers, buried), log, problems + _forbidden(log))


def _complaints(log: str) -> str:
    """The lines that the runner shows as errors and notices."""
    return " | ".join(re.findall(r"^::(?:error|notice)::(.*)$", log, re.MULTILINE))


def _excess_requests(stage: ResettableStage, call: Call, fault: Fault) -> list[str]:
    """Requests that should not have been made."""
    requests = stage.github.recent
    fault_count = len(stage.github.faults.injected)
    problems = []
    if fault.kind in STOPPING_FAULTS and (more := _requests_after_fault(call, fault, requests)):
        problems.append(f"asked for more after {fault.name}: {more}")
    if fault_count > (12 if call.is_read or call.scene == "first" else 2):
        problems.append(f"asked {fault_count} times in vain")
    posted = [r for r in requests if r.method == "POST" and r.path.endswith("{issue_number}/comments")]
    if len(posted) > 2:
        problems.append("a comment was posted again")
    return problems


def _requests_after_fault(call: Call, fault: Fault, requests: list[RecordedRequest]) -> list[RecordedRequest]:
    """The requests after the one that met the fault; for an hourly limit, only those of the same kind."""
    first = [r.path == "/graphql" if call.is_graphql else r.status in (401, 403, 429) for r in requests].index(True)
    is_hourly = fault.kind in ("primary403", "limit200")
    return [r for r in requests[first + 1 :] if not is_hourly or (r.path == "/graphql") == call.is_graphql]


def _run_next(stage: ResettableStage, scene: Scene, newest: str) -> list[str]:
    """Problems after an undisturbed run, which should remember all, comment once and move the cursor to ``newest``."""
    problems = []
    if code := stage.act("schedule"):
        problems.append(f"the next run ended with {code}: {_complaints(stage.log)}")
    problems += stage.memory_problems(newest)
    seals = [text for text in stage.base.comments(scene.due) if "reply" not in text.splitlines()[0]]
    if len(seals) > 1:
        problems.append(f"{len(seals)} comments")
    return problems + [str(violation) for violation in stage.github.violations]


def _forbidden(log: str) -> list[str]:
    return [words for words in ("Traceback", "this is a bug", "ghs_fake") if words in log]
