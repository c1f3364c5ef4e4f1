"""Sends every request about a repository, to REST and to GraphQL, bounded in time and tries.

PyGithub makes the requests: it knows the addresses of both APIs, on github.com and on GitHub Enterprise Server,
GitHub's headers and the gap between writes. (githubkit handles the App, see `bot.github.app`.) After a limit or
repeated failures, nothing more is sent.
"""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections import Counter
from collections.abc import ItemsView, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import github
from github.Requester import HTTPSRequestsConnectionClass, RequestsResponse
from requests import Response
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from bot.files import TooManyFiles
from bot.github.budget import RequestBudget
from bot.github.errors import (
    CATCH_UP_REMEDY,
    HISTORY,
    ForgeError,
    Gone,
    IssuesOff,
    NotPermitted,
    RateLimited,
    RequestSkipped,
    Unauthorised,
    Unreachable,
    are_all_missing,
    error_for_graphql,
    error_for_status,
)
from bot.github.observer import observe_request

PER_PAGE = 100
"""Maximum number of items in one answer to a read."""

TIMEOUT = 20.0
"""Seconds for a connection, and between two parts of an answer; a whole answer may take twice as long."""

RETRY_DELAYS = (0.5, 1.0, 2.0)
"""Seconds before a read is repeated, times a random factor of .5 to 1.25. Only reads are repeated."""

NORMAL_SECONDS = 10.0
"""Seconds that a request may take; the time beyond counts as lost."""

_NEEDED, _OPTIONAL = "", "spare"
MAX_LOST_SECONDS = {_NEEDED: 180.0, _OPTIONAL: 60.0}
"""Seconds that a run may lose to a slow or failing GitHub before it stops asking; fewer for requests that it can do
without."""

MAX_FAILURES = 3
"""Requests in a row without an answer, not counting repeats, after which a run stops asking. Requests that it can do
without are counted separately: a comparison of two distant commits may always fail."""

MAX_ANSWER_BYTES = 100_000_000
"""Bytes of one answer: a hundred issues of 262,144 bytes, escaped, are a quarter of it."""

NOT_MODIFIED = 304
_REDIRECTS = (301, 302, 307, 308)
_LOCATION_HEADER = "x-led-to"
GRAPHQL_PATH = "/graphql"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers by lower-case names, and JSON. ``redirect`` is the target of a redirect, else empty."""

    status: int
    headers: Mapping[str, str]
    data: Any
    redirect: str = ""


class _Request(NamedTuple):
    """``etag``: that of an earlier answer, which GitHub need not send again; "" for none."""

    verb: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Any = None
    etag: str = ""


class HttpTransport:
    """Requests to one API with one token. ``troubles`` are the reasons why requests of a kind are no longer sent;
    ``lacking`` has an error for each missing permission. ``budget`` takes note of every answer."""

    def __init__(
        self, api_url: str, token: str, *, write_gap: float, budget: RequestBudget, timeout: float = TIMEOUT
    ) -> None:
        base = urlsplit(api_url.rstrip("/"))
        api = github.Github(
            auth=github.Auth.Token(token) if token else None,
            base_url=api_url.rstrip("/"),
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=write_gap or None,
            user_agent="precedent",
        )
        self._requester = api.requester
        self._token = token  # removed from answers that repeat it
        self._base = base
        self._connection = _Connection(
            base.hostname or "", base.port or (80 if base.scheme == "http" else 443), timeout=None
        )
        self._connection.protocol, self._connection.seconds = base.scheme, timeout
        self._write_gap = write_gap
        self._stop_reasons: dict[str, ForgeError] = {}
        self._strikes: Counter[str] = Counter()
        self._lost_seconds: dict[str, float] = {_NEEDED: 0.0, _OPTIONAL: 0.0}
        self.lacking: dict[str, ForgeError] = {}
        self.sent: Counter[str] = Counter()
        """Number of requests by verb, including repeats and redirects."""
        self.budget = budget

    @property
    def troubles(self) -> tuple[ForgeError, ...]:
        return tuple(dict.fromkeys(error for kind, error in self._stop_reasons.items() if kind != _OPTIONAL))

    def ask(
        self,
        verb: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        *,
        retry_gone: bool = False,
        optional: bool = False,
    ) -> HttpAnswer:
        """Return the answer to a request; only reads are repeated. Raises ForgeError.

        ``again`` also repeats a read of something that may appear in a moment. ``spare`` marks a request that the run
        can do without: its failure does not stop the others.
        """
        return self._ask_repeatedly(
            _Request(verb, path, query, body), retry_gone=retry_gone, need=_OPTIONAL if optional else _NEEDED
        )

    def read_if_changed(self, path: str, query: Mapping[str, Any], etag: str) -> HttpAnswer | None:
        """Return the answer to a read; None if it is unchanged since the answer with this ETag.

        An unchanged answer does not count towards the limit. Without an ETag ("") there is always an answer. Raises
        ForgeError.
        """
        answer = self._ask_repeatedly(_Request("GET", path, query, etag=etag), retry_gone=False, need=_NEEDED)
        return None if answer.status == NOT_MODIFIED else answer

    def _ask_repeatedly(self, request: _Request, *, retry_gone: bool, need: str) -> HttpAnswer:
        pauses, kind = RETRY_DELAYS if request.verb == "GET" else (), _kind(request.path)
        if stop := self._stop_reason(kind, need):
            raise RequestSkipped(stop.cause, stop.remedy) if isinstance(stop, Unreachable) else stop
        for attempt in range(len(pauses) + 1):
            try:
                return self._try_once(request, need)
            except ForgeError as error:
                may_pass = isinstance(error, Unreachable) or (retry_gone and _may_appear(error))
                if attempt == len(pauses) or not may_pass or self._stop_reason(kind, need):
                    self._count_strike(error, need)
                    raise
            self.wait(pauses[attempt])
        raise AssertionError("the last try returns or raises")

    def graphql(
        self,
        query: str,
        variables: Mapping[str, Any],
        *,
        optional: bool = False,
        needed: str = "issues: write",
        may_lack: bool = False,
    ) -> Any:
        """Return the data of a GraphQL document. Raises ForgeError, also for errors with status 200.

        ``needed``: the permission to ask for if it is missing. With ``may_lack``, missing parts are null.
        """
        answer = self.ask("POST", GRAPHQL_PATH, None, {"query": query, "variables": dict(variables)}, optional=optional)
        errors = answer.data.get("errors") if isinstance(answer.data, dict) else "no object"
        if errors and not (may_lack and are_all_missing(errors)):
            error = error_for_graphql(errors, answer.headers, needed)
            self._note_error(error, GRAPHQL_PATH)
            raise error
        return answer.data.get("data")

    def apply_limit(self, error: ForgeError) -> None:
        """Take note of a refusal that another client with this token met; not of our own limit on history."""
        is_ours = isinstance(error, RateLimited) and error.resource == HISTORY
        if isinstance(error, (RateLimited, Unauthorised)) and not is_ours:
            self._note_error(error, GRAPHQL_PATH)

    def check_limits(self, path: str) -> None:
        """Raise what keeps requests to this path from being sent, if anything does."""
        if stop := self._stop_reason(_kind(path), _NEEDED):
            raise stop

    def path_below(self, url: str) -> str:
        """Return the path of a URL below the API's address, without the query; "" for a URL of another API."""
        parts = urlsplit(url)
        if parts.hostname not in (None, self._base.hostname) or not parts.path.startswith(f"{self._base.path}/"):
            return ""
        return parts.path.removeprefix(self._base.path)

    def wait(self, seconds: float) -> None:
        """Pause for about this many seconds; not in tests, which leave no gap between writes."""
        time.sleep(min(1.0, self._write_gap) * seconds * random.uniform(0.5, 1.25))

    def pause_requests(self, seconds: float) -> None:
        """Wait this many seconds, and forget the limits that are over by then.

        Tests, which leave no gap between writes, do not wait.
        """
        after = (self.budget.date or datetime.now(UTC)) + timedelta(seconds=seconds)
        time.sleep(min(1.0, self._write_gap) * seconds)
        self._stop_reasons = {kind: error for kind, error in self._stop_reasons.items() if not _is_over(error, after)}

    def _stop_reason(self, kind: str, need: str) -> ForgeError | None:
        if self._lost_seconds[need] > MAX_LOST_SECONDS[need]:
            cause = "GitHub is too slow today, so no more requests were sent"
            self._stop_reasons.setdefault(need, Unreachable(cause, CATCH_UP_REMEDY))
        return self._stop_reasons.get(_NEEDED) or self._stop_reasons.get(kind) or self._stop_reasons.get(need)

    def _try_once(self, request: _Request, need: str) -> HttpAnswer:
        started = time.monotonic()
        try:
            answer = self.send(*request)
        except Unreachable:
            self._lost_seconds[need] += time.monotonic() - started
            raise
        self._lost_seconds[need] += max(0.0, time.monotonic() - started - NORMAL_SECONDS)
        if answer.status in _REDIRECTS:
            return answer
        is_unchanged = answer.status == NOT_MODIFIED and request.etag
        if answer.status >= 300 and not is_unchanged:
            error = error_for_status(answer.status, answer.headers, answer.data, request.path)
            self._note_error(error, request.path)
            raise error
        self._strikes.clear()
        return answer

    def send(
        self, verb: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None, etag: str = ""
    ) -> HttpAnswer:
        """Send one request, whatever the earlier answers were. Raises Unreachable without a readable answer."""
        url = self._requester.graphql_url if path == GRAPHQL_PATH else path
        self.sent[verb] += 1
        try:
            parameters, conditions = dict(query or {}), {"If-None-Match": etag} if etag else None
            with observe_request(verb, path) as tell:
                status, headers, text = self._requester.requestJson(
                    verb, url, parameters, conditions, body, self._connection
                )
                tell(status, headers)
        except (RequestException, HTTPError, OSError, ValueError, RuntimeError) as error:
            if os.strerror(errno.EMFILE) in str(error):
                raise Unreachable("cannot connect to GitHub: too many open files", TooManyFiles.usual_remedy) from error
            raise Unreachable(f"GitHub did not answer ({type(error).__name__})", CATCH_UP_REMEDY) from error
        self.budget.note(headers)
        if status in _REDIRECTS:
            return HttpAnswer(status, headers, None, headers.get(_LOCATION_HEADER, ""))
        return HttpAnswer(status, headers, _json(text.replace(self._token, "***") if self._token else text, status))

    def _note_error(self, error: ForgeError, path: str) -> None:
        if isinstance(error, RateLimited):
            self._stop_reasons[_NEEDED if error.is_secondary else _kind(path)] = error
        elif isinstance(error, Unauthorised):
            self._stop_reasons[_NEEDED] = error
        elif isinstance(error, NotPermitted):
            self.lacking.setdefault(error.remedy, error)
        if not isinstance(error, Unreachable):
            self._strikes.clear()

    def _count_strike(self, error: ForgeError, need: str) -> None:
        self._strikes[need] += isinstance(error, Unreachable)
        if self._strikes[need] >= MAX_FAILURES:
            self._stop_reasons.setdefault(need, error)


class _Connection(HTTPSRequestsConnectionClass):
    """PyGithub's connection with three changes: answers are bounded in time and size; redirects are not followed; and
    "not ready yet" (202) is a failure instead of an endless wait."""

    seconds = TIMEOUT

    def getresponse(self) -> RequestsResponse:
        answer = self.session.request(
            self.verb,
            f"{self.protocol}://{self.host}:{self.port}{self.url}",
            headers=self.headers,
            data=self.input,
            timeout=self.seconds,
            verify=self.verify,
            allow_redirects=False,
            stream=True,
        )
        with answer:
            return _WholeAnswer(answer, _read(answer, time.monotonic() + 2 * self.seconds))


class _WholeAnswer(RequestsResponse):
    """An answer that was read completely."""

    def __init__(self, answer: Response, text: str) -> None:
        super().__init__(answer)
        self._text = text
        self.status = 503 if answer.status_code == 202 else answer.status_code

    def getheaders(self) -> ItemsView[str, str]:
        return {
            _LOCATION_HEADER if name.lower() == "location" else name: value for name, value in self.headers.items()
        }.items()

    def read(self) -> str:
        return self._text


def _read(answer: Response, until: float) -> str:
    parts: list[bytes] = []
    size = 0
    while part := answer.raw.read1(1 << 16, decode_content=True):
        parts.append(part)
        size += len(part)
        if time.monotonic() > until or size > MAX_ANSWER_BYTES:
            raise TimeoutError("the answer has no end")
    return b"".join(parts).decode("utf-8", "replace")


def _json(text: str, status: int) -> Any:
    """The JSON of an answer. A proxy's HTML page counts as None in a refusal and raises Unreachable otherwise."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError) as error:
        if status >= 400:
            return None
        raise Unreachable("GitHub sent an unexpected answer (not JSON)", CATCH_UP_REMEDY) from error


def _kind(path: str) -> str:
    return "graphql" if path == GRAPHQL_PATH else "core"


def _is_over(error: ForgeError, at: datetime) -> bool:
    return isinstance(error, RateLimited) and error.until is not None and error.until <= at


def _may_appear(error: ForgeError) -> bool:
    return isinstance(error, Gone) and not (error.certain or isinstance(error, IssuesOff))
