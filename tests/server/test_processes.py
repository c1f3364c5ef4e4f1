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

from bot.server.processes import Child, Children

ROOT = Path(__file__).resolve().parents[2]
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"]


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


class Nursery:
    """Children that are no workers; ``started`` is when each began."""

    def __init__(self, command: list[str], count: int) -> None:
        self.command = command
        self.started: list[float] = []
        self.children = Children(self.start, count)

    def start(self) -> Child:
        self.started.append(time.monotonic())
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL)


@pytest.fixture
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    made = Nursery(*request.param)
    yield made
    made.children.ask_to_end()
    made.children.wait(0)


@pytest.mark.parametrize("nursery", [(["sleep", "60"], 2)], indirect=True)
def test_as_many_run_as_there_should_and_none_after_the_end(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: len(nursery.children.living) == 2)
    nursery.children.ask_to_end()
    assert nursery.children.wait(5)
    assert nursery.children.living == []
    assert len(nursery.started) == 2


@pytest.mark.slow
@pytest.mark.parametrize("nursery", [(["sleep", "60"], 1)], indirect=True)
def test_one_that_was_killed_comes_back_after_a_second(nursery: Nursery) -> None:
    nursery.children.begin()
    until(lambda: nursery.children.living)
    (first,) = nursery.children.living
    os.kill(first, signal.SIGKILL)
    until(lambda: nursery.children.living not in ([], [first]))
    assert 0.8 <= nursery.started[1] - nursery.started[0] <= 5


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
    until(lambda: nursery.children.living)
    time.sleep(0.5)  # for the shell to have set its trap
    nursery.children.ask_to_end()
    assert not nursery.children.wait(0.5)
    assert nursery.children.living == []


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
        spawn(ServerOptions(app_id=7, private_key="a secret of sixteen", port=1234)).wait()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, cwd=tmp_path)
    seen = (tmp_path / "seen.json").read_text(encoding="utf-8")
    line, _, given = seen.partition('"given"')
    assert "worker" in line
    assert "a secret of sixteen" in given
    assert "a secret of sixteen" not in line
    assert '"PRECEDENT_PORT": "1234"' in given
