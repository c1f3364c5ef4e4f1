"""The tables of deliveries and of runs: rows as values and back, and how some deliveries are selected."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bot.domain.thread_json import storable
from bot.github.events import Event
from bot.server.model import (
    Delivery,
    Instant,
    PendingWork,
    Priority,
    RepositoryKey,
    Result,
    RunReport,
    RunRow,
    State,
    moment_text,
)
from bot.server.storage.database import Database, Row, to_json

MAX_RUN_DELIVERIES = 50
"""Maximum number of deliveries in one run."""

MAX_SOLO_ATTEMPTS = 5
"""How often a delivery may begin alone without ending. One that began together with others may be innocent."""

NEVER_ENDED = f"it was begun alone {MAX_SOLO_ATTEMPTS} times and never ended"

MAX_STATEMENT_VALUES = 500
"""Maximum number of values in one statement."""

PURGE_BATCH_ROWS = 500
"""Rows that one transaction of a purge examines, so that others do not wait long."""

PURGE_PAUSE = 0.02
"""Seconds between two such transactions: SQLite would let the next one overtake those that already wait."""

_SAME_COLUMNS = (
    *("seq", "id", "name", "state", "received_at", "attempts", "begun", "next_at", "finished_at"),
    *("run", "reason", "said", "url", "request"),
)
"""The columns of deliveries that are fields of the same name."""

_T = TypeVar("_T", int, str)
_INSERT_SQL = (
    "insert into deliveries (id, repository, event, action, number, is_pull, comment_id, moved_to, name,"
    " received_at, next_at, request, extra, priority) values {groups} on conflict (id) do nothing returning seq, id"
)
_STORE_RESULT_SQL = (
    "update deliveries set state = :state, reason = :reason, next_at = :next_at, finished_at = :finished_at,"
    " attempts = :attempts, begun = 0, said = :said, url = :url, matches = :matches, nearest = :nearest"
    " where seq = :seq and run = :run and state = 'working'"
)


def arrival_columns(arrival: Delivery, next_at: Instant = 0) -> dict[str, str | int]:
    """The row of a new delivery; missing numbers are 0. It never holds a person's name."""
    event = arrival.event
    return {
        "id": arrival.id,
        "repository": arrival.repository.text,
        "event": storable(event.name),
        "action": storable(event.action),
        "number": event.number or 0,
        "is_pull": int(event.is_pull),
        "comment_id": event.comment_id or 0,
        "moved_to": storable(event.moved_to),
        "name": storable(arrival.name),
        "received_at": arrival.received_at,
        "next_at": next_at,
        "request": arrival.request,
        "extra": to_json([(name, storable(value)) for name, value in arrival.extra]),
        "priority": int(arrival.priority),
    }


def result_columns(delivery: Delivery, result: Result, now: Instant) -> dict[str, str | int]:
    """The columns that a run writes for one of its deliveries."""
    is_waiting = result.state == "waiting"
    return {
        "seq": delivery.seq,
        "run": delivery.run,
        "state": result.state,
        "reason": storable(result.reason),
        "next_at": result.next_at if is_waiting else 0,
        "finished_at": 0 if is_waiting else now,
        "attempts": delivery.attempts + (is_waiting and result.counts),
        "said": result.said,
        "url": storable(result.url),
        "matches": to_json(result.matches),
        "nearest": to_json(result.nearest),
    }


def parse_delivery(row: Row) -> Delivery:
    return Delivery(
        **{name: row[name] for name in _SAME_COLUMNS},
        repository=RepositoryKey.of(row["repository"]),
        event=_event(row),
        priority=Priority(row["priority"]),
        matches=_tuples(row["matches"]),
        nearest=_tuples(row["nearest"]),
        extra=_tuples(row["extra"]),
    )


def _event(row: Row) -> Event:
    return Event(
        name=row["event"],
        action=row["action"],
        number=row["number"] or None,
        is_pull=bool(row["is_pull"]),
        comment_id=row["comment_id"] or None,
        moved_to=row["moved_to"] or None,
    )


def multi_row_values(rows: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows, and the values by these names."""
    names = list(rows[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{index}" for name in names) + ")" for index in range(len(rows)))
    return groups, {f"{name}_{index}": row[name] for index, row in enumerate(rows) for name in names}


_CONDITIONS = {
    "seq": "seq = :seq",
    "state": "state = :state",
    "repository": "repository = :repository",
    "before": "seq < :before",
    "reason": "reason = :reason",
    "says": "lower(reason) like :says escape '!'",
    "name": "(lower(name) = :name or repository in (select key from repositories where lower(name) = :name))",
    "number": "number = :number",
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
    two ignore case. ``number``: about this thread. ``since``, ``until``: received at ``since`` or later, before
    ``until``. ``ended``: ended then or earlier.
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
    number: int = 0

    def __str__(self) -> str:
        """The filter in words, for the audit."""
        of = self.name or (self.repository.text if self.repository else "")
        parts = {
            "": self.state or "",
            "number": self.seq or "",
            "of": f"{of}#{self.number}" if self.number else of,
            "with the reason": "none" if self.reason == "" else self.reason or "",
            "with a reason that contains": self.says,
            "received since": moment_text(self.since),
            "received before": moment_text(self.until),
            "ended by": moment_text(self.ended),
        }
        return f"all {', '.join(f'{words} {value}'.strip() for words, value in parts.items() if value)}".rstrip()

    def where(self) -> tuple[str, dict[str, str | int]]:
        """The condition in SQL, and its values. The SQL holds only our own words; everything else is a value."""
        values: dict[str, str | int] = {
            "seq": self.seq,
            "state": self.state or "",
            "repository": self.repository.text if self.repository else "",
            "before": self.before,
            "says": _pattern(self.says) if self.says else "",
            "name": storable(self.name).lower(),
            "number": self.number,
            "since": self.since,
            "until": self.until,
            "ended": self.ended,
        }
        bound = {name: value for name, value in values.items() if value}
        bound |= {} if self.reason is None else {"reason": storable(self.reason)}
        return " and ".join(_CONDITIONS[name] for name in bound) or "1 = 1", bound


ALL_DELIVERIES = DeliveryFilter()


def select_deliveries(database: Database, delivery_filter: DeliveryFilter, limit: int) -> list[Delivery]:
    """Return at most ``limit`` matching deliveries, newest first."""
    where, values = delivery_filter.where()
    sql = f"select * from deliveries where {where} order by seq desc limit :limit"  # noqa: S608 (our own words)
    return [parse_delivery(row) for row in database.rows(sql, limit=limit, **values)]


def select_numbers(database: Database, delivery_filter: DeliveryFilter) -> list[int]:
    """Return the numbers of all matching deliveries, oldest first."""
    where, values = delivery_filter.where()
    sql = f"select seq from deliveries where {where} order by seq"  # noqa: S608 (our own words)
    return [row["seq"] for row in database.rows(sql, **values)]


def _pattern(text: str) -> str:
    """A ``like`` pattern for texts that contain this one; ``!`` escapes special characters."""
    text = storable(text).lower()
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"%{text}%"


def open_run(database: Database, work: PendingWork, worker: str) -> None:
    database.change(
        "insert into runs (id, repository, worker, began) values (:id, :repository, :worker, :began)",
        id=work.id,
        repository=work.repository.text,
        worker=worker,
        began=work.began_at,
    )


def close_run(database: Database, work: PendingWork, report: RunReport, now: Instant) -> None:
    database.change(
        "update runs set ended = :now, stages = :stages, pushes = :pushes, reads = :reads, writes = :writes,"
        " notes = :notes where id = :id",
        now=now,
        stages=to_json(report.stages),
        pushes=to_json(report.pushes),
        reads=report.reads,
        writes=report.writes,
        notes=to_json(report.notes),
        id=work.id,
    )


def parse_run(row: Row) -> RunRow:
    return RunRow(
        **{name: row[name] for name in ("id", "worker", "began", "ended", "reads", "writes")},
        repository=RepositoryKey.of(row["repository"]),
        stages=_tuples(row["stages"]),
        pushes=tuple(json.loads(row["pushes"])),
        notes=tuple(json.loads(row["notes"])),
    )


def _tuples(column: str) -> tuple[Any, ...]:
    """The lists in a column."""
    return tuple(map(tuple, json.loads(column)))


def batches(values: Sequence[_T]) -> list[list[_T]]:
    """Split the values into batches that fit into one statement."""
    return [list(values[start : start + MAX_STATEMENT_VALUES]) for start in range(0, len(values), MAX_STATEMENT_VALUES)]


def insert_deliveries(database: Database, rows: Sequence[Mapping[str, str | int]]) -> list[str]:
    """Insert these rows; returns the new ids, in the order of arrival."""
    groups, values = multi_row_values(rows)
    inserted = database.rows(_INSERT_SQL.format(groups=groups), **values)
    return [row["id"] for row in sorted(inserted, key=lambda row: row["seq"])]


def take_due(database: Database, repository: RepositoryKey, now: Instant, *, with_history: bool) -> list[Delivery]:
    """Return the due deliveries, with those that a dead run left; those begun too often become dead."""
    database.change(
        "update deliveries set state = 'waiting' where repository = :repository and state = 'working'",
        repository=repository.text,
    )
    database.change(
        "update deliveries set state = 'dead', reason = :why, finished_at = :now, begun = 0, next_at = 0"
        " where repository = :repository and state = 'waiting' and begun > :most",
        why=NEVER_ENDED,
        now=now,
        repository=repository.text,
        most=MAX_SOLO_ATTEMPTS,
    )
    rows = database.rows(
        "select * from deliveries where repository = :repository and state = 'waiting' and next_at <= :now"
        " and priority <= :last order by seq limit :most",
        repository=repository.text,
        now=now,
        last=int(Priority.HISTORY if with_history else Priority.CATCH_UP),
        most=MAX_RUN_DELIVERIES,
    )
    return [parse_delivery(row) for row in rows]


def store_results(database: Database, work: PendingWork, results: Sequence[Result], now: Instant) -> None:
    """Store each result. A delivery without one waits again, as if its worker had died."""
    by_seq = {each.seq: each for each in work.deliveries}
    database.change_each(
        _STORE_RESULT_SQL, [result_columns(by_seq[each.seq], each, now) for each in results if each.seq in by_seq]
    )
    database.change("update deliveries set state = 'waiting' where run = :run and state = 'working'", run=work.id)


def purge_deliveries(database: Database, state: State, before: Instant) -> int:
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
        with database.transaction():
            row = database.row(oldest, state=state, after=after, many=PURGE_BATCH_ROWS)
            if not row or not row["many"]:
                return purged
            last = row["last"]
            deleted = database.change(sql, state=state, after=after, last=last, before=before)
        purged, after = purged + deleted, last
        if not deleted or row["many"] < PURGE_BATCH_ROWS:
            return purged
        time.sleep(PURGE_PAUSE)


def purge_runs(database: Database, before: Instant) -> None:
    sql = "delete from runs where id in (select id from runs where began < :before order by began limit :many)"
    while True:
        if database.change(sql, before=before, many=PURGE_BATCH_ROWS) < PURGE_BATCH_ROWS:
            return
        time.sleep(PURGE_PAUSE)
