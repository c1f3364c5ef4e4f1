"""What the next steps of a job are given: the outputs, and a context file for an agent's prompt."""

from __future__ import annotations

import json
import secrets

from bot.action.environment import RunnerEnvironment, leave
from bot.comment.prompt import Markdown, as_markdown, render
from bot.pipeline.publish import CommentResult
from bot.questions.context import RecentConversations, history_of
from bot.questions.requests import MIN_CHARS

MAX_CONTEXT = 120_000
"""Characters of a context file; the issue's history fills what the findings leave."""


def outputs(spoken: CommentResult, context: str) -> str:
    """The output file's text: numbers, booleans, and our own URLs, paths and reasons; never a stranger's words."""
    matches = [
        {"number": match.id, "state": match.state, "similarity": match.similarity}
        for match in (*spoken.context.seen_before, *spoken.context.open_now)
    ]
    values = {
        "matches": json.dumps(matches),
        "context": context,
        "comment-id": str(spoken.comment.id) if spoken.comment else "",
        "comment-url": spoken.comment.url if spoken.comment else "",
        "spoke": "true" if spoken.spoke else "false",
        "would-speak": "true" if spoken.action == "would say" else "false",
        "reason": " ".join(spoken.reason.split()),
    }
    fence = f"precedent_{secrets.token_hex(16)}"
    return "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in values.items())


def context_file(around: RunnerEnvironment, spoken: CommentResult, past: RecentConversations | None = None) -> str:
    """Write a Markdown file for an agent's prompt. Returns its path, "" if there is nothing to write.

    ``past`` holds the issue's recent conversations. A single message is left out, as the agent has it.
    """
    found = "" if spoken.context.is_empty else as_markdown(spoken.context)
    history = _history(past, MAX_CONTEXT - len(found or as_markdown(spoken.context, "\n"))) if past else ""
    text = as_markdown(spoken.context, history) if found or history else ""
    return leave(around, f"context-{spoken.id}.md", text) if text else ""


def _history(past: RecentConversations, room: int) -> str:
    if room < MIN_CHARS or sum(len(one.turns) for one in past.conversations) < 2:
        return ""
    form = Markdown(past.zone, is_part=True)
    return render(history_of(past, form, room), form)
