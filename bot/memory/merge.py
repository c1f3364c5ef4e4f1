"""Decides which of two states of a value wins: those of two runs, or a new one and the stored one.

The result is the same whichever is merged into the other. Times decide, then `field_order`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta

from bot.domain.changes import (
    JUDGEMENT_REQUESTS,
    REQUEST_STATES,
    FixInfo,
    Request,
)
from bot.domain.cluster import ClusterLinks
from bot.domain.post import Post
from bot.domain.thread import ThreadId
from bot.domain.turns import in_turns

MAX_REQUESTS = 200
"""Maximum number of requests kept for one thread, and in the manifest for the last hour."""

RECENT_WINDOW = timedelta(hours=1)
"""How long before the newest request others count as recent. An account's limits apply within this time."""

PENDING_WINDOW = timedelta(days=7)
"""How long a request without a reply stays recent: a repository's settings may delay the next run that long."""

STANDING_REQUESTS = frozenset({"wrong", "off", "on"}) | JUDGEMENT_REQUESTS
"""Requests that hold until they are revoked. They are kept in preference to all others."""

_STATE_RANKS = {"pending": 0, "said": 1, "silent": 1, "withdrawn": 1, "removed": 2}

MAX_NOTICES = 20
"""Maximum number of release notices kept for one thread. It gets another one only if it is reopened and fixed again."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def field_order(value: object) -> tuple[object, ...]:
    """Orders values of one kind by their fields, the first one first: None, numbers, texts, times, lists."""
    if is_dataclass(value):
        return tuple(field_order(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple):
        return 4, *map(field_order, value)
    if isinstance(value, datetime):
        return 3, value
    return (0,) if value is None else (2, value) if isinstance(value, str) else (1, value)


def later_post(new: Post, old: Post | None) -> Post:
    """Merges two states: a later text replaces an earlier one.

    For the same text, a settled state outranks the promise and ``removed`` outranks both, whichever is written last:
    a run that collects 👍 and 👎 may write what it read before another run settled the post. A later text in the same
    comment keeps that comment's votes until they are read again.
    """
    if old is None:
        return new
    earlier, later = sorted((new, old), key=lambda post: post.at)
    if earlier.at < later.at:
        is_same = later.comment_id is not None and later.comment_id == earlier.comment_id
        return replace(later, votes=later.votes or earlier.votes) if is_same else later
    if (new.content, new.question) != (old.content, old.question):
        return max(new, old, key=_post_order)
    last = max(new, old, key=lambda post: (_STATE_RANKS[post.state], _post_order(post)))
    if new.state == old.state:
        return last
    return replace(last, votes=max(new.votes, old.votes, key=lambda votes: (len(votes), votes)))


def _post_order(post: Post) -> tuple[object, ...]:
    """At one moment, a run first promises to work the text out, then what it posts, which counts as showing what stood
    before too, and gives that back last."""
    revised_at, is_worked_out = post.revised_at or post.at, bool(post.content or post.question)
    settled = -_STATE_RANKS[post.state], post.trying_since is None
    shown = len(post.shows) + len(post.others)
    return revised_at, is_worked_out, *settled, len(post.votes), -shown, -len(post.quotes), field_order(post)


def newest_posts(posts: Iterable[Post]) -> tuple[Post, ...]:
    """The posts on one thread in the order of their slots, without replies of which nothing needs to be known, and with
    at most MAX_NOTICES others."""
    kept = [post for post in posts if not post.is_over]
    notes = sorted((post for post in kept if post.key.is_note), key=lambda post: (post.at, post.slot))
    dropped = {post.slot for post in notes[:-MAX_NOTICES]}
    return tuple(sorted((post for post in kept if post.slot not in dropped), key=lambda post: slot_order(post.slot)))


def slot_order(slot: str) -> tuple[int, str]:
    """The comment first, then notices and replies, those to older comments first."""
    return len(slot), slot


def later_fix(new: FixInfo, old: FixInfo | None) -> FixInfo:
    """The one that was looked at later, or that is merged or released later."""
    return new if old is None else max(new, old, key=_fix_order)


def _fix_order(fix: FixInfo) -> tuple[object, ...]:
    return fix.looked_at, fix.merged_at or _NEVER, fix.released_at or _NEVER, field_order(fix)


def later_links(new: ClusterLinks, old: ClusterLinks | None) -> ClusterLinks:
    """The signs of the later state of the thread; for the same state, those found last."""
    return new if old is None else max(new, old, key=_links_order)


def _links_order(links: ClusterLinks) -> tuple[object, ...]:
    return links.at, links.found_at or _NEVER, field_order(links)


def without_links(every: Mapping[ThreadId, ClusterLinks], gone: Container[ThreadId]) -> dict[ThreadId, ClusterLinks]:
    """The entries with links to threads that are ``gone``, without those links."""
    kept = {key: tuple(link for link in links_of.links if link.to not in gone) for key, links_of in every.items()}
    return {key: replace(every[key], links=links) for key, links in kept.items() if links != every[key].links}


def union(*requests: Iterable[Request]) -> list[Request]:
    """All of these requests; for the same thread and comment, the more advanced state."""
    merged: dict[tuple[ThreadId, int], Request] = {}
    for request in (each for some in requests for each in some):
        key = request.id, request.comment_id
        merged[key] = max(merged.get(key, request), request, key=_progress)
    return list(merged.values())


def merge_requests(*requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests on one thread, oldest first, at most MAX_REQUESTS."""
    return limit_requests(union(*requests), MAX_REQUESTS)


def recent(*requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests of the hour before the newest one, and those that still wait; oldest first, at most MAX_REQUESTS.

    Callers pass each request in its latest state: an earlier state of a dropped, finished request would look new.
    """
    found = union(*requests)
    newest = max((request.at for request in found), default=_NEVER)
    lately = (one for one in found if newest - one.at <= (PENDING_WINDOW if one.state == "pending" else RECENT_WINDOW))
    return limit_requests(lately, MAX_REQUESTS, standing=frozenset())


def limit_requests(
    requests: Iterable[Request], most: int, *, standing: frozenset[str] = STANDING_REQUESTS
) -> tuple[Request, ...]:
    """At most ``most`` of these requests, oldest first: those in ``standing``, then the newest of each account in
    turn."""
    newest, ranked = sorted(requests, key=_time_order, reverse=True), list[Request]()
    for stands in (True, False):
        same = (request for request in newest if (request.name in standing) is stands)
        ranked += in_turns(same, lambda request: request.by.casefold())
    return tuple(sorted(ranked[:most], key=_time_order))


def _time_order(request: Request) -> tuple[datetime, int]:
    return request.at, request.comment_id


def _progress(request: Request) -> tuple[object, ...]:
    state = REQUEST_STATES.index(request.state)
    return state, request.trying_since or _NEVER, field_order(request)
