"""The I/O points of a run, seen by an audit hook: where it dies, where another run comes in between, how it waits.

Product code is not touched. Python tells every audit hook before a process starts, a socket connects, bytes are sent,
a file is opened for writing. A hook that is armed for one thread raises `Crash` there, and at every later point of that
thread: the process is dead, and only the clearing of temporary folders goes on.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PLAIN = frozenset({"socket.connect", "http.client.send", "os.rename", "os.mkdir"})


class Crash(BaseException):
    """The process is dead: nothing in the product may catch it."""


@dataclass
class Points:
    """What is to happen at the points of one run, and what did.

    ``dies_at`` is the number of the point at which the run dies (1 is the first). ``interrupts`` are run once, at the
    first point whose name it is given for: another runner's whole run, in between.
    """

    dies_at: int | None = None
    interrupts: dict[str, Callable[[], None]] = field(default_factory=dict)
    at_death: Callable[[], None] | None = None
    seen: list[str] = field(default_factory=list)
    died: str = ""
    waited: float = 0.0

    def pass_by(self, name: str) -> None:
        """One I/O point. Raises Crash when the run is dead."""
        if self.died:
            raise Crash(self.died)
        self.seen.append(name)
        if self.dies_at is not None and len(self.seen) >= self.dies_at:
            self.died = f"point {len(self.seen)}, before {name}"
            if self.at_death:
                self.at_death()
            raise Crash(self.died)
        interrupt = self.interrupts.pop(name, None) or self.interrupts.pop(str(len(self.seen)), None)
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
    """This thread passes by these points while the context lasts; its waits take no time."""
    _hook()
    me = threading.get_ident()
    before = _ARMED.get(me)
    _ARMED[me] = points
    try:
        yield points
    finally:
        if before is None:
            del _ARMED[me]
        else:
            _ARMED[me] = before


@cache
def _hook() -> None:
    """Once for the process: a hook cannot be taken out again, so it asks which threads are armed."""
    sys.addaudithook(_audit)
    time.sleep = _wait


def _wait(seconds: float) -> None:
    """The clock stands still in a simulated run, so waiting takes none of it; other threads wait as ever."""
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
        points.pass_by(_command(arguments[1]))
    elif event in PLAIN:
        points.pass_by(event)
    elif event == "open" and _is_writing(arguments):
        points.pass_by("open for writing")


def _command(words: Any) -> str:
    return " ".join(str(word) for word in list(words)[:2])


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    path, mode, flags = arguments
    if isinstance(path, int) or "__pycache__" in str(path):
        return False  # the pipes of a process, which has its own point; what Python keeps for itself
    if mode is not None:
        return any(letter in str(mode) for letter in "wax+")
    return isinstance(flags, int) and bool(flags & WRITING) and path != os.devnull


def counted(points: Points) -> Counter[str]:
    """How often each kind of point was passed."""
    return Counter(points.seen)
