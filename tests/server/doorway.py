"""A web process for tests: `python -m tests.server.doorway FOLDER PORT`, with the queue in SQLite.

While there is a file FOLDER/away, the database does not answer.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.errors import WorldError
from bot.server import health, web
from bot.server.database import machine_clock as clock
from bot.server.health import APP
from bot.server.inbox import Inbox
from bot.server.model import WORKER
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from bot.server.web import WebContext, create_app
from bot.server.webhook import WebhookRules
from bot.server.writer import GroupCommitWriter
from tests.ports import free_port
from tests.server.client import PASSWORD, SECRET

ROOT = Path(__file__).resolve().parents[2]


def door(ledger: Inbox, options: ServerOptions) -> WebContext:
    """What the server makes of its options, in a few lines."""
    writer = GroupCommitWriter(ledger, lambda: health.refusal_reason(ledger, options))
    return WebContext(WebhookRules(7, (SECRET,), "helper[bot]"), writer, ledger, options, clock)


class Away(Inbox):
    """An inbox whose database is away as long as a file says so."""

    sign: Path

    def put(self, arrivals):  # type: ignore[no-untyped-def]
        if self.sign.exists():
            raise WorldError("the database does not answer")
        return super().put(arrivals)

    def counts(self, *given, **named):  # type: ignore[no-untyped-def]
        if self.sign.exists():
            raise WorldError("the database does not answer")
        return super().counts(*given, **named)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--password", default=PASSWORD)
    parser.add_argument("--operator", default="")
    parser.add_argument("--patience", type=float, default=web.HEADERS)
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options = ServerOptions(data=given.folder, status_password=given.password, operator_password=given.operator)
    with open_inbox(options, "web", hurry=True) as inbox:
        ledger = Away(inbox.database, "web", inbox.now)
        ledger.sign = options.data / "away"
        made = door(ledger, options)
        ledger.heartbeat(APP, {"slug": "helper", "ahead": 0})
        ledger.heartbeat(f"{WORKER}here", {"state": "ready"})
        made.writer.start()
        web.serve_http(create_app(made), "127.0.0.1", given.port, stop.is_set, given.patience)
        return 0 if made.writer.stop(3) else 1


@contextmanager
def running(folder: Path, *flags: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port and the process of a web server that answers; it is told to stop with the block."""
    port = free_port()
    command = [sys.executable, "-m", "tests.server.doorway", str(folder), str(port), *flags]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        _wait_for(port, process)
        yield port, process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError("the web server did not start")


if __name__ == "__main__":
    sys.exit(main())
