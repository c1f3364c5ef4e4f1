"""The scene of one history: a fake GitHub, a real bare repository, a clock that stands still, and runs of the Action.

`Ground` is what a worker keeps for all its histories: folders, the git server, and branches to begin with.
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
from tests.simulator.bare import SETTINGS, Bare
from tests.simulator.eye import Seen, Watched
from tests.simulator.points import Crash, Points, armed

REPOSITORY = "octo-org/hello-world"
NOW = "2026-01-05T12:00:00Z"
FOLDER = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


@dataclass(frozen=True)
class Delivery:
    """An event as GitHub sent it, with the payload of that moment; when it comes is another matter."""

    name: str
    action: str
    number: int | None
    payload: bytes
    label: str


@dataclass
class Ran:
    """One run: its exit code, None when it crashed, and what it printed."""

    delivery: Delivery
    token: str
    points: Points
    seen: Seen = field(default_factory=Seen)
    code: int | None = None
    log: str = ""

    @property
    def is_done(self) -> bool:
        return self.code == 0 and "::error::" not in self.log

    @property
    def may_be_repeated(self) -> bool:
        """Whether it did all that it was for: no limit ended it, and it was no rebuild, which notes when it was."""
        return self.is_done and "::notice::" not in self.log and "rebuild" not in self.delivery.label


class Scene:
    """One repository at one time. `act` is a run of the Action's door in this process."""

    def __init__(self, ground: Ground, seed: str, start: str, *, http: bool = False, validate: bool = False) -> None:
        self.ground, self.seed = ground, seed
        self.bare = ground.lay(start)
        self.server = ground.git.url if http else str(ground.git.folder)
        self.fake = Watched(REPOSITORY, NOW, self.bare, self.server, validate=validate)
        self.elsewhere = self.fake.add_project("octo-org/elsewhere")
        self.fake.limits.set(5000)
        self.skew = 0
        self.runs: list[Ran] = []
        self.tokens: list[str] = []
        self.after: Callable[[Ran], None] = lambda ran: None

    def deliver(self, name: str, action: str = "", number: int | None = None, comment: int | None = None) -> Delivery:
        """The event that GitHub sends now."""
        payload = self.fake.payload(name, action or None, number, comment)
        what = " ".join(filter(None, [f"{name}.{action}" if action else name, f"#{number}" if number else ""]))
        return Delivery(name, action, number, json.dumps(payload).encode(), what)

    def act(self, delivery: Delivery, points: Points | None = None) -> Ran:
        """Run the Action on an event; a crash ends it wherever it is."""
        ran = Ran(delivery, self._new_token(), points or Points())
        folder = Path(tempfile.mkdtemp(prefix="runner-", dir=self.ground.temporary))
        (folder / "event.json").write_bytes(delivery.payload)
        printed = io.StringIO()
        # No two runs begin in the same microsecond: a promise tells by it whose it is.
        moment = timedelta(seconds=self.skew, microseconds=len(self.tokens))
        now = datetime.fromisoformat(self.fake.clock.now) + moment
        quiet = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(Crash)
        with contextlib.ExitStack() as around:
            for each in (*quiet, armed(ran.points)):
                around.enter_context(each)
            ran.code = run(self._environment(delivery, ran.token, folder), now, write_gap=0)
        ran.log = printed.getvalue()
        ran.seen = self.fake.seen.get(ran.token, Seen())
        self.runs.append(ran)
        self._look_for_secrets(ran, folder)
        shutil.rmtree(folder)
        self.after(ran)
        return ran

    def act_beside(self, delivery: Delivery) -> Ran:
        """The same on a thread of its own: another runner, while this one stands still."""
        found: list[Ran] = []
        other = threading.Thread(target=lambda: found.append(self.act(delivery)))
        other.start()
        other.join()
        return found[0]

    def secrets(self) -> list[bytes]:
        """Every token that was used, as it is and as headers carry it."""
        pairs = [f"x-access-token:{token}".encode() for token in self.tokens]
        return [token.encode() for token in self.tokens] + [
            base64.b64encode(pair[skip:])[: -4 or None] for pair in pairs for skip in range(3)
        ]

    def close(self) -> None:
        threading.Thread(target=self.fake.stop, daemon=True).start()
        self.ground.git.faults.clear()

    def _new_token(self) -> str:
        token = f"ghs_canary{self.seed}x{len(self.tokens)}y"
        self.tokens.append(token)
        self.fake.add_token(token, "github-actions[bot]", limit=5000)
        self.ground.git.tokens = dict.fromkeys(self.tokens, "write")
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

    def _look_for_secrets(self, ran: Ran, folder: Path) -> None:
        outputs = {"the log": ran.log.encode("utf-8", "replace")}
        outputs |= {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for name, data in outputs.items():
            if any(secret in data for secret in self.secrets()):
                self.fake.broken.append(f"(6) the token is in {name}")
        if "Precedent, please report" in ran.log or "Traceback" in ran.log:
            self.fake.broken.append(f"(bug) {ran.log[-600:]}")
        if any(words in ran.log for words in ("could not be used", "damaged", "rebuilt")):
            self.fake.broken.append(f"(note) memory is not whole: {ran.log[-400:]}")


class Ground:
    """Folders below a fast file system, the git server, and what branches begin with. Paths stay the same."""

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
        self.keep("empty")
        logging.getLogger("urllib3").setLevel(logging.CRITICAL)

    @property
    def bare_path(self) -> Path:
        return self.git.folder / f"{REPOSITORY}.git"

    def lay(self, start: str) -> Bare:
        """The bare repository as it was kept under this name."""
        shutil.rmtree(self.bare_path, ignore_errors=True)
        shutil.copytree(self._starts / start, self.bare_path)
        return Bare(self.bare_path)

    def keep(self, start: str) -> None:
        """Keep the bare repository as it is now, to begin with."""
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


def main_branch(bare: Bare, files: Mapping[str, str]) -> None:
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


def is_mine(fake: FakeGitHub, comment_id: int) -> bool:
    """Whether the bot wrote this comment."""
    comment = fake.repo.comments.get(comment_id)
    return comment is not None and comment.author is not None and comment.author.login == "github-actions[bot]"
