"""Which comments of ours stand where, and which threads each of them shows: read both ways, kept at both ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from bot.kept import CommentKey, StandingComment, ThreadComments
from bot.memory.records import sort_key
from bot.model import ThreadId


class ThreadCommentChanges:
    """The comments that a store holds, which ``read`` gives, with a run's changes on top. Nothing is read before it is
    asked for; what is put again, or is older than what stands, changes nothing."""

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, ThreadComments]]) -> None:
        self._read = read
        self._comments: dict[ThreadId, dict[int, StandingComment]] = {}
        self._shown: dict[ThreadId, dict[CommentKey, bool]] = {}

    def of(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        """The comments on these threads and those that show them, for threads that have one."""
        wanted = list(dict.fromkeys(ids))
        held = self._read(wanted)
        found = {key: self._now(held.get(key, ThreadComments(key))) for key in wanted}
        return {key: linked for key, linked in found.items() if linked.comments or linked.shown_in}

    def put(self, comments: Iterable[StandingComment]) -> None:
        """Have these comments stand, each in the place of what is known of it. One that shows nothing is taken out."""
        new = list(comments)
        self._read([key for one in new for key in (one.id, *one.shows)])  # together, as each read may cost an exchange
        for one in new:
            linked = self.of([one.id]).get(one.id, ThreadComments(one.id))
            stood = next((each for each in linked.comments if each.reply == one.reply), None)
            if stood is None or one.at >= stood.at:
                self._comments.setdefault(one.id, {})[one.reply] = one
                for key in stood.shows if stood else ():
                    self._shown.setdefault(key, {})[one.comment_key] = False
                for key in one.shows:
                    self._shown.setdefault(key, {})[one.comment_key] = True

    def drop(self, ids: Iterable[ThreadId]) -> None:
        """Forget the comments on threads that are gone."""
        known = [one for linked in self.of(ids).values() for one in linked.comments]
        self.put(replace(one, shows=(), quotes=()) for one in known)

    def relist(self, comments: Iterable[StandingComment], listed: Iterable[ThreadComments]) -> None:
        """Make the lists of where threads are shown anew from all ``comments``; ``listed``: all that are known."""
        for linked in listed:
            self._shown.setdefault(linked.id, {}).update(dict.fromkeys(linked.shown_in, False))
        self.put(comments)

    def changed(self) -> dict[ThreadId, ThreadComments]:
        """The comments of all threads that were touched, as they are to be written."""
        touched = dict.fromkeys([*self._comments, *self._shown])
        return {key: ThreadComments(key) for key in touched} | self.of(touched)

    def _now(self, held: ThreadComments) -> ThreadComments:
        comments = {one.reply: one for one in held.comments} | self._comments.get(held.id, {})
        shown = dict.fromkeys(held.shown_in, True) | self._shown.get(held.id, {})
        standing = (comments[reply] for reply in sorted(comments) if comments[reply].shows)
        comment_keys = sorted(
            (comment_key for comment_key, is_shown in shown.items() if is_shown), key=lambda s: (sort_key(s[0]), s[1])
        )
        return ThreadComments(held.id, tuple(standing), tuple(comment_keys))
