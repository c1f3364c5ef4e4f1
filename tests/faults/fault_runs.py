"""One cell of the table: a call, a fault that it meets, and the outcome."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from bot.domain.thread import Record, Tombstone
from tests.acceptance.stage import Stage, with_decision, with_mentions
from tests.fakes.exchange import RecordedRequest
from tests.faults.logged_stage import LoggedStage
from tests.faults.scenes import SCENES, Event, Scene
from tests.invariants import differences, duplicate_comments

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


class Playhouse:
    """One stage for all scenes, each of which is set up once."""

    def __init__(self, folder: Path) -> None:
        self.stage = LoggedStage(folder)
        self._events: dict[str, Event] = {}
        self._steps = {scene.name: partial(self._set_up, scene) for scene in SCENES.values()}

    def _set_up(self, scene: Scene, stage: Stage) -> None:
        stage.github.add_project("octo-org/other")
        self._events[scene.name] = scene.set_up(self.stage)

    def begin(self, scene: Scene) -> tuple[LoggedStage, Event]:
        """The stage as this scene leaves it, and the event that follows."""
        return self.stage.begin(with_mentions, with_decision, self._steps[scene.name]), self._events[scene.name]


def play(call: Call, fault: Fault, house: Playhouse) -> CellResult:
    """Run the Action with the fault, and then once without it."""
    scene = SCENES[call.scene]
    stage, event = house.begin(scene)
    github = stage.github
    github.faults.add(call.match, fault.kind, fault.times, seconds=fault.seconds, to=fault.to)
    code = stage.act(*event)
    problems = [] if github.faults.injected else ["the call was not made"]
    return finish_cell(code, scene, stage, problems + _excess_requests(stage, call, fault), event[2] or scene.due)


def finish_cell(
    code: int,
    scene: Scene,
    stage: LoggedStage,
    problems: list[str],
    number: int,
    repair: Callable[[LoggedStage], object] = LoggedStage.clear_faults,
) -> CellResult:
    """The result of the run that just ended with ``code`` and of the next one, after the trouble ended and ``repair``
    was called. ``number`` is the event's issue."""
    log, messages = stage.log, _complaints(stage.log)
    stage.clear_faults()
    repair(stage)
    is_done_now = scene.done(stage, scene.due)
    issue, record = stage.github.repo.issues[number], stage.memory().records([number]).get(number)
    remembers = is_unseen(record) or not differences(record, issue)
    stage.github.clock.advance(300)
    newest = max(issue.updated_at for issue in stage.github.repo.issues.values())
    problems = problems + _run_next(stage, scene, newest)
    is_done_next = scene.done(stage, scene.due)
    done = "now" if is_done_now else "later" if is_done_next else "never"
    records = stage.memory().records(stage.github.repo.issues)
    buried = [key for key, record in records.items() if isinstance(record, Tombstone) and not is_unseen(record)]
    for key, issue in stage.github.repo.issues.items():
        is_excused = key == scene.optional_issue and key not in records
        if not (issue.pull or key in buried or is_excused or is_unseen(records.get(key))):
            problems += differences(records.get(key), issue)
    return CellResult(Outcome(code, messages, done, remembers, bool(buried)), log, problems + _forbidden(log))


def is_unseen(record: Record | None) -> bool:
    """Whether memory says that the issue cannot be seen now."""
    return isinstance(record, Tombstone) and record.reason == "unseen"


def _complaints(log: str) -> str:
    """The lines that the runner shows as errors and notices."""
    return " | ".join(re.findall(r"^::(?:error|notice)::(.*)$", log, re.MULTILINE))


def _excess_requests(stage: LoggedStage, call: Call, fault: Fault) -> list[str]:
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


def _run_next(stage: LoggedStage, scene: Scene, newest: str) -> list[str]:
    """Problems after an undisturbed run, which should comment once and move the cursor to ``newest``."""
    problems = []
    if code := stage.act("schedule"):
        problems.append(f"the next run ended with {code}: {_complaints(stage.log)}")
    cursor = stage.memory().state.manifest.cursor
    if cursor is None or cursor < datetime.fromisoformat(newest):
        problems.append(f"the cursor stands at {cursor}, not {newest}")
    problems += duplicate_comments(stage.github.repo)
    return problems + [str(violation) for violation in stage.github.violations]


def _forbidden(log: str) -> list[str]:
    return [words for words in ("Traceback", "this is a bug", "ghs_fake") if words in log]
