"""Errors of the API by meaning, each with its remedy, and how to recognise them in an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from bot.errors import WorldError

CATCH_UP_REMEDY = "the next run catches up"
CONTINUE_REMEDY = "the next run continues from here"
"""Remedies of faults that resolve themselves."""


def permission_remedy(permission: str) -> str:
    """Return the remedy of NotPermitted. ``permission`` is in the syntax of a workflow."""
    return f"give the job '{permission}'"


_JOB_REMEDY = re.compile(r"give the job (['`])(?:permissions: )?([a-z]+)(?:-([a-z]+))?: ([a-z]+)\1")


def app_remedy(line: str) -> str:
    """Return a line whose remedy, if it is a permission for the job of a workflow, is one for an App."""

    def permission(match: re.Match[str]) -> str:
        name = " ".join(filter(None, (match[2].capitalize(), match[3])))
        return f"give the App '{name}: {match[4]}', and have the installation accept it"

    return _JOB_REMEDY.sub(permission, line)


class ForgeError(WorldError):
    """The API could not be used. The remedy is what the next run does, or what to change in the workflow."""

    joint = ": "


class Unauthorised(ForgeError):
    """401: the token is wrong or has expired, or the clock of the signer is wrong.

    ``ahead`` is GitHub's clock minus ours, in seconds; 0 if unknown.
    """

    ahead: float = 0.0


class NotInstalled(WorldError):
    """The App is not installed there, or cannot see this repository."""


class Suspended(NotInstalled):
    """The installation is suspended; it may come back at any time."""


class NotPermitted(ForgeError):
    """403: the token lacks a permission."""


class RepositoryNotVisible(NotPermitted):
    """There is no such repository, or the token may not see it: GitHub does not say which."""


class NoGraphQL(ForgeError):
    """The server has no GraphQL API."""


class Gone(ForgeError):
    """404, 410, or moved to another repository. ``certain`` is False for a 404, which may be temporary."""

    def __init__(self, cause: str, *, certain: bool, moved_to: str | None = None) -> None:
        super().__init__(cause)
        self.certain = certain
        self.moved_to = moved_to


class IssuesOff(Gone):
    """410: issues are disabled in the repository. They come back when they are enabled."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause, certain=False)


class CannotComment(ForgeError):
    """The conversation is locked or limited, the repository archived, or 2,500 comments reached: stay silent."""


class Invalid(ForgeError):
    """422: GitHub rejects the request, and will reject it later too."""


CORE, GRAPHQL, SEARCH = "core", "graphql", "search"
"""Resources with a limit of their own, as ``x-ratelimit-resource`` names them.
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#checking-the-status-of-your-rate-limit"""

SECONDARY = "secondary"
"""The limit on the pace of requests of every kind."""

HISTORY = "history"
"""Our own limit on reading history, which leaves the rest of the hour for new issues."""

EVENT_LIMITS = (CORE, SECONDARY)
"""Limits that stop the handling of events."""

HISTORY_LIMITS = (GRAPHQL, HISTORY)
"""Limits that stop only reading history."""


class RateLimited(ForgeError):
    """The limit of this ``resource`` was reached. ``until`` is its end, if known."""

    def __init__(self, cause: str, remedy: str = "", *, until: datetime | None = None, resource: str = CORE) -> None:
        super().__init__(cause, remedy)
        self.until = until
        self.resource = resource

    @property
    def is_secondary(self) -> bool:
        return self.resource == SECONDARY


class Unreachable(ForgeError):
    """A timeout, a dropped connection or a 5xx that outlasted the retries."""


class RequestSkipped(Unreachable):
    """The request was not sent because earlier ones got no answer."""


# -- from an answer to its meaning -------------------------------------------------------------------------------------

DEFAULT_WAIT = timedelta(seconds=60)
"""The minimum duration of a secondary limit if GitHub names no time.
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit"""

ISSUES_OFF = "issues are switched off in this repository: nothing can be remembered or posted until they are on"

NOT_VISIBLE = "the token cannot see this repository's issues"

_RATE_LIMIT_PHRASES = (
    "rate limit",
    "abuse detection",
    "submitted too quickly",
    "wait a few minutes before you try again",
    "retry your request again later",
)
_CLOSED_PHRASES = (
    "is locked",
    "archived",
    "read-only",
    "too many comments",
    "commenting is disabled",
    "limited the ability to comment",
    "interaction limit",
)
_ACCEPTED_PERMISSION = re.compile(r"([a-z][a-z_]{1,40})=(read|write|admin)\b", re.ASCII)
_RESOURCE = re.compile(r"[a-z_]{1,40}")
_READ_PERMISSIONS = (("/pulls", "pull-requests: read"), ("/releases", "contents: read"), ("/commits", "contents: read"),
                     ("/compare", "contents: read"), ("/tags", "contents: read"))  # fmt: skip


def error_for_status(status: int, headers: Mapping[str, str], data: Any, path: str = "") -> ForgeError:
    """Return the error that a status of the REST API means. ``headers`` have lower-case names."""
    message = _message(data)
    if status in (404, 405, 410) and resource_of(path) == GRAPHQL:
        return NoGraphQL(f"this server has no GraphQL API ({status})")
    if status == 429 or (status in (403, 422) and _is_limit(status, headers, message)):
        return rate_limit_error(headers, message, resource_of(path))
    if status == 401:
        return Unauthorised("GitHub refused the token (401): it is wrong or has expired")
    if status in (403, 422) and any(words in message.lower() for words in _CLOSED_PHRASES):
        return CannotComment(f"GitHub accepts no comment here: {message:.120}")
    if status == 403:
        return NotPermitted(
            f"the token may not do this (403: {message:.120})", permission_remedy(_missing_permission(headers, path))
        )
    if status == 410 and "disabled" in message.lower():
        return IssuesOff(ISSUES_OFF)
    if status in (404, 410):
        details = f"{status}: {message:.120}" if message else str(status)
        return Gone(
            f"GitHub has nothing there ({details}): it was removed, or the token may not see it", certain=status == 410
        )
    if status == 422:
        return Invalid(f"GitHub rejected the request (422: {message:.160})")
    if status >= 500:
        return Unreachable(f"GitHub answered {status}", CATCH_UP_REMEDY)
    return ForgeError(f"GitHub answered {status}: {message:.160}")


def error_for_graphql(
    errors: Any, headers: Mapping[str, str], permission: str = "issues: write", data: Any = None
) -> ForgeError:
    """Return the error that a list of GraphQL errors means; GraphQL sends them with status 200.

    ``permission``: the one that the query takes. ``data``: what the answer has in spite of the errors.
    """
    listed = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    words = "; ".join(str(error.get("message") or "") for error in listed) or "no readable error"
    kinds = {str(error.get("type") or "") for error in listed}
    if "RATE_LIMITED" in kinds or _is_limit(200, headers, words):
        return rate_limit_error(headers, words, GRAPHQL, is_spent="RATE_LIMITED" in kinds)
    if "FORBIDDEN" in kinds or "not accessible" in words.lower():
        return NotPermitted(f"the token may not do this ({words:.120})", permission_remedy(permission))
    if "NOT_FOUND" in kinds and isinstance(data, dict) and data.get("repository", data) is None:
        return RepositoryNotVisible(NOT_VISIBLE, permission_remedy("issues: write"))
    if "NOT_FOUND" in kinds:
        return Gone(f"GitHub has nothing there ({words:.120})", certain=False)
    return ForgeError(f"GitHub's GraphQL API answered: {words:.160}")


def are_all_missing(errors: Any) -> bool:
    """Whether a list of GraphQL errors says only that something is missing."""
    return isinstance(errors, list) and all(
        isinstance(error, dict) and error.get("type") == "NOT_FOUND" for error in errors
    )


def rate_limit_error(
    headers: Mapping[str, str], message: str = "", resource: str = CORE, *, is_spent: bool = False
) -> RateLimited:
    """Return the limit that was reached, with its end. ``resource`` is used if GitHub names none.

    ``is_spent``: too little was left for this request, even if the headers show some.
    """
    is_spent = is_spent or headers.get("x-ratelimit-remaining") == "0"
    is_primary = is_spent and "secondary" not in message.lower()
    until = _resumes_at(headers, is_primary=is_primary)
    which = "rate limit" if is_primary else "secondary rate limit"
    cause = f"GitHub's {which} is exhausted until {until:%H:%M} UTC"
    header = headers.get("x-ratelimit-resource", "")
    limited = header if _RESOURCE.fullmatch(header) else resource
    return RateLimited(cause, CONTINUE_REMEDY, until=until, resource=limited if is_primary else SECONDARY)


def hour_ends(headers: Mapping[str, str]) -> datetime | None:
    """Return the end of the limit's hour, from ``x-ratelimit-reset`` (UTC epoch seconds)."""
    reset = headers.get("x-ratelimit-reset", "")
    return datetime.fromtimestamp(int(reset), UTC) if re.fullmatch(r"[0-9]{1,11}", reset) else None


def whole_number(text: str) -> int | None:
    """Return the number in a header, of at most nine digits; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def _resumes_at(headers: Mapping[str, str], *, is_primary: bool) -> datetime:
    """The time of the next request: after ``retry-after``, else at the end of the hour, else in a minute."""
    pause = headers.get("retry-after", "")
    if re.fullmatch(r"[0-9]{1,6}", pause):
        return answered_at(headers) + timedelta(seconds=int(pause))
    return (hour_ends(headers) if is_primary else None) or answered_at(headers) + DEFAULT_WAIT


def date_of(headers: Mapping[str, str]) -> datetime | None:
    """Return the time of the answer by the server's clock; None if it has no valid Date header."""
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def answered_at(headers: Mapping[str, str]) -> datetime:
    """Return the time of the answer by the server's clock, or by ours without a Date header."""
    return date_of(headers) or datetime.now(UTC)


def _is_limit(status: int, headers: Mapping[str, str], message: str) -> bool:
    spent = headers.get("x-ratelimit-remaining") == "0" and status == 403
    return spent or "retry-after" in headers or any(words in message.lower() for words in _RATE_LIMIT_PHRASES)


def resource_of(path: str) -> str:
    """Return the resource whose limit a request to this path counts towards."""
    return GRAPHQL if path.endswith("/graphql") else SEARCH if path.startswith("/search/") else CORE


def _missing_permission(headers: Mapping[str, str], path: str) -> str:
    """The missing permission in the syntax of a workflow, from GitHub's header or by the path."""
    match = _ACCEPTED_PERMISSION.search(headers.get("x-accepted-github-permissions", ""))
    if match:
        return f"{match[1].replace('_', '-')}: {match[2]}"
    return next((need for part, need in _READ_PERMISSIONS if part in path), "issues: write")


def _message(data: Any) -> str:
    fields = data if isinstance(data, dict) else {}
    errors = fields.get("errors")
    listed = errors if isinstance(errors, list) else []
    details = [str(error.get("message") or "") for error in listed if isinstance(error, dict)]
    return "; ".join(filter(None, [str(fields.get("message") or ""), *details]))
