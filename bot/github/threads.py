"""Converts GitHub's JSON of an issue, its comments and its timeline to a Thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.domain.post import COMMENT, SLOTS
from bot.domain.thread import Thread
from bot.domain.thread_json import KEPT_EVENTS, thread_from_archive
from bot.reading.references import closed_by_text

Json = Mapping[str, Any]

REACTIONS = ("+1", "-1", "laugh", "hooray", "heart")
"""Reactions to comments that are stored. The other three we give ourselves, to commands."""


def object_in(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[dict[str, Any]]:
    """Return the objects in ``value`` if it is a list, else none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class OwnComment:
    """One of our comments on a thread."""

    id: int
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class OwnCommentRule:
    """Recognises our own comments by both the author and the hidden marker."""

    login: str
    marker: str

    def slot(self, comment: Json) -> str | None:
        """Return the slot of our post (`bot.domain.post.PostKey`), None for a comment that is not ours."""
        first, head = _first_line(comment), self.marker.removesuffix("-->")
        if not self._is_by_us(comment):
            return None
        if first == self.marker:
            return COMMENT
        slot = first.removeprefix(head).removesuffix(" -->").replace("=", ":")
        return slot if first == f"{head}{slot.replace(':', '=')} -->" and SLOTS.fullmatch(slot) else None

    def _is_by_us(self, comment: Json) -> bool:
        author = (comment.get("user") or comment.get("actor") or {}).get("login")
        return str(author or "").lower() == self.login.lower()


def _first_line(comment: Json) -> str:
    return str(comment.get("body") or "").lstrip("\ufeff \t\r\n").partition("\n")[0].rstrip()


def own_comment(comment: Json) -> OwnComment:
    return OwnComment(
        id=int(comment["id"]),
        text=str(comment.get("body") or ""),
        url=str(comment.get("html_url") or ""),
    )


def split_own(comments: Iterable[Json], own: OwnCommentRule) -> tuple[list[Json], list[OwnComment]]:
    """Return the comments of others, and our comments in the main slot, oldest first; our other posts are left out."""
    with_slots = [(comment, own.slot(comment)) for comment in comments]
    others = [comment for comment, slot in with_slots if slot is None]
    return others, _oldest_first(comment for comment, slot in with_slots if slot == COMMENT)


def find_post(comments: Iterable[Json], slot: str, own: OwnCommentRule) -> OwnComment | None:
    """Return our oldest post in this slot."""
    return next(iter(_oldest_first(comment for comment in comments if own.slot(comment) == slot)), None)


def _oldest_first(comments: Iterable[Json]) -> list[OwnComment]:
    return sorted(map(own_comment, comments), key=lambda comment: comment.id)


def thread_of(issue: Json, comments: Sequence[Json], events: Sequence[Json] = ()) -> Thread:
    """Convert an issue of the REST API. ``events`` are items of its timeline."""
    user = issue.get("user") or {}
    return thread_from_archive(
        {
            "id": issue["number"],
            "kind": "pull" if issue.get("pull_request") else "issue",
            "title": issue.get("title"),
            "body": issue.get("body"),
            "author": user.get("login"),
            "author_association": issue.get("author_association") or "NONE",
            "is_bot": user.get("type") == "Bot",
            "created_at": issue["created_at"],
            "updated_at": issue.get("updated_at"),
            "state": issue.get("state"),
            "state_reason": issue.get("state_reason"),
            "closed_at": issue.get("closed_at"),
            "closed_by": (issue.get("closed_by") or {}).get("login"),
            "locked": issue.get("locked"),
            "draft": issue.get("draft"),
            "merged_at": (issue.get("pull_request") or {}).get("merged_at"),
            "labels": [label if isinstance(label, str) else label.get("name") for label in issue.get("labels") or ()],
            "comments": [message_fields(comment) for comment in comments],
            "events": [event for item in events if (event := _event(item, issue))],
        }
    )


def message_fields(comment: Json) -> dict[str, object]:
    """Convert a comment to the shape of an archive."""
    user = comment.get("user") or comment.get("actor") or {}
    return {
        "id": comment["id"],
        "author": user.get("login"),
        "association": comment.get("author_association") or "NONE",
        "is_bot": user.get("type") == "Bot",
        "created_at": comment["created_at"],
        "updated_at": comment.get("updated_at"),
        "body": comment.get("body"),
        "reactions": _reactions(comment),
    }


def _reactions(comment: Json) -> dict[str, int]:
    counts = comment.get("reactions") or {}
    return {name: counts[name] for name in REACTIONS if isinstance(counts.get(name), int)}


def _event(item: Json, issue: Json) -> dict[str, object] | None:
    name = item.get("event")
    if name not in KEPT_EVENTS or not item.get("created_at"):
        return None
    event: dict[str, object] = {
        "event": name,
        "at": item["created_at"],
        "actor": (item.get("actor") or {}).get("login"),
        "commit": item.get("commit_id"),
    }
    source, home = (item.get("source") or {}).get("issue") or {}, issue.get("repository_url")
    if source.get("number") and source.get("repository_url", home) == home:
        event |= {"source": source["number"], "source_kind": "pull" if source.get("pull_request") else "issue"}
    if event.get("source_kind") == "pull" and name == "cross-referenced":
        repo = "/".join(str(home).split("/")[-2:])
        text = f"{source.get('title') or ''}\n\n{source.get('body') or ''}"
        event["merged_at"] = object_in(source["pull_request"]).get("merged_at")
        event["closes"] = source.get("closes") or issue["number"] in closed_by_text(text, repo)
    return event
