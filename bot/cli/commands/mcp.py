"""precedent mcp: the memory as a server of tools for coding agents, on stdin and stdout."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from bot.cli.arguments import Subparsers, login, repository
from bot.cli.output import warn
from bot.errors import UserError

EXTRA = "the library for it is missing: in the checkout that Precedent is installed from, pip install '.[mcp]'"
LIBRARIES = frozenset({"mcp", "mcp_types", "anyio", "pydantic"})


def add_mcp(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "mcp",
        help="the memory as read-only tools for coding agents (MCP, over stdin and stdout)",
        description="A server of the Model Context Protocol: an agent starts it, and asks it over stdin and stdout. "
        "docs/mcp.md shows how agents are told of it. It ends when stdin does.",
    )
    command.add_argument("--store", type=Path, metavar="DIR", help="the folder of a store")
    command.add_argument(
        "--repo", type=repository, metavar="OWNER/NAME", help="the repository (default: that of the checkout here)"
    )
    command.add_argument(
        "--memory-branch", metavar="NAME", help="the branch of the memory (default: as in the settings)"
    )
    command.add_argument("--offline", action="store_true", help="fetch nothing: the memory as it was last fetched")
    command.add_argument(
        "--me",
        type=login,
        action="append",
        metavar="LOGIN",
        help="an account of the agent's own; again for more (default: that of the bot)",
    )


def run_mcp(given: argparse.Namespace) -> NoReturn:
    """Serve until stdin ends. Never returns: the process ends with whatever still runs in it."""
    wire = claimed_stdout()
    with _libraries():
        from bot.mcp.server import serve
    from bot.local_cache.local_memory import MemoryOptions
    from bot.mcp.tools import ToolContext, answer

    where = MemoryOptions(
        Path.cwd(), given.store, given.repo or "", given.memory_branch or "", offline=given.offline, warn=warn
    )
    tools = ToolContext(where, tuple(given.me or ()))
    serve(lambda tool, arguments: answer(tools, tool, arguments), wire)
    _end(0)


def claimed_stdout() -> BinaryIO:
    """What was stdout, for the protocol alone: whatever else is printed goes to stderr, by children too."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: _end(0))
    return BufferedWriter(_ProtocolStream(wire, "wb"))


class _ProtocolStream(FileIO):
    """What the protocol is written on. Where nobody reads it any more, there is nothing left to do."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _end(0)


def _end(code: int) -> NoReturn:
    """End at once: nothing is written by the tools, so nothing is lost, and a call may wait for a network."""
    os._exit(code)


@contextmanager
def _libraries() -> Iterator[None]:
    """The library for the protocol is not part of every installation."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise UserError(EXTRA) from error
