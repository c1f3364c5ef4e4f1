"""Whether anybody stands behind a thread but the stranger who opened it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bot.indexed import FOREVER
from bot.model import GHOST, MAINTAINER_ROLES, Kind, Thread

KNOWN_ROLES = MAINTAINER_ROLES | {"CONTRIBUTOR"}
"""Values of ``author_association`` of those who belong to the repository, or who have committed to it."""

_TURNS = frozenset({"closed", "reopened", "marked_as_duplicate"})


def alone_until(thread: Thread) -> datetime | None:
    """Until when nobody stood behind the thread but the stranger who opened it: until the first other person wrote in
    it, closed it or reopened it; FOREVER where nobody did. None where its author is known here, and for what is no
    issue.

    Who closes it as not planned without a word does not stand behind it. Neither reactions nor labels count, which a
    form may set, nor bots. Of accounts that are gone nobody knows which they were: they are one.
    A thread that nobody knows who closed was closed by nobody.
    """
    if thread.kind is not Kind.ISSUE or thread.role in KNOWN_ROLES:
        return None
    return min(_others(thread), default=FOREVER)


def _others(thread: Thread) -> Iterator[datetime]:
    own = thread.author.casefold()
    for comment in thread.comments:
        if not comment.is_bot and comment.author.casefold() != own:
            yield comment.created_at
    for actor, at in _turns(thread):
        if actor.casefold() not in (own, GHOST) and not actor.endswith("[bot]"):
            yield at


def _turns(thread: Thread) -> Iterator[tuple[str, datetime]]:
    """Who turned the thread and when, but for the last closing where it was as not planned.

    What happened before the first closing is kept of threads that were closed: until then nobody knows of it.
    """
    swept = thread.closed_at if thread.state_reason == "not_planned" else None
    for event in thread.events if thread.flips else ():
        if event.name in _TURNS and event.at != swept:
            yield event.actor, max(event.at, thread.flips[0])
    closed_at = thread.closed_at
    is_told = closed_at and any(event.name == "closed" and event.at >= closed_at for event in thread.events)
    if closed_at and thread.closed_by and not (swept or is_told):
        yield thread.closed_by, closed_at
