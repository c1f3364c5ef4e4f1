"""Performs kills one by one: a run that is killed, the runs that follow, and the verdict."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tests.acceptance.stage import BOT
from tests.kills.kill_stage import STARTS, Event, KillStage
from tests.kills.points import KillResult, Point, UndisturbedRun, place_of
from tests.kills.process import ActionProcess
from tests.kills.verdict import all_faults, branch_faults, misplaced_comments, postponement_rule, read_answer

SOON, LATER = 30, 180
"""Seconds on the fake's clock until the next run: within ``POSTING_WINDOW`` of a promise, and after it."""

TIMEOUT = 120.0
TRIES = 4


@dataclass
class Baseline:
    """What all kills of a campaign share: the stage, and each scenario's run without a kill.

    ``schedule_seconds`` is how long a scheduled run took. One follows most kills, so its length shows how busy the
    machine is: ``slowdown`` says how much slower runs are now than when they were measured.
    """

    stage: KillStage
    undisturbed_runs: Mapping[str, UndisturbedRun]
    schedule_seconds: float
    slowdown: float = 1.0


def measure_baseline(stage: KillStage, scenarios: Iterable[str] = STARTS) -> Baseline:
    """Run each scenario without a kill, followed by a scheduled run."""
    undisturbed_runs, schedule_seconds = {}, 0.0
    for scenario in scenarios:
        event = stage.trigger(scenario)
        stage.gate.begin()
        started = time.monotonic()
        code = stage.start(event).wait(TIMEOUT)
        seconds = time.monotonic() - started
        requests = tuple(step.name for step in stage.gate.steps)
        seals, replies = read_answer(stage, event.comment)
        faults = list(all_faults(stage, event.comment))
        if code or faults or not seals or replies != (scenario == "command"):
            raise SystemExit(f"the scenario {scenario} fails without any kill: {code} {faults} {seals} {replies}")
        undisturbed_runs[scenario] = UndisturbedRun(seconds, requests, seals, replies)
        started = time.monotonic()
        stage.start(Event("schedule")).wait(TIMEOUT)
        schedule_seconds = time.monotonic() - started
    return Baseline(stage, undisturbed_runs, schedule_seconds)


def perform_kill(point: Point, baseline: Baseline) -> KillResult:
    """One kill. If the run ends before it is killed, the kill is repeated after half the time."""
    for attempt in range(TRIES):
        result = _Kill(replace(point, share=point.share / 2**attempt), baseline).carry_out()
        if result:
            return result
    return KillResult(point, place="the run was over", faults=["no kill: the run was over before it each time"])


class _Kill:
    """One kill on a stage that is as its scenario begins."""

    def __init__(self, point: Point, baseline: Baseline) -> None:
        self.point, self.stage, self.baseline = point, baseline.stage, baseline
        self.undisturbed_run = baseline.undisturbed_runs[point.scenario]
        self.result = KillResult(point)
        self.event = self.stage.trigger(point.scenario)

    def carry_out(self) -> KillResult | None:
        victim = self._run_until_killed()
        if victim is None:
            return None
        try:
            self.result.place = place_of(self.stage.gate.steps, self.undisturbed_run)
            self._add_faults("after the kill", misplaced_comments(self.stage, self.event.comment))
            self._add_faults("after the kill", branch_faults(self.stage))
            self._run_follow_ups()
        finally:
            victim.kill_survivors()
        return self.result

    def _run_until_killed(self) -> ActionProcess | None:
        """The killed run; None if it ended before the kill."""
        point, gate = self.point, self.stage.gate
        were_running: list[bool] = []
        processes: list[ActionProcess] = []

        def kill_run() -> None:
            were_running.append(not processes[0].is_over)
            processes[0].kill(alone=point.alone)

        gate.after_request = self._watch
        gate.begin(point.request if point.moment else 0, point.moment, kill_run)
        started = time.monotonic()
        processes.append(self.stage.start(self.event))
        if point.moment:
            processes[0].wait(TIMEOUT)
        else:
            if point.request:
                gate.wait_for(point.request, lambda: processes[0].is_over, TIMEOUT)
            length = self.undisturbed_run.seconds * self.baseline.slowdown
            processes[0].wait(point.share * (1 if point.request else length))
            if processes[0].is_over and not point.request:
                self.baseline.slowdown = (time.monotonic() - started) / self.undisturbed_run.seconds
            kill_run()
            processes[0].wait(TIMEOUT)
        if not gate.wait_until_idle():
            self.result.faults.append("the servers did not come to rest")
        return processes[0] if any(were_running) else None

    def _watch(self) -> None:
        """After each request: no issue has two comments of ours."""
        self._add_faults("at once", misplaced_comments(self.stage, self.event.comment))

    def _run_follow_ups(self) -> None:
        """The runs that follow until the comment must be there, and the checks after them."""
        stage = self.stage
        pauses = [SOON, LATER] if self.point.soon else [LATER]
        for index, pause in enumerate(pauses):
            stage.github.clock.advance(pause)
            rule = postponement_rule(stage, self.event.comment)
            self._run_next("schedule" if index else self.point.next)
            if self._has_expected_answer():
                break
            if rule and index + 1 < len(pauses):
                self.result.waited.append(rule)
                continue
            expected = f"{self.undisturbed_run.seals} and {self.undisturbed_run.replies} replies"
            actual = " and ".join(map(str, read_answer(stage, self.event.comment)))
            self._add_faults(f"after run {self.result.runs}", [f"{actual} replies stand instead of {expected}"])
        self._add_faults("at the end", all_faults(stage, self.event.comment))
        self.result.comments = len(stage.github.comments_by(BOT))

    def _run_next(self, purpose: str) -> None:
        stage, before = self.stage, self.stage.temporary_files()
        event = stage.open_unrelated_issue() if purpose == "another" else Event("schedule")
        stage.gate.begin()
        started = time.monotonic()
        process = stage.start(event)
        code = process.wait(TIMEOUT)
        if purpose == "schedule":
            self.baseline.slowdown = (time.monotonic() - started) / self.baseline.schedule_seconds
        self.result.runs += 1
        if code is None:
            process.kill()
        if code:
            log_tail = stage.log.read_text(encoding="utf-8", errors="replace")[-300:]
            self._add_faults(f"run {self.result.runs}", [f"exit code {code}: {log_tail}"])
        self._add_faults(f"run {self.result.runs}", [f"it left {name}" for name in stage.temporary_files() - before])

    def _has_expected_answer(self) -> bool:
        expected = self.undisturbed_run.seals, self.undisturbed_run.replies
        return read_answer(self.stage, self.event.comment) == expected

    def _add_faults(self, when: str, faults: Iterable[str]) -> None:
        self.result.faults += [f"{when}: {fault}" for fault in faults]
