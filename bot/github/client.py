"""PyGithub as transport: reading issues and comments, and writing one comment. Writes are never retried blindly."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import github
from github.GithubException import BadCredentialsException, GithubException, RateLimitExceededException
from requests.exceptions import RequestException
from urllib3.util import Retry

from bot.github.errors import CannotComment, ForgeError, Gone, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.github.forge import PER_PAGE
from bot.github.threads import OwnComment

Json = dict[str, Any]
TIMEOUT = 20
WRITE_GAP = 1.0
"""Seconds between two writes. https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api"""

RETRIES = 3
"""Repeats of a read after a dropped connection or a 5xx, with doubling waits; nothing else is repeated."""

_REPO = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}\Z", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9_-]{1,100}\Z", re.ASCII)  # an App's name has brackets, and no permission to ask for
_NEXT = re.compile(r'<([^>]{1,2000})>;\s?rel="next"')
_CLOSED_DOORS = ("is locked", "archived", "read-only", "too many comments", "commenting is disabled")


class GitHubClient:
    """The few calls that are needed, each returning GitHub's JSON or raising a ForgeError."""

    def __init__(self, api_url: str, token: str, repo: str, *, write_gap: float = WRITE_GAP) -> None:
        if not _REPO.match(repo):
            raise ForgeError(f"not a repository: {repo!r:.80}; GITHUB_REPOSITORY is owner/name")
        retry = Retry(
            total=RETRIES,
            backoff_factor=0.5,
            status_forcelist=(500, 502, 503, 504),
            allowed_methods=("GET",),
            respect_retry_after_header=False,  # it may name an hour; the next run is sooner
        )
        api = github.Github(
            auth=github.Auth.Token(token),
            base_url=api_url.rstrip("/"),
            timeout=TIMEOUT,
            retry=retry,
            seconds_between_requests=None,
            seconds_between_writes=write_gap or None,
            user_agent="precedent",
        )
        self._requester = api.requester
        self._repo = f"/repos/{repo}"
        self.reads = 0
        self.writes = 0

    # -- reading ---------------------------------------------------------------------------------------------------

    def issues_since(self, since: datetime | None, pages: int) -> tuple[list[Json], bool]:
        """Issues and pull requests changed since then, oldest change first, and whether these are all."""
        query: dict[str, Any] = {"state": "all", "sort": "updated", "direction": "asc", "per_page": PER_PAGE}
        if since:
            query["since"] = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return self.pages(f"{self._repo}/issues", query, pages)

    def comments_since(self, since: datetime, pages: int) -> tuple[list[Json], bool]:
        """Comments on any issue changed since then, oldest change first, and whether these are all."""
        query = {
            "sort": "updated",
            "direction": "asc",
            "per_page": PER_PAGE,
            "since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        return self.pages(f"{self._repo}/issues/comments", query, pages)

    def issue(self, number: int) -> Json:
        """One issue or pull request; Gone when it was deleted, moved or is out of sight."""
        data: Json = _shaped(self.get(f"{self._repo}/issues/{number}", {})[1], dict)
        home = str(data.get("repository_url") or "")
        if data.get("number") != number or not self._is_home(home):
            moved = f"{'/'.join(home.split('/')[-2:])}#{data.get('number')}"
            raise Gone(f"issue {number} was moved to another repository", certain=True, moved_to=moved)
        return data

    def comments(self, number: int) -> list[Json]:
        """All comments of an issue, oldest first."""
        return self.pages(f"{self._repo}/issues/{number}/comments", {"per_page": PER_PAGE}, 26)[0]

    def timeline(self, number: int) -> list[Json]:
        """Everything that happened to an issue, its comments (event ``commented``) among it, oldest first."""
        return self.pages(f"{self._repo}/issues/{number}/timeline", {"per_page": PER_PAGE}, 52)[0]

    def comment(self, comment_id: int) -> Json:
        """One comment on an issue; Gone when it was deleted or cannot be seen yet."""
        data: Json = _shaped(self.get(f"{self._repo}/issues/comments/{comment_id}", {})[1], dict)
        return data

    def permission(self, login: str) -> str:
        """``admin``, ``write`` (``maintain`` is told as that), ``read`` or ``none``, as the API says at this moment.

        https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        if not _LOGIN.match(login):
            return "none"
        try:
            data = _shaped(self.get(f"{self._repo}/collaborators/{login}/permission", {})[1], dict)
        except Gone:  # no such account
            return "none"
        return str(data.get("permission") or "none")

    # -- writing ---------------------------------------------------------------------------------------------------

    def create_comment(self, number: int, text: str) -> OwnComment:
        """Write a comment. After Unreachable it may stand all the same: look before trying again."""
        data = self._write("POST", f"{self._repo}/issues/{number}/comments", {"body": text})
        return OwnComment(int(data["id"]), text, str(data.get("html_url") or ""), str(data.get("node_id") or ""))

    def update_comment(self, comment_id: int, text: str) -> OwnComment:
        """Replace the text of a comment; Gone when a person deleted it."""
        data = self._write("PATCH", f"{self._repo}/issues/comments/{comment_id}", {"body": text})
        return OwnComment(comment_id, text, str(data.get("html_url") or ""), str(data.get("node_id") or ""))

    def react(self, comment_id: int, content: str) -> None:
        """Put a reaction on a comment, such as ``eyes``; the same one twice is one."""
        self._write("POST", f"{self._repo}/issues/comments/{comment_id}/reactions", {"content": content})

    def fold(self, node_id: str, *, folded: bool) -> None:
        """Fold a comment as outdated, or unfold it. https://docs.github.com/graphql/reference/mutations#minimizecomment"""
        verb = "minimize" if folded else "unminimize"
        wanted = {"subjectId": node_id} | ({"classifier": "OUTDATED"} if folded else {})
        told = f"{verb}dComment {{ isMinimized }}"
        self.writes += 1
        self._call(lambda: self._requester.graphql_named_mutation(f"{verb}Comment", wanted, told))

    # -- parts -----------------------------------------------------------------------------------------------------

    def pages(self, path: str, query: Mapping[str, Any], most: int) -> tuple[list[Json], bool]:
        """The items of a list, at most so many pages of it, and whether these are all."""
        items: list[Json] = []
        for _ in range(most):
            headers, data = self.get(path, query)
            items += [item for item in _shaped(data, list) if isinstance(item, dict)]
            link = _NEXT.search(str(headers.get("link") or ""))
            if not link:
                return items, True
            following = urlsplit(link[1])
            query = dict(parse_qsl(following.query))
        return items, False

    def _is_home(self, home: str) -> bool:
        """Whether an issue lives in this repository, which may bear a new name since it was asked for."""
        if not home or home.lower().endswith(self._repo.lower()):
            return True
        name = _shaped(self.get(self._repo, {})[1], dict).get("full_name")
        return home.lower().endswith(f"/repos/{name}".lower())

    def get(self, path: str, query: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
        """Headers and JSON of one read; raises a ForgeError."""
        self.reads += 1
        return self._call(lambda: self._requester.requestJsonAndCheck("GET", path, parameters=dict(query)))

    def _write(self, verb: str, path: str, body: Json) -> Json:
        self.writes += 1
        data: Json = _shaped(self._call(lambda: self._requester.requestJsonAndCheck(verb, path, input=body))[1], dict)
        _shaped(data.get("id"), int)
        return data

    def _call(self, request: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
        try:
            return request()
        except GithubException as error:
            raise meaning_of(error) from error
        except (RequestException, OSError, ValueError, RuntimeError) as error:  # the last two: no JSON; led elsewhere
            raise Unreachable(f"GitHub did not answer ({type(error).__name__}): the next run catches up") from error


def _shaped(data: Any, kind: type) -> Any:
    """``data``, when it is the list or object that was asked for: what a proxy says must not count as nothing there."""
    if not isinstance(data, kind):
        raise Unreachable("GitHub's answer was not what was asked for: the next run catches up")
    return data


def meaning_of(error: GithubException) -> ForgeError:
    """The meaning of an API error, as one line with the remedy."""
    message = str((error.data or {}).get("message") or "") if isinstance(error.data, dict) else ""
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    limited = isinstance(error, RateLimitExceededException) or headers.get("x-ratelimit-remaining") == "0"
    if error.status == 429 or (error.status == 403 and (limited or "retry-after" in headers)):
        until = _until(headers)
        when = f" until {until:%H:%M} UTC" if until else ""
        return RateLimited(f"GitHub's rate limit is reached{when}: the next run goes on from here", until)
    if isinstance(error, BadCredentialsException) or error.status == 401:
        return Unauthorised("GitHub refused the token (401): it is wrong or has expired")
    if error.status in (403, 422) and any(words in message.lower() for words in _CLOSED_DOORS):
        return CannotComment(f"GitHub takes no comment here: {message:.120}")
    if error.status == 403:
        return NotPermitted(f"the token may not do this (403: {message:.120}): give the job 'issues: write'")
    if error.status in (404, 410):
        told = f"{error.status}: {message:.120}" if message else str(error.status)
        certain = error.status == 410 and "disabled" not in message.lower()
        return Gone(f"GitHub has nothing there ({told}): it was removed, or the token may not see it", certain=certain)
    if error.status >= 500:
        return Unreachable(f"GitHub answered {error.status}: the next run catches up")
    return ForgeError(f"GitHub answered {error.status}: {message:.160}")


def _until(headers: Mapping[str, str]) -> datetime | None:
    """When a limit ends: x-ratelimit-reset, in UTC epoch seconds. https://docs.github.com/rest/rate-limit"""
    reset = headers.get("x-ratelimit-reset", "")
    return datetime.fromtimestamp(int(reset), UTC) if reset.isdigit() and len(reset) < 12 else None
