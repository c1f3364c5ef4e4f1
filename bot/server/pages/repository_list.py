"""The repositories of a server, each with its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.github.errors import EVENT_LIMITS, HISTORY_LIMITS
from bot.server.model import Instant, RepositoryRow
from bot.server.scope import RepositoryScope
from bot.server.storage.installations import Installations
from bot.server.storage.runs import HistoryEstimate, parse_estimate

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
