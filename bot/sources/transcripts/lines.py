"""What one line says: which of the three formats it has is seen from its keys, never from the name of its file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bot.sources.transcripts.clock import TranscriptClock
from bot.sources.transcripts.content import Content, Unreadable, content_of, line_of
from bot.sources.transcripts.nouns import ASSISTANT, USER

MAX_LINE = 4 << 20
"""Bytes of a line; a longer one counts as broken."""

MAX_ID = 200

_SPEAKERS = {"user": USER, "human": USER, "assistant": ASSISTANT}
_SESSION = ("sessionId", "session_id", "sessionID", "conversation_id")
_TIME = ("timestamp", "ts", "time", "at", "created_at", "createdAt", "date")
_EVENT = ("event", "hook_event_name", "hookEventName", "hook_event", "event_name", "event_type", "hook", "type", "name")
_TRANSCRIPT = ("agent_transcript_path", "agentTranscriptPath", "transcript_path", "transcriptPath", "transcript")
_RESPONSE = ("response", "last_assistant_message", "lastAssistantMessage")

PROMPT, RESPONSE, SUBAGENT = "UserPromptSubmit", "AssistantResponse", "SubagentStop"
"""The events of hook logs that say something; the hooks' own names."""

_MACHINES = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Marks of lines that a program put into a person's mouth."""


class Said(NamedTuple):
    """A message. ``session`` is "" where the line does not tell."""

    session: str
    type: str
    content: Content
    at: datetime | None


class Opened(NamedTuple):
    """The header of a session: lines after it that name no session belong to it."""

    session: str
    folder: str


class Elsewhere(NamedTuple):
    """A subagent has answered, and the transcript at ``path`` has its words."""

    session: str
    path: str
    at: datetime | None


Told = Said | Opened | Elsewhere


def told(line: bytes, folder: str = "", clock: TranscriptClock | None = None) -> Told | None:
    """What the line says; None for one that is known to say nothing (progress, tool output, attachments, …).

    ``folder`` is where the session worked, as far as earlier lines tell; ``clock`` has read their times. Raises
    Unreadable for a line that is no JSON object, or that should be a message and is none.
    """
    fields, clock = _object(line), clock or TranscriptClock()
    event = _event(fields)
    if event:
        return _hooked(event, fields, clock)
    kind = fields.get("type")
    if kind == "session" or (kind is None and "cwd" in fields and not {"message", "role", "content"} & fields.keys()):
        session = _session(fields) or line_of(fields.get("id"), MAX_ID)
        return Opened(session, line_of(fields.get("cwd"), 4_096))
    if any(fields.get(mark) is True for mark in _MACHINES):
        return None
    return _message(fields, folder, clock)


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE:
        raise Unreadable("too long")
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if not isinstance(fields, dict):
        raise Unreadable("no object")
    return fields


def _event(fields: Mapping[str, Any]) -> str:
    known = (PROMPT, RESPONSE, SUBAGENT)
    return next((fields[key] for key in _EVENT if isinstance(fields.get(key), str) and fields[key] in known), "")


def _hooked(event: str, fields: Mapping[str, Any], clock: TranscriptClock) -> Told | None:
    data = fields.get("data", fields)
    if not isinstance(data, dict):
        raise Unreadable(event)
    session = _session(fields) or _session(data)
    at = _time(fields, clock) or _time(data, clock)
    if event == PROMPT:
        return Said(session, USER, content_of(_given(data, ("prompt",), event)), at)
    if event == RESPONSE:
        return Said(session, ASSISTANT, content_of(_given(data, _RESPONSE, event)), at)
    for key in _RESPONSE:
        if isinstance(data.get(key), str):
            return Said(session, ASSISTANT, content_of(data[key]), at)
    paths = [line_of(each.get(key), 4_096) for key in _TRANSCRIPT for each in (data, fields)]
    path = next(filter(None, paths), "")
    return Elsewhere(session, path, at) if path else None


def _given(data: Mapping[str, Any], keys: tuple[str, ...], event: str) -> Any:
    for key in keys:
        if isinstance(data.get(key), str | list):
            return data[key]
    raise Unreadable(event)


def _message(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> Said | None:
    kind = fields.get("type")
    message = fields.get("message")
    if message is None:
        message = fields if "content" in fields or "role" in fields else None
    elif isinstance(message, str):
        message = {"content": message} if kind in ("user", "human", "assistant") else None
    speaker = _speaker(kind, message, fields)
    if not speaker:
        return None
    if not isinstance(message, dict) or "content" not in message:
        raise Unreadable("no content")
    cwd = line_of(fields.get("cwd"), 4_096) or folder
    at = _time(fields, clock) or _time(message, clock)
    return Said(_session(fields), speaker, content_of(message["content"], cwd), at)


def _speaker(kind: Any, message: Any, fields: Mapping[str, Any]) -> str:
    """Who speaks, "" where nobody does. Raises Unreadable where nothing tells what the line is."""
    role = message.get("role") if isinstance(message, dict) else None
    if isinstance(role, str):
        return _SPEAKERS.get(role, "")  # tool results have a role of their own
    if isinstance(kind, str):
        speaker = _SPEAKERS.get(kind, "")
        if not speaker and kind == "message":
            raise Unreadable("nobody speaks")
        return speaker
    if any(isinstance(fields.get(key), str) for key in _EVENT):
        return ""
    raise Unreadable("unknown")


def _session(fields: Mapping[str, Any]) -> str:
    return next(filter(None, (line_of(fields.get(key), MAX_ID) for key in _SESSION)), "")


def _time(fields: Mapping[str, Any], clock: TranscriptClock) -> datetime | None:
    return next(filter(None, (clock.read(fields.get(key)) for key in _TIME)), None)
