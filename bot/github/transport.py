"""Sends every request about a repository, to REST and to GraphQL, bounded in time, size and tries.

PyGithub makes the requests: it knows the addresses of both APIs, on github.com and on GitHub Enterprise Server,
GitHub's headers and the gap between writes. An adapter in its session bounds the answers. (githubkit handles the App,
see `bot.github.app`.) After a limit or repeated failures, nothing more is sent.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import github
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from bot.files import TooManyFiles
from bot.github.budget import RequestBudget
from bot.github.errors import (
    CATCH_UP_REMEDY,
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
    resource_of,
)

PER_PAGE = 100
"""Maximum number of items in one answer to a read."""

TIMEOUT = 20.0
"""Seconds for a connection, and between two parts of an answer; a whole answer may take twice as long."""

RETRY_DELAYS = (0.5, 1.0, 2.0)
"""Seconds before a read is repeated, times a random factor of .5 to 1.25. Only reads are repeated."""

NORMAL_SECONDS = 10.0
"""Seconds that a request may take; the time beyond counts as lost."""

NEEDED, OPTIONAL, HISTORY = "", "optional", "history"
"""Who needs a request: the run; nobody, as the run can do without; or the reading of history, which asks for less when
it fails, and for fewer fields when it lacks a permission."""

MAX_LOST_SECONDS = {NEEDED: 180.0, OPTIONAL: 60.0, HISTORY: math.inf}
"""Seconds that a run may lose to a slow or failing GitHub before it stops asking, by need. A reading of history has its
own limit of time."""

MAX_FAILURES = 3
"""Requests in a row without an answer, not counting repeats, after which a run stops asking. Requests that it can do
without are counted separately: a comparison of two distant commits may always fail."""

MAX_ANSWER_BYTES = 100_000_000
"""Bytes of one answer: a hundred issues of 262,144 bytes, escaped, are a quarter of it."""

NOT_MODIFIED = 304
_REDIRECTS = (301, 302, 307, 308)
_LOCATION_HEADER = "x-led-to"
GRAPHQL_PATH = "/graphql"
QUERY = "QUERY"
"""The verb of a GraphQL query: a POST that only reads."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers by lower-case names, and JSON. ``redirect`` is the target of a redirect, else empty."""

    status: int
    headers: Mapping[str, str]
    data: Any
    redirect: str = ""


class HttpRequest(NamedTuple):
    """``etag``: that of an earlier answer, which GitHub need not send again; "" for none. Only reads are repeated, and
    only with ``repeats``."""

    verb: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Any = None
    etag: str = ""
    repeats: bool = True


class HttpTransport:
    """Requests to one API with one token. ``troubles`` are the reasons why requests of a kind are no longer sent;
    ``lacking`` has an error for each missing permission. ``budget`` takes note of every answer."""

    def __init__(
        self, api_url: str, token: str, *, write_gap: float, budget: RequestBudget, timeout: float = TIMEOUT
    ) -> None:
        self._base = urlsplit(api_url.rstrip("/"))
        self._writing, self._reading = (_requester(api_url, token, gap) for gap in (write_gap, 0.0))
        self._token = token  # removed from answers that repeat it
        is_secure = self._base.scheme == "https"
        kind = HTTPSRequestsConnectionClass if is_secure else HTTPRequestsConnectionClass
        self._connection = kind(self._base.hostname or "", self._base.port)
        self._connection.session.mount(f"{self._base.scheme}://", _BoundedAdapter(timeout))
        self._write_gap = write_gap
        self._stop_reasons: dict[str, ForgeError] = {}
        self._strikes: Counter[str] = Counter()
        self._lost_seconds: dict[str, float] = dict.fromkeys(MAX_LOST_SECONDS, 0.0)
        self.lacking: dict[str, ForgeError] = {}
        self.sent: Counter[str] = Counter()
        """Number of requests by verb, including repeats and redirects."""
        self.budget = budget

    @property
    def troubles(self) -> tuple[ForgeError, ...]:
        return tuple(dict.fromkeys(error for kind, error in self._stop_reasons.items() if kind != OPTIONAL))

    def ask(self, request: HttpRequest, *, need: str = NEEDED, retry_gone: bool = False) -> HttpAnswer:
        """Return the answer to a request. Raises ForgeError.

        With an ETag the status may be NOT_MODIFIED, which does not count towards the limit. ``retry_gone`` also repeats
        a read of something that may appear in a moment.
        """
        is_read = request.verb in ("GET", QUERY)
        pauses, kind = RETRY_DELAYS if is_read and request.repeats else (), resource_of(request.path)
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
        request: HttpRequest,
        *,
        need: str = NEEDED,
        permission: str = "issues: write",
        may_lack: bool = False,
    ) -> Any:
        """Return the data of a GraphQL document. Raises ForgeError, also for errors with status 200.

        ``permission``: the one to ask for if it is missing. With ``may_lack``, missing parts are null.
        """
        answer = self.ask(request, need=need)
        body = answer.data if isinstance(answer.data, dict) else {"errors": "no object"}
        errors = body.get("errors")
        if errors and not (may_lack and are_all_missing(errors)):
            error = error_for_graphql(errors, answer.headers, permission, body.get("data"))
            self._note_error(error, request.path, need)
            raise error
        return body.get("data")

    def path_below(self, url: str) -> str:
        """Return the path of a URL below the API's address, without the query; "" for any other URL."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return ""
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
        return self._stop_reasons.get(NEEDED) or self._stop_reasons.get(kind) or self._stop_reasons.get(need)

    def _try_once(self, request: HttpRequest, need: str) -> HttpAnswer:
        started = time.monotonic()
        try:
            answer = self._send(request)
        except Unreachable:
            self._lost_seconds[need] += time.monotonic() - started
            raise
        self._lost_seconds[need] += max(0.0, time.monotonic() - started - NORMAL_SECONDS)
        if answer.status in _REDIRECTS:
            return answer
        is_unchanged = answer.status == NOT_MODIFIED and request.etag
        if answer.status >= 300 and not is_unchanged:
            error = error_for_status(answer.status, answer.headers, answer.data, request.path)
            self._note_error(error, request.path, need)
            raise error
        self._strikes.clear()
        return answer

    def _send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request once. Raises Unreachable without a readable answer."""
        requester, verb = (self._reading, "POST") if request.verb == QUERY else (self._writing, request.verb)
        url = requester.graphql_url if request.path == GRAPHQL_PATH else request.path
        headers = {"If-None-Match": request.etag} if request.etag else None
        self.sent[request.verb] += 1
        try:
            status, headers, text = requester.requestJson(
                verb, url, dict(request.query or {}), headers, request.body, self._connection
            )
        except (RequestException, HTTPError, OSError, ValueError, RuntimeError) as error:
            if os.strerror(errno.EMFILE) in str(error):
                raise Unreachable("cannot connect to GitHub: too many open files", TooManyFiles.usual_remedy) from error
            raise Unreachable(f"GitHub did not answer ({type(error).__name__})", CATCH_UP_REMEDY) from error
        self.budget.note(headers)
        if status in _REDIRECTS:
            return HttpAnswer(status, headers, None, headers.get(_LOCATION_HEADER, ""))
        return HttpAnswer(status, headers, _json(text.replace(self._token, "***") if self._token else text, status))

    def _note_error(self, error: ForgeError, path: str, need: str) -> None:
        if isinstance(error, RateLimited):
            self._stop_reasons[NEEDED if error.is_secondary else resource_of(path)] = error
        elif isinstance(error, Unauthorised):
            self._stop_reasons[NEEDED] = error
        elif isinstance(error, NotPermitted) and need != HISTORY:
            self.lacking.setdefault(error.remedy, error)
        if not isinstance(error, Unreachable):
            self._strikes.clear()

    def _count_strike(self, error: ForgeError, need: str) -> None:
        self._strikes[need] += isinstance(error, Unreachable) and need != HISTORY
        if self._strikes[need] >= MAX_FAILURES:
            self._stop_reasons.setdefault(need, error)


def _requester(api_url: str, token: str, gap: float) -> Requester:
    """What sends PyGithub's requests, with ``gap`` seconds between two writes."""
    api = github.Github(
        auth=github.Auth.Token(token) if token else None,
        base_url=api_url.rstrip("/"),
        retry=None,
        seconds_between_requests=None,
        seconds_between_writes=gap or None,
        user_agent="precedent",
    )
    return api.requester


class _BoundedAdapter(HTTPAdapter):
    """Reads each whole answer, bounded in time and size. PyGithub would follow redirects and wait forever for an
    answer that is not ready (202): it sees neither."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def send(self, request: PreparedRequest, *_: Any, **options: Any) -> Response:
        options |= {"stream": True, "timeout": self._seconds}
        with super().send(request, **options) as answer:
            content = _read(answer, time.monotonic() + 2 * self._seconds)
        answer.raw, answer.encoding = io.BytesIO(content), "utf-8"
        if answer.status_code == 202:
            answer.status_code = 503
        if "location" in answer.headers:
            answer.headers[_LOCATION_HEADER] = answer.headers.pop("location")
        return answer


def _read(answer: Response, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.raw.read1(1 << 16, decode_content=True):
        parts.append(part)
        size += len(part)
        if time.monotonic() > until or size > MAX_ANSWER_BYTES:
            raise TimeoutError("the answer has no end")
    return b"".join(parts)


def _json(text: str, status: int) -> Any:
    """The JSON of an answer. A proxy's HTML page counts as None in a refusal and raises Unreachable otherwise."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError) as error:
        if status >= 400:
            return None
        raise Unreachable("GitHub sent an unexpected answer (not JSON)", CATCH_UP_REMEDY) from error


def _is_over(error: ForgeError, at: datetime) -> bool:
    return isinstance(error, RateLimited) and error.until is not None and error.until <= at


def _may_appear(error: ForgeError) -> bool:
    return isinstance(error, Gone) and not (error.certain or isinstance(error, IssuesOff))
