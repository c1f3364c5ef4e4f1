"""Short example lines of the kinds of agent sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bot.sources.sessions.files import SessionFile, find_sessions

FOLDER = Path(__file__).with_name("sessions")


def _read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


ISSUE_AGENT, HOOKS, CLAUDE_CODE, ROLLOUT = map(_read_lines, ("pi", "hooks", "claude_code", "codex"))
CODING = CLAUDE_CODE[:11]
"""The start of a transcript of Claude Code."""

CONVERSATION: dict[str, Any] = json.loads((FOLDER / "gemini_cli_early.json").read_text(encoding="utf-8"))
"""A conversation as one object."""

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
