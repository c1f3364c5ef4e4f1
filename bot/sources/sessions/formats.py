"""The agents whose transcripts are read: where each keeps them, and how it writes a line.

`FORMATS` is the table. A new agent is a `Format` in it, and a row of the table in `docs/agents.md`. Imports little,
as every search from a shell looks for the folders: what reads texts comes with each `Line`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.sources.sessions.head import Unreadable, head_of, note_of, parse_object
from bot.sources.sessions.worktrees import Worktrees, slug_of

if TYPE_CHECKING:
    from bot.sources.sessions.transcript import Line, TranscriptLine

Fields = Mapping[str, Any]
"""A JSON object in a transcript."""

USER, ASSISTANT = "user", "assistant"


class SessionFolder(NamedTuple):
    """A folder at ``path`` and the ``patterns`` of the transcripts in it.

    ``shown`` is how a message names it. ``is_own``: a transcript without a working folder belongs to this checkout; in
    other folders it belongs to none. ``is_in_checkout``: all of them belong to it, whatever folder they name.
    """

    path: str
    patterns: tuple[str, ...]
    shown: str
    is_own: bool = False
    is_in_checkout: bool = False


Finder = Callable[[Worktrees], Iterator[SessionFolder]]
"""Finds the existing folders that may hold sessions of a checkout, perhaps among others."""


class Format(NamedTuple):
    """How the sessions of an ``agent`` are found and read.

    ``finders`` find its folders. ``example`` has a few of its lines, for the tests. ``read_line`` reads those that
    ``is_line`` accepts; all others are in the common form (`Line.common`). ``folder`` are the keys that lead to the
    working folder. ``path`` is a pattern for the path of a transcript that does not name its session, with groups
    ``session`` and perhaps ``subagent``. ``unread`` names the forms that are only counted, each with a folder in the
    paths of its files and the end of their names. ``wrappers`` are the tags around text that the agent puts into the
    person's messages, and ``open_wrappers`` those around text that may hold the closing tag itself, such as the output
    of a command: the last one counts, and the person's next words are in another message.
    """

    agent: str
    finders: tuple[Finder, ...]
    example: str
    is_line: Callable[[Fields], bool] = lambda _: False
    read_line: Callable[[Line], TranscriptLine | None] = lambda line: line.common()
    folder: tuple[str, ...] = ("cwd",)
    path: str = ""
    unread: Mapping[str, tuple[str, str]] = {}
    wrappers: tuple[str, ...] = ()
    open_wrappers: tuple[str, ...] = ()


# -- folders -----------------------------------------------------------------------------------------------------------


def in_home(variable: str, name: str, below: str, *patterns: str) -> Finder:
    """Find the folder ``below`` that of an agent, which a variable may relocate: it mixes the sessions of all
    checkouts."""
    return lambda _: _existing(_agent_folder(variable, name, below), *patterns)


def in_projects(variable: str, name: str) -> Finder:
    """Find folders named after the path of a working folder: for a checkout, or for a folder in it."""

    def find(trees: Worktrees) -> Iterator[SessionFolder]:
        folder = _agent_folder(variable, name, "projects")
        own = [_project_name(tree) for tree in trees.paths]
        for project in _list_names(folder):
            if any(project == tree or project.startswith(f"{tree}-") for tree in own):
                path = f"{folder}/{project}"
                yield SessionFolder(path, ("**/*.jsonl",), _abbreviate(path), is_own=project in own)

    return find


def _project_name(path: str) -> str:
    """The path as JavaScript replaces its UTF-16 units. A longer name ends in a dash and a hash; the transcripts in it
    say which folder they belong to."""
    units = (char if char.isascii() and char.isalnum() else "--" if ord(char) > 0xFFFF else "-" for char in path)
    return "".join(units)[:200]


def _existing(folder: str, *patterns: str) -> Iterator[SessionFolder]:
    if folder and os.path.isdir(folder):  # noqa: PTH112 - the folder may be unreadable
        yield SessionFolder(folder, patterns, _abbreviate(folder))


def _agent_folder(variable: str, name: str, below: str) -> str:
    """An agent's folder, which a variable may relocate; "" without a home folder."""
    moved = os.environ.get(variable, "") if variable else ""
    if moved.startswith("/"):
        return f"{moved.rstrip('/')}/{below}"
    with suppress(RuntimeError):
        return str(Path.home() / name / below)
    return ""


def _list_names(folder: str) -> list[str]:
    with suppress(OSError, ValueError):
        return sorted(os.listdir(folder)) if folder else []  # noqa: PTH208 - no path is needed for each name
    return []


def _abbreviate(path: str) -> str:
    with suppress(RuntimeError):
        home = str(Path.home())
        return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
    return path


# -- hooks -------------------------------------------------------------------------------------------------------------

PROMPT_EVENT, RESPONSE_EVENT, SUBAGENT_EVENT = "UserPromptSubmit", "AssistantResponse", "SubagentStop"
"""The events in hook logs that carry messages, by the hooks' own names."""

EVENT_KEYS = (
    *("event", "hook_event_name", "hookEventName", "hook_event", "event_name", "event_type"),
    *("hook", "type", "name"),
)
_TRANSCRIPT = ("agent_transcript_path", "agentTranscriptPath", "transcript_path", "transcriptPath", "transcript")
_RESPONSE = ("response", "last_assistant_message", "lastAssistantMessage")


def _hook_logs(trees: Worktrees) -> Iterator[SessionFolder]:
    folder = Path(trees.paths[0]) / ".claude" / "logging"
    if folder.is_dir() and not folder.is_symlink():
        yield SessionFolder(str(folder), ("**/*.jsonl", "**/*.log"), ".claude/logging", is_in_checkout=True)


def _event(fields: Fields) -> str:
    events = (PROMPT_EVENT, RESPONSE_EVENT, SUBAGENT_EVENT)
    return next((fields[key] for key in EVENT_KEYS if isinstance(fields.get(key), str) and fields[key] in events), "")


def _read_event(line: Line) -> TranscriptLine | None:
    event, data = _event(line.fields), line.fields.get("data", line.fields)
    if not isinstance(data, dict):
        raise Unreadable(event)
    if event != SUBAGENT_EVENT:
        speaker, keys = (USER, ("prompt",)) if event == PROMPT_EVENT else (ASSISTANT, _RESPONSE)
        for key in keys:
            if isinstance(data.get(key), str | list):
                return line.message(speaker, data[key], data)
        raise Unreadable(event)
    for key in _RESPONSE:
        if isinstance(data.get(key), str):
            return line.message(ASSISTANT, data[key], data)
    return line.subagent([source.get(key) for key in _TRANSCRIPT for source in (data, line.fields)], data)


HOOKS = Format(
    "hooks",
    (_hook_logs,),
    '{"timestamp": "2026-03-02T08:00:01+01:00", "event": "UserPromptSubmit", "session_id": "h-1", '
    '"data": {"prompt": "How do we rotate the secret?"}}\n'
    '{"timestamp": "2026-03-02T08:00:05+01:00", "event": "AssistantResponse", "session_id": "h-1", '
    '"data": {"response": "Two are accepted meanwhile."}}',
    lambda fields: bool(_event(fields)),
    _read_event,
)

# -- Claude Code -------------------------------------------------------------------------------------------------------


def _read_attachment(line: Line) -> TranscriptLine | None:
    """A pull request, or a prompt that was typed while the agent worked; None for other attachments."""
    if line.fields.get("type") == "pr-link":
        return line.pull_request(line.fields.get("prNumber"), line.fields.get("prRepository"))
    queued = line.fields.get("attachment")
    if not isinstance(queued, dict) or queued.get("type") != "queued_command" or is_of_program(queued):
        return None
    if queued.get("commandMode") not in (None, "prompt") or not isinstance(queued.get("prompt"), str | list):
        return None
    return line.message(USER, queued["prompt"], is_subagent=line.fields.get("isSidechain") is True)


def is_of_program(fields: Fields) -> bool:
    """Whether a program wrote a line that looks like one of the person, by the marks of Claude Code and Qwen Code."""
    origin, subtype = fields.get("origin"), fields.get("subtype")
    if any(fields.get(mark) is True for mark in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")):
        return True
    if isinstance(origin, dict) and origin.get("kind") not in (None, "human"):
        return True
    is_typed = subtype in (None, "", "mid_turn_user_message", "realtime_message")  # others: timers, goals, notices
    return fields.get("type") == "user" and not is_typed and fields.get("isSidechain") is not True


CLAUDE_CODE = Format(
    "Claude Code",
    (in_projects("CLAUDE_CONFIG_DIR", ".claude"),),
    '{"type": "user", "sessionId": "c-1", "timestamp": "2026-03-03T09:00:00Z", "cwd": "/work/app", '
    '"message": {"role": "user", "content": "Add retries"}}\n'
    '{"type": "assistant", "sessionId": "c-1", "timestamp": "2026-03-03T09:00:04Z", "cwd": "/work/app", '
    '"message": {"role": "assistant", "content": [{"type": "text", "text": "I retry with jitter."}]}}',
    lambda fields: fields.get("type") in ("pr-link", "attachment"),
    _read_attachment,
    wrappers=(
        *("command-name", "command-message", "command-args", "command-contents", "bash-input"),
        *("local-command-caveat", "system-reminder", "user-prompt-submit-hook"),
        *("ide_opened_file", "ide_selection", "ide_diagnostics"),
    ),
    open_wrappers=(
        *("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"),
        *("task-notification", "teammate-message"),
    ),
)

# -- Codex -------------------------------------------------------------------------------------------------------------

CALL_TYPES = frozenset(
    {"toolCall", "tool_call", "tool_use", "toolUse", "function_call", "server_tool_use", "custom_tool_call", "tool"}
)
_ENVELOPES = ("session_meta", "response_item")
"""The lines of a rollout with a payload."""


def is_of_type(part: Any, names: frozenset[str]) -> bool:
    """Whether this is an object of one of these types."""
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in names


def _is_rollout(fields: Fields) -> bool:
    kind = fields.get("type")
    if kind in _ENVELOPES:
        return isinstance(fields.get("payload"), dict)
    if kind is None and "instructions" in fields:
        return not {"message", "messages", "role", "content"} & fields.keys()  # the header of early rollouts
    if kind == "message":
        return not {"message", "messages", *SESSION_KEYS} & fields.keys()
    return kind == "function_call_output" or "record_type" in fields or is_of_type(fields, CALL_TYPES)


def _read_rollout(line: Line) -> TranscriptLine | None:
    """Read a line of a rollout, of which early ones have no envelope.

    https://github.com/openai/codex/blob/main/codex-rs/protocol/src/models.rs
    """
    fields = line.fields
    item = fields["payload"] if fields.get("type") in _ENVELOPES else fields
    kind = item.get("type") if fields.get("type") != "session_meta" else None
    if kind is None and "record_type" not in fields:
        git = item.get("git")
        return line.header(item, item, git.get("branch") if isinstance(git, dict) else None, names_file=True)
    if is_of_type(item, CALL_TYPES):
        return line.message(ASSISTANT, [item])
    if kind == "function_call_output":
        return line.answer(item, line.answers_in_json(item.get("output")))
    return _read_rollout_message(line, item) if kind == "message" else None


def _read_rollout_message(line: Line, item: Fields) -> TranscriptLine | None:
    role, content = item.get("role"), item.get("content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        raise Unreadable("nobody speaks, or says nothing")
    if role not in (USER, ASSISTANT):
        return None
    message = line.message(role, content)
    if not message.content.text and (folder := _environment_folder(content)):
        return line.header({}, {"cwd": folder})
    return message


def _environment_folder(content: Any) -> str:
    """Return the folder in the note on its environment that early Codex put before the first message, "" if none."""
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and text.lstrip().startswith("<environment_context>"):
            form = r"(?m)<cwd>([^<\n]{1,4096})</cwd>|^Current working directory: ([^\n]{1,4096})$"
            match = re.search(form, text)
            return (match[1] or match[2]).strip() if match else ""
    return ""


_ROLLOUTS = ("**/rollout-*.jsonl", "**/rollout-*.jsonl.zst")
CODEX = Format(
    "Codex",
    (
        in_home("CODEX_HOME", ".codex", "sessions", *_ROLLOUTS),
        in_home("CODEX_HOME", ".codex", "archived_sessions", *_ROLLOUTS),
    ),
    '{"timestamp": "2026-03-04T09:00:00Z", "type": "session_meta", "payload": {"id": "r-1", "cwd": "/work/app"}}\n'
    '{"timestamp": "2026-03-04T09:00:02Z", "type": "response_item", "payload": {"type": "message", "role": "user", '
    '"content": [{"type": "input_text", "text": "Why does the login loop?"}]}}\n'
    '{"timestamp": "2026-03-04T09:00:04Z", "type": "response_item", "payload": {"type": "message", '
    '"role": "assistant", "content": [{"type": "output_text", "text": "The old cookie is sent."}]}}',
    _is_rollout,
    _read_rollout,
    folder=("payload", "cwd"),
    path=r"/rollout-[0-9T-]{19}-(?P<session>[^/]{1,200})\.jsonl$",
    unread={"compressed rollouts of Codex (.jsonl.zst)": ("", ".jsonl.zst")},
    wrappers=(
        *("environment_context", "user_instructions", "permissions instructions"),
        *("collaboration_mode", "turn_aborted", "in-app-browser-context"),
    ),
    open_wrappers=("skill", "user_shell_command", "subagent_notification"),
)

# -- Gemini CLI, Qwen Code ---------------------------------------------------------------------------------------------


def _in_hashes(home: str) -> Finder:
    """Find folders that a hash of the working folder, or a note in them, assigns to a checkout."""

    def find(trees: Worktrees) -> Iterator[SessionFolder]:
        projects = _agent_folder("", home, "tmp")
        names = _list_names(projects)
        if not names:
            return
        from hashlib import sha256  # slow to load

        digests = {sha256(tree.encode("utf-8", "surrogateescape")).hexdigest() for tree in trees.paths}
        for name in names:
            path = f"{projects}/{name}"
            if name in digests or note_of(f"{path}/.project_root", _MAX_NOTE_BYTES).strip() in trees.paths:
                patterns = ("chats/session-*.json", "chats/session-*.jsonl", "chats/*/*.jsonl")
                yield SessionFolder(path, patterns, _abbreviate(path), is_own=True)

    return find


_MAX_NOTE_BYTES = 8_192


def is_chat(head: bytes) -> bool:
    """Whether a file with this start is a chat of Gemini CLI, whose later lines change earlier ones."""
    with suppress(Unreadable):
        fields = parse_object(head.partition(b"\n")[0]) if b'"projectHash"' in head else {}
        is_header = all(isinstance(fields.get(key), str) for key in ("sessionId", "projectHash"))
        return is_header and not isinstance(fields.get("messages"), list)
    return False


def fold_chat(lines: Iterable[bytes]) -> tuple[dict[str, Any], int]:
    """Return the chat as one object with ``messages``, and the number of broken lines.

    A message that is written again, as when its tools have run, replaces the former one. ``$rewindTo`` takes back a
    message and all after it. ``$set`` with messages adds those that are new: they replace a history that was too long,
    which was said all the same.
    https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/services/chatRecordingService.ts
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


def _said(message: Fields) -> int:
    return hash(f"{message.get('type')} {message.get('content')}")


GEMINI_CLI = Format(
    "Gemini CLI",
    (_in_hashes(".gemini"),),
    '{"sessionId": "g-1", "projectHash": "5f2a", "startTime": "2026-03-06T09:00:00Z"}\n'
    '{"id": "m-1", "timestamp": "2026-03-06T09:00:02Z", "type": "user", "content": "Where is the cache?"}\n'
    '{"id": "m-2", "timestamp": "2026-03-06T09:00:04Z", "type": "gemini", "content": "In the shared folder."}',
    lambda fields: bool({"$set", "$rewindTo"} & fields.keys()),
    lambda _: None,  # they only change other lines
    wrappers=("session_context", "state_snapshot", "hook_context"),
)
QWEN_CODE = Format(
    "Qwen Code",
    (in_projects("QWEN_RUNTIME_DIR", ".qwen"), _in_hashes(".qwen")),  # the second: until December 2025
    '{"type": "user", "sessionId": "q-1", "timestamp": "2026-03-06T10:00:00Z", "cwd": "/work/app", '
    '"message": {"role": "user", "parts": [{"text": "Raise the quota"}]}}\n'
    '{"type": "assistant", "sessionId": "q-1", "timestamp": "2026-03-06T10:00:04Z", "cwd": "/work/app", '
    '"message": {"role": "model", "parts": [{"text": "I look at the limits."}]}}',
)

# -- Copilot CLI -------------------------------------------------------------------------------------------------------


def _is_copilot(fields: Fields) -> bool:
    kind = fields.get("type")
    return isinstance(kind, str) and "." in kind and isinstance(fields.get("data"), dict)


def _read_copilot(line: Line) -> TranscriptLine | None:
    """Read an event. https://github.com/github/copilot-sdk/blob/main/nodejs/src/generated/session-events.ts"""
    kind, data = line.fields["type"], line.fields["data"]
    if kind == "session.start":
        context = data.get("context") if isinstance(data.get("context"), dict) else {}
        return line.header(data, context, context.get("branch"))
    if kind == "user.message" and data.get("source") in (None, "", "user"):  # else a skill, or another program
        names_agent = any(isinstance(source.get("agentId"), str) for source in (line.fields, data))
        return line.message(USER, data.get("content"), is_subagent=names_agent or "parentToolCallId" in data)
    if kind == "assistant.message":
        calls = data.get("toolRequests")
        requests = calls if isinstance(calls, list) else []
        return line.message(ASSISTANT, [data.get("content"), *as_calls(requests)])
    if kind == "tool.execution_complete" and isinstance(data.get("result"), dict):
        return line.answer(data, data["result"].get("content"))
    return None


def as_calls(items: Iterable[Any]) -> list[Fields]:
    """Return the objects among these as calls of a tool."""
    return [item | {"type": "tool_use"} for item in items if isinstance(item, dict)]


COPILOT_CLI = Format(
    "Copilot CLI",
    (
        in_home("COPILOT_HOME", ".copilot", "session-state", "*.jsonl", "*/events.jsonl"),
        in_home("COPILOT_HOME", ".copilot", "history-session-state", "*.json"),
    ),
    '{"type": "session.start", "timestamp": "2026-03-06T09:00:00Z", "data": {"sessionId": "p-1", '
    '"context": {"cwd": "/work/app", "branch": "fix/46-index"}}}\n'
    '{"type": "user.message", "timestamp": "2026-03-06T09:00:02Z", "data": {"content": "Build the index faster"}}\n'
    '{"type": "assistant.message", "timestamp": "2026-03-06T09:00:04Z", "data": {"content": "I sort it first."}}',
    _is_copilot,
    _read_copilot,
    folder=("data", "context", "cwd"),
    unread={"old sessions of Copilot CLI (history-session-state)": ("/history-session-state/", ".json")},
)

# -- Cursor ------------------------------------------------------------------------------------------------------------


def _in_cursor(trees: Worktrees) -> Iterator[SessionFolder]:
    projects = _agent_folder("", ".cursor", "projects")
    own = {_cursor_name(tree) for tree in trees.paths}
    read: set[str] = set()
    for name in _list_names(projects):
        path = f"{projects}/{name}"
        if name in own and _trusted_folder(path) in ("", *trees.paths):
            patterns = ("agent-transcripts/**/*.jsonl", "agent-transcripts/*.txt")
            yield SessionFolder(path, patterns, _abbreviate(path), is_own=True)
            read.update(_list_names(f"{path}/agent-transcripts"))
    yield from _cursor_chats(trees, read)


def _cursor_chats(trees: Worktrees, read: set[str]) -> Iterator[SessionFolder]:
    """The chats without a transcript, in a folder for each working folder."""
    chats = _agent_folder("", ".cursor", "chats")
    if not _list_names(chats):
        return
    from hashlib import md5  # slow to load

    for tree in trees.paths:
        path = f"{chats}/{md5(tree.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"
        missing = [name for name in _list_names(path) if name not in read and re.fullmatch("[A-Za-z0-9-]{1,100}", name)]
        if missing:
            yield from _existing(path, *(f"{name}/store.db" for name in missing))


def _cursor_name(path: str) -> str:
    spaced = "".join(char if char.isascii() and char.isalnum() else " " for char in path)
    return "-".join(spaced.split())


def _trusted_folder(project: str) -> str:
    """The folder of a project of Cursor, whose name several folders may share; "" if it is unknown."""
    with suppress(Unreadable):
        folder = parse_object(head_of(f"{project}/.workspace-trusted", _MAX_NOTE_BYTES)).get("workspacePath")
        return folder if isinstance(folder, str) else ""
    return ""


CURSOR = Format(
    "Cursor",
    (_in_cursor,),
    '{"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>Rename it</user_query>"}]}}\n'
    '{"role": "assistant", "message": {"content": [{"type": "text", "text": "I write a migration."}]}}',
    path=r"/agent-transcripts/(?P<session>[^/]{1,200}?)(?:\.jsonl)?(?P<subagent>/subagents)?(?:/|$)",
    unread={
        "chats of Cursor without a transcript (store.db)": ("", "/store.db"),
        "old transcripts of Cursor (.txt)": ("/agent-transcripts/", ".txt"),
    },
    wrappers=("system_reminder", "attached_files", "open_and_recently_viewed_files"),
)

# -- opencode, pi ------------------------------------------------------------------------------------------------------


def _in_opencode(_: Worktrees) -> Iterator[SessionFolder]:
    folder = _agent_folder("XDG_DATA_HOME", ".local/share", "opencode")
    has_database = any(name.startswith("opencode") and name.endswith(".db") for name in _list_names(folder))
    yield from _existing(folder, "opencode*.db" if has_database else "storage/session/*/*.json")


OPENCODE = Format(
    "opencode",
    (_in_opencode,),
    '{"info": {"id": "ses_1", "directory": "/work/app"}, "messages": ['
    '{"info": {"role": "user", "time": {"created": 1772787600000}}, '
    '"parts": [{"type": "text", "text": "Paginate the list"}]}, '
    '{"info": {"role": "assistant", "time": {"created": 1772787604000}}, '
    '"parts": [{"type": "text", "text": "Pages of fifty."}]}]}',
    unread={"old sessions of opencode (storage/session)": ("/storage/session/", ".json")},
)
PI = Format(
    "pi",
    (in_home("PI_CODING_AGENT_DIR", ".pi/agent", "sessions", "*/*.jsonl"),),
    '{"type": "session", "id": "5b1c", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/work/app"}\n'
    '{"type": "message", "message": {"role": "user", "content": "Login loops"}}\n'
    '{"type": "message", "message": {"role": "assistant", "content": "The cookie path changed."}}',
)

FORMATS = (HOOKS, CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, COPILOT_CLI, CURSOR, OPENCODE, PI)
"""All agents. Of two formats that accept a line, the first counts."""

SESSION_KEYS = ("sessionId", "session_id", "sessionID", "conversation_id")

# -- what holds for all of them ----------------------------------------------------------------------------------------

MAX_HEAD_BYTES = 1 << 20
"""How many bytes to search for the folder: the first line of a rollout holds the agent's instructions."""

MAX_FOLDER = 4_096


def default_folders(top: Path) -> tuple[SessionFolder, ...]:
    """Return the existing folders that may hold sessions of the checkout at ``top``, perhaps among others.

    Some agents have a folder for each working folder, named after its path; others mix those of all checkouts.
    """
    trees = Worktrees(str(top))
    return tuple(folder for each in FORMATS for finder in each.finders for folder in finder(trees))


def unread_name(path: str) -> str:
    """Return the name of the format of a file that is only counted, "" for all others."""
    forms = (form for each in FORMATS for form in each.unread.items())
    return next((name for name, (folder, end) in forms if path.endswith(end) and folder in path), "")


def match_path(path: str) -> re.Match[str] | None:
    """Match the path of a transcript of an agent that names a session there; None for all others."""
    return next(filter(None, (re.search(each.path, path) for each in FORMATS if each.path)), None)


class Origin(NamedTuple):
    """Where an agent worked: its folder, and the repository as ``owner/name``; "" if unknown."""

    folder: str = ""
    repository: str = ""


def origin_in(head: bytes) -> Origin:
    """Return the first working folder named in the lines of a transcript, and the repository named with it."""
    marks = {b"<cwd>", b"Current working directory: ", *(f'"{each.folder[-1]}"'.encode() for each in FORMATS)}
    for line in head.split(b"\n"):
        if any(mark in line for mark in marks):
            with suppress(Unreadable):
                if origin := _origin_of(parse_object(line)):
                    return origin
    return Origin()


def _origin_of(fields: Fields) -> Origin | None:
    for *keys, last in dict.fromkeys(each.folder for each in FORMATS):
        place: Any = fields
        for key in keys:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            folder = place.get(last) or _environment_folder(place.get("content"))
            if isinstance(folder, str) and 0 < len(folder) <= MAX_FOLDER:
                return Origin(folder, _repository(place))
    return None


def _repository(place: Fields) -> str:
    git = place.get("git")
    address = git.get("repository_url") if isinstance(git, dict) else place.get("repository")
    return slug_of(address) if isinstance(address, str) else ""
