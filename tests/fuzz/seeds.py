"""What inputs are made from: the sample's texts, hostile ones, and JSON like that of GitHub and the memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.comment.payloads import PAYLOADS

ROOT = Path(__file__).resolve().parents[2]
AT = "2026-11-03T19:12:00Z"
LATER = "2026-11-04T08:00:00Z"


@cache
def history() -> tuple[dict[str, Any], ...]:
    lines = (ROOT / "sample" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


@cache
def texts() -> tuple[str, ...]:
    """Texts as people write them, and hostile ones."""
    messages = [message for thread in history() for message in (thread, *(thread.get("comments") or ()))]
    bodies = [message["body"] for message in messages if message.get("body")]
    pages = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))[:4]]
    commands = ["/precedent search cookie path", "> q\n/precedent wrong #4", "What did we decide about caching in #4?"]
    return (*(text[:4_000] for text in (*bodies, *pages)), *PAYLOADS, *commands)


def threads() -> Sequence[Any]:
    """The longest threads of the sample, as an archive has them."""
    return sorted(history(), key=lambda thread: -len(json.dumps(thread)))[:12]


def _user(login: str = "octocat", kind: str = "User") -> dict[str, Any]:
    return {"login": login, "id": 1, "type": kind}


def issue() -> dict[str, Any]:
    """An issue as the REST API gives it."""
    return {
        "number": 7, "title": "Login loops", "body": texts()[0], "user": _user(), "author_association": "NONE",
        "created_at": AT, "updated_at": LATER, "closed_at": LATER, "state": "closed", "state_reason": "completed",
        "closed_by": _user("hubot"), "locked": False, "draft": False, "labels": ["bug", {"name": "auth"}],
        "reactions": {"+1": 2, "eyes": 1, "total_count": 3}, "repository_url": "/repos/octo-org/linkbarn",
        "pull_request": None,
    }  # fmt: skip


def manifest() -> dict[str, Any]:
    """What the manifest of a memory holds."""
    request = {"id": 7, "comment_id": 12, "name": "search", "by": "octocat", "at": AT, "state": "pending"}
    return {
        "format": 2, "analyser": "x", "cursor": AT, "threads": 3, "pending": [7, "ABC-1"],
        "written": ["2026-11-03T09:00:00Z", "2026-11-03T10:00:00Z"],
        "index": {"_MAIN_1.toc": "0" * 64}, "model": {"model/ranking.json": "1" * 64},
        "learned_from": 3, "embedder": "", "pages": {"docs": "abc"}, "recent": [request],
        "renewals_due": [{"id": 7, "slot": "reply:12", "about": 3, "at": AT}], "hidden_by_github": [9],
        "notified_until": AT, "notifying_from": AT, "discussions": {"began": AT, "is_done": True},
        "remembered": [[4, AT]],
    }  # fmt: skip


def _comment(number: int, text: str) -> dict[str, Any]:
    return {
        "id": number, "body": text, "user": _user("monalisa"), "author_association": "MEMBER", "created_at": AT,
        "updated_at": LATER, "reactions": {"heart": 1}, "html_url": "https://github.com/o/r/issues/7#issuecomment-1",
    }  # fmt: skip


def rest_threads() -> Sequence[Any]:
    """Issues with comments and timelines as the REST API gives them."""
    source = {"issue": {"number": 9, "pull_request": {}, "repository_url": "/repos/octo-org/linkbarn"}}
    events = [
        {"event": "closed", "created_at": LATER, "actor": _user("hubot"), "commit_id": "ab" * 20},
        {"event": "cross-referenced", "created_at": AT, "actor": _user(), "source": source},
        {"event": "labeled", "created_at": AT, "label": {"name": "bug"}},
        {"event": "commented", **_comment(12, "Fixed in v2.")},
    ]
    comments = [_comment(10, "Which version?"), _comment(11, "We decided to drop it. Fixed in #9.")]
    pull = issue() | {"pull_request": {"merged_at": LATER}, "state": "open", "closed_at": None}
    return [{"issue": issue(), "comments": comments, "events": events}, {"issue": pull, "comments": [], "events": []}]


def graph_nodes() -> Sequence[Any]:
    """Issues as the GraphQL API gives them."""
    actor = {"login": "hubot", "__typename": "User"}
    pull = {"__typename": "PullRequest", "number": 9, "mergedAt": LATER, "repository": {"nameWithOwner": "o/r"}}
    thumbs = [{"content": "THUMBS_UP", "reactors": {"totalCount": 2}}]
    comment = {
        "databaseId": 10, "body": "Fixed in #9.", "createdAt": AT, "updatedAt": AT, "authorAssociation": "MEMBER",
        "author": {"login": "dependabot", "__typename": "Bot"}, "reactionGroups": thumbs,
    }  # fmt: skip
    own_fields = {
        "ClosedEvent": {"closer": pull},
        "ReopenedEvent": {"actor": None},
        "ReferencedEvent": {"commit": {"oid": "ab" * 20}},
        "MarkedAsDuplicateEvent": {"canonical": {"number": 3}},
        "CrossReferencedEvent": {"willCloseTarget": True, "source": pull},
    }
    items = [{"__typename": name, "createdAt": AT, "actor": actor} | own for name, own in own_fields.items()]
    node = {
        "number": 7, "title": "Login loops", "body": texts()[0], "state": "CLOSED", "stateReason": "COMPLETED",
        "locked": False, "createdAt": AT, "updatedAt": LATER, "closedAt": LATER, "author": actor,
        "authorAssociation": "NONE", "labels": {"nodes": [{"name": "bug"}]}, "reactionGroups": thumbs,
        "comments": {"totalCount": 1, "pageInfo": {"hasNextPage": False}, "nodes": [comment]},
        "closedByPullRequestsReferences": {"nodes": [pull]},
        "timelineItems": {"pageInfo": {"hasNextPage": False}, "nodes": items},
    }  # fmt: skip
    return [node, node | {"timelineItems": {"nodes": items[:1]}, "author": None}]


def payloads() -> Sequence[bytes]:
    """Events as GitHub delivers them."""
    repository = {"full_name": "octo-org/linkbarn", "id": 1}
    moved = {"new_issue": {"number": 4}, "new_repository": repository}
    events = [
        {"action": "opened", "issue": issue(), "repository": repository, "sender": _user()},
        {"action": "created", "issue": issue(), "comment": _comment(10, "See #3."), "repository": repository},
        {"action": "transferred", "issue": issue(), "changes": moved},
        {"inputs": {"run": "answer", "issue": "7", "mode": None}, "ref": "refs/heads/main"},
        {"schedule": "17 3 * * *"},
    ]
    return [json.dumps(event).encode() for event in events]
