"""The GraphQL query for bulk history, and its answer in the shape of the REST API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

ISSUES = """
query History($owner: String!, $name: String!, $first: Int!, $after: String, $since: DateTime) {
  repository(owner: $owner, name: $name) {
    issues(first: $first, after: $after, filterBy: {since: $since}, orderBy: {field: UPDATED_AT, direction: ASC}) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body state stateReason(enableDuplicate: true) locked createdAt updatedAt closedAt
        author { login __typename } authorAssociation
        labels(first: 100) { nodes { name } }
        reactionGroups { content reactors { totalCount } }
        comments(first: 100) {
          totalCount
          pageInfo { hasNextPage }
          nodes {
            databaseId body createdAt updatedAt authorAssociation author { login __typename }
            reactionGroups { content reactors { totalCount } }
          }
        }
        timelineItems(
          first: 100,
          itemTypes: [CLOSED_EVENT, REOPENED_EVENT, CROSS_REFERENCED_EVENT, REFERENCED_EVENT, MARKED_AS_DUPLICATE_EVENT]
        ) {
          pageInfo { hasNextPage }
          nodes {
            __typename
            ... on ClosedEvent {
              createdAt actor { login __typename }
              closer { ... on Commit { oid } ... on PullRequest { number } }
            }
            ... on ReopenedEvent { createdAt actor { login __typename } }
            ... on ReferencedEvent { createdAt actor { login __typename } commit { oid } }
            ... on MarkedAsDuplicateEvent {
              createdAt actor { login __typename }
              canonical { __typename ... on Issue { number } ... on PullRequest { number } }
            }
            ... on CrossReferencedEvent {
              createdAt actor { login __typename } isCrossRepository
              source { __typename ... on Issue { number } ... on PullRequest { number } }
            }
          }
        }
      }
    }
  }
}
"""

_REACTIONS = {
    "THUMBS_UP": "+1", "THUMBS_DOWN": "-1", "LAUGH": "laugh", "HOORAY": "hooray",
    "CONFUSED": "confused", "HEART": "heart", "ROCKET": "rocket", "EYES": "eyes",
}  # fmt: skip
_EVENTS = {
    "ClosedEvent": "closed",
    "ReopenedEvent": "reopened",
    "ReferencedEvent": "referenced",
    "CrossReferencedEvent": "cross-referenced",
    "MarkedAsDuplicateEvent": "marked_as_duplicate",
}


def issue_json(node: Json, repo: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """An issue of the answer as REST gives it: the issue, its comments, its timeline's events."""
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
        "user": _user(node["author"]),
        "author_association": node["authorAssociation"],
        "labels": [label["name"] for label in (node.get("labels") or {}).get("nodes") or () if label],
        "reactions": _counts(node),
        "comments": node["comments"]["totalCount"],
        "repository_url": home,
    }
    comments = [_comment(comment) for comment in node["comments"]["nodes"] if comment]
    events = [event for item in node["timelineItems"]["nodes"] if item for event in _events(item, home)]
    return issue, comments, events


def _comment(node: Json) -> dict[str, Any]:
    return {
        "id": node["databaseId"],
        "body": node["body"],
        "created_at": node["createdAt"],
        "updated_at": node["updatedAt"],
        "user": _user(node["author"]),
        "author_association": node["authorAssociation"],
        "reactions": _counts(node),
    }


def _events(node: Json, home: str) -> Iterator[dict[str, Any]]:
    """One item of the timeline; a closing by a pull request says so by a cross-reference of its own, as in REST."""
    name = _EVENTS.get(str(node.get("__typename")))
    if name is None:
        return
    event: dict[str, Any] = {"event": name, "created_at": node["createdAt"], "actor": _user(node.get("actor"))}
    closer = node.get("closer") or node.get("commit") or {}
    event["commit_id"] = closer.get("oid")
    source = node.get("source") or node.get("canonical") or {}
    if source.get("number") and not node.get("isCrossRepository"):
        pull: dict[str, Any] = {"pull_request": source} if source.get("__typename") == "PullRequest" else {}
        event["source"] = {"issue": {"number": source["number"], "repository_url": home, **pull}}
    yield event


def _user(actor: Json | None) -> dict[str, Any] | None:
    """An actor in the shape of REST, where the login of a bot ends in [bot]. A deleted account is None."""
    if not actor:
        return None
    is_bot = actor.get("__typename") == "Bot"
    login = str(actor.get("login"))
    if is_bot and not login.endswith("[bot]"):
        login += "[bot]"
    return {"login": login, "type": "Bot" if is_bot else "User"}


def _counts(node: Json) -> dict[str, int]:
    groups = node.get("reactionGroups") or ()
    counts = {_REACTIONS.get(group["content"], ""): int(group["reactors"]["totalCount"]) for group in groups}
    return {name: count for name, count in counts.items() if name and count}
