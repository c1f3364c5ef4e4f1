"""Reads the content of a message: its text, the files that its tool calls name, and the questions that they ask.

A question to the person, and a plan for approval, are words of the assistant although a tool carries them. What agents
put into the person's messages, in tags of their own or after fixed sentences, are nobody's words. Linear in the length
of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bot.domain.thread_json import MAX_TEXT
from bot.reading.markdown import tail
from bot.sources.sessions.formats import CALL_TYPES, FORMATS, is_of_type
from bot.sources.sessions.head import Unreadable
from bot.sources.sessions.transcript import Content

MAX_PARTS = 1_000
"""Maximum parts read of one message; the last ones are read."""

MAX_FILES = 50
"""Maximum files kept of one message; the first ones are kept."""

MAX_PATH = 500
MAX_ID = 200
MAX_QUESTIONS = 50
_MAX_ARGUMENTS = 1 << 20

_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_ID = re.compile(r"[!-~]{1,200}")
_CALL_ID = ("call_id", "callID", "toolCallId", "tool_use_id", "id")
"""Keys of the id of a call; an item may have one of its own as well, which comes last."""
_PATH = frozenset({"path", "file_path", "filePath", "file", "filename", "fileName", "notebook_path", "notebookPath"})
_PATHS = frozenset({"paths", "files", "file_paths", "filePaths", "edits"})

_QUESTION_TOOLS = frozenset(
    {"AskUserQuestion", "ask_user_question", "ask_user", "request_user_input", "question", "AskQuestion"}
)
_PLAN_TOOLS = frozenset({"ExitPlanMode", "exit_plan_mode", "CreatePlan"})
_WORD_TOOLS = _QUESTION_TOOLS | _PLAN_TOOLS
_PROMPT = ("question", "prompt")
_LABEL = ("label", "title")

_PATCHED_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: ([^\n]{1,500})$", re.MULTILINE)
"""A file in a patch as agents write it: https://github.com/openai/codex/blob/main/codex-rs/apply-patch."""

_NEWLINE = re.compile("\r\n?")
_ESCAPE = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)")
_INVISIBLE = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class ToolCall(NamedTuple):
    """A call of a tool. ``patch`` is its argument if that is a text."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    patch: str = ""


def content_of(value: Any, folder: str = "", *, is_person: bool = False) -> Content:
    """Read the content of a message: a string, or a list of parts. ``folder`` is the session's working folder.

    ``is_person``: only what the person typed counts. Raises Unreadable.
    """
    if value is None:
        return Content("")  # tool calls only
    if isinstance(value, str):
        return Content(plain(spoken(value) if is_person else value))
    if not isinstance(value, list):
        raise Unreadable(type(value).__name__)
    parts = value[-MAX_PARTS:]
    texts = (spoken(text_of(part)) if is_person else text_of(part) for part in parts)
    calls = [call for part in parts for call in calls_in(part)]
    words = [(call.id, _words_of(call)) for call in calls if call.name in _WORD_TOOLS]
    text = "\n\n".join(filter(None, [*texts, *(text for _, text in words)]))
    files = dict.fromkeys(_shorten(path, folder) for call in calls for path in _named_files(call))
    asks = tuple(call for call, text in words if call and text)
    return Content(plain(text, is_cut=len(value) > MAX_PARTS), tuple(filter(None, files))[:MAX_FILES], asks)


def plain(text: str, *, is_cut: bool = False) -> str:
    """Return the visible text, without terminal sequences and invisible characters.

    Only the end of a long text is kept. ``is_cut``: its start is missing already.
    """
    most = 2 * MAX_TEXT  # cleaning rarely removes half of it
    is_cut, text = is_cut or len(text) > most, text[-most:]
    if not (text.isascii() and text.isprintable()):  # most names are, and need no cleaning
        text = _INVISIBLE.sub("", _ESCAPE.sub("", _NEWLINE.sub("\n", text)))
        text = _SURROGATE.sub("\ufffd", text)
    return tail(text.strip(), MAX_TEXT, is_cut=is_cut)


def line_of(value: Any, most: int) -> str:
    """Return a name as one line, "" for anything else or if longer than ``most``."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return ""
    return " ".join(plain(value).split())


def text_of(part: Any) -> str:
    """Return the text of a part; "" for thoughts, tool calls, and text that a program added."""
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(text, str) or not ("type" not in part or is_of_type(part, _TEXT_TYPES)):
        return ""
    return "" if any(part.get(mark) is True for mark in ("thought", "synthetic", "ignored")) else text


# -- tool calls --------------------------------------------------------------------------------------------------------


def calls_in(part: Any) -> Iterator[ToolCall]:
    """The call of a tool that a part holds, for each of its sets of arguments."""
    if isinstance(part, dict) and isinstance(part.get("functionCall"), dict):
        part = part["functionCall"] | {"type": "function_call"}
    if not is_of_type(part, CALL_TYPES):
        return
    name = next((value for key in ("name", "tool") if isinstance(value := part.get(key), str)), "")
    state = part.get("state")
    sources = [part.get(key) for key in _ARGUMENTS] + [state.get("input") if isinstance(state, dict) else None]
    for arguments in sources:
        patch = arguments if isinstance(arguments, str) and len(arguments) <= _MAX_ARGUMENTS else ""
        fields = _object_in(patch) if patch else arguments
        if patch or isinstance(fields, dict):
            yield ToolCall(call_id(part), name, fields if isinstance(fields, dict) else {}, patch)


def call_id(fields: Mapping[str, Any]) -> str:
    """Return the id of the tool call that an item makes or answers, "" for none."""
    ids = (fields.get(key) for key in _CALL_ID)
    return next((value for value in ids if isinstance(value, str) and _ID.fullmatch(value)), "")


def _object_in(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _words_of(call: ToolCall) -> str:
    """The question or the plan that a call shows to the person."""
    if call.name in _PLAN_TOOLS:
        return _string(call.arguments, ("plan",))
    questions = call.arguments.get("questions", [call.arguments])
    return "\n\n".join(filter(None, map(_question, questions[:MAX_QUESTIONS] if isinstance(questions, list) else ())))


def _question(question: Any) -> str:
    text = _string(question, _PROMPT)
    options = (question.get("options") or question.get("choices")) if text else None
    lines = map(_option, options[:MAX_QUESTIONS] if isinstance(options, list) else ())
    return "\n".join([text, *(f"- {line}" for line in lines if line)])


def _option(option: Any) -> str:
    if isinstance(option, str):
        return option
    return ": ".join(filter(None, (_string(option, _LABEL), _string(option, ("description",)))))


def _string(fields: Any, keys: Sequence[str]) -> str:
    values = (fields.get(key) for key in keys) if isinstance(fields, dict) else ()
    return next((value for value in values if isinstance(value, str)), "")


def answers_in(answers: Any) -> str:
    """Return the words of the person in the answers to questions, one line each: a list, or the values of an object."""
    values = list(answers.values()) if isinstance(answers, dict) else answers
    if isinstance(values, str):
        return values
    if not isinstance(values, list):
        return ""
    inner = (value.get("answers") if isinstance(value, dict) else value for value in values[:MAX_QUESTIONS])
    texts = (", ".join(filter(None, map(text_of, value))) if isinstance(value, list) else value for value in inner)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


# -- files -------------------------------------------------------------------------------------------------------------


def _named_files(call: ToolCall) -> Iterator[str]:
    yield from _PATCHED_FILE.findall(call.patch)
    yield from _paths(call.arguments)
    for key in sorted(_PATHS & call.arguments.keys()):
        yield from _listed_paths(call.arguments[key])


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


# -- what a person typed -----------------------------------------------------------------------------------------------

WRAPPERS = {
    **{name: False for each in FORMATS for name in each.wrappers},
    **{name: True for each in FORMATS for name in each.open_wrappers},
}
"""The tags that surround text of programs, and whether the last closing one counts."""

_INTERRUPTED = re.compile(r"^[ \t]*\[Request interrupted by user(?: for tool use)?\][ \t]*$", re.MULTILINE)

_INSTRUCTIONS = re.compile(r"\s*# AGENTS\.md instructions\b")
_INSTRUCTIONS_END = "</INSTRUCTIONS>"
_IDE_CONTEXT = re.compile(r"\s*# (?:Context from my IDE setup|Files mentioned by the user):")
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$", re.MULTILINE)
"""The heading before the words of the person. The last one counts, as in the editor: a selection may contain it."""

_TAG = re.compile(rf"<(/?)({'|'.join(sorted(map(re.escape, WRAPPERS), reverse=True))})(?:[ \t][^<>\n]{{0,500}})?>")
_QUERY = re.compile(r"</?user_query>")


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    is_closing: bool


def spoken(text: str) -> str:
    """Return what a person typed of a message. An opening tag that is never closed is the person's own word."""
    if _INSTRUCTIONS.match(text):
        text = text.rpartition(_INSTRUCTIONS_END)[2] if _INSTRUCTIONS_END in text else ""
    if _IDE_CONTEXT.match(text):
        text = "".join(_REQUEST.split(text)[1:][-1:])
    if "[Request interrupted" in text:
        text = _INTERRUPTED.sub("", text)
    return "".join(_outside(text)).strip() if "<" in text else text


def query_of(text: str) -> str:
    """Return the words in ``<user_query>``, as Cursor wraps those of the person; all of the text without the tag."""
    first = _QUERY.search(text)
    return spoken(_QUERY.split(text[first.start() :], maxsplit=2)[1] if first else text)


def _outside(text: str) -> Iterator[str]:
    """The pieces of a text outside of all wrappers."""
    tags = [_Tag(match.start(), match.end(), match[2], bool(match[1])) for match in _TAG.finditer(text)]
    closings: dict[str, list[_Tag]] = {}
    for tag in reversed(tags):
        if tag.is_closing:
            closings.setdefault(tag.name, []).append(tag)  # the next one is the last of the list
    position = 0
    for tag in tags:
        if tag.is_closing or tag.start < position:
            continue
        ends = closings.get(tag.name, [])
        while ends and ends[-1].start < tag.end:
            ends.pop()
        if ends:
            yield text[position : tag.start]
            position = ends[0 if WRAPPERS[tag.name] else -1].end
    yield text[position:]
