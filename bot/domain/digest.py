"""What is known about a thread without its record: its digest, its entry in the index, and search hits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.thread import Decision, Kind, Outcome, Reference, ThreadId

FAR_FUTURE, FOREVER = datetime(9998, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""FAR_FUTURE is after everything that has happened, FOREVER is after FAR_FUTURE."""


@dataclass(frozen=True, slots=True)
class Digest:
    """Everything needed to find and show a thread, except quotes. ``summary_by`` is who wrote the summary.

    ``errors`` are for people and agents who search the branch itself (skills/cross-reference).
    """

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
    outcome: Outcome
    references: tuple[Reference, ...]
    duplicate_of: ThreadId | None = None
    merged_at: datetime | None = None
    summary_by: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The index's data on a thread besides its terms: enough to rank it without its record.

    ``state_changes``: when it was closed, reopened, closed again, …; ``duplicate_at``: since when it is known to
    duplicate ``duplicate_of``; ``unvouched_until``: until when only its unknown author vouched for it
    (`bot.index.document`), FOREVER if that is still so, None if it never was or no role is known. ``role`` is the
    author's role, only for a message, "" if not known.
    """

    id: ThreadId
    kind: Kind
    title: str
    author: str
    state: str
    created_at: datetime
    updated_at: datetime
    labels: tuple[str, ...] = ()
    length: int = 0
    duplicate_of: ThreadId | None = None
    duplicate_at: datetime | None = None
    state_changes: tuple[datetime, ...] = ()
    unvouched_until: datetime | None = None
    role: str = ""

    def is_unvouched_at(self, moment: datetime | None) -> bool:
        """Whether only its unknown author vouched for it at ``moment`` (None: now)."""
        return self.unvouched_until is not None and self.unvouched_until > (moment or FAR_FUTURE)

    def open_at(self, moment: datetime | None) -> bool:
        """Whether the thread was open at ``moment`` (None: now)."""
        if moment is None:
            return self.state == "open"
        return sum(at <= moment for at in self.state_changes) % 2 == 0

    def closed_since(self, moment: datetime) -> datetime | None:
        """Since when the thread had been closed at ``moment``, None if it was open."""
        past = [at for at in self.state_changes if at <= moment]
        return past[-1] if len(past) % 2 else None

    def duplicate_of_at(self, moment: datetime | None) -> ThreadId | None:
        """The thread's original, as far as known at ``moment`` (None: now).

        Strangers alone cannot make a duplicate, because duplicates raise the rank of their original.
        """
        is_known = moment is None or (self.duplicate_at is not None and self.duplicate_at <= moment)
        return self.duplicate_of if is_known and not self.is_unvouched_at(moment) else None


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A thread that the index found: its raw score (≥ 0, in BM25F units) and the query terms it contains.

    ``share`` in 0..1 is the score divided by the highest possible score for this query. ``cosine`` (-1..1) is that of
    the vectors: None if the query has none, 0 if the thread has none. ``duplicates`` counts the known duplicates of the
    thread. ``part`` in 0..1 is the share of the query that the thread contains, weighted by the rarity of words; 0 for
    a query without a floor.
    """

    entry: IndexEntry
    score: float
    terms: tuple[str, ...] = ()
    share: float = 0.0
    cosine: float | None = None
    duplicates: int = 0
    part: float = 0.0
