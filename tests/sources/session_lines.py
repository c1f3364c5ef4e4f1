"""Short example lines of the kinds of agent sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bot.sources.session_files import SessionFile, find_sessions

ISSUE_AGENT: list[dict[str, Any]] = [
    {"type": "session", "version": 3, "id": "5b1c", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/work/app"},
    {"type": "model_change", "id": "a0", "parentId": None, "timestamp": "2026-03-01T10:00:00.500Z", "modelId": "m"},
    {
        "type": "message",
        "id": "a1",
        "parentId": "a0",
        "timestamp": "2026-03-01T10:00:01.000Z",
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": "Login loops after upgrade\nPlease look into it."}],
            "timestamp": 1772359201000,
        },
    },
    {
        "type": "message",
        "id": "a2",
        "timestamp": "2026-03-01T10:00:09.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "a secret thought about zebras"},
                {"type": "text", "text": "The cookie path changed."},
                {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "/work/app/auth/cookie.py"}},
            ],
            "stopReason": "toolUse",
        },
    },
    {
        "type": "message",
        "id": "a3",
        "timestamp": "2026-03-01T10:00:10.000Z",
        "message": {
            "role": "toolResult",
            "toolCallId": "t1",
            "content": [{"type": "text", "text": "a tool said giraffe"}],
        },
    },
    {
        "type": "message",
        "id": "a4",
        "timestamp": "2026-03-01T10:00:11.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {
                    "type": "toolCall",
                    "id": "t2",
                    "name": "edit",
                    "arguments": '{"file_path": "./tests/test_cookie.py"}',
                },
            ],
        },
    },
    {"type": "compaction", "id": "a5", "timestamp": "2026-03-01T10:01:00.000Z", "summary": "what was said"},
]

HOOKS: list[dict[str, Any]] = [
    {"timestamp": "2026-03-02T08:00:00+01:00", "event": "SessionStart", "session_id": "h-1", "data": {"source": "cli"}},
    {
        "timestamp": "2026-03-02T08:00:01+01:00",
        "event": "UserPromptSubmit",
        "session_id": "h-1",
        "data": {"prompt": "How do we rotate the webhook secret?"},
    },
    {
        "timestamp": "2026-03-02T08:00:02+01:00",
        "event": "PreToolUse",
        "session_id": "h-1",
        "data": {"tool_name": "Read", "tool_input": {"file_path": "x.py"}},
    },
    {
        "timestamp": "2026-03-02T08:00:05+01:00",
        "event": "AssistantResponse",
        "session_id": "h-1",
        "data": {"response": "Two secrets are accepted while one is replaced."},
    },
    {
        "timestamp": "2026-03-02T08:00:06+01:00",
        "event": "UserPromptSubmit",
        "session_id": "h-2",
        "data": {"prompt": "Another window"},
    },
]

CODING: list[dict[str, Any]] = [
    {"type": "summary", "summary": "Retry with jitter", "leafUuid": "u3"},
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
    {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "sessionId": "c-1",
        "cwd": "/work/app",
        "timestamp": "2026-03-03T09:00:00.123Z",
        "message": {"role": "user", "content": "Add retries to the client"},
    },
    {
        "type": "user",
        "isMeta": True,
        "sessionId": "c-1",
        "timestamp": "2026-03-03T09:00:00.124Z",
        "message": {"role": "user", "content": "a caveat of the program"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "sessionId": "c-1",
        "cwd": "/work/app",
        "timestamp": "2026-03-03T09:00:04.000Z",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "I retry with jitter."}],
        },
    },
    {
        "type": "assistant",
        "uuid": "u3",
        "sessionId": "c-1",
        "cwd": "/work/app",
        "timestamp": "2026-03-03T09:00:05.000Z",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "x", "name": "Edit", "input": {"file_path": "/work/app/net/client.py"}},
                {"type": "tool_use", "id": "y", "name": "NotebookEdit", "input": {"notebook_path": "/data/n.ipynb"}},
            ],
        },
    },
    {
        "type": "user",
        "sessionId": "c-1",
        "timestamp": "2026-03-03T09:00:06.000Z",
        "message": {"role": "user", "content": [{"tool_use_id": "x", "type": "tool_result", "content": "giraffe"}]},
        "toolUseResult": {"type": "text", "file": {"filePath": "/work/app/net/other.py"}},
    },
    {"type": "progress", "sessionId": "c-1", "data": {"type": "hook_progress"}},
    {"type": "system", "subtype": "turn_duration", "sessionId": "c-1", "content": "took 5 s"},
    {"type": "attachment", "sessionId": "c-1", "attachment": {"type": "todo"}},
    {"type": "queue-operation", "operation": "dequeue", "sessionId": "c-1"},
]

BROKEN: list[bytes] = [
    b"2026-03-03 09:00:00 INFO started",
    b'{"type": "user", "message": {"role": "us',
    b"[1, 2]",
    b'"text"',
    b"null",
    b"{}",
    b'{"foo": 1}',
    b'{"type": "user"}',
    b'{"type": "user", "message": 5}',
    b'{"type": "message", "message": {"content": "nobody"}}',
    b'{"type": "assistant", "message": {"role": "assistant"}}',
    b'{"type": "assistant", "message": {"role": "assistant", "content": 7}}',
    b'{"type": "assistant", "message": {"role": "assistant", "content": {"text": "no list"}}}',
    b'{"event": "UserPromptSubmit", "session_id": "h-1", "data": {}}',
    b'{"event": "UserPromptSubmit", "session_id": "h-1", "data": {"prompt": 5}}',
    b'{"event": "AssistantResponse", "session_id": "h-1", "data": "text"}',
    b'{"type": "user", "message": {"role": "user", "content": "caf\xe9"}}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"type": "user", "message": {"role": "user", "content": ' + b"9" * 5_000 + b"}}",
]


def line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


def prompt(text: str, session: str = "h-1", at: object = "2026-03-02T07:00:00Z") -> bytes:
    return line({"event": "UserPromptSubmit", "session_id": session, "timestamp": at, "data": {"prompt": text}})


def response(text: str, session: str = "h-1", at: object = "2026-03-02T07:00:05Z") -> bytes:
    return line({"event": "AssistantResponse", "session_id": session, "timestamp": at, "data": {"response": text}})


def write(path: Path, *lines: bytes | dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((each if isinstance(each, bytes) else line(each)) + b"\n" for each in lines))
    return path


def session_file(path: Path, top: Path | None = None) -> SessionFile:
    """The file as `find_sessions` returns it."""
    (file,) = find_sessions([str(path)], str(top or path.parent)).sessions
    return file


ROLLOUT: list[dict[str, Any]] = [
    {
        "timestamp": "2026-03-04T09:00:00Z",
        "type": "session_meta",
        "payload": {
            "id": "r-1",
            "cwd": "/work/app",
            "originator": "cli",
            "git": {"commit_hash": "abc", "branch": "fix/42-login"},
        },
    },
    {
        "timestamp": "2026-03-04T09:00:00Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "a rule of giraffes"}],
        },
    },
    {
        "timestamp": "2026-03-04T09:00:01Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "# AGENTS.md instructions for /work/app\n\n<INSTRUCTIONS>giraffe"},
                {"type": "input_text", "text": "<environment_context>giraffe</environment_context>"},
            ],
        },
    },
    {
        "timestamp": "2026-03-04T09:00:02Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Why does the login loop?"}],
        },
    },
    {
        "timestamp": "2026-03-04T09:00:02Z",
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "giraffe"},
    },
    {"timestamp": "2026-03-04T09:00:02Z", "type": "turn_context", "payload": {"cwd": "/work/app", "model": "m"}},
    {
        "timestamp": "2026-03-04T09:00:03Z",
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "giraffe"}]},
    },
    {
        "timestamp": "2026-03-04T09:00:04Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "The old cookie shadows the new one."}],
        },
    },
    {
        "timestamp": "2026-03-04T09:00:05Z",
        "type": "response_item",
        "payload": {
            "type": "custom_tool_call",
            "name": "apply_patch",
            "input": "*** Begin Patch\n*** Update File: auth/cookie.py\n-a\n*** Add File: tests/new.py\n*** End Patch",
        },
    },
    {
        "timestamp": "2026-03-04T09:00:06Z",
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "c", "output": "giraffe"},
    },
]
"""A rollout of Codex."""

CONVERSATION: dict[str, Any] = {
    "sessionId": "w-1",
    "startTime": "2026-03-05T09:00:00Z",
    "messages": [
        {"type": "user", "timestamp": "2026-03-05T09:00:00Z", "content": [{"text": "Which driver do we use?"}]},
        {"type": "info", "timestamp": "2026-03-05T09:00:01Z", "content": "giraffe"},
        {"role": "tool", "content": "giraffe"},
        {"type": "gemini", "timestamp": "2026-03-05T09:00:02Z", "content": "The pure one.", "thoughts": ["giraffe"]},
        {"role": "assistant", "content": [{"type": "text", "text": "It needs no compiler."}]},
    ],
}
"""A conversation as one object."""
