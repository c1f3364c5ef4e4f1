"""What a reading of the whole history did not meet: GitHub is asked about each, and gone is only what it calls gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from bot.github.catch_up import read_thread, tombstone
from bot.github.errors import ForgeError, Gone, IssuesOff, RateLimited
from bot.github.history import keep_some
from bot.kept import LARGEST, Changes, Reading
from bot.memory.memory import is_shown
from bot.model import Kind, Record, Thread, Tombstone
from bot.parts import Bot

ASKED = 300
"""Threads that one run asks about; those that are left are for the next ones."""

TOLD_EVERY = 50


@dataclass(slots=True)
class Asked:
    """What came of asking about ``missing`` threads: what is to be remembered, and the numbers that are done with.

    ``unseen`` are those that only cannot be seen, and that a comment of ours shows. ``stopped``: why no more could be
    asked about, None where that is all that one run asks.
    """

    missing: int
    records: list[Record] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    unseen: list[Tombstone] = field(default_factory=list)
    stopped: ForgeError | None = None

    @property
    def gone(self) -> int:
        return sum(isinstance(record, Tombstone) for record in self.records)

    @property
    def left(self) -> int:
        return self.missing - len(self.done)


def bury(bot: Bot, whole: Reading) -> Asked:
    """Ask GitHub about the issues in memory that a whole reading did not meet, and stage what it says.

    That a list lacks an issue is no proof: it may have moved on its pages while they were read, its author be held for
    a spammer, the list be empty for a moment. What is gone for certain becomes a tombstone, what is there is remembered
    as it is now, and what only cannot be seen stays; where a comment shows it, it is told of no more until it can be.
    The reading keeps in mind what was asked about. Raises IssuesOff.
    """
    missing = _missing(bot, whole)
    asked = Asked(len(missing))
    if missing:
        _ask(missing, asked, bot)
        reading = replace(whole, seen=frozenset(asked.done))
        bot.memory.stage(Changes(records=tuple(asked.records), unseen=tuple(asked.unseen), reading=reading))
        found = f"Not met by the reading: {asked.missing:,}; gone from GitHub: {asked.gone:,}"
        bot.note(f"{found}; not asked about yet: {asked.left:,}.")
    return asked


def _missing(bot: Bot, whole: Reading) -> dict[int, datetime]:
    """The numbers that the reading did not meet, and their revisions. What changed since it began is not looked for:
    another run read that."""
    return {
        record.id: record.revised_at
        for record in bot.memory.every_record()
        if isinstance(record, Thread)
        and isinstance(record.id, int)
        and record.kind is Kind.ISSUE
        and record.id not in whole.seen
        and record.id < LARGEST
        and record.revised_at < whole.began
    }


def _ask(missing: Mapping[int, datetime], asked: Asked, bot: Bot) -> None:
    total = min(ASKED, len(missing))
    for number, revised_at in islice(missing.items(), ASKED):
        if len(asked.done) % TOLD_EVERY == 0:
            bot.clock.tell(f"{len(asked.done):,} of {total:,} threads asked about that the reading did not meet")
        try:
            keep_some(bot.forge)
            asked.records.append(read_thread(bot.forge, bot.own, number)[0])
        except IssuesOff:
            raise
        except Gone as error:
            if error.certain:  # what is held of it bears GitHub's time, which may be ahead of the runner's
                asked.records.append(tombstone(number, error, max(bot.now, revised_at)))
            elif is_shown(number, bot.memory):
                asked.unseen.append(Tombstone(number, bot.now, "unseen"))
        except ForgeError as error:
            if isinstance(error, RateLimited) or bot.forge.troubles:
                asked.stopped = error
                return
        asked.done.add(number)
