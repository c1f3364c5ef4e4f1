"""githubkit for bulk: history by GraphQL, fifty issues with their comments and timeline in one request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from bot.archive import parse_time, stamp
from bot.github.catch_up import News, comments_of, read_thread
from bot.github.errors import ForgeError, Gone, NotPermitted, Unauthorised, Unreachable
from bot.github.forge import Reader
from bot.github.meaning import limit_of
from bot.github.queries import ISSUES, NUMBERS, WITHOUT_PULLS, issue_json, with_linked_pull
from bot.github.threads import Own, split_own, thread_of
from bot.model import Record

if TYPE_CHECKING:
    from githubkit import GitHub
    from githubkit.exception import GitHubException
    from githubkit.retry import RetryOption

Json = dict[str, Any]
PER_PAGE = 50
"""Issues a request asks for: with a hundred comments and events each it stays far below 500,000 nodes."""

FEW = 5
"""Issues that it asks for where the server could not answer for fifty: it has ten seconds for an answer."""

RETRIES = 3
"""Repeats of a request after a 5xx, after 0.5, 1 and 2 seconds."""

_GO_ON = "the next run goes on from here"
_OUT_OF_SIGHT = "the token cannot see this repository's issues: give the job 'issues: write'"


class NoGraphQL(ForgeError):
    """The server has no GraphQL API."""


class GraphQLHistory:
    """History by GraphQL; long threads, and those that the server cannot put into one answer, are read by REST."""

    def __init__(self, api_url: str, token: str, repo: str, own: Own, reader: Reader) -> None:
        self._api_url, self._token, self._repo = api_url, token, repo
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
                place = {"since": stamp(moment), "after": after}
                page, records = self._batch(api, place)
                ahead = page["pageInfo"]["hasNextPage"]
                cursor = max((parse_time(node["updatedAt"]) for node in page["nodes"] if node), default=None)
                yield News(tuple(records), {}, cursor, not ahead, total=None if after else page["totalCount"])
                if not ahead:
                    return
                after = page["pageInfo"]["endCursor"]

    def _batch(self, api: GitHub[Any], place: Json) -> tuple[Json, list[Record]]:
        """The next issues: many in one answer, else a few, else each of a few by itself."""
        for size in (PER_PAGE, FEW):
            try:
                page = self._permitted_page(api, {**place, "first": size})
            except Unreachable:  # too much for one answer, or a part of it is missing, which must not count as gone
                continue
            return page, [self._thread(node) for node in page["nodes"] if node]
        page = self._page(api, NUMBERS, {**place, "first": FEW})
        return page, list(self._one_by_one(node["number"] for node in page["nodes"] if node))

    def _permitted_page(self, api: GitHub[Any], variables: Json) -> Json:
        try:
            return self._page(api, self._query, variables)
        except NotPermitted:
            if self._query == WITHOUT_PULLS:
                raise
            self._query = WITHOUT_PULLS
            return self._page(api, self._query, variables)

    def _page(self, api: GitHub[Any], query: str, variables: Json) -> Json:
        from githubkit.exception import GitHubException

        owner, _, name = self._repo.partition("/")
        asked = {"query": query, "variables": {"owner": owner, "name": name, **variables}}
        self.requests += 1
        try:
            response = api.request("POST", self._endpoint, json=asked)
            answer = response.json()
        except (GitHubException, ValueError) as error:  # a ValueError: what came is no JSON
            raise _meaning(error) from error
        repository = _data(answer, _lower(response.headers)).get("repository")
        if not repository:
            raise NotPermitted(_OUT_OF_SIGHT)
        issues: Json = repository["issues"]
        return issues

    def _thread(self, node: Json) -> Record:
        comments: list[Any]
        issue, comments, events = issue_json(node, self._repo)
        if node["comments"]["pageInfo"]["hasNextPage"] or node["timelineItems"]["pageInfo"]["hasNextPage"]:
            timeline = self._reader.timeline(issue["number"])
            comments = comments_of(timeline)
            events = with_linked_pull(node, _with_sources(timeline, events), self._repo)
        return thread_of(issue, split_own(comments, self._own)[0], events)

    def _one_by_one(self, numbers: Iterator[int]) -> Iterator[Record]:
        for number in numbers:
            try:
                yield read_thread(self._reader, self._own, number)[0]
            except Gone:  # since it was listed; the next run sees what became of it
                continue


def _with_sources(timeline: list[Json], told: list[Json]) -> list[Json]:
    """The items of REST's timeline with the sources that GraphQL told of the same events: what closed an issue."""
    known = {(event["event"], event["created_at"]): event.get("source") for event in told}
    named = [{**item, "event": str(item.get("event"))} for item in timeline]
    return [{"source": known.get((item["event"], item.get("created_at"))), **item} for item in named]


def _again(error: GitHubException, tries: int) -> RetryOption:
    """Only a fault of the server is worth a second try; a limit is not waited for here."""
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
        return limit_of(_lower(error.response.headers))
    if status == 403:
        return NotPermitted(_OUT_OF_SIGHT)
    if status in (404, 405, 410):
        return NoGraphQL(f"this server has no GraphQL API ({status})")
    return Unreachable(f"GitHub's GraphQL API answered {status}: {_GO_ON}")


def _data(answer: Any, headers: Mapping[str, str]) -> Json:
    """The data of an answer, read without githubkit's models, which refuse a lone surrogate in an issue's text.

    An answer with errors raises what they mean, although a part of the data may be there: what is missing in it must
    not count as gone.
    """
    found = answer if isinstance(answer, dict) else {}
    errors = found.get("errors")
    if errors or not isinstance(found.get("data"), dict):
        told = [str(each.get("message")) for each in errors or () if isinstance(each, dict)]
        raise _meaning_of_words("; ".join(told) or "nothing that can be read", headers)
    data: Json = found["data"]
    return data


def _meaning_of_words(words: str, headers: Mapping[str, str]) -> ForgeError:
    """GraphQL answers 200 whatever happened, and says in words what it was."""
    lower = words.lower()
    if "rate limit" in lower:
        return limit_of(headers, words)
    if "not accessible" in lower or "could not resolve to a repository" in lower:
        return NotPermitted(_OUT_OF_SIGHT)
    return Unreachable(f"GitHub's GraphQL API answered: {words:.160}; {_GO_ON}")


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
