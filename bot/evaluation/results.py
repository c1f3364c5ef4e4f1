"""The values of a replay: the hits of each thread, and the threads that people linked it to later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.hosts import GITHUB
from bot.domain.thread import ThreadId

REPLAY_LIMIT = 300
"""The number of newest issues that a rebuild replays."""

LEARNING_SECONDS = 60.0
"""Time for learning in a rebuild: a third each for the order, the cut, and the backtest with its comments."""

Progress = Callable[[int], None]
"""Called with the number of steps done."""


class Grade(StrEnum):
    """How a replayed thread went.

    ``SUCCESS``: a duplicate was shown. ``ASSIST``: another thread was shown that people linked later. ``NOISE``: only
    threads were shown that nobody linked, though they may be related. ``MISSED``: no similar thread was shown, and
    people linked an older one later. ``QUIET``: no similar thread was shown, and nobody linked anything.
    """

    SUCCESS = "success"
    ASSIST = "assist"
    NOISE = "noise"
    MISSED = "missed"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Relations:
    """The older threads that people linked a thread to: as duplicates, or in another way, without overlap."""

    duplicates: frozenset[ThreadId] = frozenset()
    others: frozenset[ThreadId] = frozenset()

    @property
    def all(self) -> frozenset[ThreadId]:
        return self.duplicates | self.others


@dataclass(frozen=True, slots=True)
class ShownThread:
    """A thread that ranked high enough to be shown if its similarity allows it.

    ``confidence`` is the calibrated probability that it is worth showing; ``similarity`` is compared with the floor;
    both are in 0..1. ``is_shown``: it reached the floor. ``related``: people linked it.
    """

    id: ThreadId
    title: str
    is_open: bool
    similarity: float
    confidence: float
    is_shown: bool
    related: bool
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A thread that the search found but no comment lists, and why. ``similarity`` is None if its text was not read."""

    id: ThreadId
    title: str
    is_open: bool
    similarity: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """One thread as it was opened, against memory as it was then.

    ``hits``: the closed and open threads that ranked best, shown or not. ``rank``: the place of the first related
    thread in the ranking, from 1; None where no candidate is related. ``ms``: milliseconds taken. ``markdown``: the
    comment that would have been written, "" for silence. ``mentions``: the number of threads that its text mentions.
    ``passed_over``: the first related thread in the ranking, if no related one is among the hits.
    """

    id: ThreadId
    title: str
    created_at: datetime
    hits: tuple[ShownThread, ...]
    relations: Relations
    rank: int | None
    ms: float
    markdown: str = ""
    mentions: int = 0
    passed_over: PassedOver | None = None

    @property
    def shown(self) -> tuple[ShownThread, ...]:
        return tuple(hit for hit in self.hits if hit.is_shown)

    @property
    def has_comment(self) -> bool:
        """Whether it would have got a comment, be it only about what its text mentions."""
        return bool(self.markdown or self.shown)

    @property
    def grade(self) -> Grade:
        linked = {hit.id for hit in self.shown if hit.related}
        if linked & self.relations.duplicates:
            return Grade.SUCCESS
        if linked:
            return Grade.ASSIST
        if self.shown:
            return Grade.NOISE
        return Grade.MISSED if self.relations.all else Grade.QUIET


@dataclass(frozen=True, slots=True)
class Backtest:
    """A replay of the newest threads of a repository, oldest first.

    ``threads``: the size of the memory. ``threshold``: the least similarity that is shown. ``wanted``: the number of
    threads to replay; fewer were replayed if the time ran out. ``evidence``: where the ranking and the calibration come
    from, as names and plain values. ``by_meaning``: a text model compared the issues, too. ``server``: the address of
    the server that has the repository ``repo``, "" if unknown.
    """

    replayed: tuple[Replayed, ...]
    threads: int
    threshold: float
    wanted: int
    seconds: float
    repo: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    by_meaning: bool = False
    server: str = GITHUB
