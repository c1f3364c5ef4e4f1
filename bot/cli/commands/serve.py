"""`precedent serve` receives webhooks and handles them; `precedent worker` handles what a server elsewhere received."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from bot.cli.output import CommandResult
from bot.errors import UserError, needs
from bot.server.options import FLAGS, WORKER_NAME, WORKING, ServerOptions, forget_secrets, read_options

if TYPE_CHECKING:
    from bot.server.inbox import Inbox

SIGNS = {"ok": "+", "warning": "!", "wrong": "x", "away": "x"}
LIBRARIES = frozenset({"githubkit", "sqlalchemy", "starlette", "uvicorn", "prometheus_client", "psycopg", "jwt"})


def run_serve(given: argparse.Namespace) -> CommandResult:
    options = read_options(os.environ, server_flags(given))
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
    if given.check:
        return _checked(processes.check(options, listens=True))
    return CommandResult("", processes.serve(options))


def run_worker(given: argparse.Namespace) -> CommandResult:
    """Work until a signal. Never returns: the process ends with whatever still runs in it."""
    sent: dict[str, str] = json.load(sys.stdin) if given.parent else {}
    name = sent.pop(WORKER_NAME, "")
    options = read_options(sent or os.environ, server_flags(given), WORKING)
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
        from bot.server.dispatch import work_on
    processes.work(options, work_on, given.parent, name, given.alive)


def server_flags(given: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in FLAGS if (value := getattr(given, name, None)) is not None}


def server_libraries() -> AbstractContextManager[None]:
    return needs(LIBRARIES, "{name} is missing: install what requirements-server.lock names")


@contextmanager
def server_inbox(options: ServerOptions, name: str) -> Iterator[Inbox]:
    """Open the inbox of a server, which may be running meanwhile; ``name`` is that of the command."""
    if not options.database_url and not (options.data / "queue.sqlite").exists():
        raise UserError(f"there is no queue in {options.data}: give the server's --data or --database-url")
    with server_libraries():
        from bot.server import processes
    with processes.opened(options, name) as inbox:
        yield inbox


def _checked(findings: Sequence[Any]) -> CommandResult:
    """Findings as lines, and the exit code: 2 for what the operator has to fix, 1 for what is unreachable."""
    levels = {finding.level for finding in findings}
    lines = [f"{SIGNS[finding.level]} {finding.name:<12} {finding.line}\n" for finding in findings]
    return CommandResult("".join(lines), 2 if "wrong" in levels else 1 if "away" in levels else 0)
