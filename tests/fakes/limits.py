"""The hourly request limits of the fake GitHub, one allowance per resource and token; all tokens of an installation
share one.

https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#primary-rate-limit-for-github-app-installations
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.state import Clock, Token

HOUR = 3600
ANONYMOUS_LIMIT = 60
RESOURCES = ("core", "graphql", "search")


@dataclass
class Allowance:
    limit: int
    reset: int
    used: int = 0

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


class RateLimits:
    """Counts requests. A window of an hour begins with its first request, by the fake's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._allowances: dict[tuple[str, str], Allowance] = {}
        self._limits: dict[str, int] = {}
        self.status = 403
        """The status of replies once a REST limit is exhausted: 403 or 429."""

    def set(self, limit: int, resource: str = "core") -> None:
        """Give every token and installation so many requests an hour, and start counting again."""
        self._limits[resource] = limit
        self._allowances = {key: value for key, value in self._allowances.items() if key[1] != resource}

    def allowance(self, token: Token | None, resource: str) -> Allowance:
        name = _holder(token)
        current = self._allowances.get((name, resource))
        if current is None or current.reset <= self._clock.epoch:
            limit = self._limits.get(resource, token.limit if token else ANONYMOUS_LIMIT)
            current = Allowance(limit, self._clock.epoch + HOUR)
            self._allowances[name, resource] = current
        return current

    def headers(self, token: Token | None, resource: str) -> dict[str, str]:
        allowance = self.allowance(token, resource)
        return {
            "X-RateLimit-Limit": str(allowance.limit),
            "X-RateLimit-Remaining": str(allowance.remaining),
            "X-RateLimit-Reset": str(allowance.reset),
            "X-RateLimit-Used": str(min(allowance.used, allowance.limit)),
            "X-RateLimit-Resource": resource,
        }


def _holder(token: Token | None) -> str:
    """The holder of the allowance."""
    if token is None:
        return ""
    return token.value if token.installation is None else f"installation {token.installation}"
