"""The counters of all processes: each adds a row, which is added to the totals later, so that nobody waits for them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from bot.server.model import Counters
from bot.server.storage.database import Database, Transaction, to_json

BATCH_ROWS = 1_000
"""Rows of counts that are added up in one transaction."""

_Totals = Counter[tuple[str, tuple[str, ...]]]


def add_counts(transaction: Transaction, values: Counters) -> None:
    """Add to counters in a row of their own, so that no run waits for the counters of another repository."""
    if values:
        counted = [(name, labels, float(much)) for (name, labels), much in values.items()]
        transaction.change("insert into tallied (counted) values (:counted)", counted=to_json(counted))


def add_up(database: Database) -> None:
    """Add the recent counts to the totals."""
    sql = "delete from tallied where seq in (select seq from tallied order by seq limit :many) returning counted"
    count = BATCH_ROWS
    while count == BATCH_ROWS:
        with database.transaction() as transaction:
            rows = transaction.rows(sql, many=BATCH_ROWS)
            _add_totals(transaction, _sum(row["counted"] for row in rows))
        count = len(rows)


def read_counters(database: Database) -> Counters:
    """All counters, of all processes together."""
    # One statement, so that counts that are added up meanwhile are neither missed nor counted twice.
    sql = "select name, labels, much, '[]' as counted from tallies union all select '', '[]', 0, counted from tallied"
    with database.transaction() as transaction:
        rows = transaction.rows(sql)
    totals = Counter({(row["name"], tuple(json.loads(row["labels"]))): row["much"] for row in rows if row["name"]})
    totals.update(_sum(row["counted"] for row in rows))
    return totals


def _sum(counted: Iterable[str]) -> _Totals:
    totals = _Totals()
    for one in counted:
        for name, labels, much in json.loads(one):
            totals[name, tuple(labels)] += much
    return totals


def _add_totals(transaction: Transaction, totals: _Totals) -> None:
    """Adds in a fixed order: two transactions at once would otherwise wait for each other."""
    transaction.change_each(
        "insert into tallies (name, labels, much) values (:name, :labels, :much)"
        " on conflict (name, labels) do update set much = tallies.much + excluded.much",
        [
            {"name": name, "labels": to_json(labels), "much": float(much)}
            for (name, labels), much in sorted(totals.items())
        ],
    )
