"""What memory keeps besides threads: answers, requests, comments that stand, fixes; and the changes of one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from bot.domain.cluster import ClusterLinks
from bot.domain.thread import Record, ThreadId, Tombstone

FORGET = "forget"
"""The name of the request to forget a thread. Only this request is kept for a forgotten thread."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer on a thread, as kept on the branch. ``text_hash`` is the comment's fingerprint, empty when silent.

    ``state`` is ``pending`` (stored, the comment not yet seen), ``said``, ``silent``, ``withdrawn`` or ``removed`` (a
    person deleted the comment: it is not written again). ``question`` identifies what was answered: the thread's text
    and references at the time, empty if no answer was looked for. ``at`` is when the answer was first promised and
    identifies it: new states and counts keep it. ``trying_since`` is the start of the run that is writing the comment,
    None once the result is known. ``ups`` and ``downs`` count the 👍 and 👎 on the comment at the last look.
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
    ups: int = 0
    downs: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the bot in a comment, and its state.

    ``name`` is ``search``, ``context``, ``refresh``, ``wrong``, ``same``, ``different``, ``original``, ``off``, ``on``,
    ``forget``, ``help`` or ``recall``; ``at`` is when the comment was written; ``comment_id`` is the thread's own
    number if the opening text asks, or if somebody started a run for it. ``about`` holds the threads that it names.
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
    comment only those that the report names. ``seen_at`` is when the forge was asked; None for one that memory holds,
    which is known to be closed as soon as that is so.
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
    """One of our comments on thread ``id``, or one about to be posted, with what is needed to keep it true.

    ``reply`` is the ``comment_id`` of the request that it replies to, 0 for the main comment. ``at`` is when it was
    worked out: of two states of one comment the later counts. ``content`` is its fingerprint. ``shows`` lists the
    threads in it (a reply shows its own thread too), ``quotes`` the marks of the messages that it quotes
    (`bot.domain.answer.mark`). A comment that shows nothing is gone. ``trying_since`` is set while a reply is renewed.
    ``pulls`` are the open pull requests in it that the forge named: a renewal does not ask for them again. ``others``
    are the threads of other repositories in it.
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
"""Identifies a release notice: its thread, and the fix that it tells of."""


@dataclass(frozen=True, slots=True)
class ReleaseNotice:
    """A comment on thread ``id`` that says which release has its fix: posted, about to be, or not to be posted.

    ``ref`` is the fix as in `FixInfo`, or the release's tag where a person only named the release. ``release`` is the
    tag; ``original`` is the fixed thread, if this one is a duplicate of it. ``state`` is ``pending`` (stored, the
    comment not yet seen), ``said``, ``silent`` (there is a reason not to post it) or ``removed`` (a person deleted it).
    ``at`` is when it was first promised; ``trying_since`` is when the run that is writing it promised it last.
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
    """A comment to work out again, because thread ``about``, which it shows, changed ``at`` that moment."""

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
    most five paths. ``release`` is a tag, last looked for at ``looked_at``. Without a release, ``unreleased`` says that
    none had the fix then; if it is False, that is not known. ``refuted`` means that the forge knows of no such fix: it
    is an issue, or not merged, or neither on the main line nor in a release.
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


LARGEST = 1 << 22
"""A reading of the whole history keeps track of issue numbers below this."""


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """An unfinished reading of the whole history: when it began, and how far it got (``upto``).

    ``seen`` holds the issue numbers read so far, so that vanished issues are known at the end.
    """

    began: datetime
    upto: datetime | None = None
    seen: frozenset[int] = frozenset()

    def joined(self, other: HistoryProgress | None) -> HistoryProgress:
        """The one that began later; of two that began at once, both together."""
        if other is None or other.began < self.began:
            return self
        if other.began > self.began:
            return other
        upto = max(filter(None, (self.upto, other.upto)), default=None)
        return HistoryProgress(self.began, upto, self.seen | other.seen)


NOBODY = datetime(1970, 1, 1, tzinfo=UTC)
"""As ``told_until``: reporters are not notified."""


@dataclass(frozen=True, slots=True)
class DiscussionProgress:
    """How far discussions were read, in the reading that ``began`` then.

    All that changed before ``upto`` is remembered. Until the first reading ``is_done``, ``after`` is where GitHub's
    list, oldest change first, goes on: a name that only GitHub understands.
    """

    began: datetime
    upto: datetime | None = None
    after: str = ""
    is_done: bool = False

    def joined(self, other: DiscussionProgress | None) -> DiscussionProgress:
        """The one of the later reading; of two in the same one, the one that got further."""
        return self if other is None or self._rank >= other._rank else other

    @property
    def _rank(self) -> tuple[datetime, bool, datetime, str]:
        return self.began, self.is_done, self.upto or self.began.min.replace(tzinfo=self.began.tzinfo), self.after


@dataclass(frozen=True, slots=True)
class Changes:
    """Everything that one run adds to memory. The newer revision wins, so the result is the same on any tip.

    ``pages`` says for each source of pages (``docs``, ``wiki``, ``releases``) which state was read, such as a commit.
    ``reading`` is the progress of a reading of the whole history, ``read_whole`` the start of a finished one;
    ``discussions`` how far those were read. The comments to renew follow from ``records``, ``fixes`` and ``requests``,
    and ``owed`` has others; ``renewed`` lists those that were. Threads in ``unseen`` are shown nowhere until they are
    read again: GitHub neither shows them nor says that they are gone.
    ``told_until``: reporters know of the releases published until then; NOBODY if they are not notified.
    ``links`` has an item for each thread that was compared for clusters, also where nothing was found; all threads from
    ``linked_to`` on were. ``relink``: all are to be compared again.
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
    links: tuple[ClusterLinks, ...] = ()
    linked_to: ThreadId | None = None
    relink: bool = False
    discussions: DiscussionProgress | None = None


EFFECTIVE = frozenset({"off", "on", "wrong", "refresh"})
"""Requests that change the answer on a thread. A stored request has such a name only if it was allowed."""

JUDGING = frozenset({"same", "different", "original"})
"""Requests that say which threads report one thing. A stored request has such a name only if it was allowed."""

CHANGING = EFFECTIVE | JUDGING
"""Requests that change something. Only some people may make them."""


def is_off(requests: Iterable[Request]) -> bool:
    """Whether the bot is switched off on the thread of these requests: the later of ``off`` and ``on`` holds."""
    switches = [request for request in requests if request.name in ("off", "on")]
    return bool(switches) and max(switches, key=lambda request: (request.at, request.comment_id)).name == "off"


def wrong_matches_for(requests: Iterable[Request], before: datetime | None = None) -> frozenset[ThreadId]:
    """The threads that somebody marked wrong on the thread of these requests, until ``before`` (None: now)."""
    wrong = (request for request in requests if request.name == "wrong" and (before is None or request.at <= before))
    return frozenset(key for request in wrong for key in request.about)


def wrong_pairs(requests: Iterable[Request]) -> frozenset[tuple[ThreadId, ThreadId]]:
    """Pairs of a thread and another that is marked wrong on it, from requests on any threads."""
    return frozenset((request.id, key) for request in requests if request.name == "wrong" for key in request.about)


def redo(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads to answer again after these requests."""
    return frozenset(request.id for request in requests if request.name in EFFECTIVE)


def refreshed(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads to answer again even if a person deleted the comment."""
    return frozenset(request.id for request in requests if request.name in ("refresh", "on"))


def judgements(requests: Iterable[Request]) -> dict[ThreadId, Request]:
    """The last request on the thread of these requests that judges another thread, by that thread."""
    judging = (request for request in requests if request.name in JUDGING)
    in_time = sorted(judging, key=lambda request: (request.at, request.comment_id))
    return {key: request for request in in_time for key in request.about}
