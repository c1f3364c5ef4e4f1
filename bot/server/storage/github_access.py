"""What the server may ask of GitHub: the tokens of repositories, and the limits of each installation.

The limits apply per installation, whichever token or worker asks. A run starts from what other runs saw, so reading
history leaves the reserve untouched even when other workers used the rest.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bot.errors import WorldError
from bot.github.app import App, InstallationInfo
from bot.github.budget import MAX_WINDOW, RESERVE_SHARE, WINDOW_TOLERANCE, Rate, Rates, RequestBudget
from bot.github.client import GitHubClient, NewestChange
from bot.github.errors import NotInstalled, RateLimited
from bot.server.model import MINUTE, Grant, Instant, RepositoryKey
from bot.server.storage.database import DatabasePart, Value

MIN_TOKEN_VALIDITY = 20 * 60_000
"""Milliseconds for which a token that is handed out is valid at least: longer than a run may hang."""

TOKEN_LIFETIME = 60 * 60_000
"""Milliseconds that GitHub's tokens live, even if our own clock is off."""

MAX_ETAGS = 1_000
"""Most repositories whose last answer is remembered."""

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


class TokenCache:
    """Requests each token once an hour. Thread-safe.

    The name of a repository comes with its token, so the token has to be forgotten after a rename or a transfer. A
    token that was requested before `forget` is not cached after it.
    """

    def __init__(self, api: App) -> None:
        self._api = api
        self._grants: dict[RepositoryKey, Grant] = {}
        self._forget_count = 0
        self._lock = threading.Lock()

    def grant(self, repository: RepositoryKey, now: Instant) -> Grant:
        """Return a token valid for 20 minutes, and the repository's current name. Raises NotInstalled, ForgeError."""
        with self._lock:
            cached, forget_count = self._grants.get(repository), self._forget_count
        if cached is not None and now + MIN_TOKEN_VALIDITY <= cached.expires_at:
            return cached
        token = self._api.create_token(repository.installation, repository.number)
        expires_at = min(token.expires_at, now + TOKEN_LIFETIME)
        new_grant = Grant(
            repository,
            token.token,
            token.full_name,
            expires_at=expires_at,
            visibility=token.visibility,
            asked_at=now,
        )
        with self._lock:
            self._grants = {each: grant for each, grant in self._grants.items() if grant.expires_at > now}
            if forget_count == self._forget_count:
                self._grants[repository] = new_grant
        return new_grant

    def installation(self, number: int) -> InstallationInfo | None:
        """Return an installation as GitHub has it now, None if it is gone. Raises ForgeError."""
        try:
            return self._api.installation(number)
        except NotInstalled:
            return None

    def forget(self, repository: RepositoryKey | None = None, installation: int = 0) -> None:
        """Forget the tokens of a repository or an installation, or all tokens."""
        with self._lock:
            self._forget_count += 1
            for each in list(self._grants):
                is_match = each == repository or each.installation == installation
                if is_match or (repository is None and not installation):
                    del self._grants[each]


class NewestChanges:
    """Asks when an issue of a repository last changed, with the ETag of the last answer: if nothing changed since, that
    does not count against the limit.

    GitHub's ETags hold for one token only, and tokens stay in the process that asked for them. So do ETags, each with
    the time of the change and nothing else of the answer. For one thread.
    """

    def __init__(self, api_url: str, most: int = MAX_ETAGS) -> None:
        self._api_url = api_url
        self._most = most
        self._last: OrderedDict[RepositoryKey, NewestChange] = OrderedDict()

    def __call__(self, grant: Grant) -> Instant:
        """Return the time of the newest change, 0 for none. Raises ForgeError."""
        last = self._last.pop(grant.repository, NewestChange(None, ""))
        newest = GitHubClient(self._api_url, grant.token, grant.name).newest_change(last.etag) or last
        self._last[grant.repository] = newest
        if len(self._last) > self._most:
            self._last.popitem(last=False)
        return round(1000 * newest.at.timestamp()) if newest.at else 0


def limit_end(error: RateLimited, now: Instant) -> Instant:
    """Return the end of a limit: in a minute at the earliest."""
    return max(now + MINUTE, round(error.until.timestamp() * 1000) if error.until else 0)


class ScarcestLimit(NamedTuple):
    """The installation with the fewest requests left of a resource; ``installations``: how many are known."""

    resource: str
    left: int
    limit: int
    installations: int


class GitHubLimits(DatabasePart):
    """The tables ``budgets``, of what is left in this hour, and ``pauses``, of limits that were met."""

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
        self.database.change_each(_STORE_SQL, rows)

    def rates(self, installation: int) -> Rates:
        """What is left in the current windows."""
        sql = "select * from budgets where installation = :id and ends > :now"
        rows = self.database.rows(sql, id=installation, now=self.now())
        return {
            row["resource"]: Rate(row["remaining"], row["allowed"], datetime.fromtimestamp(row["ends"] / 1000, UTC))
            for row in rows
        }

    def remaining(self, resource: str) -> dict[int, int]:
        """What each installation has left of this resource in this hour, where that is known."""
        sql = "select installation, remaining from budgets where resource = :resource and ends > :now"
        rows = self.database.rows(sql, resource=resource, now=self.now())
        return {row["installation"]: row["remaining"] for row in rows}

    def scarcest(self) -> list[ScarcestLimit]:
        sql = "select resource, allowed, remaining from budgets where ends > :now order by resource, remaining"
        by_resource: dict[str, ScarcestLimit] = {}
        for row in self.database.rows(sql, now=self.now()):
            first = by_resource.get(
                row["resource"], ScarcestLimit(row["resource"], row["remaining"], row["allowed"], 0)
            )
            by_resource[row["resource"]] = first._replace(installations=first.installations + 1)
        return list(by_resource.values())

    def purge(self, before: Instant) -> None:
        self.database.change("delete from budgets where ends < :before", before=before)
        self.database.change("delete from pauses where until < :before", before=before)

    def for_run(self, installation: int) -> RequestBudget:
        """The budget of a run; reading history leaves the reserve. Raises WorldError without the database."""

        def report(rates: Rates) -> None:
            try:
                self.store(installation, rates)
            except WorldError as error:  # the end of the run stores it again
                log.warning("the remaining GitHub rate limits could not be stored yet: %s", error)

        return RequestBudget(self.rates(installation), reserve=RESERVE_SHARE, report=report)

    def pause(self, installation: int, resource: str, until: Instant) -> None:
        """Store a limit that was met. During one in `EVENT_LIMITS`, no run of the installation starts."""
        self.database.change(
            "insert into pauses (installation, resource, until) values (:id, :resource, :until)"
            " on conflict (installation, resource) do update set until = case"
            " when excluded.until > pauses.until then excluded.until else pauses.until end",
            id=installation,
            resource=resource,
            until=until,
        )

    def paused_until(self, installation: int, resources: Sequence[str]) -> Instant:
        """Return the end of the last limit of any of these resources; 0 without one."""
        sql = "select max(until) as until from pauses where installation = :id and resource in :resources"
        row = self.database.row(sql, id=installation, resources=list(resources))
        return int(row["until"] or 0) if row else 0

    def pauses(self, resources: Sequence[str]) -> dict[int, Instant]:
        """Return the end of the last limit of any of these resources, for each installation that is within one."""
        sql = (
            "select installation, max(until) as until from pauses where until > :now and resource in :resources"
            " group by installation"
        )
        rows = self.database.rows(sql, now=self.now(), resources=list(resources))
        return {row["installation"]: int(row["until"]) for row in rows}
