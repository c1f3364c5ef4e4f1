"""Looks up the open pull requests that close some issues, or refer to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.domain.bounds import MAX_TITLE
from bot.domain.post import OpenPull
from bot.domain.thread_json import storable_text
from bot.github.client import GitHubClient
from bot.github.threads import object_in, objects_in

Json = Mapping[str, Any]

MAX_ISSUES = 20
"""Issues in one request: about five points of 5,000 an hour.
https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api"""

MAX_PATH = 1_024

_QUERY = """
query OpenPulls($owner: String!, $name: String!NUMBERS) {
  repository(owner: $owner, name: $name) {
    nameWithOwnerISSUES
  }
}
fragment Work on Issue {
  state
  closedByPullRequestsReferences(first: 3, includeClosedPrs: false) { nodes { ...Pull } }
  timelineItems(last: 10, itemTypes: [CROSS_REFERENCED_EVENT]) {
    nodes { ... on CrossReferencedEvent { source { ... on PullRequest { ...Pull } } } }
  }
}
fragment Pull on PullRequest {
  number title isDraft state
  repository { nameWithOwner }
  files(first: 50) { nodes { path } }
}
"""


def find_open_pulls(api: GitHubClient, repo: str, numbers: Sequence[int], now: datetime) -> list[OpenPull]:
    """Look up the open pull requests of ``repo`` (``owner/name``) for these issues, at most MAX_ISSUES, in one request.

    Raises ForgeError. Pull requests of other repositories are left out: not everybody who reads here may read there.
    """
    owner, _, name = repo.partition("/")
    variables = {"owner": owner, "name": name} | {f"n{number}": number for number in numbers}
    declared = "".join(f", $n{number}: Int!" for number in numbers)
    issues = "".join(f"\n    i{number}: issue(number: $n{number}) {{ ...Work }}" for number in numbers)
    text = _QUERY.replace("NUMBERS", declared).replace("ISSUES", issues)
    repository = object_in(api.query(text, variables, "pull-requests: read").get("repository"))
    home = str(repository.get("nameWithOwner"))
    return [
        pull for number in numbers for pull in read_pulls(object_in(repository.get(f"i{number}")), number, home, now)
    ]


def read_pulls(issue: Json, about: int, home: str, now: datetime) -> Iterator[OpenPull]:
    """The pull requests of one issue, each once; those that close it come first."""
    if issue.get("state") != "OPEN":
        return
    closing = objects_in(object_in(issue.get("closedByPullRequestsReferences")).get("nodes"))
    events = objects_in(object_in(issue.get("timelineItems")).get("nodes"))
    referring = [object_in(event.get("source")) for event in reversed(events)]
    seen: set[object] = set()
    for closes, pull in [*((True, one) for one in closing), *((False, one) for one in referring)]:
        number = pull.get("number")
        is_home = str(object_in(pull.get("repository")).get("nameWithOwner")).lower() == home.lower()
        if type(number) is int and number not in seen and pull.get("state") == "OPEN" and is_home:
            seen.add(number)
            title, draft = storable_text(pull.get("title"))[:MAX_TITLE], pull.get("isDraft") is True
            yield OpenPull(about, number, title, closes, draft, _files(pull), now)


def _files(pull: Json) -> tuple[str, ...]:
    listed = objects_in(object_in(pull.get("files")).get("nodes"))
    return tuple(path for file in listed if (path := storable_text(file.get("path"))[:MAX_PATH]))
