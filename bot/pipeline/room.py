"""A room: one feature of the bot. `bot.pipeline.handle` gives each its turn in three steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bot.domain.post import Post
from bot.pipeline.draft import Draft
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.tools import Facts, RunContext


class Settlement(NamedTuple):
    """A draft, the post that was promised for it (None if none had to be), and the result."""

    draft: Draft
    promised: Post | None
    result: CommentResult


class Room:
    """One feature, for one event. A new one overrides what it needs, and is named in `bot.pipeline.handle.ROOMS`.

    A room that raises is left out of what follows; the others go on.
    """

    def __init__(self, facts: Facts, run: RunContext) -> None:
        self.facts, self.run = facts, run

    def look(self) -> None:
        """Learn what this feature has to know, and stage it in memory."""

    def plan(self) -> list[Draft]:
        """Decide what should stand where; ``facts.drafts`` has what earlier rooms decided. Writes nothing to GitHub."""
        return []

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Stage what follows from the settlements of all drafts, besides their posts."""
