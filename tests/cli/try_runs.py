"""Helpers for the tests of `precedent try`: issues on the fake GitHub, the command as a process, and its page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.program_result import ProgramResult
from tests.fakes.github import FakeGitHub

ROOT = Path(__file__).parents[2]
REPO = "octocat/hello-world"
PAGE = "precedent-octocat-hello-world.html"
RunTry = Callable[..., ProgramResult]


def time_at(count: int) -> str:
    return f"2026-01-{1 + count // 1440:02d}T{count // 60 % 24:02d}:{count % 60:02d}:00Z"


def open_issues(github: FakeGitHub, count: int, first: int = 0) -> None:
    """Open this many unrelated issues, each by another account, a minute apart."""
    for number in range(first, first + count):
        github.open_issue(
            f"user-{number}", f"Word{number}a misses word{number}b", f"See word{number}c.", at=time_at(number)
        )


def count_queries(github: FakeGitHub) -> int:
    return sum(request.path == "/graphql" for request in github.recent)


def read_page() -> str:
    return Path(PAGE).read_text(encoding="utf-8")


def start_try(github: FakeGitHub, folder: Path, *options: str) -> subprocess.Popen[str]:
    """Start the command as a process of its own, so that a test can interrupt it."""
    environ = {
        **os.environ,
        "GITHUB_API_URL": github.url,
        "GH_TOKEN": github.token,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "bot", "try", REPO, *options]
    # Background processes ignore Ctrl-C and pass that on; this process must react to it wherever the tests run.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=folder, env=environ, **pipes)  # type: ignore[call-overload,no-any-return]
    finally:
        signal.signal(signal.SIGINT, handler)
