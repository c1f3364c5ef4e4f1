"""githubkit for bulk: a repository's whole history, oldest change first, in batches to be remembered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from bot.archive import parse_time, stamp
from bot.github.catch_up import News, comments_of, has_ended
from bot.github.errors import ForgeError, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.github.forge import Reader
from bot.github.queries import ISSUES, WITHOUT_PULLS, issue_json, with_linked_pull
from bot.github.threads import Own, split_own, thread_of
from bot.model import Thread

if TYPE_CHECKING:
    from githubkit import GitHub
    from githubkit.exception import GitHubException
    from githubkit.retry import RetryOption

PER_PAGE = 50
"""Issues a GraphQL request asks for: with a hundred comments and events each it stays far below 500,000 nodes."""

RETRIES = 3
"""Repeats of a request after a 5xx, after 0.5, 1 and 2 seconds."""

_GO_ON = "the next run goes on from here"
_OUT_OF_SIGHT = "the token cannot see this repository's issues: give the job 'issues: write'"


class History(Protocol):
    """Everything that changed since a moment, in batches; the cursor of a batch is safe once it is remembered."""

    def since(self, moment: datetime | None) -> Iterator[News]: ...


class GraphQLHistory:
    """History by GraphQL: fifty issues with their comments and timeline a request; long threads are read on by REST."""

    def __init__(self, api_url: str, token: str, repo: str, own: Own, reader: Reader) -> None:
        self._api_url, self._token = api_url, token
        self._owner, _, self._name = repo.partition("/")
        base = api_url.rstrip("/")  # a company's own server has /api/v3 and /api/graphql
        self._endpoint = f"{base.removesuffix('/v3') if base.endswith('/api/v3') else base}/graphql"
        self._own = own
        self._reader = reader
        self._query = ISSUES
        self.requests = 0

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches of at most PER_PAGE threads. Raises ForgeError; what came before it is complete."""
        from githubkit import GitHub  # 200 ms that only a run with history to read should pay

        with GitHub(self._token, base_url=self._api_url, auto_retry=_again) as api:
            after: str | None = None
            while True:
                page = self._permitted_page(api, moment, after)
                yield self._batch(page)
                after = page["pageInfo"]["endCursor"]
                if not page["pageInfo"]["hasNextPage"]:
                    return

    def _permitted_page(self, api: GitHub[Any], moment: datetime | None, after: str | None) -> dict[str, Any]:
        try:
            return self._page(api, moment, after)
        except NotPermitted:
            if self._query == WITHOUT_PULLS:
                raise
            self._query = WITHOUT_PULLS
            return self._page(api, moment, after)

    def _page(self, api: GitHub[Any], moment: datetime | None, after: str | None) -> dict[str, Any]:
        from githubkit.exception import GitHubException

        place = {"owner": self._owner, "name": self._name}
        variables = {**place, "first": PER_PAGE, "after": after, "since": stamp(moment)}
        self.requests += 1
        try:
            answer = api.request("POST", self._endpoint, json={"query": self._query, "variables": variables}).json()
        except (GitHubException, ValueError) as error:  # a ValueError: what came is no JSON
            raise _meaning(error) from error
        repository = _data(answer).get("repository")
        if not repository:
            raise NotPermitted(_OUT_OF_SIGHT)
        issues: dict[str, Any] = repository["issues"]
        return issues

    def _batch(self, page: dict[str, Any]) -> News:
        nodes = [node for node in page["nodes"] if node]
        repo = f"{self._owner}/{self._name}"
        records = []
        for node in nodes:
            comments: list[Any]
            issue, comments, events = issue_json(node, repo)
            if node["comments"]["pageInfo"]["hasNextPage"] or node["timelineItems"]["pageInfo"]["hasNextPage"]:
                timeline = self._reader.timeline(issue["number"])
                comments = comments_of(timeline)
                events = with_linked_pull(node, _with_sources(timeline, events), repo)
            records.append(thread_of(issue, split_own(comments, self._own)[0], events))
        cursor = max((parse_time(node["updatedAt"]) for node in nodes), default=None)
        return News(tuple(records), {}, cursor, not page["pageInfo"]["hasNextPage"])


def _with_sources(timeline: list[dict[str, Any]], told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of REST's timeline with the sources that GraphQL told of the same events: what closed an issue."""
    known = {(event["event"], event["created_at"]): event.get("source") for event in told}
    named = [{**item, "event": str(item.get("event"))} for item in timeline]
    return [{"source": known.get((item["event"], item.get("created_at"))), **item} for item in named]


def _again(error: GitHubException, tries: int) -> RetryOption:
    """Only a fault of the server is worth a second try; a limit is not waited for, the next run goes on."""
    from githubkit.exception import RequestFailed
    from githubkit.retry import RetryOption

    is_fault = isinstance(error, RequestFailed) and error.response.status_code >= 500
    return RetryOption(is_fault and tries < RETRIES, timedelta(seconds=2**tries / 2))


def _meaning(error: GitHubException | ValueError) -> ForgeError:
    """The meaning of what githubkit raised, as one line with the remedy."""
    from githubkit.exception import RateLimitExceeded, RequestFailed

    if not isinstance(error, RequestFailed):
        return Unreachable(f"GitHub could not be reached ({type(error).__name__}): {_GO_ON}")
    status = error.response.status_code
    if status == 401:
        return Unauthorised("GitHub refused the token (401): it is wrong or has expired")
    if isinstance(error, RateLimitExceeded) or status == 429:
        return RateLimited(f"GitHub's rate limit is reached: {_GO_ON}")
    if status == 403:
        return NotPermitted(_OUT_OF_SIGHT)
    return Unreachable(f"GitHub's GraphQL API answered {status}: {_GO_ON}")


def _data(answer: Any) -> dict[str, Any]:
    """The data of an answer, read without githubkit's models, which refuse a lone surrogate in an issue's text.

    An answer with errors raises what they mean, although a part of the data may be there: what is missing in it must
    not count as gone.
    """
    found = answer if isinstance(answer, dict) else {}
    errors = found.get("errors")
    if errors or not isinstance(found.get("data"), dict):
        told = [str(each.get("message")) for each in errors or () if isinstance(each, dict)]
        raise _meaning_of_words("; ".join(told) or "nothing that can be read")
    data: dict[str, Any] = found["data"]
    return data


def _meaning_of_words(words: str) -> ForgeError:
    """GraphQL answers 200 whatever happened, and says in words what it was."""
    lower = words.lower()
    if "rate limit" in lower:
        return RateLimited(f"GitHub's rate limit is reached: {_GO_ON}")
    if "not accessible" in lower or "could not resolve to a repository" in lower:
        return NotPermitted(_OUT_OF_SIGHT)
    return Unreachable(f"GitHub's GraphQL API answered: {words:.160}; {_GO_ON}")


class RestHistory:
    """History by the REST API, for servers without GraphQL: a hundred issues a page, then each one's timeline."""

    def __init__(self, own: Own, reader: Reader) -> None:
        self._own = own
        self._reader = reader

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches of a hundred threads or, where more changed within one second, more; oldest change first."""
        pages = 1
        while True:
            listed, complete = self._reader.issues_since(moment, pages)
            issues = [issue for issue in listed if not issue.get("pull_request")]
            cursor = max((parse_time(issue["updated_at"]) for issue in listed), default=None)
            yield News(tuple(map(self._thread, issues)), {}, cursor, complete)
            if complete:
                return
            pages = 2 * pages if cursor == moment else 1  # more than a page can change within one second
            moment = cursor

    def _thread(self, issue: dict[str, Any]) -> Thread:
        events = self._reader.timeline(issue["number"]) if issue.get("comments") or has_ended(issue) else []
        return thread_of(issue, split_own(comments_of(events), self._own)[0], events)
