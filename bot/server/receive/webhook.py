"""Turns a request into an arrival, or a reason for refusing it.

The checks have a fixed order, and those that need no body come before it is read: method 405, type 415, size 411 and
413, event 400, signature 403. Nothing is parsed before the signature is verified. That does not cover the headers, so a
body has to be one of the event that they name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.github.events import (
    EVENT_SHAPES,
    MAX_PAYLOAD,
    Event,
    PayloadRepository,
    account_of,
    comment_of,
    event_of,
    has_known_action,
    installation_of,
    is_body_of,
    pushed_branch,
    repositories_of,
    repository_of,
    sender_of,
)
from bot.server.model import (
    ALL_REPOSITORIES,
    EXCLUDED,
    Delivery,
    DroppedDelivery,
    Instant,
    Priority,
    Refused,
    RepositoryKey,
    RepositoryScope,
)

COMMAND = "/precedent"
INSTALLATION_EVENTS = frozenset({"installation", "installation_repositories", "repository"})
"""Events of an installation: where the App is, and names of repositories."""

REPOSITORY_EVENTS = EVENT_SHAPES.keys() - INSTALLATION_EVENTS
"""Events of a repository."""

NARROWING_ACTIONS = frozenset({"privatized", "publicized", "deleted", "transferred", "removed"})
"""Actions of these events after which a comment may show what some of its readers may not read."""

EVENTS = REPOSITORY_EVENTS | INSTALLATION_EVENTS | {"ping"}

_EVENT = re.compile(rb"[a-z_]{1,64}")
_GUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")
_MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """The rules for deliveries. ``own_login`` is "slug[bot]". Any of the ``secrets`` may have signed."""

    app: int
    secrets: tuple[bytes, ...] = field(repr=False)
    own_login: str
    scope: RepositoryScope = ALL_REPOSITORIES


def check_headers(method: str, headers: Mapping[bytes, bytes]) -> Refused | int:
    """Refuse a request before its body is read, or return the length of the body. ``headers`` are in lower case.

    A length is required: a chunked body would be read up to the limit before its size is known.
    """
    if method != "POST":
        return Refused(405, "deliveries must use POST")
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return Refused(415, "deliveries must be application/json: set that as the webhook's content type")
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():
        return Refused(411, "a delivery needs a Content-Length")
    if len(length) > 9 or int(length) > MAX_PAYLOAD:
        return Refused(413, "larger than 25 MB")
    if not _EVENT.fullmatch(headers.get(b"x-github-event", b"")):
        return Refused(400, "the X-GitHub-Event header is missing or invalid")
    if not _SIGNATURE.fullmatch(headers.get(b"x-hub-signature-256", b"")):
        return Refused(403, "not signed with SHA-256")
    return int(length)


def receive(
    method: str, headers: Mapping[bytes, bytes], body: bytes, rules: WebhookRules, now: Instant, request: str
) -> Delivery | DroppedDelivery | Refused:
    """Decide whether to store, drop or refuse a complete request."""
    length = check_headers(method, headers)
    if isinstance(length, Refused):
        return length
    if length != len(body):
        return Refused(400, "the body is not as long as its Content-Length")
    if not is_signed(body, headers[b"x-hub-signature-256"], rules.secrets):
        return Refused(403, "the signature does not match this body and our secret")
    name = guid(headers)
    if not name:
        return Refused(400, "the X-GitHub-Delivery header is missing or invalid")
    payload = _parse_object(body)
    if payload is None:
        return Refused(400, "the body is not a JSON object")
    arrival = _read(headers[b"x-github-event"].decode(), payload, rules)
    if isinstance(arrival, Delivery):
        return replace(arrival, id=f"{rules.app}:{name}", received_at=now, request=request)
    return arrival


def guid(headers: Mapping[bytes, bytes]) -> str:
    """Return GitHub's GUID of a delivery in lower case, "" for none or an invalid one. Anybody can send any GUID."""
    header = headers.get(b"x-github-delivery", b"")
    return header.decode().lower() if _GUID.fullmatch(header) else ""


def is_signed(body: bytes, signature: bytes, secrets: tuple[bytes, ...]) -> bool:
    """Whether one of the secrets signed these bytes, in constant time.

    https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
    """
    is_valid = False
    for secret in secrets:
        expected = b"sha256=" + hmac.digest(secret, body, hashlib.sha256).hex().encode()
        is_valid |= hmac.compare_digest(expected, signature)
    return is_valid


def _parse_object(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _read(name: str, payload: Mapping[str, Any], rules: WebhookRules) -> Delivery | DroppedDelivery | Refused:
    """An arrival without its id and time."""
    if name == "ping":
        return DroppedDelivery("ping")
    if name not in EVENTS:
        return DroppedDelivery("unknown event")
    if not is_body_of(name, payload):
        return Refused(400, f"the body is not that of the event {name}")
    if not has_known_action(name, payload):
        return DroppedDelivery("unknown action")
    installation, place = installation_of(payload), repository_of(payload)
    if not installation:
        return Refused(400, "the payload names no installation: is this the App's webhook?")
    if name in INSTALLATION_EVENTS:
        return _installation_arrival(name, payload, RepositoryKey(installation, 0), place, rules.scope)
    if not place.id:
        return Refused(400, "the payload names no repository")
    if not rules.scope.includes(place.name):
        return DroppedDelivery(EXCLUDED)
    if why := _drop_reason(name, payload, place, rules.own_login):
        return DroppedDelivery(why)
    event = replace(event_of(name, payload), comment_author="", inputs=())
    key, priority = RepositoryKey(installation, place.id), _priority(event, payload)
    return Delivery("", key, event, place.name, priority=priority)


def _priority(event: Event, payload: Mapping[str, Any]) -> Priority:
    """People wait for the answer to a new issue and to a command."""
    is_new = (event.name, event.action) == ("issues", "opened")
    is_command = COMMAND in comment_of(payload) and not event.is_of_discussion
    return Priority.URGENT if is_new or is_command else Priority.CHANGE


def _drop_reason(name: str, payload: Mapping[str, Any], place: PayloadRepository, own_login: str) -> str:
    is_comment, sender = name in ("issue_comment", "discussion_comment"), sender_of(payload).casefold()
    if is_comment and own_login and sender == own_login.casefold():
        return "our own comment"
    if name == "push" and pushed_branch(payload) not in {place.default_branch} - {""}:
        return "not the default branch"
    return ""


def _installation_arrival(
    name: str, payload: Mapping[str, Any], repository: RepositoryKey, place: PayloadRepository, scope: RepositoryScope
) -> Delivery:
    """``extra`` has the account, the ids of added and removed repositories, and the repository concerned.

    Excluded repositories are reported too, as they may be renamed, but not listed as added.
    """
    event = replace(event_of(name, payload), number=None, is_pull=False, comment_id=None, comment_author="", inputs=())
    listed = {**repositories_of(payload, "repositories"), **repositories_of(payload, "repositories_added")}
    values = {
        "account": account_of(payload),
        "added": _join_ids([number for number, name in listed.items() if scope.includes(name)]),
        "removed": _join_ids([*repositories_of(payload, "repositories_removed")]),
        "repository": str(place.id or ""),
    }
    extra = tuple((key, value) for key, value in values.items() if value)
    priority = Priority.URGENT if event.action in NARROWING_ACTIONS else Priority.CHANGE
    return Delivery("", repository, event, place.name, extra=extra, priority=priority)


def _join_ids(ids: Sequence[int]) -> str:
    """At most a thousand ids; the resync reads all of them anyway."""
    return ",".join(map(str, ids[:_MAX_LISTED]))
