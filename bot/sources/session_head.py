"""Reads the start of a transcript: the agent's working folder, and whether the file is a single object."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

HEAD_BYTES = 64 << 10
"""How many bytes to search for the messages of a single object."""

MAX_HEAD_BYTES = 1 << 20
"""How many bytes to search for the folder: the first line of a rollout holds the agent's instructions."""

_MAX_FOLDER = 4_096
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


def folder_in(head: bytes) -> str:
    """Return the first working folder named in the lines of a transcript, "" if there is none."""
    for line in head.split(b"\n"):
        if b'"cwd"' not in line:
            continue
        with suppress(ValueError, RecursionError):
            fields = json.loads(line.decode("utf-8-sig"))
            payload = fields.get("payload") if isinstance(fields, dict) else None
            for candidate in (fields, payload):
                folder = candidate.get("cwd") if isinstance(candidate, dict) else None
                if isinstance(folder, str) and 0 < len(folder) <= _MAX_FOLDER:
                    return folder
    return ""
