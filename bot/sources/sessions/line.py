"""Reads a line of a transcript: in the form of its agent, or in the common one.

Thinking and tool output are left out. The form is recognised by a line's keys, not by the name of its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from bot.sources.sessions.content import (
    MAX_ID,
    MAX_PARTS,
    answers_in,
    call_id,
    content_of,
    line_of,
    query_of,
    text_of,
)
from bot.sources.sessions.formats import (
    ASSISTANT,
    EVENT_KEYS,
    FORMATS,
    MAX_FOLDER,
    SESSION_KEYS,
    USER,
    Fields,
    as_calls,
    is_of_program,
)
from bot.sources.sessions.head import Unreadable, parse_object
from bot.sources.sessions.times import TranscriptClock
from bot.sources.sessions.transcript import (
    Answer,
    Content,
    PullRequestLink,
    SessionHeader,
    SubagentTranscript,
    TranscriptLine,
    TranscriptMessage,
    WholeSession,
)

MAX_OBJECT_MESSAGES = 50_000
"""Maximum messages read of one object; the first ones are read."""

MAX_BRANCH = 200

_SPEAKERS = {"user": USER, "human": USER, "assistant": ASSISTANT, "gemini": ASSISTANT, "model": ASSISTANT}
_TIME = ("timestamp", "ts", "time", "at", "created_at", "createdAt", "date")

_REJECTED = "The user doesn't want to proceed with this tool use."
_REASON = "the user said:\n"
_REASON_END = "\n\nNote: The user's next message"
"""A rejected call in Claude Code: the result begins with the first, and the person's words are between the others."""

_ANSWERED = re.compile(r"User (?:selected|responded|answered): |User has provided the following answers:\s*")
_ANSWER_LABEL = re.compile(r"^\*\*[^*\n]{1,100}\*\*: ", re.MULTILINE)

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_MAX_PULL_NUMBER = 2**31 - 1


def parse_line(line: bytes, folder: str = "", clock: TranscriptClock | None = None) -> TranscriptLine | None:
    """Read a line; None for a known line without a message (progress, tool output, attachments, …).

    ``folder`` is the session's working folder according to earlier lines; ``clock`` has read their times. Raises
    Unreadable for a line that is not a JSON object, is too long, or should be a message but is not.
    """
    parsed = LineReader(parse_object(line), folder, clock or TranscriptClock())
    form = next((each for each in FORMATS if each.is_line(parsed.fields)), None)
    return form.read_line(parsed) if form else parsed.common()


class LineReader:
    """Implements `bot.sources.sessions.transcript.Line`. ``folder`` and ``clock`` are as in `parse_line`."""

    def __init__(self, fields: Fields, folder: str, clock: TranscriptClock) -> None:
        self.fields = fields
        self._folder, self._clock = folder, clock

    def message(self, speaker: str, content: Any, *inner: Fields, is_subagent: bool = False) -> TranscriptMessage:
        read = content_of(content, self._folder, is_person=speaker == USER)
        speaker = ASSISTANT if is_subagent else speaker
        return TranscriptMessage(self._session(*inner), speaker, read, self._time(*inner), _branch(self.fields))

    def answer(self, source: Fields, text: Any) -> TranscriptMessage | None:
        answers = _answer(call_id(source), text)
        return TranscriptMessage("", USER, Content(""), self._time(), answers=answers) if answers else None

    def answers_in_json(self, text: Any) -> str:
        return _answers_in_json(text)

    def header(self, source: Fields, place: Fields, branch: Any = None, *, names_file: bool = False) -> SessionHeader:
        folder = line_of(place.get("cwd"), MAX_FOLDER)
        return SessionHeader(_named_session(source), folder, line_of(branch, MAX_BRANCH), names_file)

    def pull_request(self, number: Any, repo: Any) -> PullRequestLink | None:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 < number <= _MAX_PULL_NUMBER:
            return None
        repo = repo if isinstance(repo, str) and _REPOSITORY.fullmatch(repo) else ""
        return PullRequestLink(self._session(), f"{repo}#{number}")

    def subagent(self, paths: Iterable[Any], *inner: Fields) -> SubagentTranscript | None:
        path = next(filter(None, (line_of(path, MAX_FOLDER) for path in paths)), "")
        return SubagentTranscript(self._session(*inner), path, self._time(*inner)) if path else None

    def common(self) -> TranscriptLine | None:
        kind, fields = self.fields.get("type"), self.fields
        if isinstance(fields.get("messages"), list):
            return parse_whole(fields, self._folder, self._clock)
        is_header = kind is None and ("cwd" in fields or "startTime" in fields)
        if kind == "session" or (is_header and not {"message", "role", "content"} & fields.keys()):
            return self.header(fields, fields, fields.get("gitBranch"))
        return None if is_of_program(fields) else self.common_message()

    def common_message(self) -> TranscriptMessage | None:
        fields, kind, message = self.fields, self.fields.get("type"), self.fields.get("message")
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
        folder = line_of(fields.get("cwd"), MAX_FOLDER) or self._folder
        if speaker == USER and kind is None and message is not fields:  # Cursor
            content = [query_of("\n\n".join(map(text_of, _parts(content))))]
        read, speaker = content_of(content, folder, is_person=speaker == USER), speaker or USER
        if fields.get("isSidechain") is True:
            speaker, answers = ASSISTANT, ()  # the agent wrote what the subagent is asked
        return TranscriptMessage(_session(fields), speaker, read, self._time(message), _branch(fields), answers)

    def _session(self, *inner: Fields) -> str:
        return next(filter(None, map(_session, (self.fields, *inner))), "")

    def _time(self, *inner: Fields) -> datetime | None:
        values = (source.get(key) for source in (self.fields, *inner) for key in _TIME)
        return next(filter(None, map(self._clock.read, values)), None)


def _session(fields: Fields) -> str:
    return next(filter(None, (line_of(fields.get(key), MAX_ID) for key in SESSION_KEYS)), "")


def _named_session(fields: Fields) -> str:
    return _session(fields) or line_of(fields.get("id"), MAX_ID)


def _branch(fields: Fields) -> str:
    return line_of(fields.get("gitBranch"), MAX_BRANCH)


def _content(fields: Fields, message: Fields) -> Any:
    """The content of a message, as the person saw it. Raises Unreadable."""
    if not {"content", "parts"} & message.keys():
        raise Unreadable("no content")
    payload, calls = fields.get("systemPayload"), message.get("toolCalls")
    if isinstance(payload, dict) and isinstance(payload.get("displayText"), str):
        return payload["displayText"]
    content = message.get("displayContent") or message.get("content", message.get("parts"))
    if not isinstance(calls, list) or not isinstance(content, str | list | None):
        return content
    return [*_parts(content), *as_calls(calls)]


def _parts(content: Any) -> list[Any]:
    return content[-MAX_PARTS:] if isinstance(content, list) else [content]


def _speaker(kind: Any, message: Any, fields: Fields) -> str:
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
    if any(isinstance(fields.get(key), str) for key in EVENT_KEYS):
        return ""
    raise Unreadable("unknown")


# -- answers of the person ---------------------------------------------------------------------------------------------


def _answers(fields: Fields, message: Fields) -> tuple[Answer, ...]:
    """What the person answered, in the results of tools: of Claude Code, of pi, and of Qwen Code."""
    if message.get("role") == "toolResult":
        text = "\n".join(filter(None, map(text_of, _parts(message.get("content")))))
        return _answer(call_id(message), text)
    found: list[Answer] = []
    for part in _parts(message.get("content", message.get("parts"))):
        if not isinstance(part, dict):
            continue
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


def _chosen(result: Fields) -> str:
    """The answers in the result of a question, and what the person noted about them."""
    text, notes = answers_in(result.get("answers")), result.get("annotations")
    for note in notes.values() if isinstance(notes, dict) else ():
        words = note.get("notes") if isinstance(note, dict) else None
        if isinstance(words, str) and words not in text:
            text = f"{text}\n{words}"
    return text


def _reason(part: Fields) -> str:
    """Why the person rejected a plan."""
    text = part.get("content")
    if isinstance(text, list):
        text = "".join(map(text_of, text[:MAX_PARTS]))
    if not isinstance(text, str) or part.get("is_error") is not True or not text.startswith(_REJECTED):
        return ""
    return text.partition(_REASON)[2].partition(_REASON_END)[0]


def _answers_in_json(text: Any) -> str:
    try:
        fields = json.loads(text) if isinstance(text, str) and '"answers"' in text else None
    except (ValueError, RecursionError):
        return ""
    return answers_in(fields.get("answers")) if isinstance(fields, dict) else ""


# -- a conversation in one object --------------------------------------------------------------------------------------


def parse_whole(fields: Fields, folder: str, clock: TranscriptClock) -> WholeSession:
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
    message = None if is_of_program(item) else LineReader(item, folder, clock).common_message()
    if message:
        yield message
        answers = tuple(answer for call in _parts(calls) if isinstance(call, dict) for answer in _answers_of_call(call))
        if answers:
            yield TranscriptMessage("", USER, Content(""), message.at, answers=answers)


def _answers_of_call(call: Fields) -> Iterator[Answer]:
    """The answers that a call of a tool in Gemini CLI or opencode holds itself."""
    state, result = call.get("state"), call.get("result")
    if isinstance(state, dict) and isinstance(state.get("metadata"), dict):
        yield from _answer(call_id(call), answers_in(state["metadata"].get("answers")))
    for part in result[:MAX_PARTS] if isinstance(result, list) else ():
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        response = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(response, dict):
            yield from _answer(call_id(call), _answers_in_json(response.get("output")))
