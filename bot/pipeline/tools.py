"""Everything that a run uses, and everything known when deciding what to answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from bot.comment.render import Renderer
from bot.domain.answer import Context, OrganisationMatch
from bot.domain.changes import Changes, DiscussionProgress, Request, is_within
from bot.domain.post import OrganisationKey, Post
from bot.domain.thread import Kind, RepositoryAddress, Thread, ThreadId
from bot.errors import PrecedentError
from bot.github.client import GitHubClient
from bot.github.discussion_comments import CommentClient, DiscussionComments
from bot.github.discussions import DiscussionReader
from bot.github.events import Event
from bot.github.fixes import FixFinder
from bot.github.history import HistorySource
from bot.github.threads import OwnCommentRule
from bot.github.updates import Updates
from bot.memory.memory import Memory
from bot.pipeline.backfill import HISTORY_SECONDS, Clock, HistoryRead
from bot.pipeline.draft import Draft
from bot.pipeline.permit import Permit
from bot.reading.questions import RecallQuestion
from bot.reading.requests import Command
from bot.settings.schema import Settings
from bot.sources.pages import PageSource

DAILY_LIMIT_REACHED = "the daily limit of comments is reached"


class OrganisationSearch(Protocol):
    """Finds threads of other repositories that may be shown in this one."""

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        """The threads to show with ``context``, the surest first; none if the context has something as sure itself.

        Each was read from GitHub in this call with its own repository's token, and every reader of this repository may
        read it. Those in ``kept`` are in the comment already, and stay if they may still be shown. Never raises because
        of the engine; raises ForgeError if it cannot find out whether a kept one may stay.
        """


@dataclass(frozen=True, slots=True)
class Tools:
    """Everything that handling an event needs; an entry point builds it. ``started`` is when the run began by the clock
    of this machine, and ``began`` by ``clock``.

    ``muted``: why this run may not post; its comments are promised for a later run. ``report_fault`` takes faults that
    the run survives. ``on_stage`` is called as each stage begins: look, remember, plan, push, say. ``reading_seconds``:
    how long a run reads history if it was not started to do so; the next run continues. ``on_history`` is called after
    each reading of history. Without ``organisation`` no other repository is searched. ``checks_others``: all comments
    that show other repositories are worked out again.
    """

    memory: Memory
    forge: GitHubClient
    history: HistorySource
    own: OwnCommentRule
    settings: Settings
    renderer: Renderer
    address: RepositoryAddress
    fixes: FixFinder
    discussions: DiscussionReader
    discussion_comments: DiscussionComments
    pages: tuple[PageSource, ...]
    started: datetime
    clock: Clock
    began: float
    note: Callable[[str], None]
    muted: str = ""
    report_fault: Callable[[PrecedentError], None] = lambda _: None
    on_stage: Callable[[str], None] = lambda _: None
    reading_seconds: float = HISTORY_SECONDS
    on_history: Callable[[HistoryRead], None] = lambda _: None
    organisation: OrganisationSearch | None = None
    checks_others: bool = False

    @property
    def now(self) -> datetime:
        """The time of the run, by GitHub's clock if this machine's is wrong: a stored time of next year would count as
        recent for that long."""
        return self.forge.correct_time(self.started)

    @property
    def is_dry(self) -> bool:
        """Whether nothing is written, whatever memory appears to hold."""
        return self.memory.is_dry

    @property
    def max_age(self) -> timedelta:
        """The maximum age of an issue, or of a promise, to be answered."""
        return timedelta(hours=self.settings.comment.answer_within_hours)

    def comments_on(self, key: ThreadId) -> CommentClient:
        """The client for comments on this thread: GraphQL for a discussion, REST for everything else."""
        if not isinstance(key, int):
            return self.forge
        record = self.memory.whole_records([key]).get(key)
        is_discussion = isinstance(record, Thread) and record.kind is Kind.DISCUSSION
        return self.discussion_comments if is_discussion or self.discussion_comments.has_listed(key) else self.forge

    def current_time(self) -> datetime:
        """The time by the run's clock; later than ``now`` in a long run."""
        return self.now + timedelta(seconds=max(0.0, self.clock.seconds() - self.began))

    @property
    def permit(self) -> Permit:
        return Permit(self.settings.mode == "comment" and not self.is_dry, self.muted, takes_out=not self.is_dry)

    def new_posts_left(self) -> int:
        """How many new posts the daily limit still allows."""
        if not self.permit.writes:
            return sys.maxsize
        return self.settings.comment.daily_limit - self.memory.state.manifest.promised_within_day(self.now)


MAX_ISSUE_AGE = timedelta(hours=24)
"""The maximum age of an unanswered issue for a later run to answer it."""

POSTING_WINDOW = timedelta(minutes=2)
"""The time a run has to post a comment after promising it. Until then other runs leave it alone."""


@dataclass(slots=True)
class Facts:
    """Everything that one run knows when it decides what to write; the rooms add to it.

    ``comments`` are our comments on changed threads as memory had them, with what was seen on GitHub since;
    ``settled`` are those of them whose new state is not in memory yet. ``fresh_ids`` are fresh threads read as
    history, which are not in ``updates``. ``requests``: what was asked in comments; ``requested``: the same as stored
    by this run. ``drafts``: what should stand where. ``new_posts_left``: how many new posts may still be planned today.
    ``is_first``: memory was empty, so it does not know earlier comments. ``limit``: why this run can send GitHub no
    more requests, "" if it can. ``discussions``: how far this run read the discussions.
    """

    event: Event
    updates: Updates
    now: datetime
    address: RepositoryAddress
    comments: dict[ThreadId, Post] = field(default_factory=dict)
    settled: Mapping[ThreadId, Post] = field(default_factory=dict)
    fresh_ids: tuple[ThreadId, ...] = ()
    drafts: list[Draft] = field(default_factory=list)
    requests: list[ParsedRequest] = field(default_factory=list)
    requested: tuple[Request, ...] = ()
    new_posts_left: int = sys.maxsize
    is_first: bool = False
    max_age: timedelta = MAX_ISSUE_AGE
    limit: str = ""
    discussions: DiscussionProgress | None = None

    @property
    def changes(self) -> Changes:
        """What was read from GitHub, for memory."""
        settled, updates = tuple(self.settled.values()), self.updates
        return Changes(updates.records, settled, cursor=updates.cursor, discussions=self.discussions)

    def take_new_post(self) -> bool:
        """Count one more new post; False if the daily limit allows no more."""
        is_allowed = self.new_posts_left > 0
        self.new_posts_left -= is_allowed
        return is_allowed

    def is_by_hand(self, thread: Thread) -> bool:
        """Whether somebody started this run by hand for this thread."""
        return self.event.name == "workflow_dispatch" and self.event.number == thread.id


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request found in text. ``key`` is the id of the comment, or the number of the issue whose opening text asks.

    ``others``: the comment has further commands, which are ignored. ``before`` is the request as memory has it.
    ``has_reply``: a reply exists that memory does not know about. ``comment`` is the whole comment with a question.
    """

    thread: Thread
    key: int
    by: str
    at: datetime
    command: Command | None = None
    question: RecallQuestion | None = None
    others: bool = False
    before: Request | None = None
    has_reply: bool = False
    comment: str = ""

    @property
    def name(self) -> str:
        return self.command.name if self.command else "recall"

    @property
    def was_promised(self) -> bool:
        """Whether an earlier run promised the reply, and counted it."""
        return self.before is not None and self.before.trying_since is not None

    @property
    def text(self) -> str:
        return self.command.line if self.command else self.question.asked if self.question else ""


def is_being_posted(post: Post, now: datetime) -> bool:
    """Whether another run may be writing the post now."""
    return post.state == "pending" and is_in_progress(post.trying_since, now)


def is_in_progress(since: datetime | None, now: datetime) -> bool:
    """Whether a run that began to write at ``since`` may still be writing."""
    return since is not None and is_within(since, POSTING_WINDOW, now)
