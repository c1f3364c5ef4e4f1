"""What a question of a developer needs of memory: cards by id, by words, by files and by links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from bot.card import Card, CardId, Found, Link


class Cards(Protocol):
    """The cards of all threads of a repository. `bot.glance` is one on this machine."""

    @property
    def size(self) -> int:
        """Number of threads."""
        ...

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[Card], bool] | None = None,
        floor: float = 0.0,
    ) -> list[Found]:
        """The ``limit`` best threads for these terms (`bot.reading.words.terms`), each with how much it counts (> 0).

        They are looked for in titles, opening texts, decisions, keywords, files and summaries; best first, equal scores
        by id, numbers before texts. ``keep`` leaves threads out; ``floor`` those whose `Found.part` is smaller.
        """
        ...

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        """The cards of those threads that are known."""
        ...

    def naming(self, path: str) -> dict[CardId, tuple[str, ...]]:
        """The threads that name this file, each with how they write it: a path of which one ends as the other does."""
        ...

    def links(self, ids: Iterable[CardId]) -> list[Link]:
        """What points from these threads, and what points at them."""
        ...

    def decided(self, limit: int) -> list[Card]:
        """The threads with the newest decisions, newest first."""
        ...
