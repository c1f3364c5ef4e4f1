"""Dead deliveries: grouped by reason, replayed or dropped by a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.comment.clean_text import one_line
from bot.server.audit import Action, AuditRecord, numbers_in_words
from bot.server.database import Database, Row, Transaction
from bot.server.delivery_filter import DeliveryFilter, select_deliveries, select_numbers
from bot.server.inbox import Inbox
from bot.server.model import Delivery, Instant

AT_ONCE = 1_000
"""Deliveries that are changed in one transaction, so that those that arrive meanwhile need not wait long."""

NAMED = 5
"""Most repositories that a group names."""

BY_HAND = "dropped by hand"
MOST_CHARACTERS = 200
"""Characters of the reason for a drop that are stored."""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a person wants done, with deliveries of these numbers or with all that match the filter.

    ``who`` is for the audit; ``why`` too, and it becomes the reason of what is dropped.
    """

    action: Action
    who: str
    chosen: Sequence[int] | DeliveryFilter
    why: str = ""


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """The dead deliveries with one reason: how many, when the first and the last came, and the newest of them.

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


def replay_or_drop(inbox: Inbox, wanted: Operation, at_once: int = AT_ONCE) -> AuditRecord:
    """Replay or drop deliveries, and record who did it. Returns how many were chosen, and how many changed.

    Only dead ones can be replayed, and dead or waiting ones dropped; others stay as they are. Each ``at_once`` are one
    transaction. Raises WorldError; what was done until then is recorded.
    """
    numbers = _numbers(inbox, wanted.chosen)
    in_words = str(wanted.chosen) if isinstance(wanted.chosen, DeliveryFilter) else numbers_in_words(numbers)
    record = AuditRecord(wanted.action, wanted.who, in_words, wanted.why)
    for start in range(0, len(numbers), at_once):
        some = numbers[start : start + at_once]
        if wanted.action == "replay":
            inbox.retry(some, record)
        else:
            inbox.drop(some, one_line(wanted.why)[:MOST_CHARACTERS] or BY_HAND, record)
    record.log()
    return record


def _numbers(inbox: Inbox, chosen: Sequence[int] | DeliveryFilter) -> Sequence[int]:
    if not isinstance(chosen, DeliveryFilter):
        return sorted(set(chosen))
    with inbox.database.transaction() as asking:
        return select_numbers(asking, chosen)


def dead_groups(database: Database, most: int, newest: int, reason: str | None = None) -> list[DeadGroup]:
    """Return at most ``most`` groups, the largest first, each with its ``newest`` deliveries.

    With a ``reason``, only that group.
    """
    where, values = DeliveryFilter(state="dead", reason=reason).where()
    sql = (
        "select reason, count(*) as many, min(received_at) as first, max(received_at) as last,"  # noqa: S608 (our own words)
        f" count(distinct lane) as lanes from deliveries where {where} group by reason"
        " order by many desc, reason limit :most"
    )
    with database.transaction() as asking:
        return [_group(asking, row, newest) for row in asking.rows(sql, most=most, **values)]


def _group(asking: Transaction, row: Row, newest: int) -> DeadGroup:
    wanted = DeliveryFilter(state="dead", reason=row["reason"])
    where, values = wanted.where()
    sql = (
        "select coalesce(nullif(max(repositories.name), ''), nullif(max(deliveries.name), ''), lane) as name"  # noqa: S608 (our own words)
        f" from (select lane, name from deliveries where {where}) as deliveries"
        " left join repositories using (lane) group by lane order by count(*) desc, lane limit :most"
    )
    names = tuple(named["name"] for named in asking.rows(sql, most=NAMED, **values))
    deliveries = tuple(select_deliveries(asking, wanted, newest))
    return DeadGroup(row["reason"], row["many"], row["first"], row["last"], row["lanes"], names, deliveries)
