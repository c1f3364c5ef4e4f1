"""What the ledger keeps beside deliveries: counters of all processes together, and what each of them said last."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from bot.server import rows
from bot.server.database import Database, Transaction
from bot.server.nouns import Instant
from bot.server.ports import Note, Tallies
from bot.server.tables import SCHEMA

AT_ONCE = 1_000
"""Rows of what was counted that are added up in one transaction."""

_Totals = Counter[tuple[str, tuple[str, ...]]]


class Accounts:
    """Tallies and pulses in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self.database = database
        self.now = now

    def tally(self, values: Tallies) -> None:
        with self.database.transaction() as counting:
            self.count(counting, values)
        self.add_up()

    def count(self, transaction: Transaction, values: Tallies) -> None:
        """Add to counters, by a row of its own: no turn waits for the counters of another repository's."""
        if values:
            counted = [(name, labels, float(much)) for (name, labels), much in values.items()]
            transaction.change("insert into tallied (counted) values (:counted)", counted=rows.written(counted))

    def add_up(self) -> None:
        """Put what was counted lately into the totals, which nobody waits for."""
        some = "delete from tallied where seq in (select seq from tallied order by seq limit :many) returning counted"
        added = AT_ONCE
        while added == AT_ONCE:
            with self.database.transaction() as adding:
                found = adding.rows(some, many=AT_ONCE)
                _add(adding, _summed(row["counted"] for row in found))
            added = len(found)

    def tallies(self) -> Tallies:
        # One statement, so that nothing is missed, or counted twice, which is added up meanwhile.
        both = (
            "select name, labels, much, '[]' as counted from tallies union all select '', '[]', 0, counted from tallied"
        )
        with self.database.transaction() as asking:
            found = asking.rows(both)
        totals = Counter({(row["name"], tuple(json.loads(row["labels"]))): row["much"] for row in found if row["name"]})
        totals.update(_summed(row["counted"] for row in found))
        return totals

    def pulse(self, name: str, note: Note) -> None:
        with self.database.transaction() as saying:
            saying.change(
                "insert into pulses (name, said_at, note) values (:name, :now, :note)"
                " on conflict (name) do update set said_at = excluded.said_at, note = excluded.note",
                name=name,
                now=self.now(),
                note=rows.written(dict(note)),
            )

    def pulses(self) -> Mapping[str, tuple[Instant, Note]]:
        with self.database.transaction() as asking:
            found = asking.rows("select * from pulses where name <> :schema", schema=SCHEMA)
        return {row["name"]: (row["said_at"], json.loads(row["note"])) for row in found}


def _summed(counted: Iterable[str]) -> _Totals:
    totals = _Totals()
    for one in counted:
        for name, labels, much in json.loads(one):
            totals[name, tuple(labels)] += much
    return totals


def _add(transaction: Transaction, totals: _Totals) -> None:
    """Always in the same order, as two that do so at once would else wait for each other."""
    transaction.change_each(
        "insert into tallies (name, labels, much) values (:name, :labels, :much)"
        " on conflict (name, labels) do update set much = tallies.much + excluded.much",
        [
            {"name": name, "labels": rows.written(labels), "much": float(much)}
            for (name, labels), much in sorted(totals.items())
        ],
    )
