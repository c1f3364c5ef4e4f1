"""Where the tools look, and what one of them answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from bot.local_cache.local_memory import LocalMemory, MemoryOptions
from bot.local_cache.location import open_memory
from bot.questions.views import Row


class ToolAnswer(NamedTuple):
    """The answer of a tool: data, and the same as short text. ``failed``: the text says in one line what went wrong."""

    data: Row
    text: str
    failed: bool = False


class ToolContext:
    """The memory to ask, and the agent's own accounts (``me``). Safe to use from several threads."""

    def __init__(self, where: MemoryOptions, me: tuple[str, ...] = ()) -> None:
        self.where, self.me = where, me
        self._opening = Lock()

    @property
    def folder(self) -> Path:
        return self.where.folder

    @contextmanager
    def opened(self) -> Iterator[LocalMemory]:
        """Open the memory as it is now. One thread at a time brings it up to date; all may read at once."""
        with ExitStack() as stack:
            with self._opening:
                place = stack.enter_context(open_memory(self.where))
            yield place.demand()


def now() -> datetime:
    return datetime.now(UTC)
