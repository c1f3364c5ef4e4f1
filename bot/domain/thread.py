"""The nouns that every other package uses: frozen values, no I/O, nothing of ours imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

ThreadId = int | str
"""An issue or pull request number, or the string key of a thread from elsewhere (``ABC-123``)."""

GHOST = "ghost"
"""The login that GitHub shows for an account that no longer exists."""

FORGOTTEN = "forgotten"
"""The reason of a tombstone that an administrator asked for: no later text takes its place."""

MAINTAINER_ROLES = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Values of ``author_association`` that come with write access."""


class Kind(StrEnum):
    """What sort of conversation a thread is."""

    ISSUE = "issue"
    PULL = "pull"
    PAGE = "page"
    SESSION = "session"


class OutcomeKind(StrEnum):
    """How a closed thread ended; ``UNKNOWN`` when there is no evidence."""

    FIXED = "fixed"
    ANSWERED = "answered"
    WORKAROUND = "workaround"
    NOT_PLANNED = "not planned"
    DUPLICATE = "duplicate"
    STALE = "stale"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Message:
    """One comment. ``id`` is GitHub's comment id, absent for threads that come from an archive."""

    author: str
    role: str
    created_at: datetime
    text: str
    id: int | None = None
    updated_at: datetime | None = None
    reactions: tuple[tuple[str, int], ...] = ()
    is_bot: bool = False

    @property
    def by_maintainer(self) -> bool:
        return self.role in MAINTAINER_ROLES

    def as_of(self, moment: datetime) -> Message:
        """The comment without what has happened to it since; its earlier texts are not known."""
        changed = self.updated_at if self.updated_at and self.updated_at <= moment else None
        return replace(self, updated_at=changed, reactions=())


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """Something that happened to a thread and is not a comment: closed, reopened, referenced, …

    ``commit`` is a full or short SHA; ``source`` the thread that referred here, ``source_kind`` what it is.
    """

    name: str
    at: datetime
    actor: str = GHOST
    commit: str | None = None
    source: ThreadId | None = None
    source_kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation: an opening text and the messages after it, oldest first.

    ``role`` is what the author is to the repository: ``NONE`` is a role too, and "" stands where nobody told.
    ``draft`` and ``merged_at`` are told of pull requests only.
    """

    id: ThreadId
    title: str
    body: str
    author: str
    created_at: datetime
    kind: Kind = Kind.ISSUE
    role: str = "NONE"
    is_bot: bool = False
    updated_at: datetime | None = None
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    locked: bool = False
    draft: bool = False
    merged_at: datetime | None = None
    labels: tuple[str, ...] = ()
    reactions: tuple[tuple[str, int], ...] = ()
    comments: tuple[Message, ...] = ()
    events: tuple[TimelineEvent, ...] = ()

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    @property
    def revised_at(self) -> datetime:
        """The time of the newest change that is known; of two versions of a thread the later one wins."""
        return self.updated_at or max(
            [self.created_at, self.closed_at or self.created_at, *(c.updated_at or c.created_at for c in self.comments)]
        )

    def as_of(self, moment: datetime) -> Thread:
        """The thread as it stood at ``moment``: nothing said or done later, open if it was closed later.

        Titles, bodies and labels are the stored ones: their earlier versions are not known. Reactions have no time and
        are left out.
        """
        past = [at for at in self.flips if at <= moment]
        closed_at = past[-1] if len(past) % 2 else None
        is_last = closed_at is not None and closed_at == self.closed_at
        closers = (e.actor for e in self.events if e.name == "closed" and e.at == closed_at)
        return replace(
            self,
            updated_at=None,
            state="closed" if closed_at else "open",
            state_reason=self.state_reason if is_last else None,
            closed_at=closed_at,
            closed_by=self.closed_by if is_last else next(closers, None),
            merged_at=self.merged_at if is_last else None,
            reactions=(),
            comments=tuple(c.as_of(moment) for c in self.comments if c.created_at <= moment),
            events=tuple(e for e in self.events if e.at <= moment),
        )

    @property
    def flips(self) -> tuple[datetime, ...]:
        """When the thread was closed, reopened, closed again, …, as far as is known; it began open."""
        known: list[datetime] = []
        for event in sorted(self.events, key=lambda event: event.at):
            if event.name == ("reopened" if len(known) % 2 else "closed"):
                known.append(event.at)
        if self.is_closed and self.closed_at:
            known = [at for at in known if at <= self.closed_at]  # several may be of the same second
            if len(known) % 2 == 0 or known[-1] != self.closed_at:
                known = [*known[: len(known) // 2 * 2], self.closed_at]
        elif not self.is_closed and len(known) % 2:
            known.pop()  # it was reopened, nobody knows when
        return tuple(known)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What stays of a thread that was deleted, transferred or forgotten: that it was there, and no text."""

    id: ThreadId
    at: datetime
    reason: str = "deleted"
    moved_to: str | None = None

    @property
    def revised_at(self) -> datetime:
        return self.at


Record = Thread | Tombstone


def is_forgotten(record: Record | None) -> bool:
    """Whether nothing of this thread is to be remembered, whatever the forge has of it."""
    return isinstance(record, Tombstone) and record.reason == FORGOTTEN


@dataclass(frozen=True, slots=True)
class Reference:
    """A pointer to an issue or pull request. ``owner`` and ``repo`` are None for the same repository.

    ``action`` is ``closes``, ``duplicate`` or None; ``kind`` is ``external`` for a configured autolink, else None.
    """

    number: int
    owner: str | None = None
    repo: str | None = None
    action: str | None = None
    kind: str | None = None
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A sentence that states a decision. ``comment`` is its index in the comments, None for the opening text."""

    text: str
    author: str
    role: str
    at: datetime
    comment: int | None = None
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a thread ended, with its evidence.

    ``comment`` is the index of the comment that states the ending and ``quote`` one or two of its sentences (raw
    Markdown of a stranger). ``fix`` is a reference to what fixed it (``#12`` or a commit SHA), ``release`` the version
    that the thread's own words name as the first one with the fix. ``claimed`` is such a reference where nothing but a
    stranger's word, or the look of it, makes it the fix: the kind is not known until it is known that it was merged.
    ``confidence`` is in 0..1.
    """

    kind: OutcomeKind = OutcomeKind.UNKNOWN
    comment: int | None = None
    comment_id: int | None = None
    quote: str = ""
    author: str | None = None
    role: str | None = None
    at: datetime | None = None
    fix: str | None = None
    claimed: str | None = None
    release: str | None = None
    duplicate_of: ThreadId | None = None
    evidence: tuple[str, ...] = ()
    confidence: float = 0.0


KNOWN_ROLES = MAINTAINER_ROLES | {"CONTRIBUTOR"}
"""Values of ``author_association`` of those who belong to the repository, or who have committed to it."""


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """Where references are read: the repository's full name, the hosts whose links count, and its server's address.

    ``recall_phrases`` are those of the settings: a comment that asks so is answered by a reply of its own.
    """

    repo: str | None = None
    hosts: tuple[str, ...] = ("github.com",)
    server: str = "https://github.com"
    recall_phrases: tuple[str, ...] = ()
