"""How an issue that is open again had ended before."""

from __future__ import annotations

from bot.answer import Earlier
from bot.model import Kind, Thread
from bot.reading.closing import FLIP, SLACK
from bot.reading.outcome import outcome


def earlier_ending(thread: Thread, repo: str | None) -> Earlier | None:
    """The ending that was taken back when the issue was reopened; None for what is closed or was never closed.

    Nothing counts that was said long after the closing: it led to the reopening and would speak against the ending.
    What was reopened within minutes had not ended.
    """
    flips = thread.flips
    if thread.is_closed or thread.kind is not Kind.ISSUE or len(flips) < 2:
        return None
    closed_at, reopened_at = flips[-2:]
    if reopened_at - closed_at <= FLIP:
        return None
    return Earlier(closed_at, reopened_at, outcome(thread.as_of(closed_at + SLACK), repo))
