"""Reads webhook payloads leniently: repository, installation, and the event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bot.domain.thread_json import parse_number, storable
from bot.errors import UserError
from bot.github.threads import object_in, objects_in


class EventShape(NamedTuple):
    """What tells the bodies of an event from those of all others: the parts that each has, and the event's actions,
    without which its bodies have none."""

    parts: Mapping[str, type]
    actions: frozenset[str] = frozenset()


def _shape(parts: str, actions: str = "", kind: type = dict) -> EventShape:
    return EventShape(dict.fromkeys(parts.split(), kind), frozenset(actions.split()))


_REVISED = "created deleted edited"
_OF_THREAD = "closed deleted edited labeled locked pinned reopened transferred unlabeled unlocked unpinned"

EVENT_SHAPES: Mapping[str, EventShape] = {
    "issues": _shape(
        "issue repository", f"{_OF_THREAD} assigned demilestoned milestoned opened typed unassigned untyped"
    ),
    "issue_comment": _shape("issue comment repository", _REVISED),
    "discussion": _shape("discussion repository", f"{_OF_THREAD} answered category_changed created unanswered"),
    "discussion_comment": _shape("discussion comment repository", _REVISED),
    "push": EventShape({"repository": dict, "ref": str, "commits": list}),
    "gollum": EventShape({"repository": dict, "pages": list}),
    "release": _shape("release repository", f"{_REVISED} prereleased published released unpublished"),
    "repository": _shape(
        "repository",
        "anonymous_access_disabled anonymous_access_enabled archived created deleted edited privatized publicized"
        " renamed transferred unarchived",
    ),
    "installation": _shape("installation.account", "created deleted new_permissions_accepted suspend unsuspend"),
    "installation_repositories": _shape("repositories_added repositories_removed", "added removed", list),
}
"""The events of a webhook that we read. GitHub signs the body of a delivery, but not the header that names its event:
whoever has recorded one can send it again as another. https://docs.github.com/webhooks/webhook-events-and-payloads"""

_COMMON_PARTS = frozenset({"action", "changes", "enterprise", "installation", "organization", "repository", "sender"})
"""Parts that bodies of every event may have. The event of a repository has only these: many others have one more."""

_OWN_PARTS = frozenset().union(*(shape.parts for shape in EVENT_SHAPES.values())) - _COMMON_PARTS


def is_body_of(name: str, payload: Mapping[str, Any]) -> bool:
    """Whether a payload has the parts of this event of `EVENT_SHAPES`, and none of another one."""
    parts, actions = EVENT_SHAPES[name]
    others = payload.keys() - _COMMON_PARTS if name == "repository" else payload.keys() & _OWN_PARTS - parts.keys()
    has_action = isinstance(payload.get("action"), str) if actions else "action" not in payload
    return has_action and not others and all(isinstance(_part(payload, path), kind) for path, kind in parts.items())


def _part(payload: Mapping[str, Any], path: str) -> object:
    *above, last = path.split(".")
    return (_object(payload, above[0]) if above else payload).get(last)


def has_known_action(name: str, payload: Mapping[str, Any]) -> bool:
    actions = EVENT_SHAPES[name].actions
    return not actions or payload.get("action") in actions


@dataclass(frozen=True, slots=True)
class PayloadRepository:
    """The repository of a payload; ``id`` is 0 without one."""

    id: int = 0
    name: str = ""
    default_branch: str = ""


def repository_of(payload: Mapping[str, Any]) -> PayloadRepository:
    repository = _object(payload, "repository")
    return PayloadRepository(
        id=parse_number(repository.get("id")) or 0,
        name=storable(repository.get("full_name"))[:200],
        default_branch=storable(repository.get("default_branch"))[:300],
    )


def installation_of(payload: Mapping[str, Any]) -> int:
    """Return the id of the App's installation, 0 without one."""
    return parse_number(_object(payload, "installation").get("id")) or 0


def account_of(payload: Mapping[str, Any]) -> str:
    """Return the login of the account that installed the App, in installation events; else ""."""
    return storable(_object(_object(payload, "installation"), "account").get("login"))[:100]


def sender_of(payload: Mapping[str, Any]) -> str:
    return storable(_object(payload, "sender").get("login"))[:100]


def comment_of(payload: Mapping[str, Any]) -> str:
    body = _object(payload, "comment").get("body")
    return body if isinstance(body, str) else ""


def repositories_of(payload: Mapping[str, Any], name: str) -> dict[int, str]:
    """Return the repositories in ``repositories``, ``repositories_added`` or ``repositories_removed``, id → name."""
    listed = objects_in(payload.get(name))
    return {
        number: storable(item.get("full_name"))[:200] for item in listed if (number := parse_number(item.get("id")))
    }


def pushed_branch(payload: Mapping[str, Any]) -> str:
    """Return the branch of a push, "" for other events."""
    ref = storable(payload.get("ref"))
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""


def _object(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return object_in(data.get(name))


MAX_PAYLOAD = 25 * 1024 * 1024
"""Bytes; GitHub delivers nothing larger."""

ANSWERABLE_EVENTS = {
    ("issues", "opened"), ("issues", "edited"), ("issue_comment", "created"),
    ("discussion", "created"), ("discussion", "edited"),
}  # fmt: skip
"""Events that may be answered; those of discussions only if a setting allows it. https://docs.github.com/webhooks/webhook-events-and-payloads"""

REMOVAL_EVENTS = {(name, action) for name in ("issues", "discussion") for action in ("deleted", "transferred")}
CATCH_UP_EVENT = "catch-up"
"""The server's own event for a repository whose changes it has missed."""

BACKGROUND_EVENTS = frozenset({"schedule", "workflow_dispatch", CATCH_UP_EVENT})
"""Events that look at the whole repository."""

DISCUSSION_EVENTS = frozenset({"discussion", "discussion_comment"})
ORGANISATION_EVENT = "organisation"
"""Our server's own event: another repository changed, and our comments on these threads show something from it."""

KNOWN_EVENTS = DISCUSSION_EVENTS | {
    "issues",
    "issue_comment",
    "workflow_dispatch",
    "schedule",
    "gollum",
    "push",
    "release",
}


@dataclass(frozen=True, slots=True)
class Event:
    """The relevant parts of an event. They only say where to look: the facts are read from the API.

    ``earlier`` are slightly older comments on the same issue, if one event stands for several. ``numbers``: the threads
    of an `ORGANISATION_EVENT` event.
    ``has_discussions``: whether the payload says that the repository has them switched on; None if it does not say.
    """

    name: str
    action: str = ""
    number: int | None = None
    is_pull: bool = False
    comment_id: int | None = None
    comment_author: str = ""
    moved_to: str | None = None
    inputs: tuple[tuple[str, str], ...] = ()
    earlier: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    has_discussions: bool | None = field(default=None, compare=False)

    @property
    def is_of_discussion(self) -> bool:
        return self.name in DISCUSSION_EVENTS

    @property
    def is_background(self) -> bool:
        """Whether nobody waits for it. Whoever starts a run for one thread does."""
        return self.name in BACKGROUND_EVENTS and self.number is None

    @property
    def is_maintenance(self) -> bool:
        """Whether nobody waits for it, and it is time for what is not urgent."""
        return self.is_background and self.name != CATCH_UP_EVENT

    @property
    def may_be_answered(self) -> bool:
        return (self.name, self.action) in ANSWERABLE_EVENTS

    @property
    def forgets(self) -> bool:
        """Whether the thread is gone from this repository."""
        return (self.name, self.action) in REMOVAL_EVENTS

    def input(self, name: str) -> str:
        """Return an input of workflow_dispatch, "" if it was not given."""
        return dict(self.inputs).get(name, "")


def parse_event(name: str, payload: bytes) -> Event:
    """Read a payload. Raises UserError if it is not a JSON object; parts may be missing."""
    if len(payload) > MAX_PAYLOAD:
        raise UserError(f"the payload of the {name} event is larger than 25 MB: GitHub does not send that")
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise UserError(f"the payload of the {name} event is not JSON ({error}): check GITHUB_EVENT_PATH") from error
    if not isinstance(data, dict):
        raise UserError(f"the payload of the {name} event is not a JSON object: check GITHUB_EVENT_PATH")
    return event_of(name, data)


def event_of(name: str, data: Mapping[str, Any]) -> Event:
    is_of_discussion = name in DISCUSSION_EVENTS  # their comments have ids of their own, which we never need
    issue = _object(data, "discussion" if is_of_discussion else "issue")
    comment = {} if is_of_discussion else _object(data, "comment")
    has_discussions = _object(data, "repository").get("has_discussions")
    return Event(
        name=name,
        action=storable(data.get("action"))[:40],
        number=parse_number(issue.get("number")),
        is_pull="pull_request" in issue and issue["pull_request"] is not None,
        comment_id=parse_number(comment.get("id")),
        comment_author=storable(_object(comment, "user").get("login")),
        moved_to=_moved_to(data),
        inputs=tuple(sorted((storable(k), storable(v)) for k, v in _object(data, "inputs").items())),
        has_discussions=has_discussions if isinstance(has_discussions, bool) else None,
    )


def _moved_to(data: Mapping[str, Any]) -> str | None:
    changes = _object(data, "changes")
    number = parse_number((_object(changes, "new_issue") or _object(changes, "new_discussion")).get("number"))
    repo = storable(_object(changes, "new_repository").get("full_name"))
    return f"{repo}#{number}" if number and repo else None
