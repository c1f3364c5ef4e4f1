"""A web process for tests: `python -m tests.server.web_process FOLDER PORT`, with the queue in SQLite.

While the file FOLDER/away exists, the database does not answer.
"""

from __future__ import annotations

import argparse
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
from bot.server.log import write_logs
from bot.server.model import WORKER_PREFIX
from bot.server.options import ServerOptions
from bot.server.pages import health
from bot.server.processes import open_inbox
from bot.server.receive.webhook import WebhookRules
from bot.server.receive.writer import GroupCommitWriter
from bot.server.storage.heartbeats import APP_HEARTBEAT
from bot.server.storage.inbox import Inbox
from bot.server.web import WebContext, create_app, open_listener, serve_http
from tests.ports import free_port
from tests.server.client import PASSWORD, SECRET

ROOT = Path(__file__).resolve().parents[2]


def make_web_context(inbox: Inbox, options: ServerOptions) -> WebContext:
    """The web context that the server makes of these options."""
    writer = GroupCommitWriter(inbox, lambda: health.refusal_reason(inbox, options))
    return WebContext(WebhookRules(7, (SECRET,), "helper[bot]"), writer, inbox, options)


class UnreachableInbox(Inbox):
    """An inbox whose database does not answer while a file exists."""

    away_file: Path

    def put(self, arrivals):  # type: ignore[no-untyped-def]
        if self.away_file.exists():
            raise WorldError("the database does not answer")
        return super().put(arrivals)

    def counts(self, *arguments, **keywords):  # type: ignore[no-untyped-def]
        if self.away_file.exists():
            raise WorldError("the database does not answer")
        return super().counts(*arguments, **keywords)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--password", default=PASSWORD)
    parser.add_argument("--operator", default="")
    parser.add_argument("--proxy", action="append", default=[])
    arguments = parser.parse_args()
    write_logs("text", ())
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options = ServerOptions(
        data=arguments.folder,
        status_password=arguments.password,
        operator_password=arguments.operator,
        trusted_proxies=tuple(arguments.proxy),
    )
    with open_inbox(options, "web", hurry=True) as inbox:
        unreachable = UnreachableInbox(inbox.database, "web", inbox.now)
        unreachable.away_file = options.data / "away"
        context = make_web_context(unreachable, options)
        inbox.heartbeats.store(APP_HEARTBEAT, {"slug": "helper", "ahead": 0})
        inbox.heartbeats.store(f"{WORKER_PREFIX}here", {"state": "ready"})
        context.writer.start()
        serve_http(create_app(context), open_listener("127.0.0.1", arguments.port), stop, options.trusted_proxies)
        return 0 if context.writer.stop(3) else 1


@contextmanager
def web_process(folder: Path, *flags: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A running web server: its port and its process. It is stopped at the end of the block."""
    port = free_port()
    command = [sys.executable, "-m", "tests.server.web_process", str(folder), str(port), *flags]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        _wait_for(port, process)
        yield port, process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError("the web server did not start")


if __name__ == "__main__":
    sys.exit(main())
