"""A call of a tool → its answer, or in one line what went wrong."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from bot.comment.visible import cut, one_line
from bot.doors.agents.desk import Desk, Told
from bot.doors.agents.offered import CONVERSATION, ISSUE_CONTEXT, SEARCH, WHAT, Tool
from bot.doors.agents.parameters import read
from bot.doors.guarded import bug
from bot.doors.plain import MOST
from bot.errors import PrecedentError

MAX_ERROR = 500

Answering = Callable[[Desk, Mapping[str, Any]], Told]


def answer(desk: Desk, tool: Tool, given: Mapping[str, object]) -> Told:
    """What the tool answers. It never raises: an error of any kind is an answer that failed."""
    try:
        told = _answering(tool)(desk, read(tool.parameters, given))
    except PrecedentError as error:
        return Told({}, cut(one_line(str(error)), MAX_ERROR), failed=True)
    except Exception as error:  # noqa: BLE001 - the agent gets a line, and the server goes on
        traceback.print_exc(file=sys.stderr)
        return Told({}, bug(error), failed=True)
    return Told(told.data, cut(told.text, MOST))


def _answering(tool: Tool) -> Answering:
    """What answers this tool; what reads whole threads is imported when one is asked for."""
    if tool in (CONVERSATION, ISSUE_CONTEXT):
        from bot.doors.agents import threads

        return threads.get_conversation if tool is CONVERSATION else threads.issue_context
    from bot.doors.agents import searching

    if tool is SEARCH:
        return searching.search
    return searching.what if tool is WHAT else searching.smart_search
