"""Collects the report of a run: notes, faults, and the time of each stage."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from bot.errors import PrecedentError
from bot.pipeline.setup import ApiUsage
from bot.server.spans import span

MAX_NOTES = 20
MAX_NOTE_CHARS = 300
log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunLog:
    """The `RunListener` of one run. ``clock`` is in seconds.

    ``met`` are faults after which the run continued; ``failed`` is what the repository has to fix.
    """

    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    met: list[PrecedentError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    used: ApiUsage = field(default_factory=lambda: ApiUsage(0, 0, 0))
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(init=False)
    _stage: str = ""
    _since: float = 0.0
    _span: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def note(self, line: str) -> None:
        line = " ".join(line.split())[:MAX_NOTE_CHARS]
        if line not in self.notes:
            log.info("%s", line, extra={"seconds": round(self.clock() - self._began, 2)})
            self.notes = [*self.notes, line][:MAX_NOTES]

    def show(self, line: str) -> None:
        """Show nothing."""

    def report_fault(self, error: PrecedentError) -> None:
        self.met.append(error)
        self.note(str(error))

    def fail(self, line: str, code: int) -> None:  # noqa: ARG002 - a server goes on
        self.failed.append(line)
        self.note(line)

    def note_api_usage(self, used: ApiUsage) -> None:
        self.used = used

    def on_stage(self, stage: str) -> None:
        """End the current stage and its span, and start another; "" for none."""
        now = self.clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
        self._span.close()
        if stage:
            self._span.enter_context(span(stage))
