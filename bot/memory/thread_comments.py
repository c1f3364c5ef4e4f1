"""The stored comments on each thread, with the changes of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from bot.domain.changes import CommentKey, ReleaseNotice, Renewal, StandingComment, ThreadComments
from bot.domain.thread import Record, ThreadId
from bot.memory.merge import later_comment, later_notice, newest_notices
from bot.memory.records import sort_key


def outdated_comments(every: Collection[ThreadComments], records: Mapping[ThreadId, Record]) -> Iterator[Renewal]:
    """Renewals of the comments that are no newer than the last change of a thread that they show."""
    written = {comment.comment_key: comment.at for thread in every for comment in thread.comments}
    for thread in every:
        record = records.get(thread.id)
        for key in thread.shown_in:
            if record and key in written and written[key] <= record.revised_at:
                yield Renewal(*key, thread.id, record.revised_at)


class ThreadCommentChanges:
    """Our comments on each thread, the comments that show it, and its release notices: as ``read`` returns them, with
    a run's changes.

    Reads only on demand. Putting a comment again, or one older than the stored one, has no effect.
    """

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, ThreadComments]]) -> None:
        self._read = read
        self._comments: dict[ThreadId, dict[int, StandingComment]] = {}
        self._shown: dict[ThreadId, dict[CommentKey, bool]] = {}
        self._notices: dict[ThreadId, dict[str, ReleaseNotice]] = {}
        self._gone: set[ThreadId] = set()

    def lookup(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        """The comments on these threads and those that show them, for threads that have any."""
        keys = list(dict.fromkeys(ids))
        stored = self._read(keys)
        current = {key: self._with_changes(stored.get(key, ThreadComments(key))) for key in keys}
        return {key: thread for key, thread in current.items() if thread.comments or thread.shown_in or thread.notices}

    def put(self, comments: Iterable[StandingComment]) -> None:
        """Replace the stored state of these comments. One that shows nothing is removed."""
        new = list(comments)
        # Read together, as each read may cost an exchange.
        self._read([key for comment in new for key in (comment.id, *comment.shows)])
        for comment in new:
            linked = self.lookup([comment.id]).get(comment.id, ThreadComments(comment.id))
            stored = next((other for other in linked.comments if other.reply == comment.reply), None)
            if later_comment(comment, stored) == comment:
                self._comments.setdefault(comment.id, {})[comment.reply] = comment
                for key in stored.shows if stored else ():
                    self._shown.setdefault(key, {})[comment.comment_key] = False
                for key in comment.shows:
                    self._shown.setdefault(key, {})[comment.comment_key] = True

    def add_notices(self, notices: Iterable[ReleaseNotice]) -> list[datetime]:
        """Add these release notices. Returns when the new ones were promised."""
        new = list(notices)
        # Read together, as each read may cost an exchange.
        self._read(dict.fromkeys(notice.id for notice in new))
        promised = []
        for notice in new:
            linked = self.lookup([notice.id]).get(notice.id, ThreadComments(notice.id))
            stored = {other.ref: other for other in linked.notices}
            self._notices.setdefault(notice.id, {})[notice.ref] = later_notice(notice, stored.get(notice.ref))
            promised += [notice.at] if notice.ref not in stored and notice.state == "pending" else []
        return promised

    def drop(self, ids: Iterable[ThreadId]) -> None:
        """Remove the comments and notices on threads that are gone."""
        linked = self.lookup(ids)
        self.put(
            replace(comment, shows=(), quotes=(), others=())
            for thread in linked.values()
            for comment in thread.comments
        )
        gone = {key for key, thread in linked.items() if thread.notices}
        self._gone |= gone
        self._notices = {key: notices for key, notices in self._notices.items() if key not in gone}

    def relist(self, comments: Iterable[StandingComment], listed: Iterable[ThreadComments]) -> None:
        """Rebuild the lists of where each thread is shown from all ``comments``; ``listed`` are the current lists."""
        for linked in listed:
            self._shown.setdefault(linked.id, {}).update(dict.fromkeys(linked.shown_in, False))
        self.put(comments)

    def changes(self) -> dict[ThreadId, ThreadComments]:
        touched = dict.fromkeys([*self._comments, *self._shown, *self._notices, *self._gone])
        return {key: ThreadComments(key) for key in touched} | self.lookup(touched)

    def _with_changes(self, stored: ThreadComments) -> ThreadComments:
        comments = {comment.reply: comment for comment in stored.comments} | self._comments.get(stored.id, {})
        shown = dict.fromkeys(stored.shown_in, True) | self._shown.get(stored.id, {})
        standing = (comments[reply] for reply in sorted(comments) if not comments[reply].is_gone)
        keys = sorted((key for key, is_shown in shown.items() if is_shown), key=lambda key: (sort_key(key[0]), key[1]))
        notices = () if stored.id in self._gone else stored.notices
        all_notices = newest_notices((*notices, *self._notices.get(stored.id, {}).values()))
        return ThreadComments(stored.id, tuple(standing), tuple(keys), all_notices)
