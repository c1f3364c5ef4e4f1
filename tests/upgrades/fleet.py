"""The programs of the kept branches, run as processes of their own beside this one."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Protocol

import pytest

from tests.acceptance.stage import Stage
from tests.server.stage import until
from tests.upgrades.make import BRANCHES, ROOT

_ROW = re.compile(r"^\| `([\w.-]+)` \| `([\w.-]+)` \|", re.MULTILINE)
PROGRAMS = dict(_ROW.findall((BRANCHES / "README.md").read_text(encoding="utf-8")))
"""The name of each kept branch → the commit or tag of the program that wrote it."""

_RUN = """
import inspect, os, sys
from datetime import datetime
try:
    from bot.action.main import run
except ImportError:  # its place up to the branch `layout`
    from bot.doors.action import run
gap = {"write_gap": 0} if "write_gap" in inspect.signature(run).parameters else {}
sys.exit(run(os.environ, datetime.fromisoformat(sys.argv[1]), **gap))
"""
_HOOK = """#!/bin/sh
mkdir "{held}" 2>/dev/null || exit 0
for _ in $(seq 3000); do [ -e "{held}/go" ] && exit 0; sleep 0.1; done
exit 1
"""
"""Of the repository: keeps the first push waiting until others are through."""


def checkout(name: str, folders: pytest.TempPathFactory) -> Path:
    """The program that wrote this branch, out of the history of this repository."""
    folder = folders.getbasetemp() / f"program-{name}"
    if folder.is_dir():
        return folder
    git = ["git", "-C", str(ROOT)]
    told = subprocess.run([*git, "cat-file", "-e", f"{PROGRAMS[name]}^{{commit}}"], capture_output=True, check=False)
    if told.returncode:
        pytest.skip(f"this checkout has no history back to {PROGRAMS[name]}")
    packed = subprocess.run([*git, "archive", PROGRAMS[name], "bot", "templates"], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Program(Protocol):
    """What `bot.action.main.run` is, too."""

    def __call__(self, environ: Mapping[str, str], now: datetime, write_gap: float) -> int: ...


class OldAction:
    """The Action of a checkout, in place of `bot.action.main.run`; ``log`` is what its last run said."""

    def __init__(self, checkout: Path) -> None:
        self.checkout, self.log = checkout, ""

    def __call__(self, environ: Mapping[str, str], now: datetime, write_gap: float = 0) -> int:
        around = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.checkout), "OPENBLAS_NUM_THREADS": "1", **environ}
        command = [sys.executable, "-c", _RUN, now.isoformat()]
        ended = subprocess.run(command, cwd=self.checkout, env=around, check=False, capture_output=True, text=True)
        self.log = ended.stdout + ended.stderr
        return ended.returncode


def hears(stage: Stage, program: Program, number: int) -> int:
    """The exit code of a run, on a runner of its own, that hears of a new issue."""
    folder = stage.folder / f"runner-{number}"
    folder.mkdir()
    stage.github.write_event(folder / "event.json", "issues", "opened", number)
    environ = stage.environment("issues") | stage.github.environment("issues", folder)
    return program(environ, datetime.fromisoformat(stage.github.clock.now), write_gap=0)


def lost(stage: Stage, loser: Callable[[], int], winner: Callable[[], int]) -> tuple[int, int]:
    """The exit codes of two runs that read one tip of the branch: ``winner`` pushes while ``loser`` is about to."""
    held, hook = stage.folder / "held", stage.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(_HOOK.format(held=held), encoding="utf-8")
    hook.chmod(0o755)
    with ThreadPoolExecutor(1) as pool:
        code = pool.submit(loser)
        until(lambda: held.exists() or code.done(), 300)
        try:
            assert held.exists(), "it ended without a push"
            won = winner()
        finally:
            hook.unlink()
            held.mkdir(exist_ok=True)
            (held / "go").touch()
        return code.result(), won
