"""The table of runs, and what a run leaves behind in the row of its repository."""

from __future__ import annotations

import json
from dataclasses import replace

from bot.server.model import Instant, PendingWork, RepositoryKey, RepositoryRow, RunReport, RunRow
from bot.server.storage.database import Row, Transaction, to_json
from bot.server.storage.history import HistoryEstimate, parse_estimate

MAX_STORED_PUSHES = 6


def open_run(transaction: Transaction, work: PendingWork, worker: str) -> None:
    transaction.change(
        "insert into runs (id, repository, worker, began) values (:id, :repository, :worker, :began)",
        id=work.id,
        repository=work.repository.text,
        worker=worker,
        began=work.began_at,
    )


def close_run(transaction: Transaction, work: PendingWork, report: RunReport, now: Instant) -> None:
    transaction.change(
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


def row_after_run(row: RepositoryRow, work: PendingWork, report: RunReport, now: Instant) -> RepositoryRow:
    history = row.history
    if report.history:
        before = parse_estimate(row.history) or HistoryEstimate(0)
        history = before.after(report.history, work.began_at, now).to_text()
    elif report.is_unread is not None:
        history = ""
    return replace(
        row,
        cursor=max(row.cursor, report.cursor),
        pushes=tuple(sorted((*row.pushes, *report.pushes)))[-MAX_STORED_PUSHES:],
        last_run=now,
        backoff=report.backoff,
        is_unread=row.is_unread if report.is_unread is None else report.is_unread,
        threads=report.threads if report.threads >= 0 else row.threads,
        history=history,
    )


def parse_run(row: Row) -> RunRow:
    return RunRow(
        id=row["id"],
        repository=RepositoryKey.of(row["repository"]),
        worker=row["worker"],
        began=row["began"],
        ended=row["ended"],
        stages=tuple((stage, seconds) for stage, seconds in json.loads(row["stages"])),
        pushes=tuple(json.loads(row["pushes"])),
        reads=row["reads"],
        writes=row["writes"],
        notes=tuple(json.loads(row["notes"])),
    )
