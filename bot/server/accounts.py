"""What the ledger keeps beside deliveries: counters of all processes together, and what each of them said last."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from bot.server import rows
from bot.server.database import Database, Transaction
from bot.server.nouns import Instant
from bot.server.ports import Note, Tallies
from bot.server.tables import SCHEMA


class Accounts:
    """Tallies and pulses in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self.database = database
        self.now = now

    def tally(self, values: Tallies) -> None:
        with self.database.transaction() as counting:
            self.count(counting, values)

    def count(self, transaction: Transaction, values: Tallies) -> None:
        """Add to counters; always in the same order, as two that do so at once would else wait for each other."""
        transaction.change_each(
            "insert into tallies (name, labels, much) values (:name, :labels, :much)"
            " on conflict (name, labels) do update set much = tallies.much + excluded.much",
            [
                {"name": name, "labels": rows.written(labels), "much": float(much)}
                for (name, labels), much in sorted(values.items())
            ],
        )

    def tallies(self) -> Tallies:
        with self.database.transaction() as asking:
            found = asking.rows("select * from tallies")
        return {(row["name"], tuple(json.loads(row["labels"]))): row["much"] for row in found}

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
