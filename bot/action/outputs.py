"""What the next steps of a job receive: the outputs, and a context file for an agent's prompt."""

from __future__ import annotations

import json
import secrets

from bot.action.environment import RunnerEnvironment, write_file
from bot.comment.prompt import Markdown, as_markdown, render
from bot.pipeline.reconcile import CommentResult
from bot.questions.context import RecentConversations, history_of
from bot.questions.requests import MIN_CHARS

MAX_CONTEXT = 120_000
"""Characters of a context file; the issue's history fills the room that the findings leave."""


def outputs(result: CommentResult, context: str, page: str = "") -> str:
    """The output file's text: numbers, booleans, and our own URLs, paths and reasons; never a stranger's words."""
    matches = [
        {"number": match.id, "state": match.state, "similarity": match.similarity}
        for match in (*result.context.seen_before, *result.context.open_now)
    ]
    values = {
        "matches": json.dumps(matches),
        "context": context,
        "report": page,
        "comment-id": str(result.comment.id) if result.comment else "",
        "comment-url": result.comment.url if result.comment else "",
        "spoke": "true" if result.spoke else "false",
        "would-speak": "true" if result.action == "would say" else "false",
        "reason": " ".join(result.reason.split()),
    }
    fence = f"precedent_{secrets.token_hex(16)}"
    return "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in values.items())


def context_file(
    environment: RunnerEnvironment, result: CommentResult, recent: RecentConversations | None = None
) -> str:
    """Write a Markdown file for an agent's prompt. Returns its path, "" if there is nothing to write.

    ``recent`` holds the issue's recent conversations. A single message is left out, as the agent already has it.
    """
    findings = "" if result.context.is_empty else as_markdown(result.context)
    history = _history(recent, MAX_CONTEXT - len(findings or as_markdown(result.context, "\n"))) if recent else ""
    text = as_markdown(result.context, history) if findings or history else ""
    return write_file(environment, f"context-{result.id}.md", text) if text else ""


def _history(recent: RecentConversations, room: int) -> str:
    if room < MIN_CHARS or sum(len(conversation.turns) for conversation in recent.conversations) < 2:
        return ""
    form = Markdown(recent.zone, is_part=True)
    return render(history_of(recent, form, room), form)
