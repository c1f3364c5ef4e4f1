"""Worker processes are restarted when they end, and end with the server; they get their options by a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.model import RepositoryKey
from bot.server.processes import Child, Children, own_name
from bot.server.storage.inbox import Inbox
from tests.server.queues import FileInbox, arrival, until

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]


class ChildrenHarness:
    """Child processes other than workers; ``started`` has their start times, ``names`` their names.

    ``ended`` has the names of those known to have ended; ``error`` is raised when one ends.
    """

    def __init__(self, command: list[str], count: int) -> None:
        self.command = command
        self.processes: list[Child] = []
        self.started: list[float] = []
        self.names: list[str] = []
        self.ended: list[str] = []
        self.error: Exception | None = None
        self.children = Children(self.start, count, self.end)

    def start(self, name: str) -> Child:
        self.started.append(time.monotonic())
        self.names.append(name)
        child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        self.processes.append(child)
        return child

    @property
    def running_pids(self) -> list[int]:
        return [child.pid for child in self.processes if child.poll() is None]

    def end(self, name: str) -> None:
        self.ended.append(name)
        if self.error:
            raise self.error


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[ChildrenHarness]:
    children_harness = ChildrenHarness(*request.param)
    yield children_harness
    children_harness.children.ask_to_end()
    children_harness.children.wait(0)


@pytest.mark.parametrize("harness", [(["sleep", "60"], 2)], indirect=True)
def test_the_requested_number_of_children_runs_until_they_are_asked_to_end(harness: ChildrenHarness) -> None:
    harness.children.begin()
    until(lambda: len(harness.running_pids) == 2)
    harness.children.ask_to_end()
    assert harness.children.wait(5)
    assert harness.running_pids == []
    assert len(set(harness.names)) == len(harness.started) == 2
    assert harness.ended == [], "they gave back their leases themselves"


@pytest.mark.slow
@pytest.mark.parametrize("harness", [(["sleep", "60"], 1)], indirect=True)
def test_a_killed_child_is_restarted_after_a_second(harness: ChildrenHarness) -> None:
    harness.children.begin()
    until(lambda: harness.running_pids)
    (first,) = harness.running_pids
    os.kill(first, signal.SIGKILL)
    until(lambda: harness.running_pids not in ([], [first]))
    assert 0.8 <= harness.started[1] - harness.started[0] <= 5
    assert harness.ended == harness.names[:1]
    assert harness.names[1] != harness.names[0]


@pytest.mark.slow
@pytest.mark.parametrize("harness", [(["false"], 1)], indirect=True)
def test_a_child_whose_leases_cannot_be_released_is_restarted_all_the_same(
    harness: ChildrenHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.error = WorldError("the connection was refused")
    harness.children.begin()
    until(lambda: len(harness.started) == 2)
    assert "its leases could not be released; they will expire: the connection was refused" in caplog.messages


def test_the_leases_of_a_killed_worker_are_available_to_others_at_once() -> None:
    """Its leases need not expire, as its parent knows its name."""
    inbox, names, processes = FileInbox(), list[str](), list[Child]()
    inbox.put([arrival("a", RepositoryKey(7, 1)), arrival("b", RepositoryKey(7, 2))])

    def start(name: str) -> Child:
        names.append(name)
        inbox.queue.claim(name)  # in place of the process, which is not a real worker
        processes.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL))
        return processes[-1]

    children = Children(start, 2, inbox.queue.release)
    children.begin()
    until(lambda: len(processes) == 2)
    assert owners(inbox) == set(names)
    processes[0].kill()
    until(lambda: "" in owners(inbox))
    assert owners(inbox) == {"", names[1]}, "the other one keeps what it has"
    assert inbox.queue.claim("another")
    children.ask_to_end()
    children.wait(5)


def owners(inbox: Inbox) -> set[str]:
    """Return the owners of the leases; "" stands for a key without a lease."""
    return {row["owner"] for row in inbox.database.rows("select owner from queue")}


def test_every_child_gets_a_unique_name() -> None:
    names = {own_name() for _ in range(100)}
    assert len(names) == 100
    assert {name.split("-")[-2] for name in names} == {str(os.getpid())}


@pytest.mark.slow
@pytest.mark.parametrize("harness", [(["false"], 1)], indirect=True)
def test_a_child_that_keeps_failing_is_restarted_less_and_less_often(harness: ChildrenHarness) -> None:
    harness.children.begin()
    until(lambda: len(harness.started) == 3)
    first, second, third = harness.started
    assert third - second >= 1.5 * (second - first)


@pytest.mark.slow
@pytest.mark.parametrize("harness", [(["/nowhere/at/all"], 1)], indirect=True)
def test_a_command_that_cannot_be_started_is_tried_again(harness: ChildrenHarness) -> None:
    harness.children.begin()
    until(lambda: len(harness.started) == 2)


@pytest.mark.slow
@pytest.mark.parametrize("harness", [(STUBBORN, 1)], indirect=True)
def test_a_child_that_does_not_end_in_time_is_killed(harness: ChildrenHarness) -> None:
    harness.children.begin()
    until(lambda: harness.running_pids)
    time.sleep(0.5)  # for the shell to have set its trap
    harness.children.ask_to_end()
    assert not harness.children.wait(0.5)
    assert harness.running_pids == []


@pytest.mark.slow
def test_a_worker_gets_its_options_without_a_secret_in_arguments_or_environment(tmp_path: Path) -> None:
    """A stand-in for `bot` records how it was started."""
    package = tmp_path / "bot"
    package.mkdir()
    (package / "__init__.py").touch()
    stand_in = """
        import json, os, sys
        line = open("/proc/self/cmdline").read() + open("/proc/self/environ").read()
        json.dump({"line": line, "given": json.load(sys.stdin)}, open("seen.new", "w"))
        os.rename("seen.new", "seen.json")
    """
    (package / "__main__.py").write_text(textwrap.dedent(stand_in), encoding="utf-8")
    script = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        from bot.server.processes import spawn
        from bot.server.options import ServerOptions
        os.chdir({str(tmp_path)!r})
        spawn(ServerOptions(app_id=7, private_key="a secret of sixteen", port=1234), "host-1-ab").wait()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, cwd=tmp_path)
    seen = (tmp_path / "seen.json").read_text(encoding="utf-8")
    line, _, stdin_options = seen.partition('"given"')
    assert "worker" in line
    assert '"name": "host-1-ab"' in stdin_options
    assert "a secret of sixteen" in stdin_options
    assert "a secret of sixteen" not in line
    assert '"PRECEDENT_PORT": "1234"' in stdin_options
