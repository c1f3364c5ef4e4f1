"""Runs the programs of the kept branches in separate processes."""

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
from tests.server.server_process import until
from tests.upgrades.save_branch import BRANCHES, ROOT

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
"""Hook of the repository that makes the first push wait until others are done."""


def checkout(name: str, folders: pytest.TempPathFactory) -> Path:
    """The program that wrote this branch, from the history of this repository."""
    folder = folders.getbasetemp() / f"program-{name}"
    if folder.is_dir():
        return folder
    git = ["git", "-C", str(ROOT)]
    lookup = subprocess.run([*git, "cat-file", "-e", f"{PROGRAMS[name]}^{{commit}}"], capture_output=True, check=False)
    if lookup.returncode:
        pytest.skip(f"this checkout has no history back to {PROGRAMS[name]}")
    archived = subprocess.run([*git, "archive", PROGRAMS[name], "bot", "templates"], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Program(Protocol):
    """The signature of `bot.action.main.run`."""

    def __call__(self, environ: Mapping[str, str], now: datetime, write_gap: float) -> int: ...


class OldAction:
    """The Action of a checkout, in place of `bot.action.main.run`; ``log`` is the output of its last run."""

    def __init__(self, checkout: Path) -> None:
        self.checkout, self.log = checkout, ""

    def __call__(self, environ: Mapping[str, str], now: datetime, write_gap: float = 0) -> int:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.checkout),
            "OPENBLAS_NUM_THREADS": "1",
            **environ,
        }
        command = [sys.executable, "-c", _RUN, now.isoformat()]
        result = subprocess.run(
            command, cwd=self.checkout, env=environment, check=False, capture_output=True, text=True
        )
        self.log = result.stdout + result.stderr
        return result.returncode


def handle_new_issue(stage: Stage, program: Program, number: int) -> int:
    """Handle the event of a new issue on a separate runner; returns the exit code."""
    folder = stage.folder / f"runner-{number}"
    folder.mkdir()
    stage.github.write_event(folder / "event.json", "issues", "opened", number)
    environ = stage.environment("issues") | stage.github.environment("issues", folder)
    return program(environ, datetime.fromisoformat(stage.github.clock.now), write_gap=0)


def race(stage: Stage, loser: Callable[[], int], winner: Callable[[], int]) -> tuple[int, int]:
    """The exit codes of two runs that read the same tip: ``winner`` pushes just before ``loser`` does."""
    gate, hook = stage.folder / "held", stage.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(_HOOK.format(held=gate), encoding="utf-8")
    hook.chmod(0o755)
    with ThreadPoolExecutor(1) as pool:
        code = pool.submit(loser)
        until(lambda: gate.exists() or code.done(), 300)
        try:
            assert gate.exists(), "it ended without a push"
            winner_code = winner()
        finally:
            hook.unlink()
            gate.mkdir(exist_ok=True)
            (gate / "go").touch()
        return code.result(), winner_code
