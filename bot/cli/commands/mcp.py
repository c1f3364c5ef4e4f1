"""precedent mcp: the memory as a server of tools for coding agents, on stdin and stdout."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from bot.cli.output import warn
from bot.errors import needs

EXTRA = "the library for it is missing: in the checkout that Precedent is installed from, pip install '.[mcp]'"
LIBRARIES = frozenset({"mcp", "mcp_types", "anyio", "pydantic"})


def run_mcp(given: argparse.Namespace) -> NoReturn:
    """Serve until stdin ends. Never returns: the process ends with whatever still runs in it."""
    wire = claimed_stdout()
    with needs(LIBRARIES, EXTRA):
        from bot.mcp.server import serve
    from bot.local_cache.local_memory import MemoryOptions
    from bot.mcp.tools import ToolContext

    where = MemoryOptions(
        Path.cwd(), given.store, given.repo or "", given.memory_branch or "", offline=given.offline, warn=warn
    )
    serve(ToolContext(where, tuple(given.me or ()), os.environ.get("PRECEDENT_ORG", "")), wire)
    _end(0)


def claimed_stdout() -> BinaryIO:
    """Take stdout for the protocol; everything else that is printed, by children too, goes to stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: _end(0))
    return BufferedWriter(_ProtocolStream(wire, "wb"))


class _ProtocolStream(FileIO):
    """The protocol's output. Ends the process once nobody reads it."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _end(0)


def _end(code: int) -> NoReturn:
    """End at once: nothing is written by the tools, so nothing is lost, and a call may wait for a network."""
    os._exit(code)
