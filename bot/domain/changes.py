"""What memory stores besides threads: answers, requests, standing comments and fixes; and the changes of one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bot.domain.change_state import NamedChange
from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Record, ThreadId, Tombstone

FORGET = "forget"
"""The name of the request to forget a thread. Only this request is kept for a forgotten thread."""

LATER_RUNS = timedelta(hours=1)
"""How much later than this run another one may have begun whose times this run reads."""


def is_within(moment: datetime, window: timedelta, now: datetime) -> bool:
    """Whether a stored time lies within the ``window`` before ``now``; one that a wrong clock set does not."""
    return now - window < moment <= now + LATER_RUNS


class Vote(NamedTuple):
    """An account's opinion on one of our comments. ``may_write``: it may write to the repository."""

    by: str
    helps: bool
    may_write: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer on a thread, as stored on the branch. ``text_hash`` is the comment's fingerprint, empty when silent.

    ``state`` is ``pending`` (stored, the comment not yet seen), ``said``, ``silent``, ``withdrawn`` or ``removed`` (a
    person deleted the comment: it is not posted again). ``question`` identifies what was answered: the thread's text
    and references at the time, empty if no answer was sought. ``at`` is when the answer was first promised and
    identifies it: new states and votes keep it. ``trying_since`` is the start of the run that is writing the comment,
    None once the result is known. ``votes`` are the 👍 and 👎 on the comment when last checked, by account.
    ``revised_at`` is when the promise, its outcome or the votes last changed; None: at ``at``.
    """

    id: ThreadId
    state: str
    at: datetime
    reason: str = ""
    text_hash: str = ""
    comment_id: int | None = None
    matches: tuple[tuple[ThreadId, float], ...] = ()
    question: str = ""
    trying_since: datetime | None = None
    votes: tuple[Vote, ...] = ()
    revised_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the bot in a comment, and its state.

    ``name`` is ``search``, ``context``, ``refresh``, ``wrong``, ``same``, ``different``, ``original``, ``off``, ``on``,
    ``forget``, ``help`` or ``recall``; ``at`` is when the comment was written; ``comment_id`` is the thread's own
    number if the request is in the opening text, or if somebody started a run for it. ``about`` lists the threads it
    names.
    ``state`` is ``pending`` (stored, the reply not yet seen), ``done`` or ``refused``. ``trying_since`` is as in
    `AnswerRecord`; ``reply_id`` is the reply.
    """

    id: ThreadId
    comment_id: int
    name: str
    by: str
    at: datetime
    about: tuple[ThreadId, ...] = ()
    state: str = "pending"
    reply_id: int | None = None
    trying_since: datetime | None = None


CommentKey = tuple[ThreadId, int]
"""Identifies one of our comments: its thread, and the id of the comment that it replies to, 0 for the main comment."""


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request, ``id``, that may end issue ``about``.

    ``closes``: it says that it closes the issue; otherwise it refers to it. ``files`` are files that it changes, in a
    comment only those that the report names. ``seen_at`` is when the forge was asked; None for one in memory, whose
    closing is noticed at once.
    """

    about: int
    id: int
    title: str = ""
    closes: bool = False
    draft: bool = False
    files: tuple[str, ...] = ()
    seen_at: datetime | None = None


class OrganisationKey(NamedTuple):
    """A thread of an organisation: GitHub's number of its repository, and its id there."""

    repository: int
    thread: ThreadId


@dataclass(frozen=True, slots=True)
class StandingComment:
    """One of our comments on thread ``id``, or one about to be posted, with everything needed to keep it true.

    ``reply`` is the ``comment_id`` of the request that it replies to, 0 for the main comment. ``at`` is when it was
    composed: of two states of one comment the later counts. ``content`` is its fingerprint. ``shows`` lists the
    threads in it (a reply shows its own thread too), ``quotes`` the marks of the messages that it quotes
    (`bot.domain.thread.text_mark`). A comment that shows nothing is gone. ``trying_since`` is set while a reply is
    renewed. ``pulls`` are the open pull requests in it that came from the forge: a renewal does not ask for them again.
    ``others`` are the threads of other repositories in it.
    """

    id: ThreadId
    at: datetime
    reply: int = 0
    content: str = ""
    shows: tuple[ThreadId, ...] = ()
    quotes: tuple[str, ...] = ()
    trying_since: datetime | None = None
    pulls: tuple[OpenPull, ...] = ()
    others: tuple[OrganisationKey, ...] = ()

    @property
    def is_gone(self) -> bool:
        return not (self.shows or self.others)

    @property
    def comment_key(self) -> CommentKey:
        return self.id, self.reply


NoticeKey = tuple[ThreadId, str]
"""Identifies a release notice: its thread, and the fix that it announces."""


@dataclass(frozen=True, slots=True)
class ReleaseNotice:
    """A comment on thread ``id`` that says which release has its fix: posted, about to be, or not to be posted.

    ``ref`` is the fix as in `FixInfo`, or the release's tag if a person named only the release. ``release`` is the
    tag; ``original`` is the fixed thread, if this one is a duplicate of it. ``state`` is ``pending`` (stored, the
    comment not yet seen), ``said``, ``silent`` (there is a reason not to post it) or ``removed`` (a person deleted it).
    ``at`` is when it was first promised; ``trying_since`` is when the run that is writing it last promised it.
    """

    id: ThreadId
    ref: str
    release: str
    at: datetime
    original: ThreadId | None = None
    state: str = "pending"
    comment_id: int | None = None
    trying_since: datetime | None = None

    @property
    def notice_key(self) -> NoticeKey:
        return self.id, self.ref


@dataclass(frozen=True, slots=True)
class ThreadComments:
    """Our ``comments`` and release ``notices`` on thread ``id``, and the comments on other threads that show it."""

    id: ThreadId
    comments: tuple[StandingComment, ...] = ()
    shown_in: tuple[CommentKey, ...] = ()
    notices: tuple[ReleaseNotice, ...] = ()


@dataclass(frozen=True, slots=True)
class Renewal:
    """A comment to compose again, because thread ``about``, which it shows, changed at time ``at``."""

    id: ThreadId
    reply: int
    about: ThreadId
    at: datetime

    @property
    def comment_key(self) -> CommentKey:
        return self.id, self.reply

    @property
    def key(self) -> tuple[ThreadId, int, ThreadId]:
        """Identifies the renewal: a later change of the same thread replaces it."""
        return self.id, self.reply, self.about


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
    ref: str
    looked_at: datetime
    is_pull: bool = False
    commit: str | None = None
    merged_at: datetime | None = None
    files: tuple[str, ...] = ()
    release: str | None = None
    released_at: datetime | None = None
    unreleased: bool = False
    refuted: bool = False
    closed_by: str = ""

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
"""The value of ``told_until`` if reporters are not notified."""


@dataclass(frozen=True, slots=True)
class DiscussionProgress:
    """How far discussions were read, in the reading that began at ``began``.

    Everything that changed before ``upto`` is remembered. Until the first reading ``is_done``, ``after`` is the cursor
    at which GitHub's list, oldest change first, continues.
    """

    began: datetime
    upto: datetime | None = None
    after: str = ""
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
    ``discussions`` is how far those were read. The comments to renew follow from ``records``, ``fixes`` and
    ``requests``; ``owed`` lists any others, ``renewed`` those that were renewed. Threads in ``unseen`` are not shown
    until they are read again: GitHub neither shows them nor says that they are gone.
    ``told_until``: reporters know about the releases published until then; NOTICES_OFF if they are not notified.
    ``told_from``: those of the releases published after it still wait for their notices.
    ``links`` has an item for each thread that was compared for clusters, even if nothing was found; all threads from
    ``linked_to`` on were compared. ``relink``: compare all of them again. ``remembered`` has threads that may be
    remembered though they were forgotten until that moment.
    """

    records: tuple[Record, ...] = ()
    answers: tuple[AnswerRecord, ...] = ()
    requests: tuple[Request, ...] = ()
    fixes: tuple[FixInfo, ...] = ()
    standing: tuple[StandingComment, ...] = ()
    owed: tuple[Renewal, ...] = ()
    renewed: tuple[Renewal, ...] = ()
    notices: tuple[ReleaseNotice, ...] = ()
    unseen: tuple[Tombstone, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()
    cursor: datetime | None = None
    reading: HistoryProgress | None = None
    read_whole: datetime | None = None
    told_until: datetime | None = None
    told_from: datetime | None = None
    links: tuple[ClusterLinks, ...] = ()
    linked_to: ThreadId | None = None
    relink: bool = False
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
