"""What memory stores besides threads and posts: requests and fixes; and the changes of one run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from bot.domain.bounds import MaxItems, Name, OneOf, Path, Pattern, Word
from bot.domain.change_state import NamedChange
from bot.domain.cluster import ClusterLinks
from bot.domain.post import Post, Renewal
from bot.domain.thread import Record, ThreadId, Tombstone

FORGET = "forget"
"""The name of the request to forget a thread. Only this request is kept for a forgotten thread."""

LATER_RUNS = timedelta(hours=1)
"""How much later than this run another one may have begun whose times this run reads."""


def is_within(moment: datetime, window: timedelta, now: datetime) -> bool:
    """Whether a stored time lies within the ``window`` before ``now``; one that a wrong clock set does not."""
    return now - window < moment <= now + LATER_RUNS


REQUEST_STATES = ("pending", "refused", "done")
"""In the order in which a request goes through them."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the bot in a comment, and its state.

    ``name`` is ``search``, ``context``, ``refresh``, ``wrong``, ``same``, ``different``, ``original``, ``off``, ``on``,
    ``forget``, ``help`` or ``recall``; ``at`` is when the comment was written; ``comment_id`` is the thread's own
    number if the request is in the opening text, or if somebody started a run for it. ``about`` lists the threads it
    names.
    ``state`` is ``pending`` (stored, the reply not yet seen), ``done`` or ``refused``. ``trying_since`` is as in
    `Post`, which has the reply itself.
    """

    id: ThreadId
    comment_id: int
    name: Annotated[str, Pattern(re.compile(r"[a-z]{1,20}", re.ASCII))]
    by: Name
    at: datetime
    about: Annotated[tuple[ThreadId, ...], MaxItems(20)] = ()
    state: Annotated[str, OneOf(REQUEST_STATES)] = "pending"
    trying_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class FixInfo:
    """The change that ended thread ``id``, according to the forge: the files it touches and the first release with it.

    ``ref`` is the outcome's ``fix`` or ``claimed``; ``commit`` is its SHA, None until it is merged; ``files`` holds at
    most five paths. ``closed_by`` is the change that closed the thread according to the forge or to its own text, ""
    if none did; of a claim it is the change that all other fields describe. ``release`` is a tag, last looked for at
    ``looked_at``. Without a release, ``unreleased`` says that none had the fix then; if it is False, that is unknown.
    ``refuted`` means that the forge knows of no such fix: it is an issue, or not merged, or neither on the main line
    nor in a release.
    """

    id: ThreadId
    ref: Word
    looked_at: datetime
    is_pull: bool = False
    commit: Word | None = None
    merged_at: datetime | None = None
    files: Annotated[tuple[Path, ...], MaxItems(5)] = ()
    release: Word | None = None
    released_at: datetime | None = None
    unreleased: bool = False
    refuted: bool = False
    closed_by: Word = ""

    @property
    def change(self) -> str:
        """The change that it describes: ``#57`` or a SHA."""
        return self.closed_by or self.ref

    @property
    def named(self) -> NamedChange:
        """What was looked up, once it is known to be the fix."""
        return NamedChange(self.ref)


TRACKED_NUMBER_LIMIT = 1 << 22
"""Reading the whole history keeps track of issue numbers below this."""


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """An unfinished reading of the whole history: when it began, and how far it got (``upto``).

    ``seen`` holds the issue numbers read so far, so that vanished issues are known at the end.
    """

    began: datetime
    upto: datetime | None = None
    seen: frozenset[int] = frozenset()

    def merge(self, other: HistoryProgress | None) -> HistoryProgress:
        """The one that began later; if both began at the same time, the two combined."""
        if other is None or other.began < self.began:
            return self
        if other.began > self.began:
            return other
        upto = max(filter(None, (self.upto, other.upto)), default=None)
        return HistoryProgress(self.began, upto, self.seen | other.seen)


NOTICES_OFF = datetime(1970, 1, 1, tzinfo=UTC)
"""The value of ``notified_until`` if reporters are not notified."""


@dataclass(frozen=True, slots=True)
class DiscussionProgress:
    """How far discussions were read, in the reading that began at ``began``.

    Everything that changed before ``upto`` is remembered. Until the first reading ``is_done``, ``after`` is the cursor
    at which GitHub's list, oldest change first, continues.
    """

    began: datetime
    upto: datetime | None = None
    after: Annotated[str, Pattern(re.compile(r".{0,200}", re.DOTALL))] = ""
    is_done: bool = False

    def merge(self, other: DiscussionProgress | None) -> DiscussionProgress:
        """The one from the later reading; of two from the same reading, the one that got further."""
        return self if other is None or self._rank >= other._rank else other

    @property
    def _rank(self) -> tuple[datetime, bool, datetime, str]:
        return self.began, self.is_done, self.upto or self.began.min.replace(tzinfo=self.began.tzinfo), self.after


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that one run adds to memory. The newer revision wins, so the result is the same on any tip.

    ``pages`` says for each source of pages (``docs``, ``wiki``, ``releases``) which state was read, such as a commit.
    ``reading`` is the progress of reading the whole history, ``read_whole`` the start of a finished reading;
    ``discussions`` is how far those were read. The posts to renew follow from ``records``, ``fixes`` and
    ``requests``; ``renewals_due`` lists any others, ``renewals_done`` those that were renewed. Threads in
    ``hidden_by_github`` are not shown until they are read again: GitHub neither shows them nor says that they are gone.
    ``notified_until``: reporters know about the releases published until then; NOTICES_OFF if they are not notified.
    ``notifying_from``: those of the releases published after it still wait for their notices.
    ``links`` has an item for each thread that was compared for clusters, even if nothing was found. ``remembered`` has
    threads that may be remembered though they were forgotten until that moment.
    """

    records: tuple[Record, ...] = ()
    posts: tuple[Post, ...] = ()
    requests: tuple[Request, ...] = ()
    fixes: tuple[FixInfo, ...] = ()
    renewals_due: tuple[Renewal, ...] = ()
    renewals_done: tuple[Renewal, ...] = ()
    hidden_by_github: tuple[Tombstone, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()
    cursor: datetime | None = None
    reading: HistoryProgress | None = None
    read_whole: datetime | None = None
    notified_until: datetime | None = None
    notifying_from: datetime | None = None
    links: tuple[ClusterLinks, ...] = ()
    discussions: DiscussionProgress | None = None
    remembered: tuple[tuple[ThreadId, datetime], ...] = ()


ANSWER_REQUESTS = frozenset({"off", "on", "wrong", "refresh"})
"""Requests that change the answer on a thread. A stored request has such a name only if it was allowed."""

JUDGEMENT_REQUESTS = frozenset({"same", "different", "original"})
"""Requests that say which threads report the same thing. A stored request has such a name only if it was allowed."""

CHANGE_REQUESTS = ANSWER_REQUESTS | JUDGEMENT_REQUESTS
"""Requests that change something. Only some people may make them."""


def is_off(requests: Iterable[Request]) -> bool:
    """Whether the bot is switched off on the thread of these requests: the last ``off`` or ``on`` counts."""
    switches = [request for request in requests if request.name in ("off", "on")]
    return bool(switches) and max(switches, key=lambda request: (request.at, request.comment_id)).name == "off"


def wrong_matches_for(requests: Iterable[Request], before: datetime | None = None) -> frozenset[ThreadId]:
    """The threads that somebody marked wrong on the thread of these requests, until ``before`` (None: now)."""
    wrong = (request for request in requests if request.name == "wrong" and (before is None or request.at <= before))
    return frozenset(key for request in wrong for key in request.about)


def threads_to_redo(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads to answer again after these requests."""
    return frozenset(request.id for request in requests if request.name in ANSWER_REQUESTS)


def threads_to_refresh(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads to answer again even if a person deleted the comment."""
    return frozenset(request.id for request in requests if request.name in ("refresh", "on"))
