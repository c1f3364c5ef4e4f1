"""What people and agents see of a thread: its card, read from its digest, and what was found in cards.

Named tuples of plain values and nothing else of ours: a search from a shell begins with importing this.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

LEAST_PART = 0.5
"""Least part of what is looked for, by the rarity of its words, that something has to hold: of two words the rarer
one. Weak hits are no answer."""

CardId = int | str
"""As `bot.model.ThreadId`: the number of an issue or pull request, else the text that names a thread."""


class Ruling(NamedTuple):
    """A sentence that states a decision; ``comment_id`` is GitHub's, None where it stands in the opening text."""

    text: str
    author: str
    role: str
    at: datetime | None
    comment_id: int | None = None


class Ending(NamedTuple):
    """How a thread ended: ``kind`` is a value of `bot.model.OutcomeKind`; ``fix`` a reference (``#12``, a SHA).

    ``claimed`` is one that is not known to be the fix.
    """

    kind: str = "unknown"
    quote: str = ""
    fix: str = ""
    release: str = ""
    author: str = ""
    role: str = ""
    at: datetime | None = None
    comment_id: int | None = None
    claimed: str = ""


class Card(NamedTuple):
    """A thread without its conversation. ``kind`` is issue, pull, page or session; ``state`` open or closed.

    ``references`` are the numbers of this repository that its text names, in order; ``duplicate_of`` the thread that it
    is a duplicate of.
    """

    id: CardId
    kind: str
    title: str
    author: str
    state: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    state_reason: str = ""
    labels: tuple[str, ...] = ()
    turn_count: int = 1
    summary: str = ""
    keywords: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    decisions: tuple[Ruling, ...] = ()
    errors: tuple[str, ...] = ()
    ending: Ending = Ending()
    references: tuple[int, ...] = ()
    duplicate_of: CardId | None = None
    merged_at: datetime | None = None


class Found(NamedTuple):
    """A card that a search found.

    ``score`` is in BM25F units (≥ 0). ``part`` in 0..1 is how much of what was looked for the thread holds, by the
    rarity of the words; ``terms`` are the terms of the query that it holds, what adds most first.
    """

    card: Card
    score: float
    part: float
    terms: tuple[str, ...]


class Link(NamedTuple):
    """``source`` points at ``target``; ``kind`` is ``reference``, ``duplicate`` (of) or ``fix`` (fixed by)."""

    source: CardId
    target: CardId
    kind: str


class Passage(NamedTuple):
    """A message of a session that a search found. ``type`` is ``user`` or ``assistant``; ``text`` at most 500
    characters around what was looked for; ``session`` names the thread, ``path`` the file that it was read from."""

    session: str
    type: str
    text: str
    at: datetime | None
    score: float
    path: str
