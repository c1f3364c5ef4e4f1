"""githubkit for bulk: a repository's whole history, oldest change first, in batches that can be remembered one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from bot.archive import parse_time, stamp
from bot.github.catch_up import News, is_comment
from bot.github.errors import ForgeError, NotPermitted, RateLimited, Unauthorised, Unreachable
from bot.github.forge import Reader
from bot.github.queries import ISSUES, issue_json
from bot.github.threads import Own, split_own, thread_of

if TYPE_CHECKING:
    from githubkit import GitHub

PER_PAGE = 50
"""Issues a GraphQL request asks for: with a hundred comments and events each it stays far below 500,000 nodes."""


class History(Protocol):
    """Everything that changed since a moment, in batches; the cursor of a batch is safe once it is remembered."""

    def since(self, moment: datetime | None) -> Iterator[News]: ...


class GraphQLHistory:
    """History by GraphQL: fifty issues with their comments and timeline a request; long threads are read on by REST."""

    def __init__(self, api_url: str, token: str, repo: str, own: Own, reader: Reader) -> None:
        self._api_url, self._token = api_url, token
        self._owner, _, self._name = repo.partition("/")
        self._own = own
        self._reader = reader
        self.requests = 0

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches of at most PER_PAGE threads. Raises ForgeError; what came before it is complete."""
        from githubkit import GitHub  # 200 ms that only a run with history to read should pay

        with GitHub(self._token, base_url=self._api_url, auto_retry=True) as api:
            after: str | None = None
            while True:
                page = self._page(api, moment, after)
                yield self._batch(page)
                after = page["pageInfo"]["endCursor"]
                if not page["pageInfo"]["hasNextPage"]:
                    return

    def _page(self, api: GitHub[Any], moment: datetime | None, after: str | None) -> dict[str, Any]:
        from githubkit.exception import GitHubException, RequestFailed, RequestTimeout

        variables = {"owner": self._owner, "name": self._name, "first": PER_PAGE, "after": after, "since": stamp(moment)}
        self.requests += 1
        try:
            data = api.graphql(ISSUES, variables)
        except RequestFailed as error:
            raise _meaning(error.response.status_code) from error
        except RequestTimeout as error:
            raise Unreachable("GitHub did not answer in time: the next run goes on from here") from error
        except GitHubException as error:
            limited = "rate limit" in str(error).lower()
            kind = RateLimited if limited else Unreachable
            raise kind(f"GitHub's GraphQL API answered: {error!s:.160}; the next run goes on from here") from error
        repository = data.get("repository")
        if not repository:
            raise NotPermitted("the token cannot see this repository's issues: give the job 'issues: write'")
        issues: dict[str, Any] = repository["issues"]
        return issues

    def _batch(self, page: dict[str, Any]) -> News:
        nodes = [node for node in page["nodes"] if node]
        records = []
        for node in nodes:
            issue, comments, events = issue_json(node, f"{self._owner}/{self._name}")
            if node["comments"]["pageInfo"]["hasNextPage"] or node["timelineItems"]["pageInfo"]["hasNextPage"]:
                events = self._reader.timeline(issue["number"])
                comments = [{**e, "user": e.get("user") or e.get("actor")} for e in events if is_comment(e)]
            records.append(thread_of(issue, split_own(comments, self._own)[0], events))
        cursor = max((parse_time(node["updatedAt"]) for node in nodes), default=None)
        return News(tuple(records), {}, cursor, not page["pageInfo"]["hasNextPage"])


def _meaning(status: int) -> ForgeError:
    if status == 401:
        return Unauthorised("GitHub refused the token (401): it is wrong or has expired")
    if status in (403, 429):
        return RateLimited("GitHub's rate limit is reached: the next run goes on from here")
    return Unreachable(f"GitHub's GraphQL API answered {status}: the next run goes on from here")


class RestHistory:
    """History by the REST API, for servers without GraphQL: a hundred issues a page, then each one's timeline."""

    def __init__(self, own: Own, reader: Reader) -> None:
        self._own = own
        self._reader = reader

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches of at most a hundred threads, oldest change first."""
        while True:
            listed, complete = self._reader.issues_since(moment, 1)
            issues = [issue for issue in listed if not issue.get("pull_request")]
            cursor = max((parse_time(issue["updated_at"]) for issue in listed), default=None)
            yield News(tuple(map(self._thread, issues)), {}, cursor, complete)
            if complete or cursor is None or cursor == moment:
                return
            moment = cursor

    def _thread(self, issue: dict[str, Any]) -> Any:
        events = self._reader.timeline(issue["number"]) if issue.get("comments") or issue.get("closed_at") else []
        comments = [{**e, "user": e.get("user") or e.get("actor")} for e in events if is_comment(e)]
        return thread_of(issue, split_own(comments, self._own)[0], events)
