"""Worker processes come back when they end, and end with the server; the options reach them by a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.errors import WorldError
from bot.server.inbox import Inbox
from bot.server.model import RepositoryKey
from bot.server.processes import Child, Children, own_name
from tests.server.queues import FileInbox, arrival

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


class Nursery:
    """Children that are no workers; ``started`` is when each began, ``names`` what each was called.

    ``ended`` has the names of those that are known to have ended, and raises ``trouble`` if there is any.
    """

    def __init__(self, command: list[str], count: int) -> None:
        self.command = command
        self.started: list[float] = []
        self.names: list[str] = []
        self.ended: list[str] = []
        self.trouble: Exception | None = None
        self.children = Children(self.start, count, self.end)

    def start(self, name: str) -> Child:
        self.started.append(time.monotonic())
        self.names.append(name)
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL)

    def end(self, name: str) -> None:
        self.ended.append(name)
        if self.trouble:
            raise self.trouble


@pytest.fixture
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    made = Nursery(*request.param)
    yield made
    made.children.ask_to_end()
    made.children.wait(0)


@pytest.mark.parametrize("nursery", [(["sleep", "60"], 2)], indirect=True)
def test_as_many_run_as_there_should_and_none_after_the_end(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: len(nursery.children.running_pids) == 2)
    nursery.children.ask_to_end()
    assert nursery.children.wait(5)
    assert nursery.children.running_pids == []
    assert len(set(nursery.names)) == len(nursery.started) == 2
    assert nursery.ended == [], "they gave back their leases themselves"


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(["sleep", "60"], 1)], indirect=True)
def test_one_that_was_killed_comes_back_after_a_second(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: nursery.children.running_pids)
    (first,) = nursery.children.running_pids
    os.kill(first, signal.SIGKILL)
    until(lambda: nursery.children.running_pids not in ([], [first]))
    assert 0.8 <= nursery.started[1] - nursery.started[0] <= 5
    assert nursery.ended == nursery.names[:1]
    assert nursery.names[1] != nursery.names[0]


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(["false"], 1)], indirect=True)
def test_one_whose_leases_cannot_be_cleared_comes_back_all_the_same(
    nursery: Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    nursery.trouble = WorldError("the connection was refused")
    nursery.children.begin()
    until(lambda: len(nursery.started) == 2)
    assert "its leases could not be released; they will expire: the connection was refused" in caplog.messages


def test_what_a_worker_that_was_killed_had_is_ready_for_another_at_once() -> None:
    """Its leases do not have to run out, as whoever started it knows its name."""
    inbox, names = FileInbox(), list[str]()
    inbox.put([arrival("a", RepositoryKey(7, 1)), arrival("b", RepositoryKey(7, 2))])

    def start(name: str) -> Child:
        names.append(name)
        inbox.queue.claim(name)  # in place of the process, which is none of ours
        return subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)

    children = Children(start, 2, inbox.queue.release)
    children.begin()
    until(lambda: len(children.running_pids) == 2)
    assert owners(inbox) == set(names)
    os.kill(children.running_pids[0], signal.SIGKILL)
    until(lambda: "" in owners(inbox))
    assert owners(inbox) == {"", names[1]}, "the other one keeps what it has"
    assert inbox.queue.claim("another")
    children.ask_to_end()
    children.wait(5)


def owners(inbox: Inbox) -> set[str]:
    """Who has the leases; "" for a key that nobody has."""
    with inbox.database.transaction() as asking:
        return {row["owner"] for row in asking.rows("select owner from queue")}


def test_no_start_has_the_name_of_another() -> None:
    names = {own_name() for _ in range(100)}
    assert len(names) == 100
    assert {name.split("-")[-2] for name in names} == {str(os.getpid())}


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(["false"], 1)], indirect=True)
def test_one_that_cannot_run_is_tried_less_and_less_often(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: len(nursery.started) == 3)
    first, second, third = nursery.started
    assert third - second >= 1.5 * (second - first)


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(["/nowhere/at/all"], 1)], indirect=True)
def test_one_that_cannot_be_started_is_tried_again(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: len(nursery.started) == 2)


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(STUBBORN, 1)], indirect=True)
def test_one_that_does_not_end_in_time_is_killed(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: nursery.children.running_pids)
    time.sleep(0.5)  # for the shell to have set its trap
    nursery.children.ask_to_end()
    assert not nursery.children.wait(0.5)
    assert nursery.children.running_pids == []


def test_a_worker_gets_its_options_and_no_argument_or_variable_tells_a_secret(tmp_path: Path) -> None:
    """A stand-in for `bot` that writes down what it was started with."""
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
    line, _, given = seen.partition('"given"')
    assert "worker" in line
    assert '"name": "host-1-ab"' in given
    assert "a secret of sixteen" in given
    assert "a secret of sixteen" not in line
    assert '"PRECEDENT_PORT": "1234"' in given
