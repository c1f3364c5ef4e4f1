"""What a turn hears of its run: notes, faults and how long each stage took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.errors import PrecedentError
from bot.outfit import Used

MOST_NOTES = 20
MOST_CHARACTERS = 300


@dataclass(slots=True)
class Hearing:
    """The `Ear` of a turn. ``met`` are faults that the run went on after, ``failed`` what the repository has to mend.

    ``clock`` is in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    met: list[PrecedentError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    used: Used = field(default_factory=lambda: Used(0, 0, 0))
    seconds: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _since: float = 0.0

    def note(self, line: str) -> None:
        line = " ".join(line.split())[:MOST_CHARACTERS]
        if line not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(line)

    def show(self, line: str) -> None:
        """Nobody watches."""

    def meet(self, error: PrecedentError) -> None:
        self.met.append(error)
        self.note(str(error))

    def fail(self, line: str, code: int) -> None:  # noqa: ARG002 - a server goes on
        self.failed.append(line)
        self.note(line)

    def spent(self, used: Used) -> None:
        self.used = used

    def watch(self, stage: str) -> None:
        """A stage begins, and the one before it is over; "" for none."""
        now = self.clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
