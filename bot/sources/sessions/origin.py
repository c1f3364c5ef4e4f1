"""Reads the start of a transcript: where the agent worked, and whether the file is read as a whole."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

HEAD_BYTES = 64 << 10
"""How many bytes to search for the messages of a single object."""

MAX_HEAD_BYTES = 1 << 20
"""How many bytes to search for the folder: the first line of a rollout holds the agent's instructions."""

_MAX_FOLDER = 4_096
_FOLDER_MARKS = (b'"cwd"', b"<cwd>", b"Current working directory: ")
_ENVIRONMENT_FOLDER = re.compile(
    r"<cwd>([^<\n]{1,4096})</cwd>|^Current working directory: ([^\n]{1,4096})$", re.MULTILINE
)
_SLUG = re.compile(r"(?:^|[/:])([\w.-]{1,100}/[\w.-]{1,100}?)(?:\.git)?/?$", re.ASCII)
_MESSAGES_KEY = re.compile(rb'"messages"\s*:\s*\[')
_MULTILINE_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\r?\n")


def open_regular_file(path: Path) -> int:
    """Open a regular file and return its descriptor. Raises OSError for a symlink, a pipe or anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


def head_of(path: str, most: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a regular file, none if it cannot be read."""
    with suppress(OSError, ValueError), os.fdopen(open_regular_file(Path(path)), "rb") as handle:
        return handle.read(most)
    return b""


def holds_messages(head: bytes) -> bool:
    """Whether a file with this start may be a conversation in one object: ``{"messages": […]}``."""
    return _MESSAGES_KEY.search(head) is not None


def is_spread(head: bytes) -> bool:
    """Whether a file with this start is one object over several lines."""
    return _MULTILINE_OBJECT.match(head) is not None and holds_messages(head)


def is_chat(head: bytes) -> bool:
    """Whether a file with this start is a chat of Gemini CLI, whose later lines change earlier ones."""
    fields = _object_in(head.partition(b"\n")[0]) if b'"projectHash"' in head else {}
    is_header = all(isinstance(fields.get(key), str) for key in ("sessionId", "projectHash"))
    return is_header and not isinstance(fields.get("messages"), list)


class Origin(NamedTuple):
    """Where an agent worked: its folder, and the repository as ``owner/name``; "" if unknown."""

    folder: str = ""
    repository: str = ""


def origin_in(head: bytes) -> Origin:
    """Return the first working folder named in the lines of a transcript, and the repository named with it."""
    for line in head.split(b"\n"):
        if not any(mark in line for mark in _FOLDER_MARKS):
            continue
        fields = _object_in(line)
        payload, data = fields.get("payload"), fields.get("data")
        context = data.get("context") if isinstance(data, dict) else None
        for source in (fields, payload, context):
            if not isinstance(source, dict):
                continue
            folder = source.get("cwd") or environment_folder(source.get("content"))
            if isinstance(folder, str) and 0 < len(folder) <= _MAX_FOLDER:
                return Origin(folder, _repository(source))
    return Origin()


def environment_folder(content: Any) -> str:
    """Return the folder in the note on its environment that early Codex put before the first message, "" if none."""
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str) and text.lstrip().startswith("<environment_context>"):
            match = _ENVIRONMENT_FOLDER.search(text)
            return (match[1] or match[2]).strip() if match else ""
    return ""


def _repository(source: dict[str, Any]) -> str:
    git = source.get("git")
    address = git.get("repository_url") if isinstance(git, dict) else source.get("repository")
    return slug_of(address) if isinstance(address, str) else ""


def slug_of(address: str) -> str:
    """Return the ``owner/name`` at the end of a remote's address, in lower case; "" without one."""
    match = _SLUG.search(address.strip()[-_MAX_FOLDER:])
    return match[1].casefold() if match else ""


def _object_in(line: bytes) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        fields = json.loads(line.decode("utf-8-sig"))
        return fields if isinstance(fields, dict) else {}
    return {}
