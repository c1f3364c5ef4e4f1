"""The scene of the histories: a stage whose GitHub is observed, a clock that stands still, and runs that may crash."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import REPOSITORY, Stage
from tests.simulator.observed_github import ObservedGitHub, RunRequests
from tests.simulator.points import Crash, Points, armed

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


class Scene(Stage):
    """One repository for all histories of a process: `start` begins each of them, `run_action` runs the Action."""

    def __init__(self, folder: Path) -> None:
        self._before = tempfile.tempdir, os.environ.get("TMPDIR")
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        tempfile.tempdir = os.environ["TMPDIR"] = str(self.temporary)
        self.is_http, self.seed = False, "0"
        self._begin_history()
        super().__init__(folder, validate=False)
        self.branch = Bare(self.bare)
        logging.getLogger("urllib3").setLevel(logging.CRITICAL)

    def start(self, seed: str, *steps: Callable[[Scene], object], http: bool = False, validate: bool = False) -> None:
        """Begin a history after these steps; git runs over HTTP or on a path."""
        self.seed, self.is_http, self.validate = seed, http, validate
        self.begin(*steps)  # type: ignore[arg-type]
        self._begin_history()
        self.elsewhere = self.github.add_project("octo-org/elsewhere")
        self.github.limits.set(5000)

    def _begin_history(self) -> None:
        self.clock_skew = 0
        self.runs: list[RunResult] = []
        self.tokens: list[str] = []
        self.on_result: Callable[[RunResult], None] = lambda result: None

    def _new_github(self, now: str | None) -> ObservedGitHub:
        site = self.git.url if self.is_http else str(self.git.folder)
        return ObservedGitHub(REPOSITORY, now, Bare(self.bare), site, validate=self.validate)

    @property
    def fake(self) -> ObservedGitHub:
        assert isinstance(self.github, ObservedGitHub)
        return self.github

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
        folder = Path(tempfile.mkdtemp(prefix="runner-", dir=self.temporary))
        (folder / "event.json").write_bytes(delivery.payload)
        output = io.StringIO()
        # No two runs begin in the same microsecond: by it a promise shows which run it belongs to.
        moment = timedelta(seconds=self.clock_skew, microseconds=len(self.tokens))
        now = datetime.fromisoformat(self.fake.clock.now) + moment
        quiet = contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(Crash)
        with contextlib.ExitStack() as stack:
            for each in (*quiet, armed(result.points)):
                stack.enter_context(each)
            environment = self.fake.environment(delivery.name, folder) | {"INPUT_TOKEN": result.token}
            result.code = self.program(environment, now, write_gap=0)
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
        super().close()
        shutil.rmtree(self.root, ignore_errors=True)
        tempfile.tempdir, before = self._before
        del os.environ["TMPDIR"]
        if before is not None:
            os.environ["TMPDIR"] = before

    def _new_token(self) -> str:
        token = f"ghs_canary{self.seed}x{len(self.tokens)}y"
        self.tokens.append(token)
        self.fake.add_token(token, "github-actions[bot]", limit=5000)
        self.git.tokens = dict.fromkeys(self.tokens, "write")
        return token

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
