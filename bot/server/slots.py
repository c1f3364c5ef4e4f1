"""How many turns may work at once in one worker, and for how long the longest of them has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HANGING = 900.0
"""Seconds after which a turn has come to a stop; a first reading of a repository takes five minutes at most."""


class Slots:
    """So many turns at once; the others wait. ``clock`` is in seconds."""

    def __init__(self, jobs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._free = threading.BoundedSemaphore(jobs)
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[object, tuple[str, float]] = {}

    @contextmanager
    def taken(self, what: str) -> Iterator[None]:
        """Wait for a slot and keep it; ``what`` is shown of the one that hangs."""
        key = object()
        with self._free:
            with self._lock:
                self._began[key] = (what, self._clock())
            try:
                yield
            finally:
                with self._lock:
                    del self._began[key]

    @property
    def busy(self) -> int:
        """How many are taken."""
        with self._lock:
            return len(self._began)

    def longest(self) -> tuple[str, float]:
        """What has been at work for the longest time, and for how many seconds; ("", 0.0) when nothing is."""
        with self._lock:
            what, began = min(self._began.values(), key=lambda taken: taken[1], default=("", self._clock()))
        return what, max(0.0, self._clock() - began)
