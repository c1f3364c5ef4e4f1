"""When a repository has to be looked at again after a run, and how far its memory has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from bot.errors import PrecedentError
from bot.github.errors import (
    HISTORY_LIMITS,
    RateLimited,
)
from bot.github.events import CATCH_UP_EVENT
from bot.memory.memory import Memory
from bot.pipeline.backfill import HistoryRead
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.tools import Tools
from bot.server.model import (
    Delivery,
    HistoryPart,
    Instant,
    Priority,
    RepositoryRow,
    Result,
    RunReport,
)
from bot.server.work.policy import limit_end

PROMISE_DELAY = 125_000
"""Milliseconds until an unconfirmed promise may be checked: a little over `bot.pipeline.tools.POSTING_WINDOW`."""

MAX_BACKOFF = 3_600_000  # milliseconds until a repository with unfinished work is due again


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run has done so far. ``row`` is its repository before it; ``met`` are faults after which it continued;
    ``results`` are by delivery, ``comment_results`` by thread; ``history`` is its last reading of history."""

    memory: Memory
    tools: Tools
    row: RepositoryRow
    deliveries: Sequence[Delivery]
    results: Mapping[int, Result]
    comment_results: Mapping[object, CommentResult]
    met: Sequence[PrecedentError]
    history: HistoryRead | None
    now: Instant


def plan_next(run: Progress, *, made_progress: bool) -> RunReport:
    """How far memory has read, and when to look again even if nothing happens.

    ``made_progress``: this run has read on in an unfinished rebuild, so the next one follows at once.
    """
    report, now = _report_progress(run), run.now
    if any(each.state == "waiting" for each in run.results.values()):
        return report
    limits = [each for each in run.met if is_history_limit(each)]
    limit_ends = max((limit_end(each, now) for each in limits), default=0)
    outstanding = _outstanding(run)
    if limit_ends and not outstanding:
        return replace(report, requeue_after=limit_ends, urgency=Priority.HISTORY)
    is_unfinished = run.memory.state.manifest.reading is not None and not limits and not run.tools.forge.troubles
    has_advanced = not limits and report.is_unread and report.cursor > run.row.cursor
    if (is_unfinished and made_progress) or has_advanced:
        return replace(report, requeue_after=now)
    if not (is_unfinished or outstanding):
        return report
    is_idle = not run.comment_results and all(each.event.name == CATCH_UP_EVENT for each in run.deliveries)
    backoff = min(MAX_BACKOFF, 2 * run.row.backoff) if is_idle and run.row.backoff else PROMISE_DELAY
    soonest = min((moment for moment in (*outstanding, limit_ends) if moment > now), default=now + backoff)
    return replace(report, requeue_after=min(soonest, now + backoff), backoff=backoff)


def _report_progress(run: Progress) -> RunReport:
    """How far memory has read; of a history that is not read completely, how much is left."""
    manifest, read = run.memory.state.manifest, run.history
    cursor = round(manifest.cursor.timestamp() * 1000) if manifest.cursor else 0
    report = RunReport(cursor=cursor, threads=manifest.threads, is_unread=None)
    if read and (manifest.reading or not read.complete):
        total = -1 if read.total is None else read.total
        known = len(manifest.reading.seen) if manifest.reading else manifest.threads
        part = HistoryPart(known, total, max(0, total - len(read.seen)) if total >= 0 else -1)
        return replace(report, history=part, is_unread=None if manifest.reading else True)
    if manifest.reading or not any(each.state == "done" for each in run.results.values()):
        return report
    return replace(report, is_unread=False)


def _outstanding(run: Progress) -> list[Instant]:
    """When each promise that this run left open may be checked, at the earliest."""
    oldest = run.tools.now - run.tools.max_age
    settled = {key for key, result in run.comment_results.items() if not result.is_owed and not result.error}
    answers = run.memory.state.comments(
        [key for key in run.memory.state.manifest.pending if key not in settled]
    ).values()
    starts = [answer.trying_since for answer in answers if answer.at > oldest]
    requests = run.memory.state.manifest.requests_since(oldest)
    starts += [each.trying_since for each in requests if each.state == "pending" and each.id not in settled]
    starts += [None for _ in run.memory.state.manifest.renewals_due[:1] if run.tools.settings.mode == "comment"]
    return [round(1000 * since.timestamp()) + PROMISE_DELAY if since else 0 for since in starts]


def is_history_limit(error: PrecedentError) -> TypeGuard[RateLimited]:
    """Whether it is a limit that stops only the reading of history, which no delivery waits for."""
    return isinstance(error, RateLimited) and error.resource in HISTORY_LIMITS
