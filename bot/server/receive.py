"""The bytes and headers of a request become an arrival, or the reason why not; no I/O, no clock.

Checks stand in one order, and what can be told without the body is told before it is read: method 405, type 415, size
411 and 413, event 400, signature 403. Nothing is parsed before the signature is found good.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.github.deliveries import (
    Place,
    account_of,
    installation_of,
    pushed_to,
    repositories_of,
    repository_of,
    sender_of,
)
from bot.github.events import MAX_PAYLOAD, event_of
from bot.server.nouns import Arrival, Dropped, Instant, Lane, Refused

TOLD = frozenset({"issues", "issue_comment", "push", "gollum", "release"})
"""Events of a repository's own lane."""

HOUSE = frozenset({"installation", "installation_repositories", "repository"})
"""Events of an installation's lane: where we are, and what things are called."""

EVENTS = TOLD | HOUSE | {"ping"}

_EVENT = re.compile(rb"[a-z_]{1,64}")
_GUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_SIGNATURE = re.compile(rb"sha256=[0-9a-f]{64}")
_MOST_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What deliveries are held against. ``own_login`` is "slug[bot]". Any of the ``secrets`` may have signed."""

    app: int
    secrets: tuple[bytes, ...] = field(repr=False)
    own_login: str


def before_body(method: str, headers: Mapping[bytes, bytes]) -> Refused | int:
    """What can be refused before any of the body is read, else how many bytes it has. ``headers`` are in lower case.

    The length has to be said: a body in chunks would be read up to the limit before its size is known.
    """
    if method != "POST":
        return Refused(405, "deliveries come by POST")
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return Refused(415, "deliveries are application/json: set that as the webhook's content type")
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():
        return Refused(411, "a delivery says how long it is")
    if len(length) > 9 or int(length) > MAX_PAYLOAD:
        return Refused(413, "larger than 25 MB")
    if not _EVENT.fullmatch(headers.get(b"x-github-event", b"")):
        return Refused(400, "no event is named")
    if not _SIGNATURE.fullmatch(headers.get(b"x-hub-signature-256", b"")):
        return Refused(403, "not signed with SHA-256")
    return int(length)


def receive(
    method: str, headers: Mapping[bytes, bytes], body: bytes, rules: Rules, now: Instant, request: str
) -> Arrival | Dropped | Refused:
    """What a whole request is: something to store, to drop, or to refuse."""
    length = before_body(method, headers)
    if isinstance(length, Refused):
        return length
    if length != len(body):
        return Refused(400, "the body is not as long as it said")
    if not is_signed(body, headers[b"x-hub-signature-256"], rules.secrets):
        return Refused(403, "the signature is not of this body and our secret")
    guid = headers.get(b"x-github-delivery", b"")
    if not _GUID.fullmatch(guid):
        return Refused(400, "no delivery is named")
    payload = _parsed(body)
    if payload is None:
        return Refused(400, "the body is not a JSON object")
    name = headers[b"x-github-event"].decode()
    found = _read(name, payload, rules.own_login)
    if isinstance(found, Arrival):
        return replace(found, id=f"{rules.app}:{guid.decode().lower()}", received_at=now, request=request)
    return found


def is_signed(body: bytes, signature: bytes, secrets: tuple[bytes, ...]) -> bool:
    """Whether one of the secrets signed these very bytes; takes the same time whichever of them it was, and for none.

    https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
    """
    found = False
    for secret in secrets:
        expected = b"sha256=" + hmac.digest(secret, body, hashlib.sha256).hex().encode()
        found |= hmac.compare_digest(expected, signature)
    return found


def _parsed(body: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _read(name: str, payload: Mapping[str, Any], own_login: str) -> Arrival | Dropped | Refused:
    """An arrival without its id and time."""
    if name == "ping":
        return Dropped("ping")
    if name not in EVENTS:
        return Dropped("unknown event")
    installation, place = installation_of(payload), repository_of(payload)
    if not installation:
        return Refused(400, "no installation is named: is this the webhook of the App?")
    if name in HOUSE:
        return _of_house(name, payload, Lane(installation, 0), place)
    if not place.id:
        return Refused(400, "no repository is named")
    if why := _why_not(name, payload, place, own_login):
        return Dropped(why)
    event = replace(event_of(name, payload), comment_author="", inputs=())
    return Arrival("", Lane(installation, place.id), event, place.name, place.private)


def _why_not(name: str, payload: Mapping[str, Any], place: Place, own_login: str) -> str:
    if name == "issue_comment" and own_login and sender_of(payload).casefold() == own_login.casefold():
        return "our own comment"
    if name == "push" and pushed_to(payload) not in {place.default_branch} - {""}:
        return "not the default branch"
    return ""


def _of_house(name: str, payload: Mapping[str, Any], lane: Lane, place: Place) -> Arrival:
    """``extra`` has the account, the numbers of repositories that came and went, and the one that it is about."""
    event = replace(event_of(name, payload), number=None, is_pull=False, comment_id=None, comment_author="", inputs=())
    added = (*repositories_of(payload, "repositories"), *repositories_of(payload, "repositories_added"))
    said = {
        "account": account_of(payload),
        "added": _numbers(added),
        "removed": _numbers(repositories_of(payload, "repositories_removed")),
        "repository": str(place.id or ""),
    }
    extra = tuple((key, value) for key, value in said.items() if value)
    return Arrival("", lane, event, place.name, place.private, extra=extra)


def _numbers(found: tuple[int, ...]) -> str:
    """Beyond a thousand they are left to the sweep, which asks for all of them."""
    return ",".join(map(str, found[:_MOST_LISTED]))
