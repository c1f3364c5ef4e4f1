"""A repository and a runner: the Action runs as its own process, and everything it leaves behind is searched."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.acceptance.stage import BOT, REPOSITORY, Stage, with_decision

PROGRAM = Path(__file__).with_name("audited_run.py")
PERMISSIONS = {"contents": "write", "issues": "write", "metadata": "read"}
"""What the job's token may do: the documented permissions, and the `metadata: read` that every token has."""

SECRETS = {
    "ACTIONS_RUNTIME_TOKEN": "canary-runtime-token",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "canary-id-token",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://canary-id-url.example",
    "ACTIONS_CACHE_URL": "https://canary-cache.example",
    "ACTIONS_RESULTS_URL": "https://canary-results.example",
    "GITHUB_TOKEN": "canary-github-token",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-key",
}
"""What else the environment of a job may hold. https://github.com/actions/runner ContainerActionHandler.cs"""

WRAPPER = """#!/bin/sh
env -0 >"{place}/$$.environment"
GIT_TRACE2_EVENT={place}/trace exec {git} "$@"
"""


@dataclass(frozen=True)
class ActionRun:
    """One run: its exit code, its log, its audit events, and what its child processes started."""

    code: int
    log: str
    events: tuple[tuple[str, Any], ...]
    started: tuple[list[str], ...]
    outputs: str

    def events_of(self, *kinds: str) -> list[Any]:
        return [args for kind, args in self.events if kind in kinds]

    @property
    def programs(self) -> list[list[str]]:
        """The argument lists of the programs that the run started itself."""
        return [list(args[1]) for args in self.events_of("subprocess.Popen")]

    @property
    def errors(self) -> list[str]:
        return [line.removeprefix("::error::") for line in self.log.splitlines() if line.startswith("::error::")]


class Scene:
    """Issue 1 holds a decision; ``token`` has the documented permissions and no more."""

    def __init__(self, folder: Path, token: str) -> None:
        self.stage = Stage(folder / "world")
        self.github, self.git, self.bare, self.token = self.stage.github, self.stage.git, self.stage.bare, token
        self.github.add_token(token, BOT, PERMISSIONS)
        self.git.tokens[token] = "write"
        self.folder = folder
        for name in ("home", "temp", "workspace", "runner", "tools", "git"):
            (folder / name).mkdir()
        wrapper = folder / "tools" / "git"
        wrapper.write_text(WRAPPER.format(place=folder / "git", git=shutil.which("git")), encoding="utf-8")
        wrapper.chmod(0o755)
        self.environment: dict[str, str] = {}
        with_decision(self.stage)

    def job_environment(self, event: str) -> dict[str, str]:
        runner = self.folder / "runner"
        return (
            self.stage.environment(event)
            | {
                "PATH": f"{self.folder / 'tools'}:{os.environ['PATH']}",
                "HOME": str(self.folder / "home"),
                "TMPDIR": str(self.folder / "temp"),
                "RUNNER_TEMP": str(runner),
                "GITHUB_WORKSPACE": str(self.folder / "workspace"),
                "GITHUB_EVENT_PATH": str(runner / "event.json"),
                "GITHUB_OUTPUT": str(runner / "output"),
                "GITHUB_STEP_SUMMARY": str(runner / "summary"),
                "GITHUB_ENV": str(runner / "env"),
                "GITHUB_PATH": str(runner / "path"),
                "GITHUB_STATE": str(runner / "state"),
                "INPUT_TOKEN": self.token,
                "OPENBLAS_NUM_THREADS": "1",
            }
            | SECRETS
            | self.environment
        )

    def act(
        self, event: str, action: str | None = None, number: int | None = None, comment: int | None = None
    ) -> ActionRun:
        self.github.clock.advance(20)
        self.github.write_event(self.folder / "runner" / "event.json", event, action, number, comment)
        return self.run(event)

    def run(self, event: str, memory: int | None = None) -> ActionRun:
        """Run on the event file as it is, with at most so many bytes of ``memory``."""
        runner, trace = self.folder / "runner", self.folder / "audit"
        for file in (*(runner / name for name in ("output", "summary", "env", "path", "state")), trace):
            file.write_text("", encoding="utf-8")
        command = [
            sys.executable,
            "-I",
            str(PROGRAM),
            str(trace),
            self.github.clock.now,
            *([str(memory)] if memory else []),
        ]
        process = subprocess.run(
            command,
            cwd=self.folder / "workspace",
            env=self.job_environment(event),
            capture_output=True,
            check=False,
            timeout=240,
        )
        events = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
        outputs = (runner / "output").read_text(encoding="utf-8")
        log = (process.stdout + process.stderr).decode("utf-8", "replace")
        return ActionRun(
            process.returncode, log, tuple((kind, args) for kind, *args in events), tuple(self._children()), outputs
        )

    def commit(self, path: str, content: str | bytes, branch: str = "main") -> None:
        """Put a file onto a branch, as anybody with write access can."""
        self.git.commit(REPOSITORY, path, content, f"refs/heads/{branch}")

    def comments(self, number: int) -> list[str]:
        return self.stage.comments(number)

    def leftovers(self) -> Iterator[tuple[str, bytes]]:
        """Every file that a run could have left, every object of the repository, unpacked, and all comments."""
        for name in ("home", "temp", "workspace", "runner"):
            for file in (self.folder / name).rglob("*"):
                if file.is_file() and file != self.folder / "runner" / "event.json":
                    yield str(file), file.read_bytes()
        objects = ["cat-file", "--batch-all-objects", "--batch", "--buffer"]
        yield "objects", subprocess.run(["git", "-C", str(self.bare), *objects], capture_output=True, check=True).stdout
        comments = [text for issue in self.github.repo.issues.values() for text in self.comments(issue.number)]
        yield "comments", "\n".join(comments).encode()

    def environments(self) -> list[dict[str, str]]:
        """The environments of all git processes that our program started, as git itself saw them."""
        files = (self.folder / "git").glob("*.environment")
        rows = [[pair.partition("=") for pair in os.fsdecode(file.read_bytes()).split("\0") if pair] for file in files]
        return [{name: value for name, _, value in row} for row in rows]

    def _children(self) -> Iterator[list[str]]:
        trace = self.folder / "git" / "trace"
        for line in trace.read_text(encoding="utf-8", errors="replace").splitlines() if trace.exists() else ():
            record = json.loads(line)
            if record.get("event") in ("start", "child_start", "exec"):
                yield [str(word) for word in record["argv"]]


@contextmanager
def open_scene(folder: Path, token: str) -> Iterator[Scene]:
    scene = Scene(folder, token)
    try:
        yield scene
    finally:
        scene.stage.close()


def spellings(token: str) -> dict[str, bytes]:
    """Every form in which the token could appear."""
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    forms = {
        "plain": token,
        "basic": basic,
        "part of it": token[: len(token) // 2],
        "base64": base64.b64encode(token.encode()).decode(),
    }
    return {name: text.encode() for name, text in (forms | {"quoted": quote(token, safe="")}).items()}


def leaks(token: str, places: Mapping[str, bytes]) -> list[str]:
    """Where the token appears, and in which spelling."""
    return [
        f"{spelling} in {place}"
        for place, text in places.items()
        for spelling, form in spellings(token).items()
        if form in text
    ]
