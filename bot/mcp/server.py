"""The Model Context Protocol on stdin and stdout. https://modelcontextprotocol.io/specification"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from io import TextIOWrapper
from typing import Any, BinaryIO

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from bot import __version__
from bot.comment.clean_text import one_line, truncate
from bot.errors import PrecedentError, UserError, bug_report
from bot.mcp.tools import (
    ANSWER_SCHEMAS,
    CITATION_RULE,
    INSTRUCTIONS,
    MAX_QUOTED,
    TOOL_TITLES,
    TOOLS,
    ToolAnswer,
    ToolContext,
    refusal,
)

MAX_CONCURRENT_CALLS = 4
"""Calls answered at the same time; others wait."""

MAX_ERROR = 500
"""Characters of an error."""

_READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def _make_tool(run: Any) -> Tool:
    description = " ".join([*run.__doc__.split(), CITATION_RULE])
    return Tool.from_function(
        run, title=TOOL_TITLES[run.__name__], description=description, context_kwarg="tools",
        annotations=_READ_ONLY, structured_output=False,
    )  # fmt: skip


TOOLS_BY_NAME = {run.__name__: _make_tool(run) for run in TOOLS}


def serve(context: ToolContext, wire: BinaryIO) -> None:
    """Answer requests from stdin on ``wire``, until stdin ends."""
    anyio.run(_serve, context, wire)


async def _serve(context: ToolContext, wire: BinaryIO) -> None:
    server = server_of(context)
    out = anyio.wrap_file(TextIOWrapper(wire, encoding="utf-8", errors="replace", newline="\n"))
    async with stdio_server(stdout=out) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def server_of(context: ToolContext) -> Server[Any]:
    """The server with its tools. Calls run in threads, so that the server stays responsive."""
    limiter = anyio.CapacityLimiter(MAX_CONCURRENT_CALLS)

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe_tool(tool) for tool in TOOLS_BY_NAME.values()])

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS_BY_NAME:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool of this name: the tools are {', '.join(TOOLS_BY_NAME)}"
            )
        call = partial(answer, context, params.name, params.arguments or {})
        return _call_result(await run_sync(call, abandon_on_cancel=True, limiter=limiter))

    server: Server[Any] = Server(
        "precedent",
        version=__version__,
        title="Precedent, the memory of a repository",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # no telemetry
    return server


def describe_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.parameters | {"additionalProperties": False},
        output_schema=ANSWER_SCHEMAS[tool.name],
        annotations=tool.annotations,
    )


def answer(context: ToolContext, name: str, arguments: Mapping[str, object]) -> ToolAnswer:
    """Run a tool. Never raises: any error becomes a failed answer."""
    tool = TOOLS_BY_NAME[name]
    try:
        request = tool.fn(context, **checked_arguments(tool, arguments))
        from bot.mcp.answers import answer_to  # loaded on the first call, so that a session starts faster

        return answer_to(context, request)
    except PrecedentError as error:
        return ToolAnswer({}, truncate(one_line(str(error)), MAX_ERROR), failed=True)
    except Exception as error:  # noqa: BLE001 - the agent gets one line, and the server goes on
        import traceback

        traceback.print_exc(file=sys.stderr)
        return ToolAnswer({}, bug_report(error), failed=True)


def checked_arguments(tool: Tool, arguments: Mapping[str, object]) -> dict[str, Any]:
    """The validated arguments; null counts as not given. UserError names the first invalid one."""
    properties = tool.parameters["properties"]
    if unknown := next((name for name in arguments if name not in properties), None):
        takes = f"it takes {', '.join(properties)}" if properties else "it takes none"
        raise UserError(f"there is no parameter {one_line(unknown)[:MAX_QUOTED]!r}: {takes}")
    try:
        return tool.fn_metadata.validate_arguments(
            {name: value for name, value in arguments.items() if value is not None}
        )
    except ValueError as error:
        raise refusal(error, properties) from None


def _call_result(tool_answer: ToolAnswer) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=tool_answer.text)]
    if tool_answer.failed:
        return types.CallToolResult(content=content, is_error=True)
    return types.CallToolResult(content=content, structured_content=tool_answer.data)
