"""What is said after a closing that takes the ending back."""

from __future__ import annotations

from datetime import datetime

from bot.model import Thread
from bot.reading import phrases
from bot.reading.statements import statements
from bot.reading.verdict import denies

_SEVERAL = 2


def is_taken_back(thread: Thread, closed_at: datetime) -> bool:
    """Whether the reporter or several others say after the closing that it is back or still happens.

    Who takes that back no longer counts; nobody counts who spoke before a maintainer said that it is fixed again.
    """
    complaining: set[str] = set()
    for message in thread.comments:
        if message.created_at <= closed_at or message.is_bot:
            continue
        said = statements(message.text)
        if any(map(phrases.RETRACTS.search, said)):
            complaining = set() if message.by_maintainer else complaining - {message.author}
        elif _complains(said):
            complaining.add(message.author)
    return thread.author in complaining or len(complaining) >= _SEVERAL


def _complains(said: tuple[str, ...]) -> bool:
    for sentence in said:
        found = phrases.STILL.search(sentence)
        if found and not sentence.endswith("?") and not denies(sentence[: found.start()]):
            return True
    return False
