"""Sessions of agents: what each line of a transcript says, by whom and when, and which files the tools touched.

Thinking and tool output are left out. Which of the three formats a line has is seen from its keys, never from the name
of its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bot.domain.thread import Kind, Message, Thread, TimelineEvent
from bot.domain.thread_json import MAX_NAME, MAX_TEXT, MAX_TITLE
from bot.reading.markdown import tail
from bot.sources.clock import TranscriptClock

USER, ASSISTANT = "user", "assistant"


class Utterance(NamedTuple):
    """A message of a session. ``type`` is ``user`` or ``assistant``; ``at`` None where its line does not tell.

    ``files`` are what the tools were called with until somebody spoke again, below the session's folder where they are
    in it. The text may be empty: files alone, before anything was said.
    """

    type: str
    text: str
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Session(NamedTuple):
    """A session as one file tells it, its messages in the order of the lines.

    ``issue`` is the number of the issue that it worked on, where a mapping file tells. ``broken`` lines of the file
    were skipped; they belong to no session, so each session of the file has the same number.
    """

    id: str
    path: str
    utterances: tuple[Utterance, ...]
    issue: int | None = None
    broken: int = 0


# -- contents of a message ---------------------------------------------------------------------------------------------

MAX_PARTS = 1_000
"""Parts of one message that are read, the last ones."""

MAX_FILES = 50
"""Files of one message that are kept, the first ones."""

MAX_PATH = 500
_MAX_ARGUMENTS = 1 << 20

_TEXT = frozenset({"text", "input_text", "output_text"})
_CALL = frozenset({"toolCall", "tool_call", "tool_use", "toolUse", "function_call", "server_tool_use"})
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_PATH = frozenset({"path", "file_path", "filePath", "file", "filename", "fileName", "notebook_path", "notebookPath"})
_PATHS = frozenset({"paths", "files", "file_paths", "filePaths", "edits"})

_NEWLINE = re.compile("\r\n?")
_ESCAPE = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)")
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_BROKEN = re.compile("[\ud800-\udfff]")


class Unreadable(Exception):
    """A line that should be a message and is of no known shape."""


class Content(NamedTuple):
    """The text of a message and the files that its tool calls name."""

    text: str
    files: tuple[str, ...] = ()


def content_of(value: Any, folder: str = "") -> Content:
    """What the content of a message says: a string, or a list of parts. ``folder`` is where the session worked.

    Raises Unreadable.
    """
    if value is None:
        return Content("")  # calls tools and says nothing
    if isinstance(value, str):
        return Content(plain(value))
    if not isinstance(value, list):
        raise Unreadable(type(value).__name__)
    parts = value[-MAX_PARTS:]
    said = "\n\n".join(filter(None, map(_text, parts)))
    files = dict.fromkeys(_short(path, folder) for part in parts for path in _named(part))
    return Content(plain(said, is_cut=len(value) > MAX_PARTS), tuple(filter(None, files))[:MAX_FILES])


def plain(text: str, *, is_cut: bool = False) -> str:
    """The text as a person sees it: without colours and other orders to a terminal, and without what is not seen.

    Of a long one the end. ``is_cut``: its beginning is missing already.
    """
    most = 2 * MAX_TEXT  # what is removed is rarely half of it
    is_cut, text = is_cut or len(text) > most, text[-most:]
    text = _UNSEEN.sub("", _ESCAPE.sub("", _NEWLINE.sub("\n", text)))
    return tail(_BROKEN.sub("\ufffd", text).strip(), MAX_TEXT, is_cut=is_cut)


def line_of(value: Any, most: int) -> str:
    """A name in one line, "" where it is none or longer than ``most``."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return ""
    return " ".join(plain(value).split())


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if _is(part, _TEXT) else None
    return text if isinstance(text, str) else ""


def _is(part: Any, names: frozenset[str]) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in names


def _named(part: Any) -> Iterator[str]:
    if not _is(part, _CALL):
        return
    for name in _ARGUMENTS:
        given = part.get(name)
        if isinstance(given, str) and len(given) <= _MAX_ARGUMENTS:
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                continue
        if isinstance(given, dict):
            yield from _paths(given)
            for key in sorted(_PATHS & given.keys()):
                yield from _listed(given[key])


def _paths(given: Mapping[str, Any]) -> Iterator[str]:
    yield from (given[key] for key in sorted(_PATH & given.keys()) if isinstance(given[key], str))


def _listed(value: Any) -> Iterator[str]:
    for item in value[:MAX_FILES] if isinstance(value, list) else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from _paths(item)


def _short(path: str, folder: str) -> str:
    """The path below the folder where it is in it; "" for what is no file."""
    if not 0 < len(path) <= MAX_PATH or "\n" in path:
        return ""
    path, folder = (plain(each).replace("\\", "/") for each in (path, folder))
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        path = path[len(folder.rstrip("/")) + 1 :]
    while path.startswith("./"):
        path = path[2:]
    return "" if path.endswith(("/", "..")) or path in (".", "~") else path


# -- lines of a file ---------------------------------------------------------------------------------------------------

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


class TranscriptMessage(NamedTuple):
    """A message. ``session`` is "" where the line does not tell."""

    session: str
    type: str
    content: Content
    at: datetime | None


class SessionHeader(NamedTuple):
    """The header of a session: lines after it that name no session belong to it."""

    session: str
    folder: str


class SubagentTranscript(NamedTuple):
    """A subagent has answered, and the transcript at ``path`` has its words."""

    session: str
    path: str
    at: datetime | None


TranscriptLine = TranscriptMessage | SessionHeader | SubagentTranscript


def parse_line(line: bytes, folder: str = "", clock: TranscriptClock | None = None) -> TranscriptLine | None:
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
        return SessionHeader(session, line_of(fields.get("cwd"), 4_096))
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


def _hooked(event: str, fields: Mapping[str, Any], clock: TranscriptClock) -> TranscriptLine | None:
    data = fields.get("data", fields)
    if not isinstance(data, dict):
        raise Unreadable(event)
    session = _session(fields) or _session(data)
    at = _time(fields, clock) or _time(data, clock)
    if event == PROMPT:
        return TranscriptMessage(session, USER, content_of(_given(data, ("prompt",), event)), at)
    if event == RESPONSE:
        return TranscriptMessage(session, ASSISTANT, content_of(_given(data, _RESPONSE, event)), at)
    for key in _RESPONSE:
        if isinstance(data.get(key), str):
            return TranscriptMessage(session, ASSISTANT, content_of(data[key]), at)
    paths = [line_of(each.get(key), 4_096) for key in _TRANSCRIPT for each in (data, fields)]
    path = next(filter(None, paths), "")
    return SubagentTranscript(session, path, at) if path else None


def _given(data: Mapping[str, Any], keys: tuple[str, ...], event: str) -> Any:
    for key in keys:
        if isinstance(data.get(key), str | list):
            return data[key]
    raise Unreadable(event)


def _message(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> TranscriptMessage | None:
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
    return TranscriptMessage(_session(fields), speaker, content_of(message["content"], cwd), at)


def _speaker(kind: Any, message: Any, fields: Mapping[str, Any]) -> str:
    """Who speaks, "" for nobody. Raises Unreadable where nothing tells what the line is."""
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


# -- a session as a thread ---------------------------------------------------------------------------------------------

HUMAN, MACHINE = "human", "assistant"
"""Who speaks in a session; its lines tell no names."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""When a session happened none of whose lines tell a time."""

NO_TITLE = "(nothing was asked)"


def thread_of(session: Session) -> Thread:
    """The session as a thread. A message without a time has that of the one before it; the files that were touched
    stand below what was said before. The issue that it worked on refers to it."""
    times = _times(session.utterances)
    said = [
        Message(HUMAN if each.type == USER else MACHINE, "NONE", at, text, is_bot=each.type != USER)
        for each, at in zip(session.utterances, times, strict=True)
        if (text := _with_files(each))
    ]
    first = said[0] if said else Message(HUMAN, "NONE", LONG_AGO, "")
    refers = session.issue and TimelineEvent(
        "cross-referenced", first.created_at, source=session.issue, source_kind=Kind.ISSUE
    )
    return Thread(
        id=session.id[:MAX_NAME],
        title=_title(session.utterances),
        body=first.text,
        author=first.author,
        role=first.role,
        is_bot=first.is_bot,
        created_at=first.created_at,
        updated_at=max(times, default=first.created_at),
        kind=Kind.SESSION,
        comments=tuple(said[1:]),
        events=(refers,) if refers else (),
    )


def _title(utterances: Sequence[Utterance]) -> str:
    asked = next((each.text for each in utterances if each.type == USER and each.text.strip()), "")
    return asked.strip().partition("\n")[0].strip()[:MAX_TITLE] or NO_TITLE


def _with_files(utterance: Utterance) -> str:
    files = "Files: " + ", ".join(f"`{path}`" for path in utterance.files) if utterance.files else ""
    room = MAX_TEXT - len(files) - 2
    return "\n\n".join(filter(None, (tail(utterance.text, room), files)))[:MAX_TEXT]


def _times(utterances: Sequence[Utterance]) -> list[datetime]:
    """When each was said, never before the one that stands before it."""
    now = next((each.at for each in utterances if each.at), LONG_AGO)
    times = []
    for each in utterances:
        now = max(now, each.at or now)
        times.append(now)
    return times
