"""Worker processes: started, started anew when they end, and ended with us."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bot.server.options import Options, packed

LOOK = 0.1
"""Seconds between two looks at the children."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0
"""Seconds before the next start. What the last one had begun has to go on within a minute, whatever it died of."""

HEALTHY = 30.0
"""Seconds after which a child counts as one that can run: when it ends, the next one starts after the first pause."""

Child = subprocess.Popen[bytes]
Start = Callable[[], Child]

log = logging.getLogger(__name__)


def spawn(options: Options, module: str = "bot") -> Child:
    """A worker with the same options. They go through its stdin: a list of processes shows arguments to everybody."""
    isolated = ["-I"] if sys.flags.isolated else []
    command = [sys.executable, *isolated, "-m", module, "worker", "--parent", str(os.getpid())]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:  # a child that ended at once is seen like any other
        child.stdin.write(json.dumps(packed(options)).encode())
    return child


@dataclass(slots=True)
class _Place:
    """One of the processes that there should be."""

    child: Child | None = None
    began: float = 0.0
    pause: float = 0.0
    next_at: float = 0.0


class Children:
    """Keeps ``count`` processes running. ``start`` begins one."""

    def __init__(self, start: Start, count: int) -> None:
        self._start = start
        self._places = [_Place() for _ in range(count)]
        self._stops = threading.Event()
        self._asked_at = 0.0
        self._thread = threading.Thread(target=self._run, name="children", daemon=True)

    def begin(self) -> None:
        """Start them, and watch over them from now on."""
        self._thread.start()

    @property
    def living(self) -> list[int]:
        """The process ids of those that run."""
        children = [place.child for place in self._places]
        return [child.pid for child in children if child is not None and child.poll() is None]

    def ask_to_end(self) -> None:
        """Start none any more, and send SIGTERM to those that run. Twice is once."""
        if self._stops.is_set():
            return
        self._stops.set()
        if self._thread.is_alive():
            self._thread.join()
        self._asked_at = time.monotonic()
        for place in self._places:
            if place.child is not None:
                place.child.terminate()

    def wait(self, seconds: float) -> bool:
        """Whether all ended by themselves within so long of being asked to; those that did not are killed."""
        until = self._asked_at + seconds
        in_time = True
        for child in (place.child for place in self._places):
            if child is None:
                continue
            try:
                child.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                in_time = False
                child.kill()
                child.wait()
        return in_time

    def _run(self) -> None:
        while not self._stops.is_set():
            for place in self._places:
                self._tend(place, time.monotonic())
            self._stops.wait(LOOK)

    def _tend(self, place: _Place, now: float) -> None:
        """Start a place's process where there is none and the pause is over; note the end of one."""
        if place.child is not None and (code := place.child.poll()) is not None:
            lived = now - place.began
            place.pause = FIRST_PAUSE if lived >= HEALTHY else min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * place.pause))
            place.next_at, place.child = now + place.pause, None
            told = {"code": code, "lived": round(lived), "again_in": place.pause}
            log.warning("a worker has ended; another one is started", extra=told)
        if place.child is None and now >= place.next_at:
            try:
                place.child, place.began = self._start(), now
            except OSError as error:
                place.pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * place.pause))
                place.next_at = now + place.pause
                log.warning("a worker cannot be started: %s", error.strerror)
