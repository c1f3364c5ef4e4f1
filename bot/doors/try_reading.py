"""Reading the issues of a repository that somebody tries: the newest first, and the next time what changed since."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.archive import stamp
from bot.backfill import LONGEST_WAIT, WAITS
from bot.doors.try_shelf import Shelf
from bot.github.catch_up import OVERLAP
from bot.github.errors import RateLimited
from bot.github.graphql import PER_PAGE, POINTS, Glimpse, GraphQLHistory, LostPlace

SECONDS = 3.0
"""How long a request for fifty issues with all their comments may take: a guess, until one reading was measured."""


@dataclass(frozen=True, slots=True)
class Task:
    """What there is to read: ``changed`` issues, then ``missing`` older ones, of ``issues`` in all.

    ``anew``: so much changed that it costs less to begin again. ``wanted``: how many of the newest are to be held.
    ``pace``: seconds for a request.
    """

    wanted: int
    changed: int
    missing: int
    issues: int
    anew: bool = False
    pace: float = SECONDS

    @property
    def count(self) -> int:
        """About how many issues will be read."""
        return self.missing if self.anew else self.changed + self.missing

    @property
    def requests(self) -> int:
        parts = (self.missing,) if self.anew else (self.changed, self.missing)
        return sum(math.ceil(part / PER_PAGE) for part in parts)

    @property
    def points(self) -> int:
        return POINTS * self.requests

    @property
    def seconds(self) -> float:
        return self.pace * self.requests


def task_of(shelf: Shelf, seen: Glimpse, wanted: int) -> Task:
    """What a reading has to do, given what is held. ``wanted`` 0: all issues."""
    most = min(wanted or seen.issues, seen.issues)
    changed = seen.changed if shelf.upto else 0
    missing = 0 if shelf.has_all else max(0, most - shelf.size)
    pace = float(shelf.fact("pace") or SECONDS)
    if shelf.upto and changed + missing > most:
        return Task(most, 0, most, seen.issues, anew=True, pace=pace)
    return Task(most, changed, missing, seen.issues, pace=pace)


@contextmanager
def paced(shelf: Shelf, history: GraphQLHistory) -> Iterator[None]:
    """Note how long a request takes, pauses included, for what is told before the next reading."""
    began = time.monotonic()
    try:
        yield
    finally:
        if history.requests:
            shelf.note(pace=f"{(time.monotonic() - began) / history.requests:.3f}")


def since(shelf: Shelf) -> datetime | None:
    """From when on changes are asked for."""
    return shelf.upto - OVERLAP if shelf.upto else None


def read(
    history: GraphQLHistory, shelf: Shelf, task: Task, sit_out: Callable[[float], None], tick: Callable[[int], None]
) -> None:
    """Do it. Raises ForgeError; what came before it is kept. A limit that is soon over is waited for."""
    if task.anew:
        shelf.note(upto="")
    for _ in range(WAITS):
        try:
            _go_on(history, shelf, task, tick)
        except RateLimited as error:
            pause = (error.until or datetime.max.replace(tzinfo=UTC)) - datetime.now(UTC)
            if not -LONGEST_WAIT <= pause <= LONGEST_WAIT:
                raise
            sit_out(max(timedelta(), pause).total_seconds() + 1)
        else:
            return
    raise RateLimited("GitHub asked for a pause too often")


def _go_on(history: GraphQLHistory, shelf: Shelf, task: Task, tick: Callable[[int], None]) -> None:
    if shelf.upto is None:
        shelf.begin_anew()
    else:
        for news in history.since(since(shelf)):
            shelf.put(news.records, grows=False, upto=stamp(news.cursor) or shelf.fact("upto"))
            tick(len(news.listed))
    try:
        _walk(history, shelf, task.wanted, tick)
    except LostPlace:  # then from the newest on again
        shelf.note(place="")
        _walk(history, shelf, task.wanted, tick)


def _walk(history: GraphQLHistory, shelf: Shelf, wanted: int, tick: Callable[[int], None]) -> None:
    """Read older issues until so many are held, or there is none any more.

    The newest change of the first batch is what changes are asked for from the next time: by GitHub's clock, not ours.
    """
    if shelf.has_all or shelf.size >= wanted:
        return
    for news, place in history.newest(shelf.place):
        upto = shelf.fact("upto") or stamp(news.cursor) or ""
        shelf.put(news.records, grows=True, place=place, ended="1" if news.complete else "", upto=upto)
        tick(len(news.listed))
        if shelf.size >= wanted:
            return
