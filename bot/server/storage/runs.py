"""The table of runs, what a run leaves in the row of its repository, and how far it read a history."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from bot.server.model import HistoryPart, Instant, PendingWork, RepositoryKey, RepositoryRow, RunReport, RunRow
from bot.server.storage.database import Row, Transaction, to_json

MAX_STORED_PUSHES = 6
PACE_RUNS = 6
"""Runs whose pace counts: the newest ones, with the time between them."""


@dataclass(frozen=True, slots=True)
class HistoryEstimate:
    """An unfinished reading: ``read`` threads so far. ``marks`` are times with how many threads were left then."""

    read: int
    marks: tuple[tuple[Instant, int], ...] = ()

    @property
    def left(self) -> int:
        """How many threads are left; -1 if GitHub did not say."""
        return self.marks[-1][1] if self.marks else -1

    @property
    def percent(self) -> int:
        """How much is read, in 0..99; -1 if that is not known."""
        total = self.read + self.left
        return min(99, 100 * self.read // total) if self.left >= 0 and total else -1

    def after(self, part: HistoryPart, began: Instant, ended: Instant) -> HistoryEstimate:
        if part.left < 0 or part.before < 0:
            return replace(self, read=part.read)
        marks = self.marks or ((began, part.before),)
        return HistoryEstimate(part.read, (*marks, (ended, part.left))[-PACE_RUNS - 1 :])

    def done_at(self, paused_until: Instant = 0) -> Instant:
        """When it will be done at the pace so far, after a pause until ``paused_until``; 0 if unknown.

        The time between runs counts, so a reading that has to wait for others takes as long as it does.
        """
        if len(self.marks) < 2:
            return 0
        (first, before), (last, left) = self.marks[0], self.marks[-1]
        if before <= left:
            return 0
        return max(last, paused_until) + round(left * (last - first) / (before - left))

    def to_text(self) -> str:
        return to_json([self.read, self.marks])


def parse_estimate(text: str) -> HistoryEstimate | None:
    """Read the text of a column; None for "", when no history is being read."""
    if not text:
        return None
    read, marks = json.loads(text)
    return HistoryEstimate(read, tuple((at, left) for at, left in marks))


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
