"""The timeline of an issue as the REST API shows it: comments and events in one list."""

from __future__ import annotations

from tests.fakes.objects import Json, Shapes, node_id
from tests.fakes.project_objects import repository_shape
from tests.fakes.state import Comment, Event, Issue


def in_order(issue: Issue) -> list[Comment | Event]:
    entries: list[Comment | Event] = [*issue.comments, *issue.events]
    return sorted(entries, key=lambda entry: (entry.created_at if isinstance(entry, Comment) else entry.at, entry.id))


def timeline_shape(shapes: Shapes, issue: Issue, entry: Comment | Event) -> Json:
    if isinstance(entry, Event):
        return event_shape(shapes, issue, entry)
    comment = shapes.comment(entry)
    return comment | {"event": "commented", "actor": comment["user"]}


def event_shape(shapes: Shapes, issue: Issue, event: Event) -> Json:
    if event.kind == "cross-referenced":
        return _cross_reference_shape(shapes, event)
    base = shapes.repo_url(issue.repo)
    shape = {
        "id": event.id,
        "node_id": node_id("EV", event.id),
        "url": f"{base}/issues/events/{event.id}",
        "actor": shapes.account(event.actor),
        "event": event.kind,
        "commit_id": event.commit,
        "commit_url": f"{base}/commits/{event.commit}" if event.commit else None,
        "created_at": event.at,
        "performed_via_github_app": None,
    }
    return shape | _details(shapes, issue, event)


def _details(shapes: Shapes, issue: Issue, event: Event) -> Json:
    match event.kind:
        case "closed" | "reopened":
            return {"state_reason": event.detail}
        case "labeled" | "unlabeled":
            label = shapes.label(issue.repo, event.detail or "")
            return {"label": {"name": label["name"], "color": label["color"]}}
        case "locked":
            return {"lock_reason": event.detail}
        case "renamed" if event.renamed:
            return {"rename": {"from": event.renamed[0], "to": event.renamed[1]}}
    return {}


def _cross_reference_shape(shapes: Shapes, event: Event) -> Json:
    """A cross-reference has no id of its own; its source is a whole issue."""
    assert event.other is not None
    source = shapes.issue(event.other)
    return {
        "event": event.kind,
        "actor": shapes.account(event.actor),
        "created_at": event.at,
        "updated_at": event.at,
        "source": {"type": "issue", "issue": source | {"repository": repository_shape(shapes, event.other.repo)}},
    }
