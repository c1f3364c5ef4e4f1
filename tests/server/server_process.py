"""A fake GitHub with an App, a git server, and the server as a process, started as documented."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bot.server import secret_files
from bot.server.model import Delivery
from bot.server.storage.database import Database
from bot.server.storage.database import machine_clock as clock
from bot.server.storage.inbox import Inbox
from tests.fakes import hooks
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.payloads import EventfulProject
from tests.github.keys import key_pair
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "octo-org/hello-world"
APP, SLUG = 4242, "precedent-here"
SECRET = "It's a Secret to Everybody"
STANDIN = "tests.server.stub_server"

READY = 300.0
"""Seconds that a server may take to become ready: one on an idle machine, minutes on a busy one."""


class ServerStage:
    """An App installed on one repository, and its server, which is not running yet.

    ``module`` is started in place of `bot`; ``database`` is the URL of a PostgreSQL database, "" for SQLite. ``code``
    is the folder of the program; ``settings`` are more variables, without their prefix.
    """

    def __init__(self, folder: Path, module: str = "bot", database: str = "") -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.data = folder / "data"
        self.module, self.code = module, ROOT
        self.database = database
        self.git = GitServer(folder / "git")
        self.git.create(REPOSITORY)
        self.github = FakeGitHub(REPOSITORY, None, site=self.git.url)
        self.app = self.github.add_app(APP, SLUG, public_key=key_pair()[1])
        self.git.access = self.github.tenants.access_level
        self.github.hooks.secret = SECRET
        self.port = free_port()
        self.github.hooks.url = f"{self.url}/webhook"
        self.process: subprocess.Popen[bytes] | None = None
        self.others: list[subprocess.Popen[bytes]] = []
        self.log_file = folder / "log"
        self.settings: dict[str, str] = {}
        self.secrets = {"private-key": key_pair()[0], "webhook-secret": SECRET}
        for name, text in self.secrets.items():
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o600)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environ(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PRECEDENT_")}
        settings = {
            "APP_ID": str(APP),
            "PRIVATE_KEY_FILE": str(self.folder / "private-key"),
            "WEBHOOK_SECRET_FILE": str(self.folder / "webhook-secret"),
            "API_URL": self.github.url,
            "SERVER_URL": self.git.url,
            "DATA": str(self.data),
            "PORT": str(self.port),
            "DATABASE_URL": self.database,
            **self.settings,
        }
        return clean | {f"PRECEDENT_{name}": value for name, value in settings.items()}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", self.module, *words]

    def run(self, *words: str, **overrides: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; ``overrides`` are variables without their prefix, "" to unset one."""
        environ = self.environ() | {f"PRECEDENT_{name}": value for name, value in overrides.items()}
        return subprocess.run(
            self.command(*words), cwd=self.code, env=environ, capture_output=True, text=True, check=False, timeout=120
        )

    def start(self, workers: int = 1, *, wait: bool = True) -> None:
        """Start the server and wait until it is ready, with its workers."""
        environ = self.environ() | {"PRECEDENT_WORKERS": str(workers)}
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(self.command("serve"), cwd=self.code, env=environ, stdout=log, stderr=log)
        if wait:
            until(lambda: self.get("/status.json" if workers else "/readyz")[0] == 200, READY, self.log_text)

    def start_worker(self, machine: int, *words: str, **overrides: str) -> subprocess.Popen[bytes]:
        """Start a worker without a web part, as if on another machine: it shares only the database.

        ``overrides`` are variables without their prefix.
        """
        environ = self.environ() | {"PRECEDENT_DATA": str(self.folder / f"machine-{machine}")}
        environ |= {f"PRECEDENT_{name}": value for name, value in overrides.items()}
        with self.log_file.open("ab") as log:
            command = self.command("worker", *words)
            self.others.append(subprocess.Popen(command, cwd=self.code, env=environ, stdout=log, stderr=log))
        return self.others[-1]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal. Returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page, requested with the generated password; (0, "") when nothing answers."""
        request = urllib.request.Request(f"{self.url}{path}")
        if (file := secret_files.password_file(self.data)).exists():
            coded = base64.b64encode(f"precedent:{file.read_text(encoding='ascii').strip()}".encode())
            request.add_header("Authorization", f"Basic {coded.decode()}")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def deliver(self, *event: Any, project: EventfulProject | None = None) -> int:
        """Have GitHub deliver an event (event, action, number, comment). Returns the status of the answer."""
        sent = self.github.tenants.deliver(project or self.github, *event)
        assert isinstance(sent, hooks.Delivery)
        return sent.status

    @contextlib.contextmanager
    def inbox(self) -> Iterator[Inbox]:
        """The server's inbox."""
        database = Database(self.database) if self.database else Database.in_folder(self.data)
        try:
            yield Inbox(database, "stage", clock)
        finally:
            database.close()

    def rows(self) -> list[Delivery]:
        """All stored deliveries, oldest first."""
        with self.inbox() as inbox:
            return sorted(inbox.deliveries(limit=10_000), key=lambda each: each.seq)

    def settle(self, seconds: float = 60) -> None:
        """Wait until nothing is waiting or working."""
        with self.inbox() as inbox:
            until(lambda: not any(inbox.counts()[state] for state in ("waiting", "working")), seconds, self.log_text)

    def wait_for_resync(self) -> None:
        """Wait until the first resync, and all work that follows from it, is done."""
        until(lambda: '"message": "resync done"' in self.log_text(), READY, self.log_text)
        self.settle(READY)

    def log_text(self) -> str:
        """Everything that the server has logged."""
        return self.log_file.read_text(encoding="utf-8")

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the log, parsed."""
        return [json.loads(line) for line in self.log_text().splitlines()]

    def children(self) -> list[int]:
        """The process ids of the workers that the server started."""
        assert self.process is not None
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(OSError):
            threads = Path(f"/proc/{self.process.pid}/task").iterdir()
            return [int(pid) for each in threads for pid in (each / listed.name).read_text().split()]
        return []

    def close(self) -> None:
        """Kill and stop everything."""
        if self.process is not None and self.process.poll() is None:
            for pid in self.children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        for other in self.others:
            other.kill()
            other.wait()
        self.github.stop()
        self.git.stop()


def until(condition: Callable[[], object], seconds: float = 30.0, describe: Callable[[], str] = str) -> None:
    """Wait until the condition holds; on a timeout fail with the text of ``describe``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come to that: {describe()[-4000:]}"
        time.sleep(0.05)
