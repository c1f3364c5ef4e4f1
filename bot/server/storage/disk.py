"""Guards a worker's disk: while it is full, no run begins, as each would fail and others could have done its work."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from bot.files import DiskFault

MIN_FREE_BYTES = 200_000_000
"""Free bytes of disk below which no delivery is accepted and no run begins."""

REST_SECONDS = 60.0
"""Seconds without a new run after one that failed for want of disk: a quota does not show in the free bytes."""


def describe_free_space(folder: Path) -> tuple[bool, str]:
    """Whether there is enough room on the disk of ``folder``, and a line about it."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return False, f"{folder} cannot be read ({error.strerror}): is it mounted?"
    line = f"{free / 1e9:,.1f} GB free"
    return (True, line) if free >= MIN_FREE_BYTES else (False, f"only {line}: make room")


class DiskGuard:
    """The disk of ``folder``, as one process sees it. Safe for several threads; ``clock`` is in seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._fault: tuple[float, str] = (clock(), "")

    def note_fault(self, fault: DiskFault) -> None:
        """Begin no run for a minute: one has just failed for this reason."""
        self._fault = (self._clock() + REST_SECONDS, str(fault))

    def obstacle(self) -> str:
        """Why no run may begin now; "" if one may."""
        until, fault = self._fault
        if self._clock() < until:
            return fault
        has_room, line = describe_free_space(self._folder)
        return "" if has_room else f"disk: {line}"
