"""What handling an event needs, put together by an entry point, and what is known when deciding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.comment.render import Renderer
from bot.domain.changes import AnswerRecord, Request
from bot.domain.thread import RepositoryAddress, Thread, ThreadId
from bot.errors import PrecedentError
from bot.github.api import Forge
from bot.github.events import Event
from bot.github.fixes import FixFinder
from bot.github.history import HistorySource
from bot.github.threads import OwnCommentRule
from bot.github.updates import Updates
from bot.memory.memory import Memory
from bot.pipeline.backfill import Clock
from bot.settings.schema import Settings
from bot.sources.pages import PageSource

FULL_DAY = "as many comments were written as one day may have"


@dataclass(frozen=True, slots=True)
class RunContext:
    """Everything that handling an event needs. ``now`` is the time of the run.

    ``muted``: why this run may say nothing although something is owed; what is owed is promised for the next run.
    ``report_fault`` is told of a fault that the run goes on after. ``is_dry``: nothing is written, whatever memory
    seems to be. ``on_stage`` is called as each stage begins: look, remember, ask, plan, push, say, reply.
    """

    memory: Memory
    forge: Forge
    history: HistorySource
    own: OwnCommentRule
    settings: Settings
    renderer: Renderer
    place: RepositoryAddress
    fixes: FixFinder
    pages: tuple[PageSource, ...]
    now: datetime
    clock: Clock
    note: Callable[[str], None]
    muted: str = ""
    report_fault: Callable[[PrecedentError], None] = lambda _: None
    is_dry: bool = False
    on_stage: Callable[[str], None] = lambda _: None

    @property
    def within(self) -> timedelta:
        """How old an issue, or a promise, may be to be answered after the fact."""
        return timedelta(hours=self.settings.comment.answer_within_hours)

    def may_write(self, more: int = 0) -> bool:
        """Whether one comment after ``more`` others may be written, that is in any 24 hours; where none is, it may."""
        limit = self.settings.comment.daily_limit
        return self.settings.mode != "comment" or self.memory.written(self.now) + more < limit


ANSWER_AGE = timedelta(hours=24)
"""An issue that was never answered still gets an answer from a later run while it is younger than this."""

SPEAKING = timedelta(minutes=2)
"""How long a run may take from its promise to the comment. Another run that looks in between leaves it to that one."""


@dataclass(frozen=True, slots=True)
class RunState:
    """All that is known when it is decided whom to answer.

    ``said`` is what was answered before, ``settled`` the part of it that memory does not know yet. ``late`` are fresh
    threads that are not in the news, because they were read as history. ``requested``: what people asked for in this
    run. ``is_first``: memory was empty, and does not know what was said before it. ``limit`` is why nothing more can be
    asked of GitHub in this run, empty while it can.
    """

    event: Event
    updates: Updates
    now: datetime
    place: RepositoryAddress
    said: Mapping[ThreadId, AnswerRecord] = field(default_factory=dict)
    settled: Mapping[ThreadId, AnswerRecord] = field(default_factory=dict)
    late: tuple[ThreadId, ...] = ()
    requested: tuple[Request, ...] = ()
    is_first: bool = False
    within: timedelta = ANSWER_AGE
    limit: str = ""

    def asks_for(self, thread: Thread) -> bool:
        """Whether somebody started this run by hand to have this very thread answered."""
        return self.event.name == "workflow_dispatch" and self.event.number == thread.id


def is_being_said(said: AnswerRecord, now: datetime) -> bool:
    """Whether another run may be writing the comment at this moment."""
    return said.state == "pending" and is_at_it(said.trying_since, now)


def is_at_it(since: datetime | None, now: datetime) -> bool:
    """Whether a run that began to write then may be at it still."""
    return since is not None and since > now - SPEAKING
