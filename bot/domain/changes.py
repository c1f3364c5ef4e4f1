"""What memory keeps beside the threads: what was said, what people asked for, where fixes are; a run's changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from bot.domain.thread import Record, ThreadId, Tombstone

FORGET = "forget"
"""The name of the request that a thread be forgotten. It is all that stays of what people asked for there."""


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """What was said on a thread, as kept on the branch. ``text_hash`` is the comment's fingerprint, empty when silent.

    ``state`` is ``pending`` (memory is written, the comment not yet seen), ``answers``, ``silent``, ``withdrawn`` or
    ``removed`` (a person deleted the comment: it is not written again). ``question`` identifies what was answered: the
    thread's text and references as they were then, empty where nobody looked for an answer. ``at`` is when it was first
    promised and identifies the answer: states and counts do not move it. ``trying_since`` is when the run began that is
    writing the comment, None once it is known how that went. ``ups`` and ``downs`` count the 👍 and 👎 on the comment
    when somebody last looked.
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
    """What somebody asked of the bot in a comment, and what became of it.

    ``name`` is ``search``, ``context``, ``refresh``, ``wrong``, ``off``, ``on``, ``forget``, ``help`` or ``recall``;
    ``at`` is when the comment was written; ``comment_id`` is the thread's own number where the opening text asks, or
    somebody started a run for it. ``about`` holds the threads that it names. ``state`` is ``pending`` (memory is
    written, the reply not yet seen), ``done`` or ``refused``. ``trying_since`` is as in `AnswerRecord`, ``reply_id``
    the comment with the reply.
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
"""Where a comment of ours stands: its thread, and 0 for the comment on the thread, else what a reply answers."""


@dataclass(frozen=True, slots=True)
class StandingComment:
    """A comment of ours that stands on thread ``id``, or is about to: what has to be known to keep it true.

    ``reply`` is the ``comment_id`` of the request that it replies to, 0 for the one comment on the thread. ``at`` is
    when it was worked out: of two states of one comment the later counts. ``content`` is its fingerprint. It ``shows``
    other threads, a reply its own one too, and ``quotes`` messages of theirs, each known by the mark of its text
    (`bot.domain.answer`). One that shows nothing is gone. ``trying_since`` is that of a reply being renewed.
    """

    id: ThreadId
    at: datetime
    reply: int = 0
    content: str = ""
    shows: tuple[ThreadId, ...] = ()
    quotes: tuple[str, ...] = ()
    trying_since: datetime | None = None

    @property
    def comment_key(self) -> CommentKey:
        return self.id, self.reply


@dataclass(frozen=True, slots=True)
class ThreadComments:
    """The ``comments`` of ours that stand on thread ``id``, and in which comments on other threads it is shown."""

    id: ThreadId
    comments: tuple[StandingComment, ...] = ()
    shown_in: tuple[CommentKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Renewal:
    """A comment that has to be worked out again, as thread ``about``, which it shows, changed ``at`` that moment."""

    id: ThreadId
    reply: int
    about: ThreadId
    at: datetime

    @property
    def comment_key(self) -> CommentKey:
        return self.id, self.reply

    @property
    def key(self) -> tuple[ThreadId, int, ThreadId]:
        """What it is about: a later change of the same thread takes its place."""
        return self.id, self.reply, self.about


@dataclass(frozen=True, slots=True)
class FixInfo:
    """The change that ended thread ``id``, as the forge knows it: what it touches and the first release that has it.

    ``ref`` is the outcome's ``fix`` or ``claimed``; ``commit`` the SHA, None while it is not merged; ``files`` at
    most five paths. ``release`` is a tag, ``looked_at`` is when that was last looked for. Where there is none,
    ``unreleased`` says that no release had it then; without that nobody knows. ``refuted`` says that the forge was
    asked and knows of no fix: it is an issue, not merged, or neither on the main line nor in a release.
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
"""The numbers of issues that a reading of the whole history keeps in mind are smaller."""


@dataclass(frozen=True, slots=True)
class HistoryProgress:
    """A reading of the whole history that is not at its end yet: ``began`` then, and got as far as ``upto``.

    ``seen`` are the numbers of the issues that it met so far, so that in the end it is known which are gone.
    """

    began: datetime
    upto: datetime | None = None
    seen: frozenset[int] = frozenset()

    def joined(self, other: HistoryProgress | None) -> HistoryProgress:
        """Both as one: of two that began at once all that either met, else the one that began later."""
        if other is None or other.began < self.began:
            return self
        if other.began > self.began:
            return other
        upto = max(filter(None, (self.upto, other.upto)), default=None)
        return HistoryProgress(self.began, upto, self.seen | other.seen)


@dataclass(frozen=True, slots=True)
class Changes:
    """What one run wants to be remembered. Applied on any tip with the same result: the newer revision wins.

    ``pages`` says of each source of pages (``docs``, ``wiki``, ``releases``) which state of it was read, such as a
    commit. ``reading`` is how far a reading of the whole history has come, ``read_whole`` when one began that is at its
    end. Which comments are owed a look follows from ``records``, ``fixes`` and ``requests``; ``renewed`` had theirs.
    Threads that are ``unseen`` are told of nowhere until they are read again: GitHub does not show them, and does not
    say that they are gone.
    """

    records: tuple[Record, ...] = ()
    answers: tuple[AnswerRecord, ...] = ()
    requests: tuple[Request, ...] = ()
    fixes: tuple[FixInfo, ...] = ()
    standing: tuple[StandingComment, ...] = ()
    renewed: tuple[Renewal, ...] = ()
    unseen: tuple[Tombstone, ...] = ()
    pages: tuple[tuple[str, str], ...] = ()
    cursor: datetime | None = None
    reading: HistoryProgress | None = None
    read_whole: datetime | None = None


EFFECTIVE = frozenset({"off", "on", "wrong", "refresh"})
"""Requests that change what is said on a thread. One has such a name only where it was allowed."""


def is_off(requests: Iterable[Request]) -> bool:
    """Whether nothing is to be said on the thread of these requests: the later of ``off`` and ``on`` holds."""
    switches = [request for request in requests if request.name in ("off", "on")]
    return bool(switches) and max(switches, key=lambda request: (request.at, request.comment_id)).name == "off"


def wrong_matches_for(requests: Iterable[Request], before: datetime | None = None) -> frozenset[ThreadId]:
    """The threads that somebody called wrong on the thread of these requests, until ``before`` (None: now)."""
    told = (request for request in requests if request.name == "wrong" and (before is None or request.at <= before))
    return frozenset(key for request in told for key in request.about)


def wrong_pairs(requests: Iterable[Request]) -> frozenset[tuple[ThreadId, ThreadId]]:
    """For requests on any threads: each thread with those that are wrong on it."""
    return frozenset((request.id, key) for request in requests if request.name == "wrong" for key in request.about)


def redo(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads whose answer has to be worked out again after these requests."""
    return frozenset(request.id for request in requests if request.name in EFFECTIVE)


def refreshed(requests: Iterable[Request]) -> frozenset[ThreadId]:
    """The threads that are answered again even where a person deleted the comment."""
    return frozenset(request.id for request in requests if request.name in ("refresh", "on"))
