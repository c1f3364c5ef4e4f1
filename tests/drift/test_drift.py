"""The tests that guard the documentation work: each change that lets it drift from the code fails one by name."""

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

SAMPLED = dict(share(DRIFTS.items(), 6))
"""Every sixth in a quick run; whether its text occurs once is checked for all."""
GUARDS = sorted({drift.guard for drift in DRIFTS.values()})
MINUTE = 60
FORKS = Path(__file__).with_name("forks.py")
OPTIONS = ("-q", "-x", "-vv", "-p", "no:cacheprovider", "-m", "not slow")


class CheckoutCopy:
    """A copy of the checkout in which a file can be changed, checked and restored."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._moments = itertools.count(1_700_000_000, MINUTE)
        for path in tracked("."):
            target = folder / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)
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
        """Python compares modification times by the second to reuse compiled modules, so each version gets its own."""
        path = self.folder / file
        path.write_text(content, encoding="utf-8")
        os.utime(path, (moment := next(self._moments), moment))

    def guard(self, *tests: str) -> tuple[int, str]:
        """The exit code and output of these tests in the copy, except those that run whole examples."""
        assert self._pytest.stdin
        assert self._pytest.stdout
        self._pytest.stdin.write(json.dumps([*OPTIONS, *tests]) + "\n")
        self._pytest.stdin.flush()
        code, output = json.loads(self._pytest.stdout.readline())
        return code, output

    def close(self) -> None:
        self._pytest.kill()
        self._pytest.communicate()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckoutCopy]:
    checkout = CheckoutCopy(tmp_path_factory.mktemp("copy"))
    yield checkout
    checkout.close()


@pytest.fixture
def drifted(copy: CheckoutCopy, request: pytest.FixtureRequest) -> Iterator[Drift]:
    drift: Drift = request.param
    before = (copy.folder / drift.file).read_text(encoding="utf-8")
    copy.write(drift.file, before.replace(drift.old, drift.new))
    yield drift
    copy.write(drift.file, before)


@pytest.mark.parametrize("name", DRIFTS)
def test_each_text_to_change_occurs_exactly_once(name: str) -> None:
    """Otherwise the row is out of date: the text was edited, and nothing would be changed."""
    drift = DRIFTS[name]
    content = (ROOT / drift.file).read_text(encoding="utf-8")
    assert content.count(drift.old) == 1, f"{drift.file} has {content.count(drift.old)} of {drift.old!r}"
    assert drift.new != drift.old
    assert (ROOT / drift.guard.partition("::")[0]).is_file()


@pytest.mark.slow
def test_the_guards_pass_without_a_change(copy: CheckoutCopy) -> None:
    code, output = copy.guard(*GUARDS)
    assert code == 0, output[-4_000:]


@pytest.mark.slow
@pytest.mark.parametrize("drifted", SAMPLED.values(), ids=SAMPLED, indirect=True)
def test_a_guard_detects_and_names_each_drift(copy: CheckoutCopy, drifted: Drift) -> None:
    code, output = copy.guard(drifted.guard)
    assert code in (1, 2), f"{drifted.guard} has not seen it:\n{output[-2_000:]}"
    failures = "\n".join(line for line in output.splitlines() if line.startswith(("E ", "FAILED", "ERROR")))
    assert drifted.says in failures, output[-4_000:]
