"""The scene of one history: a fake GitHub, a real bare repository, a clock that stands still, and runs of the Action.

A worker keeps one `Workspace` for all its histories: folders, the git server, and branches to begin with.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from bot.action.main import run
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.simulator.bare_repository import SETTINGS, Bare
from tests.simulator.observed_github import ObservedGitHub, RunRequests
from tests.simulator.points import Crash, Points, armed

REPOSITORY = "octo-org/hello-world"
NOW = "2026-01-05T12:00:00Z"
FOLDER = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


@dataclass(frozen=True)
class Delivery:
    """An event with its payload as GitHub sent it; it may arrive much later."""

    name: str
    action: str
    number: int | None
    payload: bytes
    label: str


@dataclass
class RunResult:
    """One run: its exit code (None if it crashed) and its output."""

    delivery: Delivery
    token: str
    points: Points
    requests: RunRequests = field(default_factory=RunRequests)
    code: int | None = None
    log: str = ""

    @property
    def is_done(self) -> bool:
        return self.code == 0 and "::error::" not in self.log

    @property
    def is_repeatable(self) -> bool:
        """Whether it completed: no limit ended it, and it was no rebuild, which records its time."""
        return self.is_done and "::notice::" not in self.log and "rebuild" not in self.delivery.label


class Scene:
    """One repository. `run_action` runs the Action's entry point in this process."""

    def __init__(
        self, workspace: Workspace, seed: str, start: str, *, http: bool = False, validate: bool = False
    ) -> None:
        self.workspace, self.seed = workspace, seed
        self.bare = workspace.restore(start)
        self.server = workspace.git.url if http else str(workspace.git.folder)
        self.fake = ObservedGitHub(REPOSITORY, NOW, self.bare, self.server, validate=validate)
        self.elsewhere = self.fake.add_project("octo-org/elsewhere")
        self.fake.limits.set(5000)
        self.clock_skew = 0
        self.runs: list[RunResult] = []
        self.tokens: list[str] = []
        self.on_result: Callable[[RunResult], None] = lambda result: None

    def make_delivery(
        self, name: str, action: str = "", number: int | None = None, comment: int | None = None
    ) -> Delivery:
        """The event that GitHub sends now."""
        payload = self.fake.payload(name, action or None, number, comment)
        label = " ".join(filter(None, [f"{name}.{action}" if action else name, f"#{number}" if number else ""]))
        return Delivery(name, action, number, json.dumps(payload).encode(), label)

    def run_action(self, delivery: Delivery, points: Points | None = None) -> RunResult:
        """Run the Action on an event; it may crash at any point."""
        result = RunResult(delivery, self._new_token(), points or Points())
        folder = Path(tempfile.mkdtemp(prefix="runner-", dir=self.workspace.temporary))
        (folder / "event.json").write_bytes(delivery.payload)
        output = io.StringIO()
        # No two runs begin in the same microsecond: by it an outbox entry shows which run it belongs to.
        moment = timedelta(seconds=self.clock_skew, microseconds=len(self.tokens))
        now = datetime.fromisoformat(self.fake.clock.now) + moment
        quiet = contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(Crash)
        with contextlib.ExitStack() as stack:
            for each in (*quiet, armed(result.points)):
                stack.enter_context(each)
            result.code = run(self._environment(delivery, result.token, folder), now, write_gap=0)
        result.log = output.getvalue()
        result.requests = self.fake.requests_by_token.get(result.token, RunRequests())
        self.runs.append(result)
        self._check_for_secrets(result, folder)
        shutil.rmtree(folder)
        self.on_result(result)
        return result

    def run_concurrently(self, delivery: Delivery) -> RunResult:
        """Run the Action on its own thread: another runner, while this one waits."""
        results: list[RunResult] = []
        other = threading.Thread(target=lambda: results.append(self.run_action(delivery)))
        other.start()
        other.join()
        return results[0]

    def secrets(self) -> list[bytes]:
        """Every token that was used, plain and as it is encoded in headers."""
        pairs = [f"x-access-token:{token}".encode() for token in self.tokens]
        return [token.encode() for token in self.tokens] + [
            base64.b64encode(pair[skip:])[: -4 or None] for pair in pairs for skip in range(3)
        ]

    def close(self) -> None:
        threading.Thread(target=self.fake.stop, daemon=True).start()
        self.workspace.git.faults.clear()

    def _new_token(self) -> str:
        token = f"ghs_canary{self.seed}x{len(self.tokens)}y"
        self.tokens.append(token)
        self.fake.add_token(token, "github-actions[bot]", limit=5000)
        self.workspace.git.tokens = dict.fromkeys(self.tokens, "write")
        return token

    def _environment(self, delivery: Delivery, token: str, folder: Path) -> Mapping[str, str]:
        return {
            "GITHUB_EVENT_NAME": delivery.name,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": self.fake.url,
            "GITHUB_SERVER_URL": self.server,
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "RUNNER_TEMP": str(folder),
            "INPUT_TOKEN": token,
        }

    def _check_for_secrets(self, result: RunResult, folder: Path) -> None:
        outputs = {"the log": result.log.encode("utf-8", "replace")}
        outputs |= {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for name, data in outputs.items():
            if any(secret in data for secret in self.secrets()):
                self.fake.broken.append(f"(6) the token is in {name}")
        if "Precedent, please report" in result.log or "Traceback" in result.log:
            self.fake.broken.append(f"(bug) {result.log[-600:]}")
        if any(phrase in result.log for phrase in ("could not be used", "damaged", "rebuilt")):
            self.fake.broken.append(f"(note) memory is not whole: {result.log[-400:]}")


class Workspace:
    """Folders on a fast file system, the git server, and branches to begin with. Paths stay the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self._before = tempfile.tempdir, os.environ.get("TMPDIR")
        tempfile.tempdir = os.environ["TMPDIR"] = str(self.temporary)
        self.git = GitServer(folder / "git")
        self._starts = folder / "starts"
        self._make(self.bare_path)
        for key, value in SETTINGS.items():
            subprocess.run(["git", "-C", str(self.bare_path), "config", key, value], check=True)
        self.save("empty")
        logging.getLogger("urllib3").setLevel(logging.CRITICAL)

    @property
    def bare_path(self) -> Path:
        return self.git.folder / f"{REPOSITORY}.git"

    def restore(self, start: str) -> Bare:
        """Restore the bare repository that was saved under this name."""
        shutil.rmtree(self.bare_path, ignore_errors=True)
        shutil.copytree(self._starts / start, self.bare_path)
        return Bare(self.bare_path)

    def save(self, start: str) -> None:
        """Save the bare repository as it is now, for histories to begin with."""
        shutil.copytree(self.bare_path, self._starts / start)

    def has(self, start: str) -> bool:
        return (self._starts / start).exists()

    def close(self) -> None:
        self.git.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        tempfile.tempdir, before = self._before
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before

    def _make(self, path: Path) -> None:
        command = ["git", "init", "--quiet", "--bare", "--initial-branch", "main", "--template=", str(path)]
        subprocess.run(command, check=True, env=os.environ | {"GIT_CONFIG_GLOBAL": os.devnull})
        (path / "hooks").mkdir(exist_ok=True)


def commit_to_main(bare: Bare, files: Mapping[str, str]) -> None:
    """Commit these files to the default branch."""
    lines = [
        "commit refs/heads/main\n",
        "committer monalisa <monalisa@example.com> 1700000000 +0000\n",
        "data 5\nfiles\n",
    ]
    for path, text in files.items():
        lines.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")
    command = ["git", "-C", str(bare.path), "-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet"]
    subprocess.run(command, input="".join(lines).encode(), check=True)


def is_ours(fake: FakeGitHub, comment_id: int) -> bool:
    """Whether the bot wrote this comment."""
    comment = fake.repo.comments.get(comment_id)
    return comment is not None and comment.author is not None and comment.author.login == "github-actions[bot]"
