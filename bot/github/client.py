"""The calls of GitHub's API that we need: reading issues and comments, and writing a comment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from bot.domain.thread_json import parse_time
from bot.github.budget import WRITE_GAP, Rate, RequestBudget
from bot.github.errors import (
    CATCH_UP_REMEDY,
    CORE,
    NOT_VISIBLE,
    ForgeError,
    Gone,
    IssuesOff,
    NotPermitted,
    Unreachable,
    permission_remedy,
)
from bot.github.threads import OwnComment, own_comment
from bot.github.transport import (
    GRAPHQL_PATH,
    HISTORY,
    NEEDED,
    NOT_MODIFIED,
    OPTIONAL,
    PER_PAGE,
    QUERY,
    TIMEOUT,
    HttpAnswer,
    HttpRequest,
    HttpTransport,
)

Json = dict[str, Any]

MAX_ADDRESSES = 4
"""Maximum number of addresses that a request is sent to, one after the other, if it is redirected."""

_REPO = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}\Z", re.ASCII)
_LOGIN = re.compile(
    r"[A-Za-z0-9_-]{1,100}\Z", re.ASCII
)  # the name of an App has brackets; Apps have no such permission
WRITE_PERMISSIONS = frozenset({"admin", "maintain", "write"})
"""Those that include write access: https://docs.github.com/rest/collaborators/collaborators"""

_NEXT_LINK = re.compile(r'<([^>]{1,2000})>;\s?rel="next"')
_REPO_PATH = re.compile(r"(/repositories/[0-9]{1,18}|/repos/[^/]{1,100}/[^/]{1,100})(/.{0,1000})?", re.ASCII)
_ETAG = re.compile(r'(W/)?"[!#-~]{1,200}"', re.ASCII)
_ISSUE_PATH = re.compile(r"/issues/[0-9]{1,18}(?=/|\Z)", re.ASCII)


class NewestChange(NamedTuple):
    """When an issue of a repository last changed, None without any; and the ETag of that answer, "" without one."""

    at: datetime | None
    etag: str


class GitHubClient:
    """Reads and writes the issues of one repository. Each call returns GitHub's JSON or raises a ForgeError."""

    def __init__(
        self,
        api_url: str,
        token: str,
        repo: str,
        *,
        write_gap: float = WRITE_GAP,
        timeout: float = TIMEOUT,
        budget: RequestBudget | None = None,
    ) -> None:
        """``write_gap``: seconds between two writes; less than 1 also shortens the pauses before repeated reads.

        ``budget``: what is known about the limits, if it is shared with others.
        """
        if not _REPO.match(repo):
            raise ForgeError(f"not a repository: {repo!r:.80}; GITHUB_REPOSITORY must be owner/name")
        self.budget = budget or RequestBudget()
        self._transport = HttpTransport(api_url, token, write_gap=write_gap, budget=self.budget, timeout=timeout)
        self._repo = f"/repos/{repo}"
        self._home = ""

    @property
    def reads(self) -> int:
        """Number of reads sent, including repeats."""
        return self._transport.sent["GET"]

    @property
    def queries(self) -> int:
        """Number of GraphQL queries sent, including repeats."""
        return self._transport.sent[QUERY]

    @property
    def writes(self) -> int:
        return self._transport.sent.total() - self.reads - self.queries

    @property
    def rate(self) -> Rate | None:
        """The requests that are left of the REST API; None before the first answer, or without a limit."""
        return self.budget.rates.get(CORE)

    @property
    def troubles(self) -> tuple[ForgeError, ...]:
        """Why nothing more is sent: a limit, a dead token, a server that is down. Further calls raise it at once."""
        return self._transport.troubles

    @property
    def lacking(self) -> tuple[ForgeError, ...]:
        return tuple(self._transport.lacking.values())

    def correct_time(self, now: datetime) -> datetime:
        """``now``, or GitHub's time if this machine's clock is wrong.

        Before the first request it asks GitHub for the limits, which is free, so that no wrong time is ever stored.
        """
        if not (self.budget.date or self._transport.sent):
            with suppress(ForgeError):
                self.get("/rate_limit", {})
        return self.budget.correct_time(now)

    # -- reading ---------------------------------------------------------------------------------------------------

    def issues_since(self, since: datetime | None, pages: int) -> tuple[list[Json], bool]:
        query: dict[str, Any] = {"state": "all", "sort": "updated", "direction": "asc", "per_page": PER_PAGE}
        if since:
            query["since"] = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        try:
            return self.pages(f"{self._repo}/issues", query, pages)
        except IssuesOff:
            raise
        except Gone as error:  # a visible list may be empty, but is never gone
            raise NotPermitted(NOT_VISIBLE, permission_remedy("issues: write")) from error

    def newest_change(self, etag: str = "") -> NewestChange | None:
        """Return when an issue or pull request last changed; None if nothing did since the answer with this ETag.

        GitHub's ETags hold for one token only: with another one the answer comes in full. Raises ForgeError.
        https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate
        """
        path, query = f"{self._repo}/issues", {"state": "all", "sort": "updated", "direction": "desc", "per_page": 1}
        answer = self._ask(HttpRequest("GET", path, query, etag=etag))
        if answer.status == NOT_MODIFIED:
            return None
        listed = [issue for issue in _require_type(answer.data, list) if isinstance(issue, dict)]
        try:
            at = max((parse_time(issue.get("updated_at")) for issue in listed), default=None)
        except ValueError as error:
            raise ForgeError("GitHub sent an unexpected answer", CATCH_UP_REMEDY) from error
        new_etag = str(answer.headers.get("etag") or "")
        return NewestChange(at, new_etag if _ETAG.fullmatch(new_etag) else "")

    def comments_since(self, since: datetime, pages: int) -> tuple[list[Json], bool]:
        query = {
            "sort": "updated",
            "direction": "asc",
            "per_page": PER_PAGE,
            "since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        return self.pages(f"{self._repo}/issues/comments", query, pages)

    def issue(self, number: int, *, fresh: bool = False) -> Json:
        """Return one issue or pull request. Raises Gone if it was deleted, moved or is out of sight.

        ``fresh``: it was just opened and GitHub may not show it yet, so a few attempts are made.
        """
        data: Json = _require_type(
            self._ask(HttpRequest("GET", f"{self._repo}/issues/{number}"), retry_gone=fresh).data, dict
        )
        home = str(data.get("repository_url") or "")
        if data.get("number") != number or not self._is_home(home):
            moved = f"{'/'.join(home.split('/')[-2:])}#{data.get('number')}"
            raise Gone(f"issue {number} was moved to another repository", certain=True, moved_to=moved)
        return data

    def comments(self, number: int) -> list[Json]:
        return self.pages(f"{self._repo}/issues/{number}/comments", {"per_page": PER_PAGE}, 26)[0]

    def timeline(self, number: int) -> list[Json]:
        return self.pages(f"{self._repo}/issues/{number}/timeline", {"per_page": PER_PAGE}, 52)[0]

    def comment(self, comment_id: int) -> Json:
        data: Json = _require_type(self.get(f"{self._repo}/issues/comments/{comment_id}", {}), dict)
        return data

    def permission(self, login: str) -> str:
        """Return the current permission: ``admin``, ``write`` (also for ``maintain``), ``read`` or ``none``.

        https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        if not _LOGIN.match(login):
            return "none"
        try:
            data = _require_type(
                self._ask(HttpRequest("GET", f"{self._repo}/collaborators/{login}/permission")).data, dict
            )
        except Gone:  # no such account
            return "none"
        return str(data.get("permission") or "none")

    def may_write(self, login: str) -> bool:
        """Return whether the account may write to the repository now.

        ``author_association`` does not say: it calls a private member of the organisation a contributor.
        """
        return self.permission(login) in WRITE_PERMISSIONS

    def reactions(self, comment_id: int) -> list[Json]:
        """Return the first hundred reactions to a comment."""
        path = f"{self._repo}/issues/comments/{comment_id}/reactions"
        return self.pages(path, {"per_page": PER_PAGE}, 1)[0]

    # -- writing ---------------------------------------------------------------------------------------------------

    def create_comment(self, number: int, text: str) -> OwnComment:
        """Write a comment. After Unreachable it may still exist: look before trying again."""
        data = self._write("POST", f"{self._repo}/issues/{number}/comments", {"body": text})
        return replace(own_comment(data), text=text)

    def update_comment(self, comment_id: int, text: str) -> OwnComment:
        data = self._write("PATCH", f"{self._repo}/issues/comments/{comment_id}", {"body": text})
        return replace(own_comment(data), id=comment_id, text=text)

    def delete_comment(self, comment_id: int) -> None:
        self._ask(HttpRequest("DELETE", f"{self._repo}/issues/comments/{comment_id}"))

    def react(self, _number: int, comment_id: int, content: str) -> None:
        """React to a comment. https://docs.github.com/rest/reactions/reactions"""
        self._write("POST", f"{self._repo}/issues/comments/{comment_id}/reactions", {"content": content}, optional=True)

    # -- parts -----------------------------------------------------------------------------------------------------

    def pages(self, path: str, query: Mapping[str, Any], max_pages: int) -> tuple[list[Json], bool]:
        """Return the items of a list, up to ``max_pages`` pages, and whether these are all."""
        items: list[Json] = []
        for _ in range(max_pages):
            answer = self._ask(HttpRequest("GET", path, query))
            items += [item for item in _require_type(answer.data, list) if isinstance(item, dict)]
            link = _NEXT_LINK.search(str(answer.headers.get("link") or ""))
            if not link:
                return items, True
            next_url = urlsplit(link[1])
            query = dict(parse_qsl(next_url.query))
        return items, False

    def _is_home(self, home: str) -> bool:
        """Whether an issue is in this repository, which may have been renamed."""
        if self._home or not home or home.lower().endswith(self._repo.lower()):
            return True  # a redirect was checked already
        name = _require_type(self._ask(HttpRequest("GET", self._repo)).data, dict).get("full_name")
        return home.lower().endswith(f"/repos/{name}".lower())

    def get(self, path: str, query: Mapping[str, Any]) -> Any:
        """Return the JSON of a read that a run can do without, such as of a release. Raises ForgeError."""
        return self._ask(HttpRequest("GET", path, query), need=OPTIONAL).data

    def query(self, text: str, variables: Mapping[str, Any], permission: str) -> Json:
        """Return the data of a GraphQL query that a run can do without; missing parts are null.

        It is sent once. Raises ForgeError. ``permission``: the one that it takes, in the syntax of a workflow.
        """
        request = HttpRequest(QUERY, GRAPHQL_PATH, None, {"query": text, "variables": dict(variables)}, repeats=False)
        answer = self._transport.graphql(request, need=OPTIONAL, permission=permission, may_lack=True)
        data: Json = _require_type(answer, dict)
        return data

    def query_history(self, text: str, variables: Mapping[str, Any], *, repeats: bool = True) -> Json:
        """Return the data of a GraphQL query for a part of the history; nothing may be missing. Raises ForgeError."""
        body = {"query": text, "variables": dict(variables)}
        answer = self._transport.graphql(HttpRequest(QUERY, GRAPHQL_PATH, None, body, repeats=repeats), need=HISTORY)
        data: Json = _require_type(answer, dict)
        return data

    def mutate(self, text: str, fields: Mapping[str, Any], permission: str, *, optional: bool = False) -> Json:
        """Carry out a GraphQL mutation with this ``$input``, once, and return its data. Raises ForgeError.

        ``permission``: the one that it takes, in the syntax of a workflow. ``optional``: nothing waits for it.
        """
        request = HttpRequest("POST", GRAPHQL_PATH, None, {"query": text, "variables": {"input": dict(fields)}})
        answer = self._transport.graphql(request, need=OPTIONAL if optional else NEEDED, permission=permission)
        data: Json = _require_type(answer, dict)
        return data

    def pause_requests(self, seconds: float) -> None:
        self._transport.pause_requests(seconds)

    def _write(self, verb: str, path: str, body: Json, *, optional: bool = False) -> Json:
        request, need = HttpRequest(verb, path, None, body), OPTIONAL if optional else NEEDED
        data: Json = _require_type(self._ask(request, need=need).data, dict)
        _require_type(data.get("id"), int)
        return data

    def _ask(self, request: HttpRequest, *, need: str = NEEDED, retry_gone: bool = False) -> HttpAnswer:
        """Return the answer, even if the repository has moved. Raises Gone if only the issue was moved.

        A redirect means that nothing was done, so a write may follow it, but never to another repository.
        """
        suffix = request.path.removeprefix(self._repo)
        is_home = suffix != request.path  # the rate limit has no repository
        for _ in range(MAX_ADDRESSES):
            target = (self._home or self._repo) + suffix if is_home else request.path
            answer = self._transport.ask(request._replace(path=target), need=need, retry_gone=retry_gone)
            if not answer.redirect:
                return answer
            self._home = self._new_home(suffix, answer.redirect)
        raise Unreachable("GitHub redirected too many times", CATCH_UP_REMEDY)

    def _new_home(self, suffix: str, target: str) -> str:
        home = _REPO_PATH.fullmatch(self._transport.path_below(target))
        if home is None:
            raise Unreachable("GitHub redirected to another server", CATCH_UP_REMEDY)
        if not suffix:
            return home[1]
        repository = _require_type(self._ask(HttpRequest("GET", self._repo)).data, dict)
        ours = (f"/repositories/{repository.get('id')}", f"/repos/{repository.get('full_name')}".lower())
        if home[1].lower() in ours and (home[2] or "") == suffix:
            return home[1]
        number = _ISSUE_PATH.match(home[2] or "")
        moved = self._issue_name(home[1] + number[0]) if number else None
        raise Gone("it was moved to another repository", certain=True, moved_to=moved)

    def _issue_name(self, path: str) -> str | None:
        """``owner/repo#N`` of an issue elsewhere; None if this token cannot see it."""
        try:
            issue = _require_type(self._transport.ask(HttpRequest("GET", path)).data, dict)
        except ForgeError:
            return None
        repo = "/".join(str(issue.get("repository_url") or "").split("/")[-2:])
        return f"{repo}#{issue.get('number')}" if _REPO.match(repo) else None


def _require_type(data: Any, kind: type) -> Any:
    """``data`` if it is of this kind. A proxy's answer must not count as an empty list."""
    if not isinstance(data, kind):
        raise Unreachable("GitHub sent an unexpected answer", CATCH_UP_REMEDY)
    return data
