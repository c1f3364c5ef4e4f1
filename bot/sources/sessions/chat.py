"""Reads a chat of Gemini CLI, whose later lines change earlier ones.

https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/services/chatRecordingService.ts
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bot.sources.sessions.content import Unreadable
from bot.sources.sessions.formats import parse_object


def fold_chat(lines: Iterable[bytes]) -> tuple[dict[str, Any], int]:
    """Return the chat as one object with ``messages``, and the number of broken lines.

    A message that is written again, as when its tools have run, replaces the former one. ``$rewindTo`` takes back a
    message and all after it. ``$set`` with messages adds those that are new: they replace a history that was too long,
    which was said all the same.
    """
    header: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    said: set[int] = set()
    broken = 0
    for line in lines:
        try:
            fields = parse_object(line) if line.strip() else {}
        except Unreadable:
            broken += 1
            continue
        update = fields.get("$set")
        if isinstance(fields.get("$rewindTo"), str):
            _rewind(messages, fields["$rewindTo"])
        elif isinstance(update, dict):
            _add_new(messages, update.get("messages"), said)
        elif isinstance(fields.get("id"), str):
            messages[fields["id"]] = fields
            said.add(_said(fields))
        elif isinstance(fields.get("sessionId"), str):
            header |= fields
    return header | {"messages": list(messages.values())}, broken


def _rewind(messages: dict[str, Any], first: str) -> None:
    """Forget a message and all after it; all messages if there is none with this id."""
    while messages and messages.popitem()[0] != first:
        pass


def _add_new(messages: dict[str, Any], history: Any, said: set[int]) -> None:
    """Add the messages of a history whose ids and texts are new."""
    for message in history if isinstance(history, list) else ():
        key = message.get("id") if isinstance(message, dict) else None
        if isinstance(key, str) and key not in messages and _said(message) not in said:
            messages[key] = message
            said.add(_said(message))


def _said(message: dict[str, Any]) -> int:
    return hash(f"{message.get('type')} {message.get('content')}")
