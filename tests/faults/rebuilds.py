# ruff: noqa: E501 - a trouble is a row
"""A rebuild: the fault that it meets after its first fifty issues, and the expected outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.github.history import PER_PAGE
from tests.acceptance.stage import Stage

FULL = 2 * PER_PAGE
"""Issues: two requests."""


@dataclass(frozen=True)
class Row:
    """``kind``, ``times`` and ``seconds`` are arguments of `FaultPlan.add`. ``code`` and ``says`` describe the disturbed
    rebuild, ``done`` is the run that finishes the history: this one (``now``) or a scheduled one (``later``)."""

    name: str
    kind: str
    code: int
    says: str
    done: str
    why: str
    times: int | None = None
    seconds: float = 3600.0


AGAIN = "Start `rebuild` again later"
LIMIT = "limit is exhausted until"
ROWS = (
    Row("503", "503", 1, AGAIN, "later", "The run fails so that you notice. It keeps what it read."),
    Row("503 once", "503", 0, "", "now", "The request is repeated.", times=1),
    Row("dropped", "drop", 1, AGAIN, "later", "The run fails so that you notice. It keeps what it read."),
    Row("primary limit", "primary403", 0, LIMIT, "later", "The run succeeds with a notice and keeps what it read."),
    Row("limit with status 200", "limit200", 0, LIMIT, "later", "The run succeeds with a notice and keeps what it read."),
    Row("secondary limit of an hour", "secondary403", 0, LIMIT, "later", "The run succeeds with a notice and keeps what it read."),
    Row("secondary limit of a second", "secondary403", 0, "", "now", "The run waits for a limit that ends within 90 seconds.", times=1, seconds=1),
    Row("401", "401", 1, "refused the token", "later", "The error names the remedy. The run keeps what it read."),
    Row("permission", "permission", 1, "issues: write", "later", "The error names the remedy. The run keeps what it read."),
    Row("404", "404", 0, "", "now", "The run uses REST, as on a server without GraphQL."),
    Row("issues switched off", "issues-off", 0, "switched off", "later", "Nothing is treated as deleted."),
)  # fmt: skip


def play(row: Row, stage: Stage) -> tuple[int, str]:
    """The exit code and summary of a rebuild that meets the trouble."""
    if row.seconds < 90:
        stage.github.clock.now = None  # the pause is measured by real clocks
    stage.github.faults.add("POST /graphql", row.kind, row.times, after=1, seconds=row.seconds)
    code = stage.act("workflow_dispatch", inputs={"run": "rebuild"})
    stage.github.faults.clear()
    return code, re.sub(r"\\(?=[`_*])", "", stage.summary.read_text(encoding="utf-8"))
