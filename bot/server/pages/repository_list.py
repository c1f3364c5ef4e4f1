"""The repositories of a server, each with its state, and how far the reading of its history has come."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bot.github.errors import EVENT_LIMITS, HISTORY_LIMITS
from bot.server.model import HistoryPart, Instant, RepositoryRow
from bot.server.scope import RepositoryScope
from bot.server.storage.database import to_json
from bot.server.storage.installations import Installations

PACE_RUNS = 6
"""Runs whose pace counts: the newest ones, with the time between them."""


@dataclass(frozen=True, slots=True)
class HistoryEstimate:
    """An unfinished reading: ``read`` threads so far. ``marks`` are times with how many threads were left then."""

    read: int
    marks: tuple[tuple[Instant, int], ...] = ()

    @property
    def left(self) -> int:
        """How many threads are left; -1 if GitHub did not say."""
        return self.marks[-1][1] if self.marks else -1

    @property
    def percent(self) -> int:
        """How much is read, in 0..99; -1 if that is not known."""
        total = self.read + self.left
        return min(99, 100 * self.read // total) if self.left >= 0 and total else -1

    def after(self, part: HistoryPart, began: Instant, ended: Instant) -> HistoryEstimate:
        if part.left < 0 or part.before < 0:
            return replace(self, read=part.read)
        marks = self.marks or ((began, part.before),)
        return HistoryEstimate(part.read, (*marks, (ended, part.left))[-PACE_RUNS - 1 :])

    def done_at(self, paused_until: Instant = 0) -> Instant:
        """When it will be done at the pace so far, after a pause until ``paused_until``; 0 if unknown.

        The time between runs counts, so a reading that has to wait for others takes as long as it does.
        """
        if len(self.marks) < 2:
            return 0
        (first, before), (last, left) = self.marks[0], self.marks[-1]
        if before <= left:
            return 0
        return max(last, paused_until) + round(left * (last - first) / (before - left))

    def to_text(self) -> str:
        return to_json([self.read, self.marks])


def parse_estimate(text: str) -> HistoryEstimate | None:
    """Read the text of a column; None for "", when no history is being read."""
    if not text:
        return None
    read, marks = json.loads(text)
    return HistoryEstimate(read, tuple((at, left) for at, left in marks))


RepositoryState = Literal["excluded", "suspended", "unread", "reading", "ready"]


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """A repository as operators see it.

    ``state``: "unread" until a first run has read of its history, "reading" while some of it is left. ``estimate`` is
    that of an unfinished reading. ``paused_until`` is the end of a limit of GitHub's, 0 without one.
    """

    row: RepositoryRow
    state: RepositoryState
    is_observed: bool = False
    estimate: HistoryEstimate | None = None
    paused_until: Instant = 0

    @property
    def name(self) -> str:
        return self.row.name or self.row.repository.text

    @property
    def done_at(self) -> Instant:
        """When its history is read, 0 if that is not known."""
        return self.estimate.done_at(self.paused_until) if self.estimate and self.state == "reading" else 0


def repository_list(
    rows: Sequence[RepositoryRow], installations: Installations, scope: RepositoryScope, now: Instant
) -> list[RepositoryStatus]:
    """Return the status of these repositories, in their order. Raises WorldError without the database."""
    states, limits, of_history = (
        installations.states(),
        installations.pauses(EVENT_LIMITS),
        installations.pauses(HISTORY_LIMITS),
    )
    statuses = []
    for row in rows:
        estimate, installation = parse_estimate(row.history), row.repository.installation
        state = _state(row, states.get(installation, "active"), scope)
        until = limits.get(installation, 0)
        if state in ("unread", "reading"):
            until = max(until, of_history.get(installation, 0))
        is_observed = scope.observes(row.name)
        statuses.append(RepositoryStatus(row, state, is_observed, estimate, until if until > now else 0))
    return statuses


def _state(row: RepositoryRow, installation: str, scope: RepositoryScope) -> RepositoryState:
    if not scope.includes(row.name):
        return "excluded"
    if installation != "active":
        return "suspended"
    if row.history:
        return "reading"
    return "unread" if row.is_unread else "ready"
