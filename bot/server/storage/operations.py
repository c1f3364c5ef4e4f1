"""What a person does with deliveries: the dead ones grouped by reason, replayed or dropped, and the audit of that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.comment.clean_text import one_line
from bot.server.model import Delivery, Instant, Priority
from bot.server.storage.database import Database, Row, Value
from bot.server.storage.deliveries import MAX_STATEMENT_VALUES, DeliveryFilter, parse_delivery, select_numbers
from bot.server.storage.inbox import Inbox

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

    def add(self, database: Database, asked: int, done: int, now: Instant) -> None:
        """Count this part of the action, in the transaction that performs it."""
        if not self.seq:
            row = database.row(
                "insert into audit (acted_at, who, action, asked, done, chosen, why)"
                " values (:now, :who, :action, 0, 0, :chosen, :why) returning seq",
                now=now,
                action=self.action,
                **self._texts,
            )
            assert row is not None
            self.seq = row["seq"]
        database.change(
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
    sql = f"select * from audit where {where} order by seq desc limit :limit"  # noqa: S608 (our own words)
    return [_entry(row) for row in database.rows(sql, limit=limit, **bounds)]


def _entry(row: Row) -> AuditEntry:
    texts = row["chosen"], row["why"]
    return AuditEntry(row["seq"], row["acted_at"], row["who"], row["action"], row["asked"], row["done"], *texts)


def _truncate(text: str) -> str:
    return one_line(text)[:MAX_TEXT_CHARS]


MAX_NAMES = 5
"""How many repositories a group lists at most."""

DEFAULT_DROP_REASON = "dropped by hand"
MAX_REASON_CHARS = 200
"""Maximum stored length of the reason for a drop."""

_REPLAY_SQL = (
    "update deliveries set state = 'waiting', attempts = 0, begun = 0, next_at = :now, finished_at = 0, reason = ''"
    " where state = 'dead' and seq in :seqs returning repository, priority"
)
_DROP_SQL = (
    "update deliveries set state = 'dropped', reason = :why, finished_at = :now"
    " where state in ('waiting', 'dead') and seq in :seqs returning seq"
)

# Each query reads the dead deliveries once, however many groups there are: a long outage may leave many.
_GROUPS_SQL = (
    "select reason, count(*) as many, min(received_at) as first, max(received_at) as last,"
    " count(distinct repository) as repositories from deliveries where {where} group by reason"
    " order by many desc, reason limit :most"
)
_NAMES_SQL = (
    "select reason, coalesce(nullif(repositories.name, ''), nullif(counted.name, ''), counted.repository) as name from"
    " (select reason, repository, max(name) as name,"
    " row_number() over (partition by reason order by count(*) desc, repository) as place"
    " from deliveries where state = 'dead' and reason in :reasons group by reason, repository) as counted"
    " left join repositories on repositories.key = counted.repository where place <= :named order by place"
)
_NEWEST_SQL = (
    "select * from deliveries where seq in (select seq from (select seq,"
    " row_number() over (partition by reason order by seq desc) as place"
    " from deliveries where state = 'dead' and reason in :reasons) as numbered where place <= :newest)"
    " order by seq desc"
)


@dataclass(frozen=True, slots=True)
class Operation:
    """What a person wants done with the deliveries of these numbers, or with all that match the filter.

    The audit records ``who`` and ``why``; ``why`` also becomes the reason of dropped deliveries.
    """

    action: Action
    who: str
    chosen: Sequence[int] | DeliveryFilter
    why: str = ""


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """The dead deliveries with one reason: how many, when the first and the last arrived, and the newest of them.

    ``names`` are the repositories with the most of them, at most five of the ``repositories``. One without a known name
    is shown by its key.
    """

    reason: str
    count: int
    first: Instant
    last: Instant
    repositories: int
    names: tuple[str, ...] = ()
    deliveries: tuple[Delivery, ...] = ()


def replay_or_drop(inbox: Inbox, operation: Operation, at_once: int = MAX_STATEMENT_VALUES) -> AuditRecord:
    """Replay or drop deliveries, and record who did it. Returns how many were chosen, and how many changed.

    Only dead ones can be replayed, with their attempts reset, and dead or waiting ones dropped; others stay as they
    are. A transaction changes at most ``at_once``, so that new arrivals need not wait long. Raises WorldError; what was
    done before the failure is recorded.
    """
    numbers = _numbers(inbox, operation.chosen)
    description = str(operation.chosen) if isinstance(operation.chosen, DeliveryFilter) else numbers_in_words(numbers)
    record = AuditRecord(operation.action, operation.who, description, operation.why)
    for start in range(0, len(numbers), at_once):
        _change_batch(inbox, operation, numbers[start : start + at_once], record)
    record.log()
    return record


def _change_batch(inbox: Inbox, operation: Operation, numbers: Sequence[int], record: AuditRecord) -> None:
    is_replay, now = operation.action == "replay", inbox.now()
    values: dict[str, Value] = {"now": now}
    if not is_replay:
        values["why"] = one_line(operation.why)[:MAX_REASON_CHARS] or DEFAULT_DROP_REASON
    sql = _REPLAY_SQL if is_replay else _DROP_SQL
    with inbox.database.transaction():
        changed = inbox.database.rows(sql, seqs=list(numbers), **values)
        if is_replay:
            inbox.enqueue([(row["repository"], Priority(row["priority"])) for row in changed])
        record.add(inbox.database, len(numbers), len(changed), now)


def _numbers(inbox: Inbox, chosen: Sequence[int] | DeliveryFilter) -> Sequence[int]:
    if not isinstance(chosen, DeliveryFilter):
        return sorted(set(chosen))
    return select_numbers(inbox.database, chosen)


def dead_groups(database: Database, most: int, newest: int, reason: str | None = None) -> list[DeadGroup]:
    """Return at most ``most`` groups, the largest first, each with its ``newest`` deliveries.

    With a ``reason``, only that group.
    """
    where, values = DeliveryFilter(state="dead", reason=reason).where()
    with database.transaction():
        groups = database.rows(_GROUPS_SQL.format(where=where), most=most, **values)
        reasons = [row["reason"] for row in groups]
        if not reasons:
            return []
        names = database.rows(_NAMES_SQL, reasons=reasons, named=MAX_NAMES)
        deliveries = [parse_delivery(row) for row in database.rows(_NEWEST_SQL, reasons=reasons, newest=newest)]
    return [
        DeadGroup(
            row["reason"],
            row["many"],
            row["first"],
            row["last"],
            row["repositories"],
            tuple(each["name"] for each in names if each["reason"] == row["reason"]),
            tuple(each for each in deliveries if each.reason == row["reason"]),
        )
        for row in groups
    ]
