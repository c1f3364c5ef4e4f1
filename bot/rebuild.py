"""Reading the whole history again and learning from it: in one run, or in as many as GitHub's limits ask for."""

from __future__ import annotations

from functools import partial

from bot import learning
from bot.backfill import FIRST_SECONDS, Pace, Read, backfill
from bot.evaluation.results import SECONDS, Backtest
from bot.github.errors import ForgeError, RateLimited, Unreachable
from bot.kept import Changes, Reading
from bot.missing import bury
from bot.parts import Bot
from bot.replies.requests import unheard
from bot.sources.pages import fresh_pages

EVENT_READING = 60.0
"""How long an event's run, once it has answered, reads on where a rebuild is not at its end."""


def rebuild(bot: Bot, limit: float | None = None) -> Backtest | None:
    """Read the whole history again, or go on with a reading that is not at its end; then learn from it, and make the
    index anew, which takes the place of the old one in one write.

    Returns what it would have said; None where this run learned already, and when ``limit`` seconds or a limit of
    GitHub's were over before the end, and a later run goes on. Without a ``limit`` an outage is raised, as somebody
    waits for what comes of it.
    """
    started = bot.clock.seconds()
    read = _read_on(bot, bot.memory.open().reading or Reading(bot.now), limit)
    return _finish(bot, started) if read.complete else None


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
    from bot.evaluation.report import in_words

    bot.note(in_words(backtest))
    return backtest


def learn(bot: Bot, seconds: float) -> Backtest:
    """Learn from everything in memory, for so long beside the word vectors; staged."""
    bot.clock.tell(f"Learning from {bot.memory.size:,} issues, pull requests and pages")
    backtest = learning.learn(bot.memory, bot.settings, bot.renderer, bot.place, seconds=seconds)
    from bot.evaluation.report import in_words

    bot.note(in_words(backtest))
    return backtest


def _read_on(bot: Bot, reading: Reading, limit: float | None) -> Read:
    """The next part of a reading. A fault that does not pass by itself is raised."""
    if reading.upto:
        bot.note(f"The rebuild that began on {reading.began:%Y-%m-%d} at {reading.began:%H:%M} UTC goes on.")
    pace = Pace(bot.clock, bot.now, limit, within=bot.within)
    read = backfill(bot.memory, bot.history, pace, reading.upto, partial(unheard, bot=bot), reading)
    if read.seen or read.complete:
        changed = f"{read.changed:,} would change" if bot.is_dry else f"{read.changed:,} records changed"
        bot.note(f"{len(read.seen):,} threads were read, {changed}.")
    if read.stopped:
        bot.forge.heed(read.stopped)
    if isinstance(read.stopped, Unreachable) and limit is None:
        raise Unreachable(_outage(bot, read, read.stopped)) from read.stopped
    if read.stopped and not isinstance(read.stopped, (RateLimited, Unreachable)):
        raise read.stopped
    if not read.complete:
        _break_off(bot, read.stopped, read.why, found=bool(read.seen))
    return read


def _outage(bot: Bot, read: Read, stopped: ForgeError) -> str:
    """Why the history could not be read, and what mends it, for who asked for it."""
    how_far = " to its end" if read.seen else ""
    kept = " What was read is kept." if read.seen and not bot.is_dry else ""
    goes_on = "" if bot.is_dry else "; the schedule goes on too"
    return f"The history could not be read{how_far}: {stopped.cause}.{kept} Start `rebuild` again later{goes_on}."


def _break_off(bot: Bot, stopped: ForgeError | None, why: str, *, found: bool = True) -> None:
    """Say that it is not at its end, ``why``, and what comes of that. ``found``: something was read. A limit is met as
    what ends the run, and not told twice."""
    if isinstance(stopped, RateLimited):
        bot.meet(stopped)
    because = "" if isinstance(stopped, RateLimited) else f" ({why})"
    if bot.is_dry:
        outlook = "Nothing is kept; a dry run starts over."
    else:
        outlook = "What was read is kept, and the next runs go on." if found else "The next runs go on."
    bot.note(f"The rebuild is not at its end{because}. {outlook}")


def _finish(bot: Bot, started: float) -> Backtest | None:
    """What comes after the last page of history. None where there is more to ask GitHub about than one run does, and
    where this run learned already and has not read much more since."""
    memory = bot.memory
    whole = memory.reading
    asked = bury(bot, whole) if whole else None
    if asked and asked.left:
        memory.commit(f"Checkpoint: {memory.size} threads")
        _break_off(bot, asked.stopped, str(asked.stopped or "more is missing than one run asks about"))
        return None
    memory.stage(fresh_pages(bot.pages, memory, {}, bot.now, bot.note))
    knows = memory.has_learned and not learning.is_due(memory, calm=True)
    backtest = None if knows else learn(bot, SECONDS)
    memory.stage(Changes(read_whole=whole.began if whole else None))
    memory.commit(f"Rebuild: {memory.size} threads")
    if not bot.is_dry:
        memory.look_back()
    _tell_end(bot, bot.clock.seconds() - started)
    return backtest


def _tell_end(bot: Bot, seconds: float) -> None:
    what = "The dry run of the rebuild" if bot.is_dry else "The rebuild"
    took = f"{seconds / 60:.0f} min" if seconds >= 60 else "less than a minute"
    are = "would be" if bot.is_dry else "are"
    bot.note(f"{what} is complete after {took}: {bot.memory.size:,} issues, pull requests and pages {are} in memory.")
