"""The comments on each thread as memory knows them, with the changes of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from bot.domain.changes import CommentKey, ReleaseNotice, Renewal, StandingComment, ThreadComments
from bot.domain.thread import Record, ThreadId
from bot.memory.merge import later_notice, newest_notices
from bot.memory.records import sort_key


def outdated(every: Collection[ThreadComments], records: Mapping[ThreadId, Record]) -> Iterator[Renewal]:
    """Renewals of the comments that are no newer than the last change of a thread that they show."""
    written = {one.comment_key: one.at for each in every for one in each.comments}
    for each in every:
        record = records.get(each.id)
        for key in each.shown_in:
            if record and key in written and written[key] <= record.revised_at:
                yield Renewal(*key, each.id, record.revised_at)


class ThreadCommentChanges:
    """Which of our comments stand on each thread, which show it, and which release notices it got: as ``read`` gives
    them, with a run's changes.

    Reads nothing before it is asked. A comment that is put again, or is older than the stored one, changes nothing."""

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, ThreadComments]]) -> None:
        self._read = read
        self._comments: dict[ThreadId, dict[int, StandingComment]] = {}
        self._shown: dict[ThreadId, dict[CommentKey, bool]] = {}
        self._notices: dict[ThreadId, dict[str, ReleaseNotice]] = {}
        self._gone: set[ThreadId] = set()

    def of(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        """The comments on these threads and those that show them, for threads that have one."""
        wanted = list(dict.fromkeys(ids))
        stored = self._read(wanted)
        found = {key: self._now(stored.get(key, ThreadComments(key))) for key in wanted}
        return {key: linked for key, linked in found.items() if linked.comments or linked.shown_in or linked.notices}

    def put(self, comments: Iterable[StandingComment]) -> None:
        """Replace the stored state of these comments. One that shows nothing is removed."""
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

    def tell(self, notices: Iterable[ReleaseNotice]) -> list[datetime]:
        """Put in these release notices. Returns when the new ones were promised."""
        new = list(notices)
        self._read(dict.fromkeys(one.id for one in new))  # together, as each read may cost an exchange
        promised = []
        for one in new:
            linked = self.of([one.id]).get(one.id, ThreadComments(one.id))
            known = {each.ref: each for each in linked.notices}
            self._notices.setdefault(one.id, {})[one.ref] = later_notice(one, known.get(one.ref))
            promised += [one.at] if one.ref not in known and one.state == "pending" else []
        return promised

    def drop(self, ids: Iterable[ThreadId]) -> None:
        """Remove the comments and notices on threads that are gone."""
        linked = self.of(ids)
        self.put(replace(one, shows=(), quotes=(), others=()) for each in linked.values() for one in each.comments)
        gone = {key for key, each in linked.items() if each.notices}
        self._gone |= gone
        self._notices = {key: notices for key, notices in self._notices.items() if key not in gone}

    def relist(self, comments: Iterable[StandingComment], listed: Iterable[ThreadComments]) -> None:
        """Rebuild the lists of where threads are shown from ``comments``, all of them; ``listed`` are today's lists."""
        for linked in listed:
            self._shown.setdefault(linked.id, {}).update(dict.fromkeys(linked.shown_in, False))
        self.put(comments)

    def changed(self) -> dict[ThreadId, ThreadComments]:
        touched = dict.fromkeys([*self._comments, *self._shown, *self._notices, *self._gone])
        return {key: ThreadComments(key) for key in touched} | self.of(touched)

    def _now(self, stored: ThreadComments) -> ThreadComments:
        comments = {one.reply: one for one in stored.comments} | self._comments.get(stored.id, {})
        shown = dict.fromkeys(stored.shown_in, True) | self._shown.get(stored.id, {})
        standing = (comments[reply] for reply in sorted(comments) if not comments[reply].is_gone)
        keys = sorted((key for key, is_shown in shown.items() if is_shown), key=lambda key: (sort_key(key[0]), key[1]))
        notices = () if stored.id in self._gone else stored.notices
        told = newest_notices((*notices, *self._notices.get(stored.id, {}).values()))
        return ThreadComments(stored.id, tuple(standing), tuple(keys), told)
