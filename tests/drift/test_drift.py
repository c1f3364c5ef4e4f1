"""The guards of the documentation bite: each change that lets it drift from the code makes them fail, by its name."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, tracked
from tests.drift.drifts import DRIFTS, Drift
from tests.examples import share

TRIED = dict(share(DRIFTS.items(), 6))
"""Every sixth in a quick run; that all stand there once is looked at for all."""
GUARDS = sorted({drift.guard for drift in DRIFTS.values()})
MINUTE = 60
FORKS = Path(__file__).with_name("forks.py")
OPTIONS = ("-q", "-x", "-vv", "-p", "no:cacheprovider", "-m", "not slow")


class Copy:
    """A copy of the checkout in which something can be changed, looked at and set right again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._moments = itertools.count(1_700_000_000, MINUTE)
        for path in tracked("."):
            place = folder / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place, follow_symlinks=False)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
        self._pytest = subprocess.Popen(
            [sys.executable, str(FORKS)],
            cwd=folder,
            env=environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, file: str, content: str) -> None:
        """Compiled modules are known by the second of their source, so each version gets one of its own."""
        path = self.folder / file
        path.write_text(content, encoding="utf-8")
        os.utime(path, (moment := next(self._moments), moment))

    def guard(self, *tests: str) -> tuple[int, str]:
        """The exit code of these tests there, without those that run whole examples, and what they print."""
        assert self._pytest.stdin
        assert self._pytest.stdout
        self._pytest.stdin.write(json.dumps([*OPTIONS, *tests]) + "\n")
        self._pytest.stdin.flush()
        code, told = json.loads(self._pytest.stdout.readline())
        return code, told

    def close(self) -> None:
        self._pytest.kill()
        self._pytest.communicate()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    made = Copy(tmp_path_factory.mktemp("copy"))
    yield made
    made.close()


@pytest.fixture
def drifted(copy: Copy, request: pytest.FixtureRequest) -> Iterator[Drift]:
    drift: Drift = request.param
    before = (copy.folder / drift.file).read_text(encoding="utf-8")
    copy.write(drift.file, before.replace(drift.old, drift.new))
    yield drift
    copy.write(drift.file, before)


@pytest.mark.parametrize("name", DRIFTS)
def test_what_is_changed_stands_there_once(name: str) -> None:
    """Else the row has rotted: the text has moved on, and nothing would be changed."""
    drift = DRIFTS[name]
    content = (ROOT / drift.file).read_text(encoding="utf-8")
    assert content.count(drift.old) == 1, f"{drift.file} has {content.count(drift.old)} of {drift.old!r}"
    assert drift.new != drift.old
    assert (ROOT / drift.guard.partition("::")[0]).is_file()


@pytest.mark.slow
def test_without_a_change_the_guards_have_nothing_to_say(copy: Copy) -> None:
    code, told = copy.guard(*GUARDS)
    assert code == 0, told[-4_000:]


@pytest.mark.slow
@pytest.mark.parametrize("drifted", TRIED.values(), ids=TRIED, indirect=True)
def test_a_drift_is_seen_and_named(copy: Copy, drifted: Drift) -> None:
    code, told = copy.guard(drifted.guard)
    assert code in (1, 2), f"{drifted.guard} has not seen it:\n{told[-2_000:]}"
    said = "\n".join(line for line in told.splitlines() if line.startswith(("E ", "FAILED", "ERROR")))
    assert drifted.says in said, told[-4_000:]
