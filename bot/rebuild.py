"""Reading the whole history again and learning from it: in one run, or in as many as GitHub's limits ask for."""

from __future__ import annotations

from functools import partial

from bot import learning
from bot.backfill import FIRST_SECONDS, Pace, Read, backfill
from bot.evaluation.learn import SECONDS
from bot.evaluation.report import in_words
from bot.evaluation.results import Backtest
from bot.github.errors import RateLimited, Unreachable
from bot.kept import Changes, Reading
from bot.missing import bury
from bot.parts import Bot
from bot.replies.requests import unheard
from bot.sources.pages import fresh_pages

EVENT_READING = 60.0
"""How long an event's run, once it has answered, reads on where a rebuild is not at its end."""

_NOT_YET = "The rebuild is not at its end ({}). What was read is kept, and the next runs go on."


def rebuild(bot: Bot, limit: float | None = None) -> Backtest | None:
    """Read the whole history again, or go on with a reading that is not at its end; then learn from it, and make the
    index anew, which takes the place of the old one in one write.

    Returns what it would have said; None when ``limit`` seconds or a limit of GitHub's were over before the end, and a
    later run goes on.
    """
    read = _read_on(bot, bot.memory.open().reading or Reading(bot.now), limit)
    return _finish(bot) if read.complete else None


def go_on(bot: Bot, *, calm: bool) -> None:
    """Read on for a while where a rebuild is not at its end, unless GitHub has had enough of this run. ``calm``: nobody
    waits for it, so that it may take the last steps too."""
    reading = None if bot.forge.troubles else bot.memory.reading
    if reading and calm:
        rebuild(bot, FIRST_SECONDS)
    elif reading:
        _read_on(bot, reading, EVENT_READING)


def prove(bot: Bot) -> Backtest:
    """What would have been said on the newest issues, with what memory has learned; nothing is written."""
    backtest = learning.prove(bot.memory.open(), bot.settings, bot.renderer, bot.place)
    bot.note(in_words(backtest))
    return backtest


def learn(bot: Bot, seconds: float) -> Backtest:
    """Learn from everything in memory, for so long beside the word vectors; staged."""
    bot.clock.tell(f"Learning from {bot.memory.size:,} threads")
    backtest = learning.learn(bot.memory, bot.settings, bot.renderer, bot.place, seconds=seconds)
    bot.note(in_words(backtest))
    return backtest


def _read_on(bot: Bot, reading: Reading, limit: float | None) -> Read:
    """The next part of a reading. A fault that does not pass by itself is raised."""
    if reading.upto:
        bot.note(f"The rebuild that began on {reading.began:%Y-%m-%d} at {reading.began:%H:%M} UTC goes on.")
    pace = Pace(bot.clock, bot.now, limit, within=bot.within)
    read = backfill(bot.memory, bot.history, pace, reading.upto, partial(unheard, bot=bot), reading)
    bot.note(f"{len(read.seen):,} threads were read, {read.changed:,} records changed.")
    if read.stopped:
        bot.forge.heed(read.stopped)
    if read.stopped and not isinstance(read.stopped, (RateLimited, Unreachable)):
        raise read.stopped
    if not read.complete:
        bot.note(_NOT_YET.format(read.why))
    return read


def _finish(bot: Bot) -> Backtest | None:
    """What comes after the last page of history; None where there is more to ask GitHub about than one run does."""
    memory = bot.memory
    whole = memory.reading
    asked = bury(bot, whole) if whole else None
    if asked and asked.left:
        memory.commit(f"Checkpoint: {memory.size} threads")
        bot.note(_NOT_YET.format(asked.stopped or "more is missing than one run asks about"))
        return None
    memory.stage(fresh_pages(bot.pages, memory, {}, bot.now, bot.note))
    backtest = learn(bot, SECONDS)
    memory.stage(Changes(read_whole=whole.began if whole else None))
    memory.commit(f"Rebuild: {memory.size} threads")
    return backtest
