"""How far issues take part that nobody stands behind but a stranger, so that no flood of them becomes an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from bot.indexed import Entry

AMONG_CANDIDATES, READ = 5, 1
"""How many lone issues of one account are candidates, and how many of these are read."""


def few_of_each_stranger(moment: datetime, most: int) -> Callable[[Entry], bool]:
    """What lets in, of the issues of one account that were lone at this moment, the first ``most`` it is asked about.

    Lone is an issue on which no other person took part, and whose author is not known in the repository
    (`bot.reading.standing`). All others are let in.
    """
    met: Counter[str] = Counter()

    def is_let_in(entry: Entry) -> bool:
        if not entry.is_lone_at(moment):
            return True
        account = entry.author.casefold()
        met[account] += 1
        return met[account] <= most

    return is_let_in
