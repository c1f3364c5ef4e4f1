"""Reads the lines of agents' transcripts: message, speaker and time, and the files that tools touched.

Thinking and tool output are left out. The format is recognised by a line's keys, not by the name of its file.
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
from bot.sources.session_times import TranscriptClock

USER, ASSISTANT = "user", "assistant"


class Utterance(NamedTuple):
    """A message of a session. ``type`` is ``user`` or ``assistant``; ``at`` is None if the line has no time.

    ``files`` come from the tool calls up to the next message, relative to the session's folder if they are in it. The
    text is empty for files touched before the first message.
    """

    type: str
    text: str
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Session(NamedTuple):
    """A session in a file, with its messages in the order of the lines.

    ``issue`` is the number of the issue it worked on, from a mapping file. ``broken`` is the number of lines skipped in
    the file; they belong to no session, so every session of the file has the same number.
    """

    id: str
    path: str
    utterances: tuple[Utterance, ...]
    issue: int | None = None
    broken: int = 0


# -- contents of a message ---------------------------------------------------------------------------------------------

MAX_PARTS = 1_000
"""Maximum parts read of one message; the last ones are read."""

MAX_FILES = 50
"""Maximum files kept of one message; the first ones are kept."""

MAX_PATH = 500
_MAX_ARGUMENTS = 1 << 20

_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_CALL_TYPES = frozenset(
    {"toolCall", "tool_call", "tool_use", "toolUse", "function_call", "server_tool_use", "custom_tool_call"}
)
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_PATH = frozenset({"path", "file_path", "filePath", "file", "filename", "fileName", "notebook_path", "notebookPath"})
_PATHS = frozenset({"paths", "files", "file_paths", "filePaths", "edits"})

_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ([^\n]{1,500})$", re.MULTILINE)
"""A file in a patch as agents write it: https://github.com/openai/codex/blob/main/codex-rs/apply-patch."""

_NEWLINE = re.compile("\r\n?")
_ESCAPE = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)")
_INVISIBLE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreadable(Exception):
    """A line that should be a message but has no known shape."""


class Content(NamedTuple):
    """The text of a message and the files that its tool calls name."""

    text: str
    files: tuple[str, ...] = ()


def content_of(value: Any, folder: str = "") -> Content:
    """Read the content of a message: a string, or a list of parts. ``folder`` is the session's working folder.

    Raises Unreadable.
    """
    if value is None:
        return Content("")  # tool calls only
    if isinstance(value, str):
        return Content(plain(value))
    if not isinstance(value, list):
        raise Unreadable(type(value).__name__)
    parts = value[-MAX_PARTS:]
    text = "\n\n".join(filter(None, map(_text, parts)))
    files = dict.fromkeys(_shorten(path, folder) for part in parts for path in _named_files(part))
    return Content(plain(text, is_cut=len(value) > MAX_PARTS), tuple(filter(None, files))[:MAX_FILES])


def plain(text: str, *, is_cut: bool = False) -> str:
    """Return the visible text, without terminal sequences and invisible characters.

    Only the end of a long text is kept. ``is_cut``: its start is missing already.
    """
    most = 2 * MAX_TEXT  # cleaning rarely removes half of it
    is_cut, text = is_cut or len(text) > most, text[-most:]
    text = _INVISIBLE.sub("", _ESCAPE.sub("", _NEWLINE.sub("\n", text)))
    return tail(_SURROGATE.sub("\ufffd", text).strip(), MAX_TEXT, is_cut=is_cut)


def line_of(value: Any, most: int) -> str:
    """Return a name as one line, "" for anything else or if longer than ``most``."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return ""
    return " ".join(plain(value).split())


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    is_text = _is(part, _TEXT_TYPES) or (isinstance(part, dict) and "type" not in part)
    text = part.get("text") if is_text else None
    return text if isinstance(text, str) else ""


def _is(part: Any, names: frozenset[str]) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in names


def _named_files(part: Any) -> Iterator[str]:
    if not _is(part, _CALL_TYPES):
        return
    for name in _ARGUMENTS:
        arguments = part.get(name)
        if isinstance(arguments, str) and len(arguments) <= _MAX_ARGUMENTS:
            yield from _PATCHED_FILE.findall(arguments)
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                continue
        if isinstance(arguments, dict):
            yield from _paths(arguments)
            for key in sorted(_PATHS & arguments.keys()):
                yield from _listed_paths(arguments[key])


def _paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    yield from (arguments[key] for key in sorted(_PATH & arguments.keys()) if isinstance(arguments[key], str))


def _listed_paths(value: Any) -> Iterator[str]:
    for item in value[:MAX_FILES] if isinstance(value, list) else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from _paths(item)


def _shorten(path: str, folder: str) -> str:
    """The path, relative to the folder if it is in it; "" if it is not a file."""
    if not 0 < len(path) <= MAX_PATH or "\n" in path:
        return ""
    path, folder = (plain(value).replace("\\", "/") for value in (path, folder))
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        path = path[len(folder.rstrip("/")) + 1 :]
    while path.startswith("./"):
        path = path[2:]
    return "" if path.endswith(("/", "..")) or path in (".", "~") else path


# -- lines of a file ---------------------------------------------------------------------------------------------------

MAX_LINE = 4 << 20
"""Bytes of a line; a longer one counts as broken."""

MAX_OBJECT_BYTES = 8 << 20
"""Maximum bytes of a file that is one object."""

MAX_OBJECT_MESSAGES = 50_000
"""Maximum messages read of one object; the first ones are read."""

MAX_ID = 200
MAX_BRANCH = 200

_SPEAKERS = {"user": USER, "human": USER, "assistant": ASSISTANT, "gemini": ASSISTANT}
_SESSION = ("sessionId", "session_id", "sessionID", "conversation_id")
_TIME = ("timestamp", "ts", "time", "at", "created_at", "createdAt", "date")
_EVENT = ("event", "hook_event_name", "hookEventName", "hook_event", "event_name", "event_type", "hook", "type", "name")
_TRANSCRIPT = ("agent_transcript_path", "agentTranscriptPath", "transcript_path", "transcriptPath", "transcript")
_RESPONSE = ("response", "last_assistant_message", "lastAssistantMessage")

PROMPT_EVENT, RESPONSE_EVENT, SUBAGENT_EVENT = "UserPromptSubmit", "AssistantResponse", "SubagentStop"
"""The events in hook logs that carry messages, by the hooks' own names."""

_PROGRAM_KEYS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Keys that mark user lines written by a program."""

_PROGRAM_TEXT = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|turn_aborted)\b"
    r"|# AGENTS\.md instructions)"
)
"""How program-written parts of a rollout's user messages begin."""

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_MAX_PULL_NUMBER = 2**31 - 1


class TranscriptMessage(NamedTuple):
    """A message. ``session`` is "" if the line names none; ``branch`` is the git branch it was written on."""

    session: str
    type: str
    content: Content
    at: datetime | None
    branch: str = ""


class SessionHeader(NamedTuple):
    """The header of a session. Later lines that name no session belong to it."""

    session: str
    folder: str
    branch: str = ""


class PullRequestLink(NamedTuple):
    """A pull request that the agent worked on: ``#50`` or ``owner/name#50``."""

    session: str
    name: str


class WholeSession(NamedTuple):
    """A session in one object. ``broken`` of its messages were unreadable."""

    session: str
    messages: tuple[TranscriptMessage, ...]
    broken: int


class SubagentTranscript(NamedTuple):
    """A subagent has answered, in the transcript at ``path``."""

    session: str
    path: str
    at: datetime | None


TranscriptLine = TranscriptMessage | SessionHeader | SubagentTranscript | PullRequestLink | WholeSession


def parse_line(
    line: bytes, folder: str = "", clock: TranscriptClock | None = None, most: int = MAX_LINE
) -> TranscriptLine | None:
    """Read a line; None for a known line without a message (progress, tool output, attachments, …).

    ``folder`` is the session's working folder according to earlier lines; ``clock`` has read their times. Raises
    Unreadable for a line that is not a JSON object, has more than ``most`` bytes, or should be a message but is not.
    """
    fields, clock = _parse_object(line, most), clock or TranscriptClock()
    event = _event(fields)
    if event:
        return _parse_hook(event, fields, clock)
    kind, payload = fields.get("type"), fields.get("payload")
    if kind in ("session_meta", "response_item") and isinstance(payload, dict):
        return (
            _rollout_header(payload)
            if kind == "session_meta"
            else _parse_rollout(payload, folder, _time(fields, clock))
        )
    if isinstance(fields.get("messages"), list):
        return _parse_whole(fields, folder, clock)
    if _is_header(kind, fields):
        return SessionHeader(_named_session(fields), line_of(fields.get("cwd"), 4_096), _branch(fields))
    if kind == "pr-link":
        return _pull_request(fields)
    if "$set" in fields or any(fields.get(mark) is True for mark in _PROGRAM_KEYS):
        return None
    return _parse_message(fields, folder, clock)


def _is_header(kind: Any, fields: Mapping[str, Any]) -> bool:
    if kind == "session":
        return True
    starts = "cwd" in fields or "startTime" in fields
    return kind is None and starts and not {"message", "role", "content"} & fields.keys()


def _named_session(fields: Mapping[str, Any]) -> str:
    return _session(fields) or line_of(fields.get("id"), MAX_ID)


def _branch(fields: Mapping[str, Any]) -> str:
    return line_of(fields.get("gitBranch"), MAX_BRANCH)


def _pull_request(fields: Mapping[str, Any]) -> PullRequestLink | None:
    number, repo = fields.get("prNumber"), fields.get("prRepository")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= _MAX_PULL_NUMBER:
        return None
    repo = repo if isinstance(repo, str) and _SLUG.fullmatch(repo) else ""
    return PullRequestLink(_session(fields), f"{repo}#{number}")


def _rollout_header(payload: Mapping[str, Any]) -> SessionHeader:
    git = payload.get("git")
    branch = line_of(git.get("branch"), MAX_BRANCH) if isinstance(git, dict) else ""
    return SessionHeader(_named_session(payload), line_of(payload.get("cwd"), 4_096), branch)


def _parse_rollout(payload: dict[str, Any], folder: str, at: datetime | None) -> TranscriptMessage | None:
    """Read an item of a rollout. https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs"""
    if _is(payload, _CALL_TYPES):
        return TranscriptMessage("", ASSISTANT, content_of([payload], folder), at)
    if payload.get("type") != "message":
        return None
    role, content = payload.get("role"), payload.get("content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        raise Unreadable("nobody speaks, or says nothing")
    if role not in _SPEAKERS:
        return None
    parts = [content] if isinstance(content, str) else content[-MAX_PARTS:]
    spoken = [part for part in parts if role != USER or not _PROGRAM_TEXT.match(_text(part))]
    return TranscriptMessage("", _SPEAKERS[role], content_of(spoken, folder), at)


def _parse_whole(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> WholeSession:
    messages, broken = [], 0
    for item in fields["messages"][:MAX_OBJECT_MESSAGES]:
        try:
            if not isinstance(item, dict):
                raise Unreadable("no object")
            message = _parse_message(item, line_of(fields.get("cwd"), 4_096) or folder, clock)
        except Unreadable:
            broken += 1
            continue
        messages += [message] if message else []
    if broken and not messages:
        raise Unreadable("no messages")
    branch = _branch(fields)
    return WholeSession(
        _named_session(fields), tuple(item._replace(branch=item.branch or branch) for item in messages), broken
    )


def _parse_object(line: bytes, most: int) -> dict[str, Any]:
    if len(line) > most:
        raise Unreadable("too long")
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if not isinstance(fields, dict):
        raise Unreadable("no object")
    return fields


def _event(fields: Mapping[str, Any]) -> str:
    events = (PROMPT_EVENT, RESPONSE_EVENT, SUBAGENT_EVENT)
    return next((fields[key] for key in _EVENT if isinstance(fields.get(key), str) and fields[key] in events), "")


def _parse_hook(event: str, fields: Mapping[str, Any], clock: TranscriptClock) -> TranscriptLine | None:
    data = fields.get("data", fields)
    if not isinstance(data, dict):
        raise Unreadable(event)
    session = _session(fields) or _session(data)
    at = _time(fields, clock) or _time(data, clock)
    if event == PROMPT_EVENT:
        return TranscriptMessage(session, USER, content_of(_field(data, ("prompt",), event)), at)
    if event == RESPONSE_EVENT:
        return TranscriptMessage(session, ASSISTANT, content_of(_field(data, _RESPONSE, event)), at)
    for key in _RESPONSE:
        if isinstance(data.get(key), str):
            return TranscriptMessage(session, ASSISTANT, content_of(data[key]), at)
    paths = [line_of(source.get(key), 4_096) for key in _TRANSCRIPT for source in (data, fields)]
    path = next(filter(None, paths), "")
    return SubagentTranscript(session, path, at) if path else None


def _field(data: Mapping[str, Any], keys: tuple[str, ...], event: str) -> Any:
    for key in keys:
        if isinstance(data.get(key), str | list):
            return data[key]
    raise Unreadable(event)


def _parse_message(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> TranscriptMessage | None:
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
    if fields.get("isSidechain") is True:
        speaker = ASSISTANT  # the agent wrote what the subagent is asked
    return TranscriptMessage(_session(fields), speaker, content_of(message["content"], cwd), at, _branch(fields))


def _speaker(kind: Any, message: Any, fields: Mapping[str, Any]) -> str:
    """The speaker, "" for none. Raises Unreadable if the kind of line is unknown."""
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
"""The authors of a session's messages, who have no names."""

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a session without times."""

NO_TITLE = "(nothing was asked)"


def thread_of(session: Session) -> Thread:
    """Convert a session to a thread. A message without a time gets that of the previous one; touched files are listed
    below the previous message. The issue it worked on becomes a cross-reference."""
    times = _times(session.utterances)
    messages = [
        Message(HUMAN if utterance.type == USER else MACHINE, "NONE", at, text, is_bot=utterance.type != USER)
        for utterance, at in zip(session.utterances, times, strict=True)
        if (text := _with_files(utterance))
    ]
    first = messages[0] if messages else Message(HUMAN, "NONE", UNKNOWN_TIME, "")
    reference = session.issue and TimelineEvent(
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
        comments=tuple(messages[1:]),
        events=(reference,) if reference else (),
    )


def _title(utterances: Sequence[Utterance]) -> str:
    question = next(
        (utterance.text for utterance in utterances if utterance.type == USER and utterance.text.strip()), ""
    )
    return question.strip().partition("\n")[0].strip()[:MAX_TITLE] or NO_TITLE


def _with_files(utterance: Utterance) -> str:
    files = "Files: " + ", ".join(f"`{path}`" for path in utterance.files) if utterance.files else ""
    room = MAX_TEXT - len(files) - 2
    return "\n\n".join(filter(None, (tail(utterance.text, room), files)))[:MAX_TEXT]


def _times(utterances: Sequence[Utterance]) -> list[datetime]:
    """The time of each message, never earlier than that of the previous one."""
    time = next((utterance.at for utterance in utterances if utterance.at), UNKNOWN_TIME)
    times = []
    for utterance in utterances:
        time = max(time, utterance.at or time)
        times.append(time)
    return times
