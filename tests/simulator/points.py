"""The I/O points of a run, seen by an audit hook: where it crashes, where another run comes in between, how it waits.

The product's code stays as it is. Python calls every audit hook before a process starts, a socket connects, bytes are
sent, or a file is opened for writing. A hook that is armed for one thread raises `Crash` there and at every later point
of that thread: the process is dead, and only temporary folders are still removed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PLAIN = frozenset({"socket.connect", "http.client.send", "os.rename", "os.mkdir"})


class Crash(BaseException):
    """The process is dead; nothing in the product may catch this."""


@dataclass
class Points:
    """What is to happen at the points of one run, and what did.

    ``dies_at`` is the number of the point at which the run crashes (1 is the first). ``interrupts``: name or number of
    a point → a function called once, at the first such point, such as another runner's complete run.
    """

    dies_at: int | None = None
    interrupts: dict[str, Callable[[], None]] = field(default_factory=dict)
    at_death: Callable[[], None] | None = None
    passed: list[str] = field(default_factory=list)
    died: str = ""
    waited: float = 0.0

    def reach(self, name: str) -> None:
        """Pass one I/O point. Raises Crash if the run is dead."""
        if self.died:
            raise Crash(self.died)
        self.passed.append(name)
        if self.dies_at is not None and len(self.passed) >= self.dies_at:
            self.died = f"point {len(self.passed)}, before {name}"
            if self.at_death:
                self.at_death()
            raise Crash(self.died)
        interrupt = self.interrupts.pop(name, None) or self.interrupts.pop(str(len(self.passed)), None)
        if interrupt:
            interrupt()

    @property
    def kind(self) -> str:
        """The kind of point at which it died, such as ``git push``."""
        return self.died.rpartition("before ")[2]


_ARMED: dict[int, Points] = {}
_sleep = time.sleep


@contextmanager
def armed(points: Points) -> Iterator[Points]:
    """Within the context, this thread passes these points, and its waits take no time."""
    _install_hook()
    thread_id = threading.get_ident()
    previous = _ARMED.get(thread_id)
    _ARMED[thread_id] = points
    try:
        yield points
    finally:
        if previous is None:
            del _ARMED[thread_id]
        else:
            _ARMED[thread_id] = previous


@cache
def _install_hook() -> None:
    """Once per process: a hook cannot be removed, so it looks up which threads are armed."""
    sys.addaudithook(_audit)
    time.sleep = _wait


def _wait(seconds: float) -> None:
    """The clock stands still in a simulated run, so waiting takes no time; other threads wait as usual."""
    points = _ARMED.get(threading.get_ident())
    if points is None:
        _sleep(seconds)
    elif points.died:
        raise Crash(points.died)
    else:
        points.waited += seconds


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    points = _ARMED.get(threading.get_ident()) if _ARMED else None
    if points is None:
        return
    if event == "subprocess.Popen":
        points.reach(_command(arguments[1]))
    elif event in PLAIN:
        points.reach(event)
    elif event == "open" and _is_writing(arguments):
        points.reach("open for writing")


def _command(words: Any) -> str:
    return " ".join(str(word) for word in list(words)[:2])


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = arguments
    if isinstance(path, int) or "__pycache__" in str(path):
        return False  # the pipes of a process, which is a point itself; Python's own caches
    if mode is not None:
        return any(letter in str(mode) for letter in "wax+")
    return isinstance(flags, int) and bool(flags & WRITING) and path != os.devnull
