"""What people asked for that holds from then on: silence on a thread, and threads that are not to be shown there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from bot.kept import Wish
from bot.model import ThreadId

EFFECTIVE = frozenset({"off", "on", "wrong", "refresh"})
"""Wishes that change what is said on a thread. A wish has such a name only where it was allowed."""


def is_off(wishes: Iterable[Wish]) -> bool:
    """Whether nothing is to be said on the thread of these wishes: the later of ``off`` and ``on`` holds."""
    switches = [wish for wish in wishes if wish.name in ("off", "on")]
    return bool(switches) and max(switches, key=lambda wish: (wish.at, wish.comment_id)).name == "off"


def wrong_for(wishes: Iterable[Wish], before: datetime | None = None) -> frozenset[ThreadId]:
    """The threads that somebody called wrong on the thread of these wishes, until ``before`` (None: now)."""
    told = (wish for wish in wishes if wish.name == "wrong" and (before is None or wish.at <= before))
    return frozenset(key for wish in told for key in wish.about)


def wrong_pairs(wishes: Iterable[Wish]) -> frozenset[tuple[ThreadId, ThreadId]]:
    """For wishes on any threads: each thread with those that are wrong on it."""
    return frozenset((wish.id, key) for wish in wishes if wish.name == "wrong" for key in wish.about)


def redo(wishes: Iterable[Wish]) -> frozenset[ThreadId]:
    """The threads whose answer has to be worked out anew after these wishes."""
    return frozenset(wish.id for wish in wishes if wish.name in EFFECTIVE)


def refreshed(wishes: Iterable[Wish]) -> frozenset[ThreadId]:
    """The threads that are answered anew even where a person deleted the comment."""
    return frozenset(wish.id for wish in wishes if wish.name in ("refresh", "on"))
