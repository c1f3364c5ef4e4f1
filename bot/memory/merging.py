"""How two states of what memory keeps become one: the same, in whichever order and however often they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.kept import Fix, Said, Wish
from bot.model import ThreadId

MAX_WISHES = 200
"""Wishes that are kept of one thread, and of the last hour in the manifest."""

RECENT = timedelta(hours=1)
"""How long before the newest wish others count as recent; what limits an account counts within it."""

WAITING = timedelta(days=7)
"""How long it stays recent while nobody has replied: a later run may be as late as a repository's settings allow."""

STANDING = frozenset({"wrong", "off", "on"})
"""Wishes that hold until somebody says otherwise: they are kept before all others."""

_PROGRESS = {"pending": 0, "refused": 1, "done": 2}
WISH_STATES = frozenset(_PROGRESS)
_SETTLED = {"pending": 0, "said": 1, "silent": 1, "withdrawn": 1, "removed": 2}
_NEVER = datetime.min.replace(tzinfo=UTC)


def later_said(new: Said, stood: Said | None) -> Said:
    """What stands when ``new`` is put over ``stood``.

    A later answer replaces an earlier one. Of one answer the settled state stays over the promise, and ``removed`` over
    both, whoever writes last: who counts 👍 and 👎 writes what it had read before somebody else settled the answer. A
    later answer in the same comment has its counts until they are read again.
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


def later_fix(new: Fix, stood: Fix | None) -> Fix:
    """The one that was looked at later."""
    return new if stood is None else max(new, stood, key=lambda fix: (fix.looked_at, repr(fix)))


def union(*wishes: Iterable[Wish]) -> list[Wish]:
    """All of these wishes; of the same one, by thread and comment, the state that came further."""
    found: dict[tuple[ThreadId, int], Wish] = {}
    for wish in (each for some in wishes for each in some):
        key = wish.id, wish.comment_id
        found[key] = max(found.get(key, wish), wish, key=_progress)
    return list(found.values())


def joined(*wishes: Iterable[Wish]) -> tuple[Wish, ...]:
    """What was asked for on one thread, oldest first, within bounds."""
    return bounded(union(*wishes), MAX_WISHES)


def recent(*wishes: Iterable[Wish]) -> tuple[Wish, ...]:
    """What was asked for within an hour before the newest of these, and what still waits, oldest first, within bounds.

    Who adds to it says how far each wish came: of one that was forgotten as done an earlier state would be news.
    """
    found = union(*wishes)
    newest = max((wish.at for wish in found), default=_NEVER)
    lately = (w for w in found if newest - w.at <= (WAITING if w.state == "pending" else RECENT))
    return bounded(lately, MAX_WISHES, standing=frozenset())


def bounded(wishes: Iterable[Wish], most: int, *, standing: frozenset[str] = STANDING) -> tuple[Wish, ...]:
    """So many of these wishes, oldest first: those in ``standing`` before others, then the newest of each account.

    By account, so that nobody pushes out what others asked for by asking often.
    """
    turns: Counter[tuple[bool, str]] = Counter()
    places = []
    for place, wish in enumerate(sorted(wishes, key=_in_time, reverse=True)):
        turn = (wish.name not in standing, wish.by.casefold())
        places.append((turn[0], turns[turn], place, wish))
        turns[turn] += 1
    return tuple(sorted((place[-1] for place in sorted(places)[:most]), key=_in_time))


def _in_time(wish: Wish) -> tuple[datetime, int]:
    return wish.at, wish.comment_id


def _progress(wish: Wish) -> tuple[int, datetime, int, str]:
    return _PROGRESS[wish.state], wish.trying_since or _NEVER, wish.reply_id or 0, repr(wish)
