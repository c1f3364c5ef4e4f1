"""Performs kills one by one: a fresh repository, a run that is killed, the runs that follow, and the verdict."""

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

from tests.kills.points import KillResult, Point, UndisturbedRun, place_of
from tests.kills.process import ActionProcess
from tests.kills.repository import SCENARIOS, STATES, Event, Prepared, Repository
from tests.kills.verdict import branch_faults, duplicate_comments, memory_differences, postponement_rule, read_answer

SOON, LATER = 30, 180
"""Seconds on the fake's clock until the next run: within ``POSTING_WINDOW`` of an outbox entry, and after it."""

TIMEOUT = 120.0
TRIES = 4


@dataclass(frozen=True, slots=True)
class Baseline:
    """What all kills of a campaign share: the prepared states, and each scenario's run without a kill."""

    prepared: Prepared
    undisturbed_runs: Mapping[str, UndisturbedRun]
    schedule_seconds: float
    """Seconds of a scheduled run. One follows most kills, so its length shows how busy the machine is."""


@dataclass
class _Slowdown:
    """How much slower runs are now than when they were measured."""

    factor: float = 1.0


_SLOWDOWN = _Slowdown()


def measure_baseline(prepared: Prepared, folder: Path, scenarios: Iterable[str] = SCENARIOS) -> Baseline:
    """Run each scenario without a kill, followed by a scheduled run."""
    undisturbed_runs, schedule_seconds = {}, 0.0
    for scenario in scenarios:
        with _fresh(prepared, folder, scenario) as repository:
            event = repository.trigger(scenario)
            repository.gate.begin()
            started = time.monotonic()
            code = repository.start(event).wait(TIMEOUT)
            seconds = time.monotonic() - started
            requests = tuple(step.name for step in repository.gate.steps)
            seals, replies = read_answer(repository, event.comment)
            faults = _faults(repository, event)
            if code or faults or not seals or replies != (scenario == "command"):
                raise SystemExit(f"the scenario {scenario} fails without any kill: {code} {faults} {seals} {replies}")
            undisturbed_runs[scenario] = UndisturbedRun(seconds, requests, seals, replies)
            started = time.monotonic()
            repository.start(Event("schedule")).wait(TIMEOUT)
            schedule_seconds = time.monotonic() - started
    return Baseline(prepared, undisturbed_runs, schedule_seconds)


def perform_kills(points: list[Point], baseline: Baseline, folder: Path, processes: int = 1) -> Iterator[KillResult]:
    """Yields the result of each kill as soon as it is there."""
    perform = partial(perform_kill, baseline=baseline, folder=folder)
    if processes == 1:
        yield from map(perform, points)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(perform, points)


def perform_kill(point: Point, baseline: Baseline, folder: Path) -> KillResult:
    """One kill. If the run ends before it is killed, the kill is repeated after half the time."""
    for attempt in range(TRIES):
        aimed = replace(point, share=point.share / 2**attempt)
        with _fresh(baseline.prepared, folder, point.scenario) as repository:
            result = _Kill(aimed, repository, baseline).carry_out()
        if result:
            return result
    return KillResult(point, place="the run was over", faults=["no kill: the run was over before it each time"])


class _Kill:
    """One kill on one fresh repository."""

    def __init__(self, point: Point, repository: Repository, baseline: Baseline) -> None:
        self.point, self.repository, self.baseline = point, repository, baseline
        self.undisturbed_run = baseline.undisturbed_runs[point.scenario]
        self.result = KillResult(point)
        self.event = repository.trigger(point.scenario)

    def carry_out(self) -> KillResult | None:
        started = time.monotonic()
        victim = self._run_until_killed()
        if victim is None:
            return None
        try:
            self._inspect_after_kill()
            self._run_follow_ups()
        finally:
            victim.kill_survivors()
        self.result.seconds = time.monotonic() - started
        return self.result

    def _run_until_killed(self) -> ActionProcess | None:
        """The killed run; None if it ended before the kill."""
        point, gate = self.point, self.repository.gate
        were_running: list[bool] = []
        processes: list[ActionProcess] = []

        def kill_run() -> None:
            were_running.append(not processes[0].is_over)
            processes[0].kill(alone=point.alone)

        gate.after_request = self._watch
        gate.begin(point.request if point.moment else 0, point.moment, kill_run)
        started = time.monotonic()
        processes.append(self.repository.start(self.event))
        if point.moment:
            processes[0].wait(TIMEOUT)
        else:
            if point.request:
                gate.wait_for(point.request, lambda: processes[0].is_over, TIMEOUT)
            processes[0].wait(point.share * (1 if point.request else self.undisturbed_run.seconds * _SLOWDOWN.factor))
            if processes[0].is_over and not point.request:
                _SLOWDOWN.factor = (time.monotonic() - started) / self.undisturbed_run.seconds
            kill_run()
            processes[0].wait(TIMEOUT)
        if not gate.wait_until_idle():
            self.result.faults.append("the servers did not come to rest")
        return processes[0] if any(were_running) else None

    def _watch(self) -> None:
        """After each request: no issue has two comments of ours."""
        self._add_faults("at once", duplicate_comments(self.repository, self.event.comment))

    def _inspect_after_kill(self) -> None:
        gate, repository = self.repository.gate, self.repository
        self.result.place, self.result.requests = place_of(gate.steps, self.undisturbed_run), len(gate.steps)
        leftovers = repository.temporary_files()
        self.result.left, self.result.left_folders = sum(leftovers.values()), len(leftovers)
        self._add_faults(
            "after the kill", [*duplicate_comments(repository, self.event.comment), *branch_faults(repository)]
        )

    def _run_follow_ups(self) -> None:
        """The runs that follow until the comment must be there, and the checks after them."""
        repository = self.repository
        pauses = [SOON, LATER] if self.point.soon else [LATER]
        for index, pause in enumerate(pauses):
            repository.github.clock.advance(pause)
            rule = postponement_rule(repository, self.event.comment)
            self._run_next("schedule" if index else self.point.next)
            if self._has_expected_answer():
                break
            if rule and index + 1 < len(pauses):
                self.result.waited.append(rule)
                continue
            expected = f"{self.undisturbed_run.seals} and {self.undisturbed_run.replies} replies"
            actual = " and ".join(map(str, read_answer(repository, self.event.comment)))
            self._add_faults(f"after run {self.result.runs}", [f"{actual} replies stand instead of {expected}"])
        self._add_faults("at the end", _faults(repository, self.event))
        self.result.comments = sum(map(len, repository.comments().values()))

    def _run_next(self, purpose: str) -> None:
        repository, before = self.repository, set(self.repository.temporary_files())
        event = repository.open_unrelated_issue() if purpose == "another" else Event("schedule")
        repository.gate.begin()
        started = time.monotonic()
        process = repository.start(event)
        code = process.wait(TIMEOUT)
        if purpose == "schedule":
            _SLOWDOWN.factor = (time.monotonic() - started) / self.baseline.schedule_seconds
        self.result.runs += 1
        if code is None:
            process.kill()
        if code:
            log_tail = repository.log.read_text(encoding="utf-8", errors="replace")[-300:]
            self._add_faults(f"run {self.result.runs}", [f"exit code {code}: {log_tail}"])
        self._add_faults(
            f"run {self.result.runs}", [f"it left {name}" for name in set(repository.temporary_files()) - before]
        )

    def _has_expected_answer(self) -> bool:
        return read_answer(self.repository, self.event.comment) == (
            self.undisturbed_run.seals,
            self.undisturbed_run.replies,
        )

    def _add_faults(self, when: str, faults: Iterable[str]) -> None:
        self.result.faults += [f"{when}: {fault}" for fault in faults]


def _faults(repository: Repository, event: Event) -> list[str]:
    return [*duplicate_comments(repository, event.comment), *branch_faults(repository), *memory_differences(repository)]


@contextmanager
def _fresh(prepared: Prepared, folder: Path, scenario: str) -> Iterator[Repository]:
    """A fresh repository in its own folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"{scenario}-", dir=folder, ignore_cleanup_errors=True) as own:
        repository = Repository(Path(own), prepared, STATES[scenario])
        try:
            yield repository
        finally:
            repository.close()
