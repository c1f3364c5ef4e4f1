"""The parts of an answer: what memory knows about a thread, the threads it shows, the messages it quotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.card import Passage
from bot.domain.change_state import number_of
from bot.domain.changes import FixInfo
from bot.domain.kinds import Kind
from bot.domain.post import OpenPull, OrganisationKey, Post
from bot.domain.thread import MAINTAINER_ROLES, Decision, Outcome, Record, Thread, ThreadId, text_id


@dataclass(frozen=True, slots=True)
class EarlierClosing:
    """The earlier closing of an issue that somebody reopened."""

    closed_at: datetime
    reopened_at: datetime
    outcome: Outcome = field(default_factory=Outcome)


@dataclass(frozen=True, slots=True)
class CondensedTurn:
    """One message of a condensed conversation; its text may be cut."""

    author: str
    role: str
    at: datetime
    text: str
    is_cut: bool = False

    @property
    def by_maintainer(self) -> bool:
        return self.role in MAINTAINER_ROLES

    @property
    def length(self) -> int:
        """Characters that it takes from a budget: its text, and at most what names its author and day."""
        return HEADING_CHARS + len(self.author) + len(self.text)


HEADING_CHARS = len(" (maintainer), 2025-03-11:\n\n\n")
"""Characters counted for the line above a turn, without its author's name."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A resolved reference. ``chain`` holds the duplicates that led to ``id``, the referenced one first.

    ``missing`` says why nothing is known; the other fields are empty then. ``earlier`` is set for a reopened issue.
    ``is_known``: the person who referred to it had taken part in it; ``is_asked``: the text asks what was decided or
    discussed. ``passage`` is what was said there about the words of a search.
    """

    id: ThreadId
    title: str = ""
    state: str = ""
    state_reason: str | None = None
    kind: Kind = Kind.ISSUE
    draft: bool = False
    merged_at: datetime | None = None
    created_at: datetime | None = None
    closed_at: datetime | None = None
    outcome: Outcome = field(default_factory=Outcome)
    summary: str = ""
    decisions: tuple[Decision, ...] = ()
    files: tuple[str, ...] = ()
    conversation: tuple[CondensedTurn, ...] = ()
    chain: tuple[ThreadId, ...] = ()
    missing: str = ""
    fix: FixInfo | None = None
    earlier: EarlierClosing | None = None
    passage: Passage | None = None
    is_known: bool = False
    is_asked: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A similar thread. ``similarity`` is in 0..1; ``why`` holds short plain reasons.

    ``fix`` is the change that ended it, if known. ``asked_on`` is the version named in the question, empty unless it
    can be compared with the release of the fix; ``may_be_back``: it is that release or a later one.
    ``earlier`` is as in `Mention`.
    """

    id: ThreadId
    title: str
    similarity: float
    state: str
    created_at: datetime
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    turn_count: int = 1
    outcome: Outcome = field(default_factory=Outcome)
    why: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    conversation: tuple[CondensedTurn, ...] = ()
    fix: FixInfo | None = None
    asked_on: str = ""
    may_be_back: bool = False
    earlier: EarlierClosing | None = None
    kind: Kind = Kind.ISSUE


@dataclass(frozen=True, slots=True)
class PageHit:
    """A section of a wiki or documentation page, or a release."""

    title: str
    url: str
    excerpt: str
    similarity: float


@dataclass(frozen=True, slots=True)
class OrganisationMatch:
    """A thread of another repository, to be shown in a comment or a search.

    ``key`` identifies it permanently, ``repository`` is the current "owner/name".
    """

    key: OrganisationKey
    repository: str
    match: Match


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that memory knows about one thread.

    ``elsewhere`` lists the threads of other repositories that it refers to, as ``owner/repo#N``. ``searched`` is the
    number of issues searched, 0 to leave it out. ``is_first``: no older issue is known. ``nearest`` are the nearest
    issues, shown or not, for the people who run the bot. ``pulls`` are open pull requests, at most one for each open
    issue that is shown; ``organisation`` are threads of the organisation's other repositories.
    """

    mentioned: tuple[Mention, ...] = ()
    also_mentioned: tuple[Mention, ...] = ()
    seen_before: tuple[Match, ...] = ()
    open_now: tuple[Match, ...] = ()
    pages: tuple[PageHit, ...] = ()
    elsewhere: tuple[str, ...] = ()
    searched: int = 0
    is_first: bool = False
    pulls: tuple[OpenPull, ...] = ()
    organisation: tuple[OrganisationMatch, ...] = ()
    nearest: tuple[Match, ...] = field(default=(), compare=False)

    @property
    def is_empty(self) -> bool:
        return not (self.mentioned or self.seen_before or self.open_now or self.pages or self.organisation)


@dataclass(frozen=True, slots=True)
class Speak:
    """The answer is worth a comment."""

    context: Context


@dataclass(frozen=True, slots=True)
class Silent:
    """There is nothing worth a comment; ``reason`` says why, ``nearest`` is as in `Context`."""

    reason: str
    nearest: tuple[Match, ...] = field(default=(), compare=False)


Answer = Speak | Silent


Hit = Mention | Match


def threads_in(context: Context) -> tuple[ThreadId, ...]:
    """The threads that a comment with this context shows, in order, including the duplicates that led to one, the
    originals of duplicates, and the pull requests that fixed one or are said to have done so."""
    keys = [key for hit in _hits(context) for key in _thread_ids(hit)]
    return tuple(dict.fromkeys([*keys, *(pull.id for pull in context.pulls)]))


def open_issues(context: Context) -> tuple[int, ...]:
    """The open issues in the sections of a comment with this context, in order."""
    hits: tuple[Hit, ...] = (*context.mentioned, *context.seen_before, *context.open_now)
    is_open = (hit.id for hit in hits if hit.kind is Kind.ISSUE and hit.state == "open" and isinstance(hit.id, int))
    return tuple(dict.fromkeys(is_open))


def quoted_in(context: Context, records: Mapping[ThreadId, Record]) -> tuple[str, ...]:
    """Marks of the messages (titles included) that a comment with this context quotes, looked up in ``records``."""
    return tuple(sorted({mark for hit in _hits(context) for mark in _quoted_marks(hit, records.get(hit.id))}))


def has_false_quotes(post: Post, records: Mapping[ThreadId, Record]) -> bool:
    """Whether a post quotes something that none of the threads it shows contains any more."""
    threads = (record for key in post.shows if isinstance(record := records.get(key), Thread))
    marks = {
        mark
        for thread in threads
        for mark in (text_id(thread.title), text_id(thread.body), *(comment.text_id for comment in thread.comments))
    }
    return not marks.issuperset(post.quotes)


def _hits(context: Context) -> Iterable[Hit]:
    shown = context.mentioned, context.also_mentioned, context.seen_before, context.open_now
    return (hit for section in shown for hit in section)


def _thread_ids(hit: Hit) -> Iterator[ThreadId]:
    yield hit.id
    yield from hit.chain if isinstance(hit, Mention) else ()
    if hit.outcome.duplicate_of is not None:
        yield hit.outcome.duplicate_of
    if number := number_of(hit.outcome.fix or hit.outcome.claimed):
        yield number


def _quoted_marks(hit: Hit, record: Record | None) -> Iterator[str]:
    if not isinstance(record, Thread):
        return
    yield text_id(record.title)
    times = set(_moments(hit))
    if record.created_at in times:
        yield text_id(record.body)
    yield from (comment.text_id for comment in record.comments if comment.created_at in times)


def _moments(hit: Hit) -> Iterator[datetime]:
    endings: list[Outcome] = [hit.outcome, *([hit.earlier.outcome] if hit.earlier else [])]
    yield from (ending.at for ending in endings if ending.at and ending.quote)
    yield from (turn.at for turn in hit.conversation)
    if isinstance(hit, Mention):
        yield from (decision.at for decision in hit.decisions)
        if hit.passage and hit.passage.at:
            yield hit.passage.at
