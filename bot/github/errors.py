"""What can go wrong with the API, by meaning, each with its remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

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


# -- from an answer to its meaning -------------------------------------------------------------------------------------

UNTOLD_WAIT = timedelta(seconds=60)
"""How long a secondary limit lasts at least where GitHub names no time.
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit"""

ISSUES_OFF = "issues are switched off in this repository: nothing can be remembered or said until they are on"

_LIMIT_WORDS = (
    "rate limit",
    "abuse detection",
    "submitted too quickly",
    "wait a few minutes before you try again",
    "retry your request again later",
)
_CLOSED = (
    "is locked",
    "archived",
    "read-only",
    "too many comments",
    "commenting is disabled",
    "limited the ability to comment",
    "interaction limit",
)
_NEEDS = re.compile(r"([a-z][a-z_]{1,40})=(read|write|admin)\b", re.ASCII)
_RESOURCE = re.compile(r"[a-z_]{1,40}")
_READS_OF = (("/pulls", "pull-requests: read"), ("/releases", "contents: read"), ("/commits", "contents: read"),
             ("/compare", "contents: read"), ("/tags", "contents: read"))  # fmt: skip


def meaning_of(status: int, headers: Mapping[str, str], data: Any, path: str = "") -> ForgeError:
    """The meaning of an error status of the REST API; ``headers`` by lower-case names, ``path`` as it was asked for."""
    message = _message(data)
    if status == 429 or (status in (403, 422) and _is_limit(status, headers, message)):
        return limit_of(headers, message, _resource(path))
    if status == 401:
        return Unauthorised("GitHub refused the token (401): it is wrong or has expired")
    if status in (403, 422) and any(words in message.lower() for words in _CLOSED):
        return CannotComment(f"GitHub takes no comment here: {message:.120}")
    if status == 403:
        return NotPermitted(f"the token may not do this (403: {message:.120})", gives(_needed(headers, path)))
    if status == 410 and "disabled" in message.lower():
        return IssuesOff(ISSUES_OFF)
    if status in (404, 410):
        told = f"{status}: {message:.120}" if message else str(status)
        return Gone(
            f"GitHub has nothing there ({told}): it was removed, or the token may not see it", certain=status == 410
        )
    if status == 422:
        return Invalid(f"GitHub does not take that (422: {message:.160})")
    if status >= 500:
        return Unreachable(f"GitHub answered {status}", CATCHES_UP)
    return ForgeError(f"GitHub answered {status}: {message:.160}")


def meaning_of_errors(errors: Any, headers: Mapping[str, str]) -> ForgeError:
    """The meaning of the errors that GraphQL answers with, under a status of 200."""
    listed = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    words = "; ".join(str(error.get("message") or "") for error in listed) or "nothing that can be read"
    kinds = {str(error.get("type") or "") for error in listed}
    if "RATE_LIMITED" in kinds or _is_limit(200, headers, words):
        return limit_of(headers, words, GRAPHQL, is_spent="RATE_LIMITED" in kinds)
    if "FORBIDDEN" in kinds or "not accessible" in words.lower():
        return NotPermitted(f"the token may not do this ({words:.120})", gives("issues: write"))
    if "NOT_FOUND" in kinds:
        return Gone(f"GitHub has nothing there ({words:.120})", certain=False)
    return ForgeError(f"GitHub's GraphQL API answered: {words:.160}")


def limit_of(
    headers: Mapping[str, str], message: str = "", resource: str = CORE, *, is_spent: bool = False
) -> RateLimited:
    """The limit that was reached, with the time from which it can go on; of this resource where GitHub names none.

    ``is_spent``: too little was left for the request, though it may not be nothing.
    """
    is_spent = is_spent or headers.get("x-ratelimit-remaining") == "0"
    is_primary = is_spent and "secondary" not in message.lower()
    until = _goes_on_at(headers, is_primary=is_primary)
    which = "rate limit" if is_primary else "secondary rate limit"
    told = f"GitHub's {which} is reached until {until:%H:%M} UTC"
    named = headers.get("x-ratelimit-resource", "")
    counted = named if _RESOURCE.fullmatch(named) else resource
    return RateLimited(told, GOES_ON, until=until, resource=counted if is_primary else SECONDARY)


def begins_anew(headers: Mapping[str, str]) -> datetime | None:
    """When the hour of the limit is over, from ``x-ratelimit-reset`` (UTC epoch seconds)."""
    reset = headers.get("x-ratelimit-reset", "")
    return datetime.fromtimestamp(int(reset), UTC) if re.fullmatch(r"[0-9]{1,11}", reset) else None


def _goes_on_at(headers: Mapping[str, str], *, is_primary: bool) -> datetime:
    """When the next request may be made: after ``retry-after``, else when the hour begins anew, else in a minute."""
    pause = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,6}", pause):
        return _answered_at(headers) + timedelta(seconds=int(pause))
    return (begins_anew(headers) if is_primary else None) or _answered_at(headers) + UNTOLD_WAIT


def _answered_at(headers: Mapping[str, str]) -> datetime:
    """By the server's clock, from which the pause counts; by ours where it does not say."""
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return datetime.now(UTC)


def _is_limit(status: int, headers: Mapping[str, str], message: str) -> bool:
    spent = headers.get("x-ratelimit-remaining") == "0" and status == 403
    return spent or "retry-after" in headers or any(words in message.lower() for words in _LIMIT_WORDS)


def _resource(path: str) -> str:
    return GRAPHQL if path.endswith("/graphql") else SEARCH if path.startswith("/search/") else CORE


def _needed(headers: Mapping[str, str], path: str) -> str:
    """The permission, as a workflow names it: from GitHub's header, or what such a call needs where it says nothing."""
    told = _NEEDS.search(headers.get("x-accepted-github-permissions", ""))
    if told:
        return f"{told[1].replace('_', '-')}: {told[2]}"
    return next((need for part, need in _READS_OF if part in path), "issues: write")


def _message(data: Any) -> str:
    found = data if isinstance(data, dict) else {}
    errors = found.get("errors")
    listed = errors if isinstance(errors, list) else []
    details = [str(each.get("message") or "") for each in listed if isinstance(each, dict)]
    return "; ".join(filter(None, [str(found.get("message") or ""), *details]))
