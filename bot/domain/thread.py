"""The nouns that every other package uses: threads, messages, decisions and outcomes, as frozen values."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Self
from urllib.parse import urlsplit

from bot.domain.bounds import Fraction, Name, Position, Quote, Signals
from bot.domain.change_state import NamedChange, named_change
from bot.domain.hidden_people import GHOST as GHOST  # noqa: PLC0414 - one import for all nouns
from bot.domain.hidden_people import HiddenPeople
from bot.domain.hosts import GITHUB, GITHUB_HOST, GITHUB_HOSTS
from bot.domain.kinds import Kind as Kind  # noqa: PLC0414 - one import for all nouns
from bot.domain.kinds import OutcomeKind as OutcomeKind  # noqa: PLC0414
from bot.domain.roles import MAINTAINER, MERGE_BOTS, RELEASE_BOTS, ROLE_WORDS

ThreadId = int | str
"""The number of an issue, pull request or discussion, or the key of a thread from elsewhere (``ABC-123``)."""

FORGOTTEN = "forgotten"
"""The reason of a tombstone that an administrator requested. No later text replaces such a tombstone, unless the
thread is to be remembered again."""

MAINTAINER_ROLES = frozenset(role for role, word in ROLE_WORDS.items() if word == MAINTAINER)
"""Values of ``author_association`` that come with write access."""

KNOWN_ROLES = frozenset(ROLE_WORDS)
"""Values of ``author_association`` for members of the repository and for anybody who has committed to it."""


def text_id(text: str) -> str:
    """Eight hexadecimal digits that identify a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Message:
    """One comment. ``id`` is GitHub's comment id; threads from an archive may have none.

    ``whole_text_id`` identifies the whole text if ``text`` is only its beginning, else it is "".
    """

    author: str
    role: str
    created_at: datetime
    text: str
    id: int | None = None
    updated_at: datetime | None = None
    reactions: tuple[tuple[str, int], ...] = ()
    is_bot: bool = False
    whole_text_id: str = ""

    @property
    def text_id(self) -> str:
        """Identifies the text as its author wrote it, however much of it is stored."""
        return self.whole_text_id or text_id(self.text)

    @property
    def by_maintainer(self) -> bool:
        return self.role in MAINTAINER_ROLES

    def shortened(self, length: int) -> Message:
        """The comment with at most ``length`` characters of its text."""
        if len(self.text) <= length:
            return self
        return replace(self, text=self.text[:length], whole_text_id=self.text_id)

    def as_of(self, moment: datetime) -> Message:
        """The comment as it stood at ``moment``, except that earlier versions of its text are not known."""
        changed = self.updated_at if self.updated_at and self.updated_at <= moment else None
        return replace(self, updated_at=changed, reactions=())


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """An event on a thread other than a comment: closed, reopened, referenced, …

    ``commit`` is a full or short SHA; ``source`` is the thread that referred to this one, ``source_kind`` its kind. If
    that is a pull request, ``merged_at`` is known once it is merged, and ``closes``: its own text says that it closes
    this thread. ``comment`` is the id of the comment that was marked as the answer.
    """

    name: str
    at: datetime
    actor: str = GHOST
    commit: str | None = None
    source: ThreadId | None = None
    source_kind: Kind | None = None
    comment: int | None = None
    merged_at: datetime | None = None
    closes: bool = False

    def as_of(self, moment: datetime) -> TimelineEvent:
        """The event as it was known at ``moment``, when its source may not have been merged yet."""
        return replace(self, merged_at=None) if self.merged_at and self.merged_at > moment else self


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation: an opening text and the messages after it, oldest first.

    ``role`` is the author's ``author_association``: ``NONE`` is a value too, and "" means that it is not known.
    Only pull requests have ``draft`` and ``merged_at``. A discussion counts as closed once an answer is marked, even if
    it may go on. ``deciders`` are accounts whose statements count like a maintainer's, by the settings; ``merge_bots``
    and ``release_bots`` are further ones like MERGE_BOTS and RELEASE_BOTS; ``assignees`` matter only in a history
    without roles.
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
    comments: tuple[Message, ...] = ()
    events: tuple[TimelineEvent, ...] = ()
    deciders: tuple[str, ...] = ()
    merge_bots: tuple[str, ...] = ()
    release_bots: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    @property
    def messages(self) -> tuple[Message, ...]:
        """The opening text, then the comments."""
        return Message(self.author, self.role, self.created_at, self.body, is_bot=self.is_bot), *self.comments

    def is_merge_bot(self, login: str) -> bool:
        """Whether this account closes threads by merging fixes. Its own threads it may close for any reason."""
        return login in (*MERGE_BOTS, *self.merge_bots) and login != self.author

    def is_release_bot(self, login: str) -> bool:
        """Whether the repository believes this account which release has a fix."""
        return login in (*RELEASE_BOTS, *self.release_bots)

    @property
    def revised_at(self) -> datetime:
        """The time of the newest known change. Of two versions of a thread the later one wins."""
        return self.updated_at or max(
            [self.created_at, self.closed_at or self.created_at, *(c.updated_at or c.created_at for c in self.comments)]
        )

    def as_of(self, moment: datetime) -> Thread:
        """The thread as it stood at ``moment``: without anything said or done later, and open if it was closed later.

        Titles, bodies and labels are today's, as earlier versions are not known. Reactions have no time and are left
        out of its comments.
        """
        past = [at for at in self.state_changes if at <= moment]
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
            comments=tuple(c.as_of(moment) for c in self.comments if c.created_at <= moment),
            events=tuple(e.as_of(moment) for e in self.events if e.at <= moment),
        )

    def without(self, people: HiddenPeople) -> Thread:
        """The thread without the words and names of these people. Its title stays, as it names the thread."""
        if not people:
            return self
        return replace(
            self,
            author=people.alias(self.author),
            body="" if self.author in people else self.body,
            closed_by=people.alias(self.closed_by) if self.closed_by else None,
            comments=tuple(comment for comment in self.comments if comment.author not in people),
            events=tuple(replace(event, actor=people.alias(event.actor)) for event in self.events),
            deciders=tuple(login for login in self.deciders if login not in people),
            assignees=tuple(login for login in self.assignees if login not in people),
        )

    @property
    def state_changes(self) -> tuple[datetime, ...]:
        """When the thread was closed, reopened, closed again, … as far as is known. It began open."""
        times: list[datetime] = []
        for event in sorted(self.events, key=lambda event: event.at):
            if event.name == ("reopened" if len(times) % 2 else "closed"):
                times.append(event.at)
        if self.is_closed and self.closed_at:
            times = [at for at in times if at <= self.closed_at]  # several may be in the same second
            if len(times) % 2 == 0 or times[-1] != self.closed_at:
                times = [*times[: len(times) // 2 * 2], self.closed_at]
        elif not self.is_closed and len(times) % 2:
            times.pop()  # it was reopened, nobody knows when
        return tuple(times)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Marks a thread that was deleted, transferred or forgotten. Its text is gone."""

    id: ThreadId
    at: datetime
    reason: str = "deleted"
    moved_to: str | None = None

    @property
    def revised_at(self) -> datetime:
        return self.at

    def without(self, _: HiddenPeople) -> Tombstone:
        """The tombstone, which has nobody's words."""
        return self


Record = Thread | Tombstone


def is_forgotten(record: Record | None) -> bool:
    """Whether this thread must not be remembered, even if the forge still has it."""
    return isinstance(record, Tombstone) and record.reason == FORGOTTEN


@dataclass(frozen=True, slots=True)
class Reference:
    """A pointer to an issue, pull request or discussion. ``owner`` and ``repo`` are None for the same repository.

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
    """A sentence that states a decision. ``comment`` is an index into the comments, None for the opening text.

    ``superseded_by`` refers to what replaced it: a thread (``#51``), or the comment that takes it back
    (``#issuecomment-123``, or its thread if the comment has no id). It is "" for a decision that still holds.
    ``is_proposal``: a maintainer proposed it, and the thread was fixed, by the change
    ``done_in`` (``#17`` or a SHA, "" if that is not known).
    """

    text: str
    author: str
    role: str
    at: datetime
    comment: int | None = None
    comment_id: int | None = None
    superseded_by: str = ""
    is_proposal: bool = False
    done_in: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a thread ended, with its evidence.

    ``comment`` is the index of the comment that states the ending, ``quote`` one or two of its sentences (a stranger's
    raw Markdown). ``fix`` refers to the fix (``#12`` or a commit SHA); ``release`` is the first version with it
    according to the thread. ``claimed`` refers to a change that only a stranger calls the fix, or that refers to the
    thread: the kind stays unknown until that change is known to have closed it. ``confidence`` is in 0..1.
    """

    kind: OutcomeKind = OutcomeKind.UNKNOWN
    comment: Annotated[int | None, Position()] = None
    comment_id: int | None = None
    quote: Quote = ""
    author: Name | None = None
    role: Name | None = None
    at: datetime | None = None
    fix: Name | None = None
    claimed: Name | None = None
    release: Name | None = None
    duplicate_of: ThreadId | None = None
    evidence: Signals = ()
    confidence: Annotated[float, Fraction()] = 0.0

    @property
    def change(self) -> NamedChange | None:
        """The change that it names as the fix."""
        return named_change(self.fix, self.claimed)


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """Everything needed to resolve references: the repository's full name, the hosts whose links count, the server.

    ``questions``, from the settings: a comment that asks one of them gets a reply of its own.
    """

    repo: str | None = None
    hosts: tuple[str, ...] = GITHUB_HOSTS
    server: str = GITHUB
    questions: tuple[str, ...] = ()

    @classmethod
    def at(cls, server: str, repo: str | None, questions: tuple[str, ...] = ()) -> Self:
        """The address of a repository on the server with this web address."""
        return cls(repo, (urlsplit(server).hostname or GITHUB_HOST,), server, questions)
