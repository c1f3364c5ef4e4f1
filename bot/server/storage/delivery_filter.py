"""Selects deliveries of the inbox by state, reason, repository and time."""

from __future__ import annotations

from dataclasses import dataclass

from bot.domain.thread_json import storable
from bot.server.model import Delivery, Instant, RepositoryKey, State, moment_text
from bot.server.storage.database import Transaction
from bot.server.storage.inbox_rows import parse_delivery

_CONDITIONS = {
    "seq": "seq = :seq",
    "state": "state = :state",
    "repository": "repository = :repository",
    "before": "seq < :before",
    "reason": "reason = :reason",
    "says": "lower(reason) like :says escape '!'",
    "name": "(lower(name) = :name or repository in (select key from repositories where lower(name) = :name))",
    "since": "received_at >= :since",
    "until": "received_at < :until",
    "ended": "finished_at <= :ended",
}
"""The field of a filter → its condition."""


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries to select. An empty field selects all; for ``reason``, only None does.

    ``seq``: the one with this number; ``before``: with a lower one. ``reason``: with exactly this reason; ``says``:
    with a reason that contains this text. ``name``: of the repository that has or had this name, "owner/name". The last
    two ignore case. ``since``, ``until``: received at ``since`` or later, before ``until``.
    ``ended``: ended then or earlier.
    """

    state: State | None = None
    repository: RepositoryKey | None = None
    before: int = 0
    reason: str | None = None
    says: str = ""
    name: str = ""
    since: Instant = 0
    until: Instant = 0
    ended: Instant = 0
    seq: int = 0

    def __str__(self) -> str:
        """The filter in words, for the audit."""
        parts = {
            "": self.state or "",
            "number": self.seq or "",
            "of": self.name or (self.repository.text if self.repository else ""),
            "with the reason": "none" if self.reason == "" else self.reason or "",
            "with a reason that contains": self.says,
            "received since": moment_text(self.since),
            "received before": moment_text(self.until),
            "ended by": moment_text(self.ended),
        }
        return f"all {', '.join(f'{words} {value}'.strip() for words, value in parts.items() if value)}".rstrip()

    def where(self) -> tuple[str, dict[str, str | int]]:
        """The condition in SQL, and its values. The SQL holds only our own words; everything else is a value."""
        values = {
            "seq": self.seq or None,
            "state": self.state or None,
            "repository": self.repository.text if self.repository else None,
            "before": self.before or None,
            "reason": None if self.reason is None else storable(self.reason),
            "says": _pattern(self.says) if self.says else None,
            "name": storable(self.name).lower() or None,
            "since": self.since or None,
            "until": self.until or None,
            "ended": self.ended or None,
        }
        bound = {name: value for name, value in values.items() if value is not None}
        return " and ".join(_CONDITIONS[name] for name in bound) or "1 = 1", bound


def select_deliveries(transaction: Transaction, delivery_filter: DeliveryFilter, limit: int) -> list[Delivery]:
    """Return at most ``limit`` matching deliveries, newest first."""
    where, values = delivery_filter.where()
    sql = f"select * from deliveries where {where} order by seq desc limit :limit"  # noqa: S608 (our own words)
    return [parse_delivery(row) for row in transaction.rows(sql, limit=limit, **values)]


def select_numbers(transaction: Transaction, delivery_filter: DeliveryFilter) -> list[int]:
    """Return the numbers of all matching deliveries, oldest first."""
    where, values = delivery_filter.where()
    sql = f"select seq from deliveries where {where} order by seq"  # noqa: S608 (our own words)
    return [row["seq"] for row in transaction.rows(sql, **values)]


def _pattern(text: str) -> str:
    """A ``like`` pattern for texts that contain this one; ``!`` escapes special characters."""
    text = storable(text).lower()
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"%{text}%"
