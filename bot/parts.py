"""What handling an event needs, put together by a door and handed down the line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.backfill import Clock
from bot.comment.render import Renderer
from bot.errors import PrecedentError
from bot.github.fixes import FixFinder
from bot.github.forge import Forge
from bot.github.history import History
from bot.github.threads import Own
from bot.memory.memory import Memory
from bot.recall.mentioned import Place
from bot.settings import Settings
from bot.sources.pages import PageSource

FULL_DAY = "as many comments were written as one day may have"


@dataclass(frozen=True, slots=True)
class Bot:
    """Everything that handling an event needs. ``now`` is the time of the run.

    ``muted``: why this run may say nothing although something is owed; what is owed is promised for the next run.
    ``meet`` is told of a fault that the run goes on after. ``is_dry``: nothing is written, whatever memory seems to be.
    ``watch`` is told of each step of the straight line as it begins: look, remember, ask, plan, push, say, reply.
    """

    memory: Memory
    forge: Forge
    history: History
    own: Own
    settings: Settings
    renderer: Renderer
    place: Place
    fixes: FixFinder
    pages: tuple[PageSource, ...]
    now: datetime
    clock: Clock
    note: Callable[[str], None]
    muted: str = ""
    meet: Callable[[PrecedentError], None] = lambda _: None
    is_dry: bool = False
    watch: Callable[[str], None] = lambda _: None

    @property
    def within(self) -> timedelta:
        """How old an issue, or a promise, may be to be answered after the fact."""
        return timedelta(hours=self.settings.comment.answer_within_hours)

    def may_write(self, more: int = 0) -> bool:
        """Whether one comment after ``more`` others may be written, that is in any 24 hours; where none is, it may."""
        limit = self.settings.comment.daily_limit
        return self.settings.mode != "comment" or self.memory.written(self.now) + more < limit
