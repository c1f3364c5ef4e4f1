"""Reads a repository's whole history, oldest change first, in batches, by GraphQL or by REST."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from bot.domain.thread import Record, Thread
from bot.domain.thread_json import parse_time, stamp
from bot.github.budget import MIN_RESERVE, Rate
from bot.github.client import GitHubClient, Json
from bot.github.errors import (
    CONTINUE_REMEDY,
    CORE,
    GRAPHQL,
    ISSUES_OFF,
    NOT_VISIBLE,
    ForgeError,
    Gone,
    Invalid,
    IssuesOff,
    NoGraphQL,
    NotPermitted,
    RateLimited,
    RepositoryNotVisible,
    Unreachable,
    permission_remedy,
)
from bot.github.graphql_queries import (
    GLIMPSE_QUERY,
    ISSUES_QUERY,
    ISSUES_WITHOUT_PULLS,
    NUMBERS_QUERY,
    issue_json,
    with_linked_pull,
)
from bot.github.threads import OwnCommentRule, split_own, thread_of
from bot.github.updates import ListedIssue, Updates, comments_of, has_ended, read_each, read_thread

PER_PAGE = 50
"""Issues per request: with a hundred comments and events each, far below the limit of 500,000 nodes."""

POINTS_PER_REQUEST = 2
"""Cost of such a request, out of 5,000 points per hour: 201 lists, one point per hundred.
https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api"""

PAGE_SIZES = (PER_PAGE, 15, 5)
"""Issues per request: fewer if the server could not answer within its ten seconds."""

ANSWERS_BEFORE_GROWTH = 10
"""Answers after which a larger size is tried again. Each failed attempt costs a request of ten seconds."""

_NAME = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)


class RepositoryPreview(NamedTuple):
    """A repository before it is read: its current name, its number of issues, and how many of them changed.

    ``rate`` counts points; None if the server has no limit.
    """

    name: str
    is_private: bool
    issues: int
    changed: int
    rate: Rate | None


class GraphQLHistory:
    """History by GraphQL. Long threads and those too large for one answer are read by REST."""

    def __init__(self, repo: str, own: OwnCommentRule, reader: GitHubClient) -> None:
        self._repo, self._own = repo, own
        self._reader = reader
        self._query = ISSUES_QUERY
        self._step = self._answered = 0

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """Yield batches of at most PER_PAGE threads. Raises ForgeError; earlier batches are complete."""
        after: str | None = None
        while True:
            self.keep_reserve()
            page, updates = self._batch({"since": stamp(moment), "after": after})
            has_next = page["pageInfo"]["hasNextPage"]
            yield replace(updates, complete=not has_next, total=None if after else page["totalCount"])
            if not has_next:
                return
            after = page["pageInfo"]["endCursor"]

    def glimpse(self, since: datetime | None) -> RepositoryPreview:
        """Describe how much there is to read. Raises ForgeError."""
        data = self.query_repository(GLIMPSE_QUERY, {"since": stamp(since)})
        repository, limit = data["repository"], data.get("rateLimit")
        rate = Rate(limit["remaining"], limit["limit"], parse_time(limit["resetAt"])) if limit else None
        total, changed = (repository[name]["totalCount"] for name in ("issues", "changed"))
        name = str(repository["nameWithOwner"])
        is_name = _NAME.fullmatch(name)  # it is shown in terminals and used in addresses
        return RepositoryPreview(name if is_name else self._repo, repository["isPrivate"], total, changed, rate)

    def _batch(self, position: Json) -> tuple[Json, Updates]:
        """Read the next issues: as many in one answer as worked last time, else fewer, else a few one by one."""
        for step in range(self._step, len(PAGE_SIZES)):
            try:
                page = self._permitted_page({**position, "first": PAGE_SIZES[step]})
            except Unreachable:  # too much for one answer, or a missing part, which must not count as gone
                continue
            self._adapt_size(step)
            return page, read_each(_listed(page), self._thread)
        self._adapt_size(len(PAGE_SIZES) - 1)
        page = self._page(NUMBERS_QUERY, {**position, "first": PAGE_SIZES[-1]}, repeats=True)
        return page, read_each(_listed(page), self._read_by_rest)

    def _adapt_size(self, step: int) -> None:
        """Keep the size that the server had time for, and try more after a while."""
        self._answered = self._answered + 1 if step == self._step else 1
        self._step = step
        if self._answered >= ANSWERS_BEFORE_GROWTH:
            self._step, self._answered = max(0, step - 1), 0

    def _permitted_page(self, variables: Json) -> Json:
        try:
            return self._page(self._query, variables)
        except NotPermitted:
            if self._query == ISSUES_WITHOUT_PULLS:
                raise
            self._query = ISSUES_WITHOUT_PULLS
            return self._page(self._query, variables)

    def _page(self, query: str, variables: Json, *, repeats: bool = False) -> Json:
        issues: Json = self.query_repository(query, variables, repeats=repeats)["repository"]["issues"]
        return issues

    def keep_reserve(self, least: int = 0) -> None:
        """Raise RateLimited before the hour's points are used up; ``least`` are left even without a reserve."""
        self._reader.budget.keep_reserve(GRAPHQL, least)

    def query_repository(self, query: str, variables: Json, *, is_list: bool = True, repeats: bool = True) -> Json:
        """Return the data of a query about the repository, ``$owner`` and ``$name``.

        Raises ForgeError; Gone only if the query is not for a list. ``repeats``: as in `HttpRequest`.
        """
        owner, _, name = self._repo.partition("/")
        try:
            data = self._reader.query_history(query, {"owner": owner, "name": name, **variables}, repeats=repeats)
        except ForgeError as error:
            raise (_as_retryable(error) if is_list else error) from error
        if not data.get("repository"):
            raise RepositoryNotVisible(NOT_VISIBLE, permission_remedy("issues: write"))
        if data["repository"].get("hasIssuesEnabled") is False:  # the list is empty then, as if all were gone
            raise IssuesOff(ISSUES_OFF)
        return data

    def _read_by_rest(self, node: Json) -> Record:
        self._reader.budget.keep_reserve(CORE)
        return read_thread(self._reader, self._own, node["number"], None)[0]

    def _thread(self, node: Json) -> Record:
        comments: list[Any]
        issue, comments, events = issue_json(node, self._repo)
        if node["comments"]["pageInfo"]["hasNextPage"] or node["timelineItems"]["pageInfo"]["hasNextPage"]:
            self._reader.budget.keep_reserve(CORE)
            timeline = self._reader.timeline(issue["number"])
            comments = comments_of(timeline)
            events = with_linked_pull(node, _with_sources(timeline, events), self._repo)
        return thread_of(issue, split_own(comments, self._own)[0], events)


def _listed(page: Json) -> dict[ListedIssue, Json]:
    return {
        ListedIssue(node["number"], parse_time(node["createdAt"]), parse_time(node["updatedAt"])): node
        for node in page["nodes"]
        if node
    }


def _with_sources(timeline: list[Json], events: list[Json]) -> list[Json]:
    """The items of REST's timeline plus the sources of the same events in GraphQL, such as what closed an issue."""
    sources = {(event["event"], event["created_at"]): event.get("source") for event in events}
    items = [{**item, "event": str(item.get("event"))} for item in timeline]
    return [{"source": sources.get((item["event"], item.get("created_at"))), **item} for item in items]


def _as_retryable(error: ForgeError) -> ForgeError:
    """The error to raise: Unreachable, so that fewer issues are tried, unless it is a limit or a missing permission."""
    is_final = type(error) not in (ForgeError, Gone, Invalid, Unreachable)
    return error if is_final else Unreachable(error.cause, CONTINUE_REMEDY)


class HistorySource(Protocol):
    """Yields all changes since a moment, in batches. Once a batch is stored, its cursor is safe."""

    def since(self, moment: datetime | None) -> Iterator[Updates]: ...


class FallbackHistory:
    """Reads by GraphQL, or by REST if the server has no GraphQL, like older GitHub Enterprise Servers."""

    def __init__(self, graphql: HistorySource, rest: HistorySource, note: Callable[[str], None]) -> None:
        self._graphql, self._rest, self._note = graphql, rest, note

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        try:
            yield from self._graphql.since(moment)
        except NoGraphQL:
            self._note("This server has no GraphQL: history is read issue by issue, which takes longer.")
            yield from self._rest.since(moment)


class LimitedHistory:
    """A history that is not read because ``limit`` is not over yet."""

    def __init__(self, limit: RateLimited) -> None:
        self._limit = limit

    def since(self, moment: datetime | None) -> Iterator[Updates]:  # noqa: ARG002 - nothing is read
        raise self._limit


class RestHistory:
    """History by the REST API, for servers without GraphQL: a hundred issues a page, then the timeline of each."""

    def __init__(self, own: OwnCommentRule, reader: GitHubClient) -> None:
        self._own = own
        self._reader = reader

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """Yield batches of a hundred threads, or more if more changed within one second; oldest change first."""
        pages = 1
        while True:
            listed, complete = self._reader.issues_since(moment, pages)
            cursor = max((parse_time(issue["updated_at"]) for issue in listed), default=None)
            yield replace(read_each(_issues(listed), self._thread), cursor=cursor, complete=complete)
            if complete:
                return
            pages = 2 * pages if cursor == moment else 1  # more than a page can change within one second
            moment = cursor

    def _thread(self, issue: dict[str, Any]) -> Thread:
        keep_event_reserve(self._reader)
        events = self._reader.timeline(issue["number"]) if issue.get("comments") or has_ended(issue) else []
        return thread_of(issue, split_own(comments_of(events), self._own)[0], events)


def keep_event_reserve(reader: GitHubClient) -> None:
    """Raise RateLimited before the hour's requests are used up, so that events can still be answered."""
    reader.budget.keep_reserve(CORE, MIN_RESERVE)


def _issues(listed: list[dict[str, Any]]) -> dict[ListedIssue, dict[str, Any]]:
    issues = (issue for issue in listed if not issue.get("pull_request"))
    return {
        ListedIssue(issue["number"], parse_time(issue["created_at"]), parse_time(issue["updated_at"])): issue
        for issue in issues
    }
