"""The last words of a subagent, from the transcript that a hook log names: only where such a log has any business."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from bot.sources.transcripts.content import Unreadable
from bot.sources.transcripts.files import File
from bot.sources.transcripts.lines import Said, told
from bot.sources.transcripts.nouns import ASSISTANT

MAX_TAIL = 1 << 20
"""Bytes at the end of a transcript that are looked through."""

MAX_READ = 200
"""Transcripts that one portion of a log may name."""


class Subagents:
    """Reads what one log names: regular ``.jsonl`` files below its own folder, or below the top of the sources."""

    def __init__(self, log: File) -> None:
        folder = Path(log.path).parent
        self._bases = (folder, Path(log.top))
        self._roots = (folder.resolve(), Path(log.top).resolve())
        self._known: dict[str, str] = {}

    def response(self, path: str) -> str:
        """What the subagent said last, "" where nothing is to be had."""
        if path not in self._known:
            self._known[path] = self._read(path) if len(self._known) < MAX_READ else ""
        return self._known[path]

    def _read(self, path: str) -> str:
        named = Path(path).expanduser() if path.startswith("~/") else Path(path)
        for base in self._bases:
            with suppress(OSError, ValueError, RuntimeError):
                found = (base / named).resolve(strict=True)
                if found.suffix == ".jsonl" and any(found.is_relative_to(root) for root in self._roots):
                    return _last(_tail(found))
        return ""


def opened(path: Path) -> int:
    """A descriptor of a regular file. Raises OSError for a symlink, a pipe or what else stands there meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return descriptor


def _tail(path: Path) -> bytes:
    with os.fdopen(opened(path), "rb") as handle:
        begin = max(0, os.fstat(handle.fileno()).st_size - MAX_TAIL)
        handle.seek(begin)
        data = handle.read(MAX_TAIL)
    return data.partition(b"\n")[2] if begin else data


def _last(data: bytes) -> str:
    for line in reversed(data.split(b"\n")):
        with suppress(Unreadable):
            said = told(line)
            if isinstance(said, Said) and said.type == ASSISTANT and said.content.text:
                return said.content.text
    return ""
