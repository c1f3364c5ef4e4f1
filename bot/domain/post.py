"""What the bot writes: our texts that stand, or should stand, on threads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, NamedTuple

from bot.domain.bounds import MaxItems, Name, OneOf, Path, Pattern, Title, Word
from bot.domain.thread import ThreadId

COMMENT = ""
"""The slot of the comment on a thread."""

REPLY, NOTICE = "reply", "notice"
"""The kinds of all other slots, which a colon separates from what they are about."""

SLOTS = re.compile(rf"({REPLY}:\d{{1,19}}|{NOTICE}:[0-9a-f]{{16}})?", re.ASCII)
Slot = Annotated[str, Pattern(SLOTS)]

STATES = ("pending", "said", "silent", "withdrawn", "removed")


class Vote(NamedTuple):
    """An account's opinion on one of our comments. ``may_write``: it may write to the repository."""

    by: Name
    helps: bool
    may_write: bool = False


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request, ``id``, that may end issue ``about``.

    ``closes``: it says that it closes the issue; otherwise it refers to it. ``files`` are files that it changes, in a
    comment only those that the report names. ``seen_at`` is when the forge was asked; None for one in memory, whose
    closing is noticed at once.
    """

    about: int
    id: int
    title: Title = ""
    closes: bool = False
    draft: bool = False
    files: Annotated[tuple[Path, ...], MaxItems(5)] = ()
    seen_at: datetime | None = None


class OrganisationKey(NamedTuple):
    """A thread of an organisation: GitHub's number of its repository, and its id there."""

    repository: int
    thread: ThreadId


class PostKey(NamedTuple):
    """Identifies a post: its thread, and what it is there.

    ``slot`` is empty for the comment, ``reply:ID`` for the reply to the comment with this id, and ``notice:HASH`` for
    the release notice of a fix. The hidden marker of the post has it too.
    """

    thread: ThreadId
    slot: Slot = COMMENT

    @property
    def is_comment(self) -> bool:
        return self.slot == COMMENT

    @property
    def is_reply(self) -> bool:
        return replied_to(self.slot) is not None

    @property
    def is_note(self) -> bool:
        """Whether it is something else, which is not composed again: a release notice."""
        return not (self.is_comment or self.is_reply)


def reply_slot(comment_id: int) -> str:
    return f"{REPLY}:{comment_id}"


def notice_slot(fix: str) -> str:
    """``fix`` is a `FixInfo.ref`, or the release's tag if a person named only the release."""
    return f"{NOTICE}:{short_hash(fix)}"


def replied_to(slot: str) -> int | None:
    """The id of the comment that is replied to; None for any other slot."""
    kind, _, key = slot.partition(":")
    return int(key) if kind == REPLY and key.isascii() and key.isdigit() and len(key) < 20 else None


def short_hash(text: str) -> str:
    """Sixteen hexadecimal digits that identify this text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Post:
    """One of our texts on thread ``id``, as stored on the branch, with everything needed to keep it true.

    ``state`` is ``pending`` (stored, not yet seen on GitHub), ``said`` (it stands), ``silent`` (there is a reason for
    none), ``withdrawn``, or ``removed`` (a person deleted it: it is not posted again). ``at`` is when this text was
    promised, or the silence decided: of two texts the later counts, while a new state or vote keeps ``at``.
    ``revised_at`` is when the promise, its outcome or the votes last changed; None: at ``at``. ``trying_since`` is the
    start of the run that is writing, None once the result is known. ``content`` is the fingerprint of the text, empty
    if none was composed.

    ``shows`` lists the threads in it (a reply shows its own thread too), ``quotes`` the marks of the messages that it
    quotes (`bot.domain.thread.text_id`), ``others`` the threads of other repositories. ``pulls`` are the open pull
    requests in it that came from the forge: a renewal does not ask for them again.

    A comment has more: ``question`` identifies what was answered: the thread's text and references at the time, empty
    if no answer was sought. ``matches`` are the similar threads with their similarity, ``votes`` the 👍 and 👎 when it
    was last checked. A release notice has the tag of its ``release``; it shows the original of a duplicate.
    """

    id: ThreadId
    state: Annotated[str, OneOf(STATES)]
    at: datetime
    slot: Slot = COMMENT
    reason: str = ""
    content: Name = ""
    comment_id: int | None = None
    trying_since: datetime | None = None
    revised_at: datetime | None = None
    shows: tuple[ThreadId, ...] = ()
    quotes: tuple[Name, ...] = ()
    others: Annotated[tuple[OrganisationKey, ...], MaxItems(4)] = ()
    pulls: Annotated[tuple[OpenPull, ...], MaxItems(20)] = ()
    question: str = ""
    matches: tuple[tuple[ThreadId, float], ...] = ()
    votes: Annotated[tuple[Vote, ...], MaxItems(100)] = ()
    release: Word = ""

    @property
    def key(self) -> PostKey:
        return PostKey(self.id, self.slot)

    @property
    def is_promised(self) -> bool:
        """Whether it is composed and promised, and nothing stands yet."""
        return self.state == "pending" and bool(self.content) and self.comment_id is None

    @property
    def is_over(self) -> bool:
        """Whether nothing needs to be known of it any more: a reply that shows nothing now."""
        return self.key.is_reply and not (self.shows or self.others)

    def showing(self, other: Post | None) -> Post:
        """The post with what the ``other`` shows; None for nothing."""
        if other is None:
            return replace(self, shows=(), quotes=(), others=(), pulls=())
        return replace(self, shows=other.shows, quotes=other.quotes, others=other.others, pulls=other.pulls)


@dataclass(frozen=True, slots=True)
class ThreadPosts:
    """Our ``posts`` on thread ``id``, and the posts that show it (``shown_by``)."""

    id: ThreadId
    posts: tuple[Post, ...] = ()
    shown_by: tuple[PostKey, ...] = ()

    def post(self, slot: str = COMMENT) -> Post | None:
        return next((post for post in self.posts if post.slot == slot), None)

    def notices(self) -> Iterator[Post]:
        """The release notices."""
        return (post for post in self.posts if post.slot.startswith(NOTICE))


@dataclass(frozen=True, slots=True)
class Renewal:
    """A post to compose again, because thread ``about``, which it shows, changed at time ``at``."""

    id: ThreadId
    slot: Slot
    about: ThreadId
    at: datetime

    @property
    def post_key(self) -> PostKey:
        return PostKey(self.id, self.slot)

    @property
    def key(self) -> tuple[ThreadId, str, ThreadId]:
        """Identifies the renewal: a later change of the same thread replaces it."""
        return self.id, self.slot, self.about
