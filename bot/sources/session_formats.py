"""Reads the lines of agents' transcripts: message, speaker and time, and the files that tools touched.

Thinking and tool output are left out. The format is recognised by a line's keys, not by the name of its file.
`docs/agents.md#sessions` lists the agents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from bot.sources.session import ASSISTANT, USER
from bot.sources.session_content import (
    MAX_ID,
    MAX_PARTS,
    Content,
    Unreadable,
    answers_in,
    call_id,
    content_of,
    has_call,
    line_of,
    text_of,
)
from bot.sources.session_head import environment_folder
from bot.sources.session_times import TranscriptClock
from bot.sources.session_words import query_of

MAX_LINE = 4 << 20
"""Bytes of a line; a longer one counts as broken."""

MAX_OBJECT_BYTES = 8 << 20
"""Maximum bytes of a file that is one object."""

MAX_OBJECT_MESSAGES = 50_000
"""Maximum messages read of one object; the first ones are read."""

MAX_BRANCH = 200
MAX_FOLDER = 4_096

_SPEAKERS = {"user": USER, "human": USER, "assistant": ASSISTANT, "gemini": ASSISTANT, "model": ASSISTANT}
_SESSION = ("sessionId", "session_id", "sessionID", "conversation_id")
_TIME = ("timestamp", "ts", "time", "at", "created_at", "createdAt", "date")
_EVENT = ("event", "hook_event_name", "hookEventName", "hook_event", "event_name", "event_type", "hook", "type", "name")
_TRANSCRIPT = ("agent_transcript_path", "agentTranscriptPath", "transcript_path", "transcriptPath", "transcript")
_RESPONSE = ("response", "last_assistant_message", "lastAssistantMessage")

PROMPT_EVENT, RESPONSE_EVENT, SUBAGENT_EVENT = "UserPromptSubmit", "AssistantResponse", "SubagentStop"
"""The events in hook logs that carry messages, by the hooks' own names."""

_PROGRAM_KEYS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
"""Keys that mark user lines written by a program."""

_TYPED_SUBTYPES = ("", "mid_turn_user_message", "realtime_message")
"""Subtypes of a user line in Qwen Code that a person wrote; others are notifications, timers and goals."""

_REJECTED = "The user doesn't want to proceed with this tool use."
_REASON = "the user said:\n"
_REASON_END = "\n\nNote: The user's next message"
"""A rejected call in Claude Code: the result begins with the first, and the person's words are between the others."""

_ANSWERED = re.compile(r"User (?:selected|responded|answered): |User has provided the following answers:\s*")
_ANSWER_LABEL = re.compile(r"^\*\*[^*\n]{1,100}\*\*: ", re.MULTILINE)

_ENVELOPES = ("session_meta", "response_item")
"""The lines of a rollout with a payload."""

_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_MAX_PULL_NUMBER = 2**31 - 1


class Answer(NamedTuple):
    """The words of the person that a tool returned, if the agent's call with this id asked a question."""

    call: str
    text: str


class TranscriptMessage(NamedTuple):
    """A message. ``session`` is "" if the line names none; ``branch`` is the git branch it was written on."""

    session: str
    type: str
    content: Content
    at: datetime | None
    branch: str = ""
    answers: tuple[Answer, ...] = ()


class SessionHeader(NamedTuple):
    """The header of a session. Later lines that name no session belong to it. "" leaves what an earlier one said.

    ``names_file``: the first header of this kind names all of the file, as a fork repeats that of its parent.
    """

    session: str
    folder: str
    branch: str = ""
    names_file: bool = False


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


def parse_line(line: bytes, folder: str = "", clock: TranscriptClock | None = None) -> TranscriptLine | None:
    """Read a line; None for a known line without a message (progress, tool output, attachments, …).

    ``folder`` is the session's working folder according to earlier lines; ``clock`` has read their times. Raises
    Unreadable for a line that is not a JSON object, is too long, or should be a message but is not.
    """
    return _parse_fields(parse_object(line), folder, clock or TranscriptClock())


def parse_object(line: bytes, most: int = MAX_LINE) -> dict[str, Any]:
    """Read a line that is a JSON object of at most ``most`` bytes. Raises Unreadable."""
    if len(line) > most:
        raise Unreadable("too long")
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if not isinstance(fields, dict):
        raise Unreadable("no object")
    return fields


def _parse_fields(fields: dict[str, Any], folder: str, clock: TranscriptClock) -> TranscriptLine | None:
    event = _event(fields)
    if event:
        return _parse_hook(event, fields, clock)
    kind = fields.get("type")
    if isinstance(fields.get("messages"), list):
        return parse_whole(fields, folder, clock)
    if _is_rollout(kind, fields):
        return _parse_rollout(fields, folder, clock)
    if isinstance(kind, str) and "." in kind and isinstance(fields.get("data"), dict):
        return _parse_copilot(kind, fields, folder, clock)
    if _is_header(kind, fields):
        return SessionHeader(_named_session(fields), line_of(fields.get("cwd"), MAX_FOLDER), _branch(fields))
    if kind == "pr-link":
        return _pull_request(fields)
    if kind == "attachment":
        return _parse_attachment(fields, clock)
    if {"$set", "$rewindTo", "record_type"} & fields.keys() or _is_of_program(fields):
        return None
    return _parse_message(fields, folder, clock)


def _is_header(kind: Any, fields: Mapping[str, Any]) -> bool:
    if kind == "session":
        return True
    starts = "cwd" in fields or "startTime" in fields
    return kind is None and starts and not {"message", "role", "content"} & fields.keys()


def _is_of_program(fields: Mapping[str, Any]) -> bool:
    """Whether a program wrote a line that looks like one of the person."""
    if any(fields.get(mark) is True for mark in _PROGRAM_KEYS) or not _is_human(fields):
        return True
    is_typed = fields.get("subtype") in (None, *_TYPED_SUBTYPES) or fields.get("isSidechain") is True
    return fields.get("type") == "user" and not is_typed


def _is_human(fields: Mapping[str, Any]) -> bool:
    origin = fields.get("origin")
    return not isinstance(origin, dict) or origin.get("kind") in (None, "human")


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


# -- Claude Code, Gemini CLI, Qwen Code, Cursor, pi --------------------------------------------------------------------


def _parse_attachment(fields: Mapping[str, Any], clock: TranscriptClock) -> TranscriptMessage | None:
    """A prompt that was typed while Claude Code worked; None for other attachments."""
    queued = fields.get("attachment")
    if not isinstance(queued, dict) or queued.get("type") != "queued_command" or _is_of_program(queued):
        return None
    if queued.get("commandMode") not in (None, "prompt") or not isinstance(queued.get("prompt"), str | list):
        return None
    speaker = ASSISTANT if fields.get("isSidechain") is True else USER
    content = content_of(queued["prompt"], is_person=True)
    return TranscriptMessage(_session(fields), speaker, content, _time(fields, clock), _branch(fields))


def _parse_message(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> TranscriptMessage | None:
    kind = fields.get("type")
    message = fields.get("message")
    if message is None:
        message = fields if "content" in fields or "role" in fields else None
    elif isinstance(message, str):
        message = {"content": message} if kind in ("user", "human", "assistant") else None
    answers = _answers(fields, message) if isinstance(message, dict) else ()
    speaker = _speaker(kind, message, fields)
    if not speaker and not answers:
        return None
    if not isinstance(message, dict):
        raise Unreadable("no content")
    content = _content(fields, message) if speaker else None  # else the result of a tool
    cwd = line_of(fields.get("cwd"), MAX_FOLDER) or folder
    at = _time(fields, clock) or _time(message, clock)
    if speaker == USER and kind is None and message is not fields:  # Cursor
        content = [query_of("\n\n".join(map(text_of, _parts(content))))]
    read, speaker = content_of(content, cwd, is_person=speaker == USER), speaker or USER
    if fields.get("isSidechain") is True:
        speaker, answers = ASSISTANT, ()  # the agent wrote what the subagent is asked
    return TranscriptMessage(_session(fields), speaker, read, at, _branch(fields), answers)


def _content(fields: Mapping[str, Any], message: Mapping[str, Any]) -> Any:
    """The content of a message, as the person saw it. Raises Unreadable."""
    if not {"content", "parts"} & message.keys():
        raise Unreadable("no content")
    payload, calls = fields.get("systemPayload"), message.get("toolCalls")
    if isinstance(payload, dict) and isinstance(payload.get("displayText"), str):
        return payload["displayText"]
    content = message.get("displayContent") or message.get("content", message.get("parts"))
    if not isinstance(calls, list) or not isinstance(content, str | list | None):
        return content
    return [*_parts(content), *(call | {"type": "tool_use"} for call in calls if isinstance(call, dict))]


def _parts(content: Any) -> list[Any]:
    return content[-MAX_PARTS:] if isinstance(content, list) else [content]


def _speaker(kind: Any, message: Any, fields: Mapping[str, Any]) -> str:
    """The speaker, "" for none. Raises Unreadable if the kind of line is unknown."""
    role = message.get("role", fields.get("role")) if isinstance(message, dict) else None
    if kind == "tool_result":
        return ""
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


def _answers(fields: Mapping[str, Any], message: Mapping[str, Any]) -> tuple[Answer, ...]:
    """What the person answered, in the results of tools: of Claude Code, of pi, and of Qwen Code."""
    if message.get("role") == "toolResult":
        text = "\n".join(filter(None, map(text_of, _parts(message.get("content")))))
        return _answer(call_id(message), text)
    parts = [part for part in _parts(message.get("content", message.get("parts"))) if isinstance(part, dict)]
    found: list[Answer] = []
    for part in parts:
        result, answer = fields.get("toolUseResult"), part.get("functionResponse")
        if part.get("type") == "tool_result":
            found += _answer(call_id(part), _chosen(result) if isinstance(result, dict) else _reason(part))
        elif isinstance(answer, dict) and isinstance(answer.get("response"), dict):
            found += _answer(call_id(answer), answer["response"].get("output"))
    return tuple(found)


def _answer(call: str, text: Any) -> tuple[Answer, ...]:
    if not call or not isinstance(text, str) or not text:
        return ()
    match = _ANSWERED.match(text)
    return (Answer(call, _ANSWER_LABEL.sub("", text[match.end() :]) if match else text),)


def _chosen(result: Mapping[str, Any]) -> str:
    """The answers in the result of a question, and what the person noted about them."""
    text, notes = answers_in(result.get("answers")), result.get("annotations")
    for note in notes.values() if isinstance(notes, dict) else ():
        words = note.get("notes") if isinstance(note, dict) else None
        if isinstance(words, str) and words not in text:
            text = f"{text}\n{words}"
    return text


def _reason(part: Mapping[str, Any]) -> str:
    """Why the person rejected a plan."""
    text = part.get("content")
    if isinstance(text, list):
        text = "".join(map(text_of, text[:MAX_PARTS]))
    if not isinstance(text, str) or part.get("is_error") is not True or not text.startswith(_REJECTED):
        return ""
    return text.partition(_REASON)[2].partition(_REASON_END)[0]


# -- Codex -------------------------------------------------------------------------------------------------------------


def _is_rollout(kind: Any, fields: Mapping[str, Any]) -> bool:
    if kind in _ENVELOPES:
        return isinstance(fields.get("payload"), dict)
    if kind is None and "instructions" in fields:
        return not {"message", "role", "content"} & fields.keys()  # the header of early rollouts
    if kind == "message":
        return "message" not in fields and not _session(fields)
    return kind == "function_call_output" or has_call(fields)


def _parse_rollout(
    fields: dict[str, Any], folder: str, clock: TranscriptClock
) -> TranscriptMessage | SessionHeader | None:
    """Read a line of a rollout, of which early ones have no envelope.

    https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs
    """
    item = fields["payload"] if fields.get("type") in _ENVELOPES else fields
    kind = item.get("type") if fields.get("type") != "session_meta" else None
    if kind is None:
        return _rollout_header(item)
    at = _time(fields, clock)
    if has_call(item):
        return TranscriptMessage("", ASSISTANT, content_of([item], folder), at)
    if kind == "function_call_output":
        return _rollout_answer(item, at)
    return _rollout_message(item, folder, at) if kind == "message" else None


def _rollout_header(payload: Mapping[str, Any]) -> SessionHeader:
    git = payload.get("git")
    branch = line_of(git.get("branch"), MAX_BRANCH) if isinstance(git, dict) else ""
    folder = line_of(payload.get("cwd"), MAX_FOLDER)
    return SessionHeader(_named_session(payload), folder, branch, names_file=True)


def _rollout_answer(item: Mapping[str, Any], at: datetime | None) -> TranscriptMessage | None:
    output = item.get("output")
    answers = _answer(call_id(item), _answers_in_json(output)) if isinstance(output, str) else ()
    return TranscriptMessage("", USER, Content(""), at, answers=answers) if answers else None


def _answers_in_json(text: Any) -> str:
    try:
        fields = json.loads(text) if isinstance(text, str) and '"answers"' in text else None
    except (ValueError, RecursionError):
        return ""
    return answers_in(fields.get("answers")) if isinstance(fields, dict) else ""


def _rollout_message(
    item: Mapping[str, Any], folder: str, at: datetime | None
) -> TranscriptMessage | SessionHeader | None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        raise Unreadable("nobody speaks, or says nothing")
    if role not in _SPEAKERS:
        return None
    read = content_of(content, folder, is_person=_SPEAKERS[role] == USER)
    if not read.text and (found := environment_folder(content)):
        return SessionHeader("", found)
    return TranscriptMessage("", _SPEAKERS[role], read, at)


# -- Copilot CLI -------------------------------------------------------------------------------------------------------


def _parse_copilot(
    kind: str, fields: Mapping[str, Any], folder: str, clock: TranscriptClock
) -> TranscriptMessage | SessionHeader | None:
    """Read an event. https://github.com/github/copilot-sdk/blob/main/nodejs/src/generated/session-events.ts"""
    data, at = fields["data"], _time(fields, clock)
    is_subagent = any(isinstance(source.get("agentId"), str) for source in (fields, data)) or "parentToolCallId" in data
    if kind == "session.start":
        context = data.get("context") if isinstance(data.get("context"), dict) else {}
        branch = line_of(context.get("branch"), MAX_BRANCH)
        return SessionHeader(_named_session(data), line_of(context.get("cwd"), MAX_FOLDER), branch)
    if kind == "user.message":
        if data.get("source") not in (None, "", "user"):
            return None  # a skill, or another program
        content = content_of(data.get("content"), is_person=True)
        return TranscriptMessage("", ASSISTANT if is_subagent else USER, content, at)
    if kind == "assistant.message":
        calls = data.get("toolRequests")
        requests = (call | {"type": "tool_use"} for call in _parts(calls) if isinstance(call, dict))
        return TranscriptMessage("", ASSISTANT, content_of([data.get("content"), *requests], folder), at)
    if kind == "tool.execution_complete" and isinstance(data.get("result"), dict):
        answers = _answer(call_id(data), data["result"].get("content"))
        return TranscriptMessage("", USER, Content(""), at, answers=answers) if answers else None
    return None


# -- a conversation in one object --------------------------------------------------------------------------------------


def parse_whole(fields: Mapping[str, Any], folder: str, clock: TranscriptClock) -> WholeSession:
    """Read an object with ``messages``; in opencode, an ``info`` names the session. Raises Unreadable if there are no
    messages, or none can be read."""
    items = fields.get("messages")
    if not isinstance(items, list):
        raise Unreadable("no messages")
    info = fields["info"] if isinstance(fields.get("info"), dict) else fields
    folder = next(filter(None, (line_of(info.get(key), MAX_FOLDER) for key in ("cwd", "directory"))), folder)
    parent = line_of(info.get("parentID"), MAX_ID)
    is_subagent = bool(parent) or info.get("kind") == "subagent"
    branch, broken, messages = _branch(info), 0, list[TranscriptMessage]()
    for item in items[:MAX_OBJECT_MESSAGES]:
        try:
            found = list(_messages_of(item, folder, clock))
        except Unreadable:
            broken += 1
            continue
        messages += (message._replace(branch=message.branch or branch) for message in found)
    if broken and not messages:
        raise Unreadable("no messages")
    if is_subagent:
        messages = [message._replace(type=ASSISTANT) for message in messages]
    return WholeSession(parent or _named_session(info), tuple(messages), broken)


def _messages_of(item: Any, folder: str, clock: TranscriptClock) -> Iterator[TranscriptMessage]:
    """A message of an object, and the person's answers to the questions in it."""
    if not isinstance(item, dict):
        raise Unreadable("no object")
    info, calls = item.get("info"), item.get("toolCalls")
    if isinstance(info, dict):
        times = info.get("time")
        created = times.get("created") if isinstance(times, dict) else None
        calls = item.get("parts")
        item = {"role": info.get("role"), "content": calls, "timestamp": created}
    message = None if _is_of_program(item) else _parse_message(item, folder, clock)
    if message:
        yield message
        answers = tuple(answer for call in _parts(calls) if isinstance(call, dict) for answer in _answers_of_call(call))
        if answers:
            yield TranscriptMessage("", USER, Content(""), message.at, answers=answers)


def _answers_of_call(call: Mapping[str, Any]) -> Iterator[Answer]:
    """The answers that a call of a tool in Gemini CLI or opencode holds itself."""
    state, result = call.get("state"), call.get("result")
    if isinstance(state, dict) and isinstance(state.get("metadata"), dict):
        yield from _answer(call_id(call), answers_in(state["metadata"].get("answers")))
    for part in result[:MAX_PARTS] if isinstance(result, list) else ():
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            yield from _answer(call_id(call), _answers_in_json(response.get("output")))


# -- hook logs ---------------------------------------------------------------------------------------------------------


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
        return TranscriptMessage(session, USER, content_of(_field(data, ("prompt",), event), is_person=True), at)
    if event == RESPONSE_EVENT:
        return TranscriptMessage(session, ASSISTANT, content_of(_field(data, _RESPONSE, event)), at)
    for key in _RESPONSE:
        if isinstance(data.get(key), str):
            return TranscriptMessage(session, ASSISTANT, content_of(data[key]), at)
    paths = [line_of(source.get(key), MAX_FOLDER) for key in _TRANSCRIPT for source in (data, fields)]
    path = next(filter(None, paths), "")
    return SubagentTranscript(session, path, at) if path else None


def _field(data: Mapping[str, Any], keys: Sequence[str], event: str) -> Any:
    for key in keys:
        if isinstance(data.get(key), str | list):
            return data[key]
    raise Unreadable(event)


def _session(fields: Mapping[str, Any]) -> str:
    return next(filter(None, (line_of(fields.get(key), MAX_ID) for key in _SESSION)), "")


def _time(fields: Mapping[str, Any], clock: TranscriptClock) -> datetime | None:
    return next(filter(None, (clock.read(fields.get(key)) for key in _TIME)), None)
