"""The Model Context Protocol on stdin and stdout. https://modelcontextprotocol.io/specification"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from io import TextIOWrapper
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from bot import __version__
from bot.mcp.tools import INSTRUCTIONS, NAME, TITLE, TOOLS, Tool, ToolAnswer

AT_ONCE = 4
"""Calls that are answered at the same time; more of them wait."""

_READS_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Ask = Callable[[Tool, Mapping[str, object]], ToolAnswer]


def serve(ask: Ask, wire: BinaryIO) -> None:
    """Answer what comes on stdin, on ``wire``, until stdin ends."""
    anyio.run(_serve, ask, wire)


async def _serve(ask: Ask, wire: BinaryIO) -> None:
    server = server_of(ask)
    out = anyio.wrap_file(TextIOWrapper(wire, encoding="utf-8", errors="replace", newline="\n"))
    async with stdio_server(stdout=out) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def server_of(ask: Ask) -> Server[Any]:
    """The server with its tools. Calls are answered in threads, so that it hears of everything meanwhile."""
    known = {tool.name: tool for tool in TOOLS}
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_offered(tool) for tool in TOOLS])

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool of this name: there are {', '.join(known)}")
        call = partial(ask, tool, params.arguments or {})
        return _result(await run_sync(call, abandon_on_cancel=True, limiter=limiter))

    server: Server[Any] = Server(
        NAME,
        version=__version__,
        title=TITLE,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # nobody is told of the calls: no telemetry
    return server


def _offered(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        output_schema=tool.answer,
        annotations=_READS_ONLY,
    )


def _result(told: ToolAnswer) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=told.text)]
    if told.failed:
        return types.CallToolResult(content=content, is_error=True)
    return types.CallToolResult(content=content, structured_content=told.data)
