"""Reads the start of a transcript, and lines that are JSON objects."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

HEAD_BYTES = 64 << 10
"""How many bytes to search for the messages of a single object."""

MAX_LINE = 4 << 20
"""Bytes of a line; a longer one counts as broken."""


class Unreadable(Exception):
    """A line that should be a message but has no known shape."""


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


def note_of(path: str, most: int = HEAD_BYTES) -> str:
    """Return the first bytes of a regular file as text, "" if it cannot be read."""
    return head_of(path, most).decode("utf-8", "surrogateescape")


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


def holds_messages(head: bytes) -> bool:
    """Whether a file with this start may be a conversation in one object: ``{"messages": […]}``."""
    return re.search(rb'"messages"\s*:\s*\[', head) is not None


def is_spread(head: bytes) -> bool:
    """Whether a file with this start is one object over several lines."""
    return re.match(rb"(?:\xef\xbb\xbf)?\s*\{\s*\r?\n", head) is not None and holds_messages(head)
