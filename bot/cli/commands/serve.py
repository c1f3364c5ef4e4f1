"""`precedent serve`: receives webhooks and handles them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bot.cli.output import CommandResult
from bot.errors import UserError
from bot.server.log import guarded
from bot.server.options import FLAGS, forget_secrets, read_options

SIGNS = {"ok": "+", "warning": "!", "wrong": "x", "away": "x"}
LIBRARIES = frozenset({"dbos", "sqlalchemy", "starlette", "uvicorn", "prometheus_client", "psycopg", "jwt"})

Subparsers = argparse._SubParsersAction
EXPLAINED = {
    "data": ("DIR", "the folder for the queue and the clones (default: ./data)"),
    "database_url": ("URL", "PostgreSQL in place of a file there; with a password in it, better a variable"),
    "host": ("ADDRESS", "where to listen (default: 127.0.0.1)"),
    "port": ("PORT", "and at which port (default: 8080)"),
    "workers": ("N", "worker processes to start; 0: receive only (default: 1)"),
    "jobs": ("N", "repositories that one worker works on at once (default: 4)"),
}


def add_server_flags(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    for name in names:
        metavar, explanation = EXPLAINED[name]
        command.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=explanation)


def add_serve(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "serve",
        help="run as a GitHub App: receive webhooks, and handle them",
        description="Options are variables of the environment, PRECEDENT_APP_ID and so on; docs/self-hosting.md has "
        "all of them. These flags go before their variables.",
    )
    add_server_flags(command, FLAGS)
    command.add_argument("--check", action="store_true", help="look whether it could run, say all that is missing, end")


def run_serve(given: argparse.Namespace) -> CommandResult:
    """Receive until a signal; with ``--check`` only look."""
    options = read_options(os.environ, server_flags(given))
    forget_secrets(os.environ)
    with server_libraries():
        from bot.server import processes
    if given.check:
        return _checked(processes.check(options, listens=True))
    return CommandResult("", processes.serve(options, guarded))


def server_flags(given: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in FLAGS if (value := getattr(given, name, None)) is not None}


@contextmanager
def server_libraries() -> Iterator[None]:
    """What only the server needs is not part of every installation."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise UserError(f"{error.name} is missing: install what requirements-server.lock names") from error


def _checked(findings: Sequence[Any]) -> CommandResult:
    """Findings as lines, and the exit code: 2 for what the operator has to mend, 1 for what is away."""
    levels = {finding.level for finding in findings}
    lines = [f"{SIGNS[finding.level]} {finding.name:<12} {finding.line}\n" for finding in findings]
    return CommandResult("".join(lines), 2 if "wrong" in levels else 1 if "away" in levels else 0)
