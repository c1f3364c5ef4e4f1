"""`precedent serve` receives and handles webhooks; `precedent worker` handles those that another machine received."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.cli.options import ServerArguments, file_option, flag, option, organisation_option
from bot.cli.output import CommandResult
from bot.errors import UserError, require_libraries
from bot.server.options import FLAGS, WORKER_NAME_KEY, WORKER_REQUIRED, ServerOptions, forget_secrets, read_options

if TYPE_CHECKING:
    from bot.server.storage.inbox import Inbox

SIGNS = {"ok": "+", "note": "-", "warning": "!", "wrong": "x", "away": "x"}
LIBRARIES = frozenset({"githubkit", "sqlalchemy", "starlette", "uvicorn", "prometheus_client", "psycopg", "jwt"})


class _RunArguments(ServerArguments):
    organisation: str | None = organisation_option()
    jobs: str | None = option("repositories that one worker handles at once (default: 4)", metavar="N")
    check: bool = flag("create the database's tables if there are none, report everything that is missing, and exit")


class ServeArguments(_RunArguments):
    """Most options are environment variables, such as PRECEDENT_APP_ID; docs/self-hosting.md lists them. These flags
    override their variables."""

    host: str | None = option("the address to listen on (default: 127.0.0.1)", metavar="ADDRESS")
    port: str | None = option("the port to listen on (default: 8080)", metavar="PORT")
    workers: str | None = option("worker processes to start; 0: receive only (default: 1)", metavar="N")


class WorkerArguments(_RunArguments):
    alive: Path | None = file_option("touch this file every second, for a probe")
    parent: int = option("used by serve: options come from stdin", type=int, default=0, metavar="PID")


def run_serve(args: ServeArguments) -> CommandResult:
    options = read_options(os.environ, server_flags(args))
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
    if args.check:
        return _startup_result(processes.check(options, listens=True))
    return CommandResult("", processes.serve(options))


def run_worker(args: WorkerArguments) -> CommandResult:
    """Work until a signal. Returns only a check: the process exits even if threads are still running."""
    environment: dict[str, str] = json.load(sys.stdin) if args.parent else {}
    name = environment.pop(WORKER_NAME_KEY, "")
    options = read_options(environment or os.environ, server_flags(args), WORKER_REQUIRED)
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
        from bot.server.work.reconcile import reconcile
    if not args.check:
        processes.work(options, reconcile, args.parent, name, args.alive)
    return _startup_result(processes.check(options, listens=False))


def server_flags(args: ServerArguments) -> dict[str, Any]:
    return {name: value for name in FLAGS if (value := getattr(args, name, None)) is not None}


def server_libraries() -> AbstractContextManager[None]:
    return require_libraries(LIBRARIES, "{name} is missing: install the packages in requirements-server.lock")


@contextmanager
def server_inbox(options: ServerOptions, name: str) -> Iterator[Inbox]:
    """Open the inbox of a server, even a running one; ``name`` is the name of the command."""
    if not options.database_url and not (options.data / "queue.sqlite").exists():
        raise UserError(f"there is no queue in {options.data}: give the server's --data or --database-url")
    with server_libraries():
        from bot.server import processes
    with processes.open_inbox(options, name) as inbox:
        yield inbox


def _startup_result(findings: Sequence[Any]) -> CommandResult:
    """The findings as lines, and the exit code: 2 if the operator must fix something, 1 if something is unreachable."""
    levels = {finding.level for finding in findings}
    lines = [f"{SIGNS[finding.level]} {finding.name:<12} {finding.line}\n" for finding in findings]
    return CommandResult("".join(lines), 2 if "wrong" in levels else 1 if "away" in levels else 0)
