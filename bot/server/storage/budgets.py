"""What each installation has left of GitHub's hourly limits, as its workers last saw it.

The limits apply per installation, whichever token or worker asks. A run starts from what other runs saw, so reading
history leaves the reserve untouched even when other workers used the rest.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import NamedTuple

from bot.errors import WorldError
from bot.github.budget import MAX_WINDOW, RESERVE_SHARE, WINDOW_TOLERANCE, Rate, Rates, RequestBudget
from bot.server.model import Instant
from bot.server.storage.database import DatabasePart, Value

_WINDOW_TOLERANCE_MS = round(1000 * WINDOW_TOLERANCE.total_seconds())
_STORE_SQL = """
insert into budgets (installation, resource, allowed, remaining, ends) values (:id, :resource, :allowed, :left, :ends)
 on conflict (installation, resource) do update set allowed = excluded.allowed,
  remaining = case when excluded.ends <= budgets.ends + :window and budgets.remaining < excluded.remaining
   then budgets.remaining else excluded.remaining end,
  ends = case when excluded.ends > budgets.ends then excluded.ends else budgets.ends end
 where excluded.ends >= budgets.ends - :window
"""
"""The same rule as `bot.github.budget.merge_rates`: the later window, and within one window the lower number."""

log = logging.getLogger(__name__)


class ScarcestLimit(NamedTuple):
    """The installation with the fewest requests left of a resource; ``installations``: how many are known."""

    resource: str
    left: int
    limit: int
    installations: int


class Budgets(DatabasePart):
    """The table ``budgets``."""

    def store(self, installation: int, rates: Rates) -> None:
        """Store the limits in answers. Late ones do not undo newer ones; a rate without an end is not stored."""
        latest = self.now() / 1000 + MAX_WINDOW.total_seconds()
        rows: list[dict[str, Value]] = [
            {
                "id": installation,
                "resource": resource,
                "allowed": rate.limit,
                "left": rate.left,
                "ends": round(1000 * rate.ends.timestamp()),
                "window": _WINDOW_TOLERANCE_MS,
            }
            for resource, rate in sorted(rates.items())
            if rate.ends and rate.ends.timestamp() <= latest
        ]
        with self._database.transaction() as transaction:
            transaction.change_each(_STORE_SQL, rows)

    def rates(self, installation: int) -> Rates:
        """What is left in the current windows."""
        sql = "select * from budgets where installation = :id and ends > :now"
        rows = self._rows(sql, id=installation, now=self.now())
        return {
            row["resource"]: Rate(row["remaining"], row["allowed"], datetime.fromtimestamp(row["ends"] / 1000, UTC))
            for row in rows
        }

    def remaining(self, resource: str) -> dict[int, int]:
        """What each installation has left of this resource in this hour, where that is known."""
        sql = "select installation, remaining from budgets where resource = :resource and ends > :now"
        rows = self._rows(sql, resource=resource, now=self.now())
        return {row["installation"]: row["remaining"] for row in rows}

    def scarcest(self) -> list[ScarcestLimit]:
        sql = "select resource, allowed, remaining from budgets where ends > :now order by resource, remaining"
        by_resource: dict[str, ScarcestLimit] = {}
        for row in self._rows(sql, now=self.now()):
            first = by_resource.get(
                row["resource"], ScarcestLimit(row["resource"], row["remaining"], row["allowed"], 0)
            )
            by_resource[row["resource"]] = first._replace(installations=first.installations + 1)
        return list(by_resource.values())

    def purge(self, before: Instant) -> None:
        self._change("delete from budgets where ends < :before", before=before)

    def for_run(self, installation: int) -> RequestBudget:
        """The budget of a run; reading history leaves the reserve. Raises WorldError without the database."""

        def report(rates: Rates) -> None:
            try:
                self.store(installation, rates)
            except WorldError as error:  # the end of the run stores it again
                log.warning("the remaining GitHub rate limits could not be stored yet: %s", error)

        return RequestBudget(self.rates(installation), reserve=RESERVE_SHARE, report=report)
