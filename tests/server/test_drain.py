"""The server ends within ten seconds, whatever it is at, loses nothing, and its workers live and die with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.model import Delivery
from tests.server.queues import leased
from tests.server.stage import APP, ROOT, STANDIN, ServerStage, until
from tests.server.standin import RUNS

pytestmark = pytest.mark.slow


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ServerStage]:
    made = ServerStage(tmp_path, STANDIN)
    yield made
    made.close()
    assert made.github.violations == []


def opened(stage: ServerStage, number: int) -> None:
    """GitHub tells of an issue with this number, which the stand-in does not look for."""
    first = stage.github.open_issue("octocat", "Sesame", "Open.")
    payload = stage.github.payload("issues", "opened", first, extra={"installation": {"id": APP}})
    payload["issue"] |= {"number": number}
    assert stage.github.hooks.deliver("issues", payload).status == 202


def turned(stage: ServerStage, what: str) -> list[list[int]]:
    """The issues of each run that began, or ended; looks of our own making are about none."""
    file = stage.data / RUNS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [[number for number in numbers if number] for kind, _, numbers, _ in map(json.loads, lines) if kind == what]
    return [numbers for numbers in found if numbers]


def issues(stage: ServerStage) -> list[Delivery]:
    """What the ledger has about issues, oldest first."""
    return [row for row in stage.rows() if row.event.number]


def alive(pid: int) -> bool:
    """A process that ended and was not waited for is dead too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_idle_server_ends_at_once(stage: ServerStage) -> None:
    stage.start()
    (worker,) = stage.children()
    code, seconds = stage.stop()
    assert code == 0
    assert seconds < 5
    assert not alive(worker)
    assert "stopped" in [line["message"] for line in stage.lines()]


def test_what_is_being_worked_on_is_finished_first(stage: ServerStage) -> None:
    stage.start()
    opened(stage, 130)
    until(lambda: turned(stage, "begin"), told=stage.told)
    code, seconds = stage.stop()
    assert code == 0
    assert seconds < 10
    assert turned(stage, "end") == [[130]]
    assert [row.state for row in issues(stage)] == ["done"]


def test_what_waits_for_the_end_goes_back_to_the_queue(stage: ServerStage) -> None:
    stage.start()
    opened(stage, 200)
    until(lambda: turned(stage, "begin"), told=stage.told)
    code, seconds = stage.stop()
    assert (code, [row.state for row in issues(stage)]) == (0, ["waiting"])
    assert seconds < 6
    with stage.inbox() as ledger:
        assert leased(ledger, issues(stage)[0].repository), "another one goes on at once"


def test_what_hangs_is_left_and_begun_anew(stage: ServerStage) -> None:
    stage.start()
    opened(stage, 300)
    until(lambda: turned(stage, "begin"), told=stage.told)
    code, seconds = stage.stop()
    assert code == 0
    assert 7 < seconds < 10
    with stage.inbox() as ledger:
        lease = leased(ledger, issues(stage)[0].repository)  # it is ready at once
        assert issues(stage)[0].begun == 0, "it is not to blame"
        ledger.give_back(lease, 0)
    stage.start()
    until(lambda: len(turned(stage, "begin")) == 2, told=stage.told)
    (row,) = issues(stage)
    assert row.state == "working"
    assert row.begun >= 1, "alone, or with what the resync has added"


def test_a_worker_that_is_killed_comes_back_and_goes_on(stage: ServerStage) -> None:
    stage.start()
    (first,) = stage.children()
    opened(stage, 120)
    until(lambda: turned(stage, "begin"), told=stage.told)
    os.kill(first, signal.SIGKILL)
    stage.settle()
    until(lambda: turned(stage, "end") == [[120]], told=stage.told)  # told a moment after the inbox knows it
    assert first not in stage.children()
    said = [line["message"] for line in stage.lines()]
    assert "a worker ended; another one will be started" in said
    assert not any("its leases could not be released" in line for line in said)
    assert stage.get("/healthz")[0] == 200


def test_workers_end_when_the_server_is_killed_and_finish_what_they_are_at(stage: ServerStage) -> None:
    stage.start()
    (worker,) = stage.children()
    opened(stage, 120)
    until(lambda: turned(stage, "begin"), told=stage.told)
    code, _ = stage.stop(signal.SIGKILL)
    assert code == -signal.SIGKILL
    until(lambda: not alive(worker), 15, stage.told)
    assert turned(stage, "end") == [[120]]


@pytest.mark.postgres
def test_a_worker_elsewhere_does_what_a_server_received(tmp_path: Path, postgres_url: str) -> None:
    stage = ServerStage(tmp_path, STANDIN, postgres_url)
    with stage.log_file.open("ab") as log:
        worker = subprocess.Popen(stage.command("worker"), cwd=ROOT, env=stage.environ(), stdout=log, stderr=log)
    try:
        stage.start(workers=0)
        opened(stage, 1)
        stage.settle()
        until(lambda: turned(stage, "end") == [[1]], told=stage.told)  # told a moment after the inbox knows it
        until(lambda: stage.get("/status.json")[0] == 200, told=stage.told)  # the look is kept for two seconds
        worker.terminate()
        assert worker.wait(timeout=30) == 0
    finally:
        worker.kill()
        worker.wait()
        stage.close()


def test_without_workers_what_comes_in_is_kept(stage: ServerStage) -> None:
    stage.start(workers=0)
    opened(stage, 1)
    assert stage.children() == []
    assert stage.stop()[0] == 0
    assert [row.state for row in issues(stage)] == ["waiting"]
    stage.start()
    stage.settle()
    assert [row.state for row in issues(stage)] == ["done"]
