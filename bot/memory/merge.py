"""Which of two states of one value holds when both are kept: those of two runs, or a new and the stored one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.domain.changes import JUDGING, AnswerRecord, FixInfo, ReleaseNotice, Request
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import ThreadId

MAX_REQUESTS = 200
"""Requests that are kept for one thread, and in the manifest for the last hour."""

RECENT = timedelta(hours=1)
"""How long before the newest request others count as recent; an account's limits count within it."""

WAITING = timedelta(days=7)
"""How long a request stays recent without a reply: the next run may be as late as a repository's settings allow."""

STANDING = frozenset({"wrong", "off", "on"}) | JUDGING
"""Requests that hold until they are revoked. They are kept before all others."""

REQUEST_STATES = ("pending", "refused", "done")
"""In the order in which a request goes through them."""

_SETTLED = {"pending": 0, "said": 1, "silent": 1, "withdrawn": 1, "removed": 2}

MAX_NOTICES = 20
"""Release notices that are kept for one thread; it gets another one only if it was reopened and fixed again."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def later_answer(new: AnswerRecord, stood: AnswerRecord | None) -> AnswerRecord:
    """Merges two states: a later answer replaces an earlier one.

    For the same answer, a settled state outranks the promise and ``removed`` outranks both, whatever is written last: a
    run that counts 👍 and 👎 writes what it read before another run settled the answer. A later answer in the same
    comment takes over its counts until they are read again.
    """
    if stood is None or new.at < stood.at:
        return stood or new
    if new.at > stood.at:
        is_same = new.comment_id is not None and new.comment_id == stood.comment_id
        uncounted = is_same and not (new.ups or new.downs)
        return replace(new, ups=stood.ups, downs=stood.downs) if uncounted else new
    if new.state == stood.state or (new.text_hash, new.question) != (stood.text_hash, stood.question):
        return new
    last = max(new, stood, key=lambda said: _SETTLED[said.state])
    return replace(last, ups=max(new.ups, stood.ups), downs=max(new.downs, stood.downs))


def later_notice(new: ReleaseNotice, stood: ReleaseNotice | None) -> ReleaseNotice:
    """The state that came further: a settled one outranks the promise, and ``removed`` outranks both."""
    return new if stood is None else max(new, stood, key=_notice_progress)


def _notice_progress(notice: ReleaseNotice) -> tuple[int, datetime, str]:
    return _SETTLED[notice.state], notice.trying_since or _NEVER, repr(notice)


def newest_notices(notices: Iterable[ReleaseNotice]) -> tuple[ReleaseNotice, ...]:
    """The notices on one thread, each fix once, oldest first, within bounds."""
    found: dict[str, ReleaseNotice] = {}
    for notice in notices:
        found[notice.ref] = later_notice(notice, found.get(notice.ref))
    return tuple(sorted(found.values(), key=lambda notice: (notice.at, notice.ref))[-MAX_NOTICES:])


def later_fix(new: FixInfo, stood: FixInfo | None) -> FixInfo:
    """The one that was looked at later."""
    return new if stood is None else max(new, stood, key=lambda fix: (fix.looked_at, repr(fix)))


def later_links(new: ClusterLinks, stood: ClusterLinks | None) -> ClusterLinks:
    """The signs of the later state of the thread; of the same state, what was found last."""
    return stood if stood and stood.at > new.at else new


def without_links(every: Mapping[ThreadId, ClusterLinks], gone: Container[ThreadId]) -> dict[ThreadId, ClusterLinks]:
    """Those of the signs that tie a thread to one that is ``gone``, without these."""
    kept = {key: tuple(link for link in found.links if link.to not in gone) for key, found in every.items()}
    return {key: replace(every[key], links=links) for key, links in kept.items() if links != every[key].links}


def union(*requests: Iterable[Request]) -> list[Request]:
    """All of these requests; for the same thread and comment, the state that came further."""
    found: dict[tuple[ThreadId, int], Request] = {}
    for request in (each for some in requests for each in some):
        key = request.id, request.comment_id
        found[key] = max(found.get(key, request), request, key=_progress)
    return list(found.values())


def joined(*requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests on one thread, oldest first, within bounds."""
    return bounded(union(*requests), MAX_REQUESTS)


def recent(*requests: Iterable[Request]) -> tuple[Request, ...]:
    """The requests of the hour before the newest one, and those that still wait; oldest first, within bounds.

    Callers add each request in its latest state: an earlier state of one that was dropped as done would look new.
    """
    found = union(*requests)
    newest = max((request.at for request in found), default=_NEVER)
    lately = (one for one in found if newest - one.at <= (WAITING if one.state == "pending" else RECENT))
    return bounded(lately, MAX_REQUESTS, standing=frozenset())


def bounded(requests: Iterable[Request], most: int, *, standing: frozenset[str] = STANDING) -> tuple[Request, ...]:
    """At most ``most`` of these requests, oldest first: those in ``standing``, then the newest of each account in turn.

    By account, so that nobody who asks often pushes out the requests of others.
    """
    turns: Counter[tuple[bool, str]] = Counter()
    places = []
    for place, request in enumerate(sorted(requests, key=_in_time, reverse=True)):
        turn = (request.name not in standing, request.by.casefold())
        places.append((turn[0], turns[turn], place, request))
        turns[turn] += 1
    return tuple(sorted((place[-1] for place in sorted(places)[:most]), key=_in_time))


def _in_time(request: Request) -> tuple[datetime, int]:
    return request.at, request.comment_id


def _progress(request: Request) -> tuple[int, datetime, int, str]:
    return REQUEST_STATES.index(request.state), request.trying_since or _NEVER, request.reply_id or 0, repr(request)
