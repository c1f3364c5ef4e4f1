"""What is known of a thread without opening its record: its digest, its entry in the index, and how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.domain.thread import Decision, Kind, Outcome, Reference, ThreadId

LATE, FOREVER = datetime(9998, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""After everything that has happened, and after that."""


@dataclass(frozen=True, slots=True)
class Digest:
    """All that is needed of a thread to find and show it, apart from quotes."""

    id: ThreadId
    kind: Kind
    title: str
    author: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None
    state: str
    state_reason: str | None
    labels: tuple[str, ...]
    turn_count: int
    summary: str
    keywords: tuple[str, ...]
    files: tuple[str, ...]
    decisions: tuple[Decision, ...]
    errors: tuple[str, ...]
    versions: tuple[str, ...]
    outcome: Outcome
    references: tuple[Reference, ...]
    duplicate_of: ThreadId | None = None
    merged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What the index holds of a thread beside its terms: enough to rank it without opening the record.

    ``flips``: when it was closed, reopened, closed again, …; ``duplicate_at``: since when it is known to be a duplicate
    of ``duplicate_of``; ``unvouched_until``: until when nobody stood behind it but an unknown author who opened it
    (`bot.index.document`), FOREVER where nobody does yet, None where it never was so, or where no role
    is known.
    """

    id: ThreadId
    kind: Kind
    title: str
    author: str
    state: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    state_reason: str | None = None
    labels: tuple[str, ...] = ()
    turn_count: int = 1
    length: int = 0
    duplicate_of: ThreadId | None = None
    duplicate_at: datetime | None = None
    flips: tuple[datetime, ...] = ()
    unvouched_until: datetime | None = None

    def is_unvouched_at(self, moment: datetime | None) -> bool:
        """Whether nobody stood behind it at ``moment`` (None: now) but an unknown author who opened it."""
        return self.unvouched_until is not None and self.unvouched_until > (moment or LATE)

    def open_at(self, moment: datetime | None) -> bool:
        """Whether the thread was open at ``moment`` (None: now)."""
        if moment is None:
            return self.state == "open"
        return sum(at <= moment for at in self.flips) % 2 == 0

    def closed_since(self, moment: datetime) -> datetime | None:
        """Since when the thread was closed at ``moment``, None where it was open."""
        past = [at for at in self.flips if at <= moment]
        return past[-1] if len(past) % 2 else None

    def duplicate_of_at(self, moment: datetime | None) -> ThreadId | None:
        """What the thread was known to be a duplicate of at ``moment`` (None: now).

        By the word of strangers alone nothing is a duplicate, as how many duplicates a thread has counts for it.
        """
        known = moment is None or (self.duplicate_at is not None and self.duplicate_at <= moment)
        return self.duplicate_of if known and not self.is_unvouched_at(moment) else None


@dataclass(frozen=True, slots=True)
class Hit:
    """A thread that the index found: its raw score (≥ 0, in BM25F units) and the query terms that it shares.

    ``share`` is the score as a share of the most that any document could score for this query, in 0..1. ``near`` holds
    the cosine (-1..1) of each vector field. ``duplicates``: how many threads were known to be duplicates of it.
    """

    entry: IndexEntry
    score: float
    terms: tuple[str, ...] = ()
    share: float = 0.0
    near: Mapping[str, float] = field(default_factory=dict)
    duplicates: int = 0
