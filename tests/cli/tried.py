"""`precedent try` at the fake GitHub, for its tests: a repository to try, the command as a process, and its page."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.console import Ended
from tests.fakes.github import FakeGitHub

ROOT = Path(__file__).parents[2]
REPO = "octocat/hello-world"
PAGE = "precedent-octocat-hello-world.html"
Try = Callable[..., Ended]


def at(count: int) -> str:
    return f"2026-01-{1 + count // 1440:02d}T{count // 60 % 24:02d}:{count % 60:02d}:00Z"


def fill(github: FakeGitHub, count: int, first: int = 0) -> None:
    """So many issues that have nothing in common, each of another account, a minute apart."""
    for number in range(first, first + count):
        github.open_issue(f"user-{number}", f"Word{number}a misses word{number}b", f"See word{number}c.", at=at(number))


def queries(github: FakeGitHub) -> int:
    return sum(request.path == "/graphql" for request in github.recent)


def page() -> str:
    return Path(PAGE).read_text(encoding="utf-8")


def started(github: FakeGitHub, folder: Path, *options: str) -> subprocess.Popen[str]:
    """The command as a process of its own, which a person may stop."""
    environ = {
        **os.environ,
        "GITHUB_API_URL": github.url,
        "GH_TOKEN": github.token,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "bot", "try", REPO, *options]
    # Who runs in the background hears no Ctrl-C, and hands that on: these are to hear it wherever the tests run.
    hears = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=folder, env=environ, **pipes)  # type: ignore[call-overload,no-any-return]
    finally:
        signal.signal(signal.SIGINT, hears)
