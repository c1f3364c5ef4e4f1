"""precedent mcp: the memory as a server of tools for coding agents, on stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from bot.cli.options import Arguments, branch_option, folder_option, me_option, offline_option, repo_option
from bot.cli.output import warn
from bot.errors import require_libraries

if TYPE_CHECKING:
    from bot.mcp.tools import ToolContext

INSTALL_HINT = "the library for it is missing: in the checkout that Precedent is installed from, pip install '.[mcp]'"
LIBRARIES = frozenset({"mcp", "mcp_types", "anyio", "pydantic"})


class McpArguments(Arguments):
    """A server of the Model Context Protocol. An agent starts it, talks to it over stdin and stdout, and ends it by
    closing stdin; docs/agents.md shows how to register it."""

    store: Path | None = folder_option("the folder of a store")
    repo: str | None = repo_option("the repository (default: that of the current checkout)")
    memory_branch: str | None = branch_option()
    offline: bool = offline_option()
    me: list[str] | None = me_option()


def run_mcp(args: McpArguments) -> NoReturn:
    """Serve until stdin ends. Never returns: the process exits even if threads are still running."""
    wire = claim_stdout()
    with require_libraries(LIBRARIES, INSTALL_HINT):
        from bot.mcp.server import serve
    serve(tool_context(args), wire)
    _exit(0)


def tool_context(args: McpArguments) -> ToolContext:
    """What the tools read: the memory that the options name."""
    from bot.local_cache.local_memory import MemoryOptions
    from bot.mcp.tools import ToolContext

    options = MemoryOptions(
        Path.cwd(), args.store, args.repo or "", args.memory_branch or "", offline=args.offline, warn=warn
    )
    return ToolContext(options, tuple(args.me or ()), os.environ.get("PRECEDENT_ORG", ""))


def claim_stdout() -> BinaryIO:
    """Reserve stdout for the protocol; all other output, including that of child processes, goes to stderr."""
    sys.stdout.flush()
    wire = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: _exit(0))
    return BufferedWriter(_ProtocolStream(wire, "wb"))


class _ProtocolStream(FileIO):
    """The protocol's output. Ends the process when its reader is gone."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _exit(0)


def _exit(code: int) -> NoReturn:
    """Exit immediately: tools write nothing, so nothing is lost, and a call may be waiting for the network."""
    os._exit(code)
