"""The counters of all processes: each adds a row, which is added to the totals later, so that nobody waits for them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from bot.server.model import EXCLUDED, Counters, Result, RunReport
from bot.server.storage.database import Database, DatabasePart, to_json
from bot.server.storage.deliveries import NEVER_ENDED

BATCH_ROWS = 1_000
"""Rows of counts that are added up in one transaction."""

DELIVERIES_METRIC = "precedent_deliveries_total"
"""Labels: the event, and its result: stored, repeated, dropped, or refused with a status."""

_Totals = Counter[tuple[str, tuple[str, ...]]]


class CounterTable(DatabasePart):
    """The counters, which never shrink."""

    def add(self, values: Counters) -> None:
        add_counts(self.database, values)
        self.add_up()

    def add_up(self) -> None:
        """Add the recent counts to the totals."""
        sql = "delete from tallied where seq in (select seq from tallied order by seq limit :many) returning counted"
        count = BATCH_ROWS
        while count == BATCH_ROWS:
            with self.database.transaction():
                rows = self.database.rows(sql, many=BATCH_ROWS)
                _add_totals(self.database, _sum(row["counted"] for row in rows))
            count = len(rows)

    def read(self) -> Counters:
        """All counters, of all processes together."""
        # One statement, so that counts that are added up meanwhile are neither missed nor counted twice.
        rows = self.database.rows(
            "select name, labels, much, '[]' as counted from tallies union all select '', '[]', 0, counted from tallied"
        )
        totals = Counter({(row["name"], tuple(json.loads(row["labels"]))): row["much"] for row in rows if row["name"]})
        totals.update(_sum(row["counted"] for row in rows))
        return totals


def add_counts(database: Database, values: Counters) -> None:
    """Add to counters in a row of their own, so that no run waits for the counters of another repository."""
    if values:
        counted = [(name, labels, float(much)) for (name, labels), much in values.items()]
        database.change("insert into tallied (counted) values (:counted)", counted=to_json(counted))


def _sum(counted: Iterable[str]) -> _Totals:
    totals = _Totals()
    for one in counted:
        for name, labels, much in json.loads(one):
            totals[name, tuple(labels)] += much
    return totals


def _add_totals(database: Database, totals: _Totals) -> None:
    """Adds in a fixed order: two transactions at once would otherwise wait for each other."""
    database.change_each(
        "insert into tallies (name, labels, much) values (:name, :labels, :much)"
        " on conflict (name, labels) do update set much = tallies.much + excluded.much",
        [
            {"name": name, "labels": to_json(labels), "much": float(much)}
            for (name, labels), much in sorted(totals.items())
        ],
    )


BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds of the histogram of stages; one more bucket holds all longer ones."""

REASONS = (
    "memory has something to show",
    "nothing in memory is close enough",
    "memory holds no older issue",
    "nothing was due",
    "the comment already says that",
    "the comment was already posted",
    "it was handled together with a later delivery",
    "the event was processed",
    "somebody switched it off on this issue",
    "a person deleted the comment",
    "a person edited the comment",
    "it is already closed",
    "the conversation is locked",
    "its author is a bot or ignored",
    "its author asked to be left alone",
    "it carries an ignored label",
    "pull requests are not answered",
    "the mode is off",
    "the daily limit of comments is reached",
    "asked to search",
    "asked about an issue",
    "asked what was decided",
    "asked for the commands",
    "the request names no issue",
    "an issue was marked as unrelated",
    "an issue was marked as the same",
    "an issue was marked as different",
    "an issue was named as the original",
    "switched off on this issue",
    "switched on again on this issue",
    "asked for a new answer",
    "the issue was forgotten",
    "it showed an issue that was forgotten",
    "only an administrator of the repository may ask for that",
    "the account has used up its questions for this hour",
    "only its author or people with write access may ask for that",
    "the request was not understood",
    "GitHub accepts no comment here",
    "the token may not do this",
    "the App is active",
    "the App is no longer installed there",
    "the App is suspended there",
    "the App can no longer see this repository",
    "the repository was deleted",
    "the repository went to another account",
    EXCLUDED,
    NEVER_ENDED,
    "its run hung twice",
)
"""An answer's reason is counted under the entry it starts with, or else under "other"."""


def run_counters(results: Sequence[Result], report: RunReport) -> dict[tuple[str, tuple[str, ...]], float]:
    """The amounts that a run adds to the counters, by name and labels."""
    is_retried = any(result.state == "waiting" for result in results)
    counters: dict[tuple[str, tuple[str, ...]], float] = {}

    def add(name: str, *labels: str, amount: float = 1) -> None:
        counters[name, labels] = counters.get((name, labels), 0) + amount

    add("precedent_runs_total", "again" if is_retried else "done")
    for result in results:
        if result.state != "waiting":
            add("precedent_answers_total", result.said or result.state, _reason_label(result.reason))
    for stage, seconds in report.stages:
        add("precedent_stage_seconds_bucket", stage, _bucket(seconds))
        add("precedent_stage_seconds_sum", stage, amount=seconds)
        add("precedent_stage_seconds_count", stage)
    if report.pushes:
        add("precedent_pushes_total", amount=len(report.pushes))
    return counters


def _bucket(seconds: float) -> str:
    """The smallest bucket that holds it. Only that one is counted; buckets are summed when they are shown."""
    return next((str(end) for end in BUCKETS if seconds <= end), "+Inf")


def _reason_label(reason: str) -> str:
    return next((label for label in REASONS if reason.startswith(label)), "other" if reason else "")
