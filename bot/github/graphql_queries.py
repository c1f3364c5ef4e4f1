"""The GraphQL queries for bulk history, and their answers in the shape of the REST API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from bot.domain.thread_json import parse_time

Json = Mapping[str, Any]

LINKED_PULLS = """
        closedByPullRequestsReferences(first: 5, includeClosedPrs: true, orderByState: true) {
          nodes { number mergedAt repository { nameWithOwner } }
        }"""

ISSUE_FIELDS = """
        number title body state stateReason(enableDuplicate: true) locked createdAt updatedAt closedAt
        author { login __typename } authorAssociation
        labels(first: 100) { nodes { name } }LINKED
        comments(PART) {
          totalCount
          pageInfo { hasNextPage }
          nodes {
            databaseId body createdAt updatedAt authorAssociation author { login __typename }
            reactionGroups { content reactors { totalCount } }
          }
        }
        timelineItems(
          PART,
          itemTypes: [CLOSED_EVENT, REOPENED_EVENT, CROSS_REFERENCED_EVENT, REFERENCED_EVENT, MARKED_AS_DUPLICATE_EVENT]
        ) {
          pageInfo { hasNextPage }
          nodes {
            __typename
            ... on ClosedEvent {
              createdAt actor { login __typename }
              closer { __typename ... on Commit { oid } ... on PullRequest { number repository { nameWithOwner } } }
            }
            ... on ReopenedEvent { createdAt actor { login __typename } }
            ... on ReferencedEvent { createdAt actor { login __typename } commit { oid } }
            ... on MarkedAsDuplicateEvent {
              createdAt actor { login __typename }
              canonical { __typename ... on Issue { number } ... on PullRequest { number } }
            }
            ... on CrossReferencedEvent {
              createdAt actor { login __typename } isCrossRepository willCloseTarget
              source { __typename ... on Issue { number } ... on PullRequest { number mergedAt } }
            }
          }
        }"""
"""What is read of an issue. LINKED stands for the pull requests linked to it, PART for which comments and events."""

_LIST_QUERY = """
query TITLE($owner: String!, $name: String!, $first: Int!, $after: String, $since: DateTime) {
  repository(owner: $owner, name: $name) {
    hasIssuesEnabled
    issues(
      first: $first, after: $after, filterBy: {since: $since}, orderBy: {field: UPDATED_AT, direction: ASC}
    ) {
      totalCount
      pageInfo { hasNextPage endCursor }
      nodes { FIELDS }
    }
  }
}
"""
_HISTORY_QUERY = _LIST_QUERY.replace("TITLE", "History").replace("FIELDS", ISSUE_FIELDS.replace("PART", "first: 100"))
ISSUES_QUERY = _HISTORY_QUERY.replace("LINKED", LINKED_PULLS)
ISSUES_WITHOUT_PULLS = _HISTORY_QUERY.replace("LINKED", "")
"""For a token that may not read pull requests: GitHub refuses any query that asks for them."""

NUMBERS_QUERY = _LIST_QUERY.replace("TITLE", "Numbers").replace("FIELDS", "number createdAt updatedAt")
"""The same issues by number only, for when their texts are too large for one answer."""

GLIMPSE_QUERY = """
query Glimpse($owner: String!, $name: String!, $since: DateTime) {
  rateLimit { limit remaining resetAt }
  repository(owner: $owner, name: $name) {
    nameWithOwner isPrivate hasIssuesEnabled
    issues(first: 1) { totalCount }
    changed: issues(first: 1, filterBy: {since: $since}) { totalCount }
  }
}
"""
"""How much there is to read, at the cost of one point."""

CLOSING_PULL_QUERY = """
query ClosingPull($owner: String!, $name: String!, $issue: Int!, $pull: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $issue) {
      state stateReason(enableDuplicate: true) createdAt
      closedByPullRequestsReferences(first: 5, includeClosedPrs: true, orderByState: true) { nodes { ...Pull } }
      timelineItems(last: 20, itemTypes: [CLOSED_EVENT, REOPENED_EVENT]) {
        nodes {
          __typename
          ... on ClosedEvent { createdAt closer { __typename ... on PullRequest { ...Pull } } }
          ... on ReopenedEvent { createdAt }
        }
      }
    }
    issueOrPullRequest(number: $pull) { __typename ... on PullRequest { ...Pull } }
  }
}
fragment Pull on PullRequest {
  number title body mergedAt
  mergeCommit { oid }
  repository { nameWithOwner }
  files(first: 100) { nodes { path } }
}
"""
"""What closed an issue according to GitHub, and one more pull request."""

_REACTION_NAMES = {
    "THUMBS_UP": "+1", "THUMBS_DOWN": "-1", "LAUGH": "laugh", "HOORAY": "hooray",
    "CONFUSED": "confused", "HEART": "heart", "ROCKET": "rocket", "EYES": "eyes",
}  # fmt: skip
_EVENT_NAMES = {
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "ReferencedEvent": "referenced",
    "CrossReferencedEvent": "cross-referenced",
    "MarkedAsDuplicateEvent": "marked_as_duplicate",
}


def issue_json(node: Json, repo: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return an issue in the shape of REST: the issue, its comments, and the events of its timeline."""
    home = f"/repos/{repo}"
    issue = {
        "number": node["number"],
        "title": node["title"],
        "body": node["body"],
        "state": str(node["state"]).lower(),
        "state_reason": str(node["stateReason"]).lower() if node.get("stateReason") else None,
        "locked": node["locked"],
        "created_at": node["createdAt"],
        "updated_at": node["updatedAt"],
        "closed_at": node["closedAt"],
        "user": user_json(node["author"]),
        "author_association": node["authorAssociation"],
        "labels": [label["name"] for label in (node.get("labels") or {}).get("nodes") or () if label],
        "comments": node["comments"]["totalCount"],
        "repository_url": home,
    }
    comments = [comment_json(comment) for comment in node["comments"]["nodes"] if comment]
    return issue, comments, with_linked_pull(node, events_of(node, repo), repo)


def with_linked_pull(node: Json, events: Sequence[Json], repo: str) -> list[dict[str, Any]]:
    """Return ``events`` of an issue with its linked, merged pull request as the source of the last close.

    Only if that close names no source, as a person closed the issue, and as completed. The pull request was merged
    before, but after an earlier close was undone.
    """
    result = [dict(event) for event in events]
    closings = [event for event in result if event["event"] == "closed"]
    if not closings or node["state"] != "CLOSED" or node.get("stateReason") not in (None, "COMPLETED"):
        return result
    last = closings[-1]
    closed_at = parse_time(last["created_at"])
    reopened = [parse_time(event["created_at"]) for event in result if event["event"] == "reopened"]
    since = max((at for at in reopened if at <= closed_at), default=parse_time(node["createdAt"]))
    merged = [
        (at, pull)
        for pull in linked_pulls(node, repo)
        if pull.get("mergedAt") and since <= (at := parse_time(pull["mergedAt"])) <= closed_at
    ]
    if merged and not last.get("commit_id") and not last.get("source"):
        pull = max(merged, key=itemgetter(0))[1]
        last["source"] = _source({**pull, "__typename": "PullRequest"}, f"/repos/{repo}")
    return result


def events_of(node: Json, repo: str) -> list[dict[str, Any]]:
    """The events of an issue in the shape of a REST timeline."""
    return [event for item in node["timelineItems"]["nodes"] if item for event in _events(item, f"/repos/{repo}")]


def closing_pull(node: Json, repo: str) -> Json | None:
    """The merged pull request that closed an issue, from the answer to `CLOSING_PULL_QUERY`; None if none did."""
    closings = [event for event in with_linked_pull(node, events_of(node, repo), repo) if event["event"] == "closed"]
    number = closings[-1]["source"]["issue"]["number"] if closings and closings[-1].get("source") else None
    closers = (item.get("closer") or {} for item in node["timelineItems"]["nodes"] if item)
    found = (pull for pull in (*closers, *linked_pulls(node, repo)) if number and pull.get("number") == number)
    return next(found, None) if node["state"] == "CLOSED" else None


def linked_pulls(node: Json, repo: str) -> list[Json]:
    """The pull requests of this repository that are linked to an issue."""
    linked = (node.get("closedByPullRequestsReferences") or {}).get("nodes") or ()
    return [pull for pull in linked if pull and _is_home(pull, repo)]


def _is_home(pull: Json, repo: str) -> bool:
    return str((pull.get("repository") or {}).get("nameWithOwner")).lower() == repo.lower()


def _source(thread: Json, home: str, *, closes: bool = False) -> dict[str, Any]:
    is_pull = thread.get("__typename") == "PullRequest"
    pull: dict[str, Any] = {"pull_request": {"merged_at": thread.get("mergedAt")}, "closes": closes} if is_pull else {}
    return {"issue": {"number": thread["number"], "repository_url": home, **pull}}


def comment_json(node: Json) -> dict[str, Any]:
    """A comment in the shape of REST."""
    return {
        "id": node["databaseId"],
        "body": node["body"],
        "created_at": node["createdAt"],
        "updated_at": node["updatedAt"],
        "user": user_json(node["author"]),
        "author_association": node["authorAssociation"],
        "reactions": counts(node),
    }


def _events(node: Json, home: str) -> Iterator[dict[str, Any]]:
    """An item of the timeline. A close by a pull request has it as its source, which REST does not show."""
    name = _EVENT_NAMES.get(str(node.get("__typename")))
    if name is None:
        return
    event: dict[str, Any] = {"event": name, "created_at": node["createdAt"], "actor": user_json(node.get("actor"))}
    closer = node.get("closer") or node.get("commit") or {}
    event["commit_id"] = closer.get("oid")
    closed_by = closer if _is_home(closer, home.removeprefix("/repos/")) else {}
    source = node.get("source") or node.get("canonical") or closed_by
    if source.get("number") and not node.get("isCrossRepository"):
        event["source"] = _source(source, home, closes=node.get("willCloseTarget") is True)
    yield event


def user_json(actor: Json | None) -> dict[str, Any] | None:
    """An actor in the shape of REST, in which the login of a bot ends in [bot]; None for a deleted account."""
    if not actor:
        return None
    is_bot = actor.get("__typename") == "Bot"
    login = str(actor.get("login"))
    if is_bot and not login.endswith("[bot]"):
        login += "[bot]"
    return {"login": login, "type": "Bot" if is_bot else "User"}


def counts(node: Json) -> dict[str, int]:
    """How many reactions there are, under the names of REST."""
    groups = node.get("reactionGroups") or ()
    totals = {_REACTION_NAMES.get(group["content"], ""): int(group["reactors"]["totalCount"]) for group in groups}
    return {name: count for name, count in totals.items() if name and count}
