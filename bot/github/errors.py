"""What can go wrong with the API, by meaning, each with its remedy."""

from __future__ import annotations

from datetime import datetime

from bot.errors import WorldError


class ForgeError(WorldError):
    """The API could not be used."""


class Unauthorised(ForgeError):
    """401: the token is wrong or has expired."""


class NotPermitted(ForgeError):
    """403: the token lacks a permission."""


class Gone(ForgeError):
    """404, 410 or moved to another repository. ``certain`` is False for a 404, which can pass."""

    def __init__(self, message: str, *, certain: bool, moved_to: str | None = None) -> None:
        super().__init__(message)
        self.certain = certain
        self.moved_to = moved_to


class CannotComment(ForgeError):
    """The conversation is locked, the repository archived, or the issue has 2,500 comments: silence is right."""


class RateLimited(ForgeError):
    """The primary or a secondary limit was reached. ``until`` is when it can go on, if GitHub said so."""

    def __init__(self, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.until = until


class Unreachable(ForgeError):
    """Timeouts, dropped connections and 5xx that outlasted the retries."""
