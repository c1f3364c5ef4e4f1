"""A room: one feature of the bot. `bot.pipeline.handle` gives each its turn in three steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bot.domain.post import Post
from bot.errors import StoreError
from bot.pipeline.draft import Draft
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.tools import Facts, Tools


class Settlement(NamedTuple):
    """A draft, the post that was promised for it (None if none had to be), and the result."""

    draft: Draft
    promised: Post | None
    result: CommentResult


class Room:
    """One feature, for one event. A new one overrides what it needs, and is named in `bot.pipeline.handle.ROOMS`.

    A room that raises is left out of what follows; the others go on. But if one that ``answers_events`` raises before
    anything is stored, the run ends, and the next one begins again, so that no event is lost.
    """

    answers_events = False

    def __init__(self, facts: Facts, run: Tools) -> None:
        self.facts, self.run = facts, run

    def look(self) -> None:
        """Learn what this feature has to know, and stage it in memory. Threads that changed are read before, by
        `fetch_changes`: what is read here is not among ``facts.updates``."""

    def plan(self) -> list[Draft]:
        """Decide what should stand where; ``facts.drafts`` has what earlier rooms decided. Posts nothing."""
        return []

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Stage what follows from the settlements of all drafts, besides their posts."""


class House:
    """The rooms of one event. One that raises gets no further turn; ``error`` is the first."""

    def __init__(self, rooms: Sequence[Room]) -> None:
        self._rooms = list(rooms)
        self.error: Exception | None = None

    def each(self, turn: Callable[[Room], object], *, is_stored: bool = False) -> None:
        """Give each room its turn. ``is_stored``: this run's promises are."""
        for room in list(self._rooms):
            try:
                turn(room)
            except Exception as error:
                self._rooms.remove(room)
                self.error = self.error or error
                if isinstance(error, StoreError) or (room.answers_events and not is_stored):
                    raise
