"""Which comments of ours stand where, and which threads each of them shows: read both ways, kept at both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from bot.kept import Spot, StandingComment, Ties
from bot.memory.records import sort_key
from bot.model import ThreadId


class TieChanges:
    """The ties that a store holds, which ``read`` gives, with a run's changes on top. Nothing is read before it is
    asked for; what is put again, or is older than what stands, changes nothing."""

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, Ties]]) -> None:
        self._read = read
        self._comments: dict[ThreadId, dict[int, StandingComment]] = {}
        self._shown: dict[ThreadId, dict[Spot, bool]] = {}

    def of(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Ties]:
        """What ties these threads to comments, those that are tied to one."""
        wanted = list(dict.fromkeys(ids))
        held = self._read(wanted)
        found = {key: self._now(held.get(key, Ties(key))) for key in wanted}
        return {key: ties for key, ties in found.items() if ties.comments or ties.shown_in}

    def put(self, comments: Iterable[StandingComment]) -> None:
        """Have these comments stand, each in the place of what is known of it. One that shows nothing is taken out."""
        new = list(comments)
        self._read([key for one in new for key in (one.id, *one.shows)])  # together, as each read may cost an exchange
        for one in new:
            ties = self.of([one.id]).get(one.id, Ties(one.id))
            stood = next((each for each in ties.comments if each.reply == one.reply), None)
            if stood is None or one.at >= stood.at:
                self._comments.setdefault(one.id, {})[one.reply] = one
                for key in stood.shows if stood else ():
                    self._shown.setdefault(key, {})[one.spot] = False
                for key in one.shows:
                    self._shown.setdefault(key, {})[one.spot] = True

    def drop(self, ids: Iterable[ThreadId]) -> None:
        """Forget the comments on threads that are gone."""
        known = [one for ties in self.of(ids).values() for one in ties.comments]
        self.put(replace(one, shows=(), quotes=()) for one in known)

    def relist(self, comments: Iterable[StandingComment], listed: Iterable[Ties]) -> None:
        """Make the lists of where threads are shown anew from all ``comments``; ``listed``: all ties that are known."""
        for ties in listed:
            self._shown.setdefault(ties.id, {}).update(dict.fromkeys(ties.shown_in, False))
        self.put(comments)

    def changed(self) -> dict[ThreadId, Ties]:
        """The ties of all threads that were touched, as they are to be written."""
        touched = dict.fromkeys([*self._comments, *self._shown])
        return {key: Ties(key) for key in touched} | self.of(touched)

    def _now(self, held: Ties) -> Ties:
        comments = {one.reply: one for one in held.comments} | self._comments.get(held.id, {})
        shown = dict.fromkeys(held.shown_in, True) | self._shown.get(held.id, {})
        standing = (comments[reply] for reply in sorted(comments) if comments[reply].shows)
        spots = sorted((spot for spot, is_shown in shown.items() if is_shown), key=lambda s: (sort_key(s[0]), s[1]))
        return Ties(held.id, tuple(standing), tuple(spots))
