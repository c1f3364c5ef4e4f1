"""Deletes what is too old to be kept, in small transactions, so that others do not wait long."""

from __future__ import annotations

import time
from collections.abc import Callable

from bot.server.model import Instant, State
from bot.server.storage.budgets import Budgets
from bot.server.storage.counters import CounterTable
from bot.server.storage.database import Database
from bot.server.storage.digests import Digests
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.installations import Installations
from bot.server.storage.operations import purge_audit

PURGE_BATCH_ROWS = 500
"""Rows that one transaction of a purge examines, so that others do not wait long."""

PURGE_PAUSE = 0.02
"""Seconds between two such transactions: SQLite would let the next one overtake those that already wait."""


def purge(database: Database, now: Callable[[], Instant], before: Instant) -> int:
    """Delete what ended before then, except dead deliveries. Returns how many deliveries went."""
    purged = sum(_purge_deliveries(database, state, before) for state in ("done", "dropped"))
    while _purge_runs(database, before) == PURGE_BATCH_ROWS:
        time.sleep(PURGE_PAUSE)
    with database.transaction() as transaction:
        purge_audit(transaction, before)
    Heartbeats(database, now).purge(before)
    Installations(database, now).purge(before)
    Budgets(database, now).purge(before)
    Digests(database, now).purge(before)
    CounterTable(database, now).add_up()
    return purged


def _purge_deliveries(database: Database, state: State, before: Instant) -> int:
    """Examine the oldest rows only, as long as some can go: a full scan would keep others from writing.

    Rows that ended late, such as replayed ones, are skipped.
    """
    oldest = (
        "select count(*) as many, max(seq) as last from"
        " (select seq from deliveries where state = :state and seq > :after order by seq limit :many) as oldest"
    )
    sql = "delete from deliveries where state = :state and seq > :after and seq <= :last and finished_at < :before"
    purged = after = 0
    while True:
        with database.transaction() as transaction:
            row = transaction.row(oldest, state=state, after=after, many=PURGE_BATCH_ROWS)
            if not row or not row["many"]:
                return purged
            last = row["last"]
            deleted = transaction.change(sql, state=state, after=after, last=last, before=before)
        purged, after = purged + deleted, last
        if not deleted or row["many"] < PURGE_BATCH_ROWS:
            return purged
        time.sleep(PURGE_PAUSE)


def _purge_runs(database: Database, before: Instant) -> int:
    sql = "delete from runs where id in (select id from runs where began < :before order by began limit :many)"
    with database.transaction() as transaction:
        return transaction.change(sql, before=before, many=PURGE_BATCH_ROWS)
