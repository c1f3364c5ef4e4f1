"""The server stops whatever it is doing, loses nothing, and its workers stop with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server import web
from bot.server.model import Delivery
from bot.server.work import worker
from tests.server.queues import take_lease
from tests.server.server_process import APP, ROOT, STANDIN, ServerStage, until
from tests.server.stub_server import RUNS

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServerStage]:
    server_stage = ServerStage(tmp_path, STANDIN)
    yield server_stage
    server_stage.close()
    assert server_stage.github.violations == []


def deliver_issue(stage: ServerStage, number: int) -> None:
    """Deliver an issue with this number, which the stand-in never looks up."""
    first = stage.github.open_issue("octocat", "Sesame", "Open.")
    payload = stage.github.payload("issues", "opened", first, extra={"installation": {"id": APP}})
    payload["issue"] |= {"number": number}
    assert stage.github.hooks.deliver("issues", payload).status == 202


def issues_in_runs(stage: ServerStage, kind: str) -> list[list[int]]:
    """The issue numbers of each run that began or ended; the server's own checks have none."""
    file = stage.data / RUNS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    issue_numbers = [
        [number for number in numbers if number]
        for recorded_kind, _, numbers, _ in map(json.loads, lines)
        if recorded_kind == kind
    ]
    return [numbers for numbers in issue_numbers if numbers]


def issue_deliveries(stage: ServerStage) -> list[Delivery]:
    """The deliveries about issues, oldest first."""
    return [row for row in stage.rows() if row.event.number]


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start_run(stage: ServerStage, number: int) -> int:
    """Start the server, and its run of an issue with this number. Returns the process id of its worker."""
    stage.start()
    (child,) = stage.children()
    deliver_issue(stage, number)
    until(lambda: issues_in_runs(stage, "begin"), describe=stage.log_text)
    return child


def test_the_limits_add_up_to_less_than_ten_seconds() -> None:
    assert max(worker.DRAIN_SECONDS, web.DRAIN_SECONDS) + 1 < 10


def test_an_idle_server_ends_without_its_worker(stage: ServerStage) -> None:
    stage.start()
    (child,) = stage.children()
    assert stage.stop() == 0
    assert not is_alive(child)
    assert "stopped" in [line["message"] for line in stage.lines()]


def test_a_stopping_server_finishes_its_current_run_first(stage: ServerStage) -> None:
    start_run(stage, 130)
    assert stage.stop() == 0
    assert issues_in_runs(stage, "end") == [[130]]
    assert [row.state for row in issue_deliveries(stage)] == ["done"]


def test_a_run_that_waits_for_the_stop_goes_back_to_the_queue(stage: ServerStage) -> None:
    start_run(stage, 200)
    assert (stage.stop(), [row.state for row in issue_deliveries(stage)]) == (0, ["waiting"])
    with stage.inbox() as inbox:
        assert take_lease(inbox, issue_deliveries(stage)[0].repository), "another one goes on at once"


@pytest.mark.night
def test_a_hanging_run_is_abandoned_and_started_again_later(stage: ServerStage) -> None:
    start_run(stage, 300)
    assert stage.stop() == 0
    assert "some runs did not end in time: they will be run again" in [line["message"] for line in stage.lines()]
    with stage.inbox() as inbox:
        lease = take_lease(inbox, issue_deliveries(stage)[0].repository)  # it is ready at once
        assert issue_deliveries(stage)[0].begun == 0, "it is not to blame"
        inbox.give_back(lease, 0)
    stage.start()
    until(lambda: len(issues_in_runs(stage, "begin")) == 2, describe=stage.log_text)
    (row,) = issue_deliveries(stage)
    assert row.state == "working"
    assert row.begun >= 1, "alone, or with what the resync has added"


@pytest.mark.night
def test_a_killed_worker_is_replaced_and_its_work_continues(stage: ServerStage) -> None:
    first = start_run(stage, 120)
    os.kill(first, signal.SIGKILL)
    stage.settle()
    until(
        lambda: issues_in_runs(stage, "end") == [[120]], describe=stage.log_text
    )  # logged a moment after the inbox has it
    assert first not in stage.children()
    messages = [line["message"] for line in stage.lines()]
    assert "a worker ended; another one will be started" in messages
    assert not any("its leases could not be released" in line for line in messages)
    assert stage.get("/healthz")[0] == 200


def test_workers_finish_their_run_and_end_when_the_server_is_killed(stage: ServerStage) -> None:
    child = start_run(stage, 120)
    assert stage.stop(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not is_alive(child), 15, stage.log_text)
    assert issues_in_runs(stage, "end") == [[120]]


@pytest.mark.night
@pytest.mark.postgres
def test_a_separate_worker_handles_what_the_server_received(tmp_path: Path, postgres_url: str) -> None:
    stage = ServerStage(tmp_path, STANDIN, postgres_url)
    with stage.log_file.open("ab") as log:
        separate = subprocess.Popen(stage.command("worker"), cwd=ROOT, env=stage.environ(), stdout=log, stderr=log)
    try:
        stage.start(workers=0)
        deliver_issue(stage, 1)
        stage.settle()
        until(
            lambda: issues_in_runs(stage, "end") == [[1]], describe=stage.log_text
        )  # logged a moment after the inbox has it
        until(
            lambda: stage.get("/status.json")[0] == 200, describe=stage.log_text
        )  # the checks are cached for two seconds
        separate.terminate()
        assert separate.wait(timeout=30) == 0
    finally:
        separate.kill()
        separate.wait()
        stage.close()


@pytest.mark.night
def test_a_server_without_workers_stores_its_deliveries(stage: ServerStage) -> None:
    stage.start(workers=0)
    deliver_issue(stage, 1)
    assert stage.children() == []
    assert stage.stop() == 0
    assert [row.state for row in issue_deliveries(stage)] == ["waiting"]
    stage.start()
    stage.settle()
    assert [row.state for row in issue_deliveries(stage)] == ["done"]
