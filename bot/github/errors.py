"""What can go wrong with the API, by meaning, each with its remedy."""

from __future__ import annotations

from datetime import datetime

from bot.errors import WorldError

CATCHES_UP = "the next run catches up"
GOES_ON = "the next run goes on from here"
"""What comes of a fault by itself."""


def gives(permission: str) -> str:
    """The remedy of NotPermitted; ``permission`` as a workflow names it."""
    return f"give the job '{permission}'"


class ForgeError(WorldError):
    """The API could not be used. What a run does about it, or a workflow may, is the remedy: others have another."""

    joint = ": "


class Unauthorised(ForgeError):
    """401: the token is wrong or has expired."""


class NotInstalled(WorldError):
    """The App is not installed there (any more), or may not see this repository."""


class Suspended(NotInstalled):
    """The installation rests; it may come back at any time."""


class NotPermitted(ForgeError):
    """403: the token lacks a permission."""


class Gone(ForgeError):
    """404, 410 or moved to another repository. ``certain`` is False for a 404, which can pass."""

    def __init__(self, cause: str, *, certain: bool, moved_to: str | None = None) -> None:
        super().__init__(cause)
        self.certain = certain
        self.moved_to = moved_to


class IssuesOff(Gone):
    """410: the repository has no issues now. They come back when somebody switches them on."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, certain=False)


class CannotComment(ForgeError):
    """The conversation is locked or limited, the repository archived, or there are 2,500 comments: silence is right."""


class Invalid(ForgeError):
    """422: GitHub does not take what was sent, and will not take it later either."""


CORE, GRAPHQL, SEARCH = "core", "graphql", "search"
"""What GitHub counts apart, as ``x-ratelimit-resource`` names it.
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#checking-the-status-of-your-rate-limit"""

SECONDARY = "secondary"
"""The limit on how fast is asked, which holds for every kind of request."""

HISTORY = "history"
"""A bound of our own: what a reading of history by REST may use, so that the rest is left to new issues."""

OF_ALL = (CORE, SECONDARY)
"""Limits at which nothing can be done about an event."""

OF_HISTORY = (GRAPHQL, HISTORY)
"""Limits at which only history is not read on."""


class RateLimited(ForgeError):
    """A limit was reached, of this ``resource``. ``until`` is when it can go on, if GitHub said so."""

    def __init__(self, cause: str, remedy: str = "", *, until: datetime | None = None, resource: str = CORE) -> None:
        super().__init__(cause, remedy)
        self.until = until
        self.resource = resource

    @property
    def is_secondary(self) -> bool:
        return self.resource == SECONDARY


class Unreachable(ForgeError):
    """Timeouts, dropped connections and 5xx that outlasted the retries."""


class NotAsked(Unreachable):
    """Not even asked for, as what was asked before it had no answer."""
