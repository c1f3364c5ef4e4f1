"""Records who replayed or dropped deliveries."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.comment.clean_text import one_line
from bot.server.model import Instant
from bot.server.storage.database import Database, Row, Transaction

Action = Literal["replay", "drop"]

MAX_TEXT_CHARS = 300
"""Maximum length of each text in an entry; the rest is cut off."""

MAX_LISTED_NUMBERS = 20
"""How many delivery numbers an entry lists at most."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action. ``asked`` is how many deliveries were chosen, ``done`` how many of them were changed.

    ``chosen`` is the filter in words, or the numbers. It never holds text of an issue.
    """

    seq: int
    at: Instant
    who: str
    action: Action
    asked: int
    done: int
    chosen: str
    why: str


class AuditRecord:
    """The entry of an action that may take several transactions; each adds what it did.

    ``seq`` is its number; 0 if no delivery was chosen, since nothing is recorded then.
    """

    def __init__(self, action: Action, who: str, chosen: str, why: str) -> None:
        self.action = action
        self.seq = self.asked = self.done = 0
        self._texts = {name: _truncate(text) for name, text in (("who", who), ("chosen", chosen), ("why", why))}

    def add(self, transaction: Transaction, asked: int, done: int, now: Instant) -> None:
        """Count this part of the action, in the transaction that performs it."""
        if not self.seq:
            row = transaction.row(
                "insert into audit (acted_at, who, action, asked, done, chosen, why)"
                " values (:now, :who, :action, 0, 0, :chosen, :why) returning seq",
                now=now,
                action=self.action,
                **self._texts,
            )
            assert row is not None
            self.seq = row["seq"]
        transaction.change(
            "update audit set asked = asked + :asked, done = done + :done where seq = :seq",
            asked=asked,
            done=done,
            seq=self.seq,
        )
        self.asked, self.done = self.asked + asked, self.done + done

    def log(self) -> None:
        log.info("%s: %d of %d deliveries", self.action, self.done, self.asked, extra=self._texts)


def numbers_in_words(numbers: Sequence[int]) -> str:
    """Return the first numbers, and how many more there are."""
    more = f" and {len(numbers) - MAX_LISTED_NUMBERS:,} more" if len(numbers) > MAX_LISTED_NUMBERS else ""
    return " ".join(map(str, numbers[:MAX_LISTED_NUMBERS])) + more


def audit_entries(
    database: Database, *, since: Instant = 0, until: Instant = 0, before: int = 0, limit: int = 50
) -> list[AuditEntry]:
    """Return one page, newest first. ``before`` is the last number of the previous page; 0 for no bound."""
    values = {"since": since, "until": until, "before": before}
    bounds = {name: value for name, value in values.items() if value}
    conditions = {"since": "acted_at >= :since", "until": "acted_at < :until", "before": "seq < :before"}
    where = " and ".join(conditions[name] for name in bounds) or "1 = 1"
    with database.transaction() as transaction:
        sql = f"select * from audit where {where} order by seq desc limit :limit"  # noqa: S608 (our own words)
        return [_entry(row) for row in transaction.rows(sql, limit=limit, **bounds)]


def purge_audit(transaction: Transaction, before: Instant) -> None:
    transaction.change("delete from audit where acted_at < :before", before=before)


def _entry(row: Row) -> AuditEntry:
    texts = row["chosen"], row["why"]
    return AuditEntry(row["seq"], row["acted_at"], row["who"], row["action"], row["asked"], row["done"], *texts)


def _truncate(text: str) -> str:
    return one_line(text)[:MAX_TEXT_CHARS]
