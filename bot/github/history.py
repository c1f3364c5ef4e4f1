"""A repository's whole history, oldest change first, in batches to be remembered one by one; by GraphQL or by REST."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from bot.domain.thread import Record, Thread
from bot.domain.thread_json import parse_time, stamp
from bot.github.api import Json, Rate, Reader
from bot.github.errors import (
    GOES_ON,
    HISTORY,
    ISSUES_OFF,
    ForgeError,
    Gone,
    Invalid,
    IssuesOff,
    NotPermitted,
    RateLimited,
    Unreachable,
    gives,
    meaning_of,
    meaning_of_errors,
)
from bot.github.graphql_queries import GLIMPSE, ISSUES, NUMBERS, WITHOUT_PULLS, issue_json, with_linked_pull
from bot.github.threads import OwnCommentRule, split_own, thread_of
from bot.github.updates import ListedIssue, Updates, comments_of, has_ended, read_each, read_thread

if TYPE_CHECKING:
    from githubkit import GitHub
    from githubkit.exception import GitHubException
    from githubkit.retry import RetryOption


PER_PAGE = 50
"""Issues a request asks for: with a hundred comments and events each it stays far below 500,000 nodes."""

POINTS = 2
"""What such a request costs of the 5,000 points of an hour: 201 lists, a point for a hundred.
https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api"""

SIZES = (PER_PAGE, 15, 5)
"""Issues that it asks for: fewer where the server could not answer for more, as it has ten seconds for an answer."""

STEADY = 10
"""Answers after which more is asked for again. Each attempt that is too much costs two requests of ten seconds."""

RETRIES = 3
"""Repeats of a request after a 5xx, after 0.5, 1 and 2 seconds; one where less can be asked for instead."""

_NAME = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.ASCII)
_OUT_OF_SIGHT = "the token cannot see this repository's issues"


class NoGraphQL(ForgeError):
    """The server has no GraphQL API."""


class OutOfSight(NotPermitted):
    """There is no such repository, or the token may not see it: GitHub tells the two apart from nobody."""


class Glimpse(NamedTuple):
    """A repository before it is read: its name now, how many issues it has, and how many of them changed since then.

    ``rate`` counts points, None where the server has no limit.
    """

    name: str
    is_private: bool
    issues: int
    changed: int
    rate: Rate | None


class GraphQLHistory:
    """History by GraphQL; long threads, and those that the server cannot put into one answer, are read by REST."""

    def __init__(self, api_url: str, token: str, repo: str, own: OwnCommentRule, reader: Reader) -> None:
        self._api_url, self._token, self._repo = api_url, token, repo
        base = api_url.rstrip("/")  # a company's own server has /api/v3 and /api/graphql
        self._endpoint = f"{base.removesuffix('/v3') if base.endswith('/api/v3') else base}/graphql"
        self._own = own
        self._reader = reader
        self._query = ISSUES
        self._step = self._answered = 0
        self._retries = RETRIES
        self.requests = 0
        """How many were sent, repeats included."""

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """Batches of at most PER_PAGE threads. Raises ForgeError; what came before it is complete."""
        after: str | None = None
        with self._client() as api:
            while True:
                page, news = self._batch(api, {"since": stamp(moment), "after": after})
                ahead = page["pageInfo"]["hasNextPage"]
                yield replace(news, complete=not ahead, total=None if after else page["totalCount"])
                if not ahead:
                    return
                after = page["pageInfo"]["endCursor"]

    def glimpse(self, since: datetime | None) -> Glimpse:
        """What a reading would be about. Raises ForgeError."""
        with self._client() as api:
            data = self._asked(api, GLIMPSE, {"since": stamp(since)})
        repository, told = data["repository"], data.get("rateLimit")
        rate = Rate(told["remaining"], told["limit"], parse_time(told["resetAt"])) if told else None
        total, changed = (repository[name]["totalCount"] for name in ("issues", "changed"))
        name = str(repository["nameWithOwner"])
        is_name = _NAME.fullmatch(name)  # it goes to terminals and into addresses
        return Glimpse(name if is_name else self._repo, repository["isPrivate"], total, changed, rate)

    def _client(self) -> GitHub[Any]:
        """A client without the library's cache: what is posted is not kept, and the cache would never be closed."""
        from githubkit import GitHub  # 200 ms that only a run with history to read should pay

        return GitHub(self._token, base_url=self._api_url, auto_retry=self._again, http_cache=False)

    def _batch(self, api: GitHub[Any], place: Json) -> tuple[Json, Updates]:
        """The next issues: as many in one answer as were had lately, else fewer, else each of a few by itself."""
        for step in range(self._step, len(SIZES)):
            self._retries = 1 if step < len(SIZES) - 1 else RETRIES
            try:
                page = self._permitted_page(api, {**place, "first": SIZES[step]})
            except Unreachable:  # too much for one answer, or a part of it is missing, which must not count as gone
                continue
            self._settle(step)
            return page, read_each(_listed(page), self._thread)
        self._settle(len(SIZES) - 1)
        page = self._page(api, NUMBERS, {**place, "first": SIZES[-1]})
        return page, read_each(_listed(page), lambda node: read_thread(self._reader, self._own, node["number"])[0])

    def _settle(self, step: int) -> None:
        """Stay at what the server had time for, and after a while try more."""
        self._answered = self._answered + 1 if step == self._step else 1
        self._step = step
        if self._answered >= STEADY:
            self._step, self._answered = max(0, step - 1), 0

    def _permitted_page(self, api: GitHub[Any], variables: Json) -> Json:
        try:
            return self._page(api, self._query, variables)
        except NotPermitted:
            if self._query == WITHOUT_PULLS:
                raise
            self._query = WITHOUT_PULLS
            return self._page(api, self._query, variables)

    def _page(self, api: GitHub[Any], query: str, variables: Json) -> Json:
        issues: Json = self._asked(api, query, variables)["repository"]["issues"]
        return issues

    def _asked(self, api: GitHub[Any], query: str, variables: Json) -> Json:
        from githubkit.exception import GitHubException

        owner, _, name = self._repo.partition("/")
        asked = {"query": query, "variables": {"owner": owner, "name": name, **variables}}
        self.requests += 1
        try:
            response = api.request("POST", self._endpoint, json=asked)
            answer = response.json()
        except (GitHubException, ValueError) as error:  # a ValueError: what came is no JSON
            raise _meaning(error) from error
        data = _data(answer, response.headers)
        if not data.get("repository"):
            raise OutOfSight(_OUT_OF_SIGHT, gives("issues: write"))
        if data["repository"].get("hasIssuesEnabled") is False:  # and then the list is empty, as if all were gone
            raise IssuesOff(ISSUES_OFF)
        return data

    def _again(self, error: GitHubException, tries: int) -> RetryOption:
        """Only a fault of the server is worth a second try; a limit is not waited for here."""
        from githubkit.exception import RequestFailed
        from githubkit.retry import RetryOption

        is_fault = isinstance(error, RequestFailed) and error.response.status_code >= 500
        again = is_fault and tries < self._retries
        self.requests += again
        return RetryOption(again, timedelta(seconds=2**tries / 2))

    def _thread(self, node: Json) -> Record:
        comments: list[Any]
        issue, comments, events = issue_json(node, self._repo)
        if node["comments"]["pageInfo"]["hasNextPage"] or node["timelineItems"]["pageInfo"]["hasNextPage"]:
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


def _with_sources(timeline: list[Json], told: list[Json]) -> list[Json]:
    """The items of REST's timeline with the sources that GraphQL told of the same events: what closed an issue."""
    known = {(event["event"], event["created_at"]): event.get("source") for event in told}
    named = [{**item, "event": str(item.get("event"))} for item in timeline]
    return [{"source": known.get((item["event"], item.get("created_at"))), **item} for item in named]


def _meaning(error: GitHubException | ValueError) -> ForgeError:
    from githubkit.exception import RequestFailed

    if not isinstance(error, RequestFailed):
        return Unreachable(f"GitHub could not be reached ({type(error).__name__})", GOES_ON)
    answer = error.response
    if answer.status_code in (404, 405, 410):
        return NoGraphQL(f"this server has no GraphQL API ({answer.status_code})")
    if answer.status_code >= 500:
        return Unreachable(f"GitHub's GraphQL API answers {answer.status_code}", GOES_ON)
    try:
        told = answer.json()
    except ValueError:  # a page of a server in between
        told = None
    return _for_reading(meaning_of(answer.status_code, answer.headers, told, "/graphql"))


def _data(answer: Any, headers: Mapping[str, str]) -> Json:
    """The data of an answer, read without githubkit's models, which refuse a lone surrogate in an issue's text.

    An answer with errors raises what they mean, although a part of the data may be there: what is missing in it must
    not count as gone.
    """
    found = answer if isinstance(answer, dict) else {}
    errors, data = found.get("errors"), found.get("data")
    if isinstance(data, dict) and not errors:
        return data
    meaning = meaning_of_errors(errors, headers)
    if isinstance(meaning, Gone) and not (isinstance(data, dict) and data.get("repository")):
        raise OutOfSight(_OUT_OF_SIGHT, gives("issues: write"))
    raise _for_reading(meaning)


def _for_reading(meaning: ForgeError) -> ForgeError:
    """What a fault means for a reading: where it is no limit and no right that is missing, fewer issues may go."""
    return Unreachable(str(meaning), GOES_ON) if type(meaning) in (ForgeError, Gone, Invalid) else meaning


KEPT = 100
"""Requests of an hour that a reading of history leaves to the events of that hour."""


class HistorySource(Protocol):
    """Everything that changed since a moment, in batches; the cursor of a batch is safe once it is remembered."""

    def since(self, moment: datetime | None) -> Iterator[Updates]: ...


class EitherHistory:
    """The first way where the server has it, else the other: an older company server has no GraphQL."""

    def __init__(self, graphql: HistorySource, rest: HistorySource, note: Callable[[str], None]) -> None:
        self._graphql, self._rest, self._note = graphql, rest, note

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """Batches. Raises ForgeError; what came before it is complete."""
        try:
            yield from self._graphql.since(moment)
        except NoGraphQL:
            self._note("This server has no GraphQL: history is read issue by issue, which takes longer.")
            yield from self._rest.since(moment)


class RestingHistory:
    """History that is not asked for, as it is known that ``limit`` is not over."""

    def __init__(self, limit: RateLimited) -> None:
        self._limit = limit

    def since(self, moment: datetime | None) -> Iterator[Updates]:  # noqa: ARG002 - none is asked for
        """Raises RateLimited."""
        raise self._limit


class RestHistory:
    """History by the REST API, for servers without GraphQL: a hundred issues a page, then each one's timeline."""

    def __init__(self, own: OwnCommentRule, reader: Reader) -> None:
        self._own = own
        self._reader = reader

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """Batches of a hundred threads or, where more changed within one second, more; oldest change first."""
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
        keep_some(self._reader)
        events = self._reader.timeline(issue["number"]) if issue.get("comments") or has_ended(issue) else []
        return thread_of(issue, split_own(comments_of(events), self._own)[0], events)


def keep_some(reader: Reader) -> None:
    """Raise RateLimited before the hour's requests are used up: an event of this hour wants to be answered."""
    rate = reader.rate
    if rate and rate.left < min(KEPT, rate.limit // 2):
        told = "most of this hour's requests are used, the rest is left to new issues"
        raise RateLimited(told, until=rate.anew, resource=HISTORY)


def _issues(listed: list[dict[str, Any]]) -> dict[ListedIssue, dict[str, Any]]:
    issues = (issue for issue in listed if not issue.get("pull_request"))
    return {
        ListedIssue(issue["number"], parse_time(issue["created_at"]), parse_time(issue["updated_at"])): issue
        for issue in issues
    }
