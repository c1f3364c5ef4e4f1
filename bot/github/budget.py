"""What is left of GitHub's hourly limits, and the reserve that reading history leaves for everything else."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from bot.github.errors import CORE, GRAPHQL, HISTORY, RateLimited, answered_at, date_of, hour_ends, whole_number

WRITE_GAP = 1.0
"""Seconds between two writes. https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api"""

RESERVE_SHARE = 0.3
"""The share of a limit that history leaves on a server: 1,500 of 5,000 requests an hour, enough for some 300 events of
five requests each. History still gets the larger part."""

MIN_RESERVE = 100
"""Requests per hour that history leaves for events even without a reserve."""

ANSWERS_PER_REPORT = 50
"""Number of answers between two reports during a run."""

WINDOW_TOLERANCE = timedelta(minutes=30)
"""Windows that end closer together are the same: a window lasts an hour, and the header varies by a second or so."""

MAX_WINDOW = timedelta(hours=2)
"""An end further away than this cannot be the end of an hour."""

MAX_CLOCK_SKEW = timedelta(minutes=1)
"""How far this machine's clock may be from GitHub's; beyond that, GitHub's counts."""

RESOURCES = (CORE, GRAPHQL)
"""The limits that are counted separately: requests of the REST API, and points of GraphQL."""


class Rate(NamedTuple):
    """The requests left in this hour, out of ``limit``, and the end of the hour."""

    left: int
    limit: int
    ends: datetime | None


Rates = Mapping[str, Rate]
"""Resource → what is left of it."""


class RequestBudget:
    """The requests that an installation has left, as far as a run knows. Not thread-safe.

    ``known`` comes from earlier runs and other workers, for hours that are not over. ``reserve`` is the part of each
    limit, 0 to 1, that reading history leaves. ``report`` gets the numbers now and then; it must not raise.
    """

    def __init__(
        self,
        known: Rates | None = None,
        *,
        reserve: float = 0.0,
        report: Callable[[Rates], object] = lambda _: None,
    ) -> None:
        self.rates: dict[str, Rate] = dict(known or {})
        self._reserve, self._report = reserve, report
        self._noted = 0
        self.date: datetime | None = None
        """When GitHub gave its last answer, by its own clock."""
        self._began = time.monotonic()
        self._began_at: datetime | None = None

    def note(self, headers: Mapping[str, str]) -> None:
        """Take note of an answer, whose ``headers`` have lower-case names."""
        self.date = date_of(headers) or self.date
        if self.date and self._began_at is None:
            self._began_at = self.date - timedelta(seconds=time.monotonic() - self._began)
        rate, resource = _rate_of(headers), headers.get("x-ratelimit-resource", CORE)
        if rate is None or resource not in RESOURCES:
            return
        if rate.ends and rate.ends > answered_at(headers) + MAX_WINDOW:
            rate = rate._replace(ends=None)
        self.rates[resource] = merge_rates(self.rates.get(resource), rate)
        self._noted += 1
        if self._noted % ANSWERS_PER_REPORT == 0:
            self._report(self.rates)

    def correct_time(self, now: datetime) -> datetime:
        """``now``, when this budget was made, or that moment by GitHub's clock if it is further away than
        MAX_CLOCK_SKEW."""
        began = self._began_at
        return began if began and abs(began - now) > MAX_CLOCK_SKEW else now

    def keep_reserve(self, resource: str, least: int = 0) -> None:
        """Raise RateLimited if reading history must leave the rest of this resource to events.

        ``least``: requests to leave even without a reserve, or half of a smaller limit.
        """
        rate = self.rates.get(resource)
        if rate and rate.left < max(min(least, rate.limit // 2), self._reserve * rate.limit):
            cause = "most of this hour's requests are used; the rest are kept for new issues"
            raise RateLimited(cause, until=rate.ends, resource=HISTORY)


def merge_rates(old: Rate | None, new: Rate) -> Rate:
    """Return the rate to trust: that of the later window, or the lower one within the same window."""
    if old is None or old.ends is None or new.ends is None or new.ends - old.ends > WINDOW_TOLERANCE:
        return new
    if old.ends - new.ends > WINDOW_TOLERANCE:
        return old
    return Rate(min(old.left, new.left), new.limit, max(old.ends, new.ends))


def _rate_of(headers: Mapping[str, str]) -> Rate | None:
    left, limit = (whole_number(headers.get(f"x-ratelimit-{name}", "")) for name in ("remaining", "limit"))
    return None if left is None or limit is None else Rate(left, limit, hour_ends(headers))
