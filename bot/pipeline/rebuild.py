"""Reads the whole history again, in one run or several, then asks GitHub about issues missing from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice

from bot.domain.changes import TRACKED_NUMBER_LIMIT, Changes, HistoryProgress
from bot.domain.thread import Kind, Record, Tombstone
from bot.evaluation.results import LEARNING_SECONDS, Backtest
from bot.github.errors import ForgeError, Gone, IssuesOff, RateLimited, Unreachable
from bot.github.history import keep_event_reserve
from bot.github.updates import read_thread, tombstone
from bot.pipeline.backfill import Deadline, HistoryRead, backfill
from bot.pipeline.clusters import LINK_SECONDS, link_threads
from bot.pipeline.discussions import reread_discussions
from bot.pipeline.learn import REBUILD_MODEL_SECONDS, is_due, learn_from_memory
from bot.pipeline.requests import unread_requests
from bot.pipeline.tools import Tools
from bot.sources.pages import refresh_pages

MAX_LOOKUPS = 300
"""Missing threads that one run asks GitHub about. Later runs take the others."""

PROGRESS_THREADS = 50


@dataclass(slots=True)
class MissingThreads:
    """The result of asking about ``missing`` threads: ``records`` to remember, and the numbers ``done``.

    ``hidden_by_github`` are those that one of our posts shows. ``stopped``: the error that ended it early, if any.
    """

    missing: int
    records: list[Record] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    hidden_by_github: list[Tombstone] = field(default_factory=list)
    stopped: ForgeError | None = None

    @property
    def gone(self) -> int:
        return sum(isinstance(record, Tombstone) for record in self.records)

    @property
    def left(self) -> int:
        return self.missing - len(self.done)


def record_missing(run: Tools, progress: HistoryProgress) -> MissingThreads:
    """Ask GitHub about the issues in memory that a complete reading did not find, and stage the answers.

    An issue missing from a list may still exist: it may have moved between pages during the reading, GitHub may take
    its author for a spammer, or the list was empty for a moment. An issue that is certainly gone becomes a tombstone,
    an existing one is remembered as it is now. A hidden one stays, but no comment shows it until it is visible again.
    The numbers asked about are stored with the progress. Raises IssuesOff.
    """
    missing = _missing_threads(run, progress)
    result = MissingThreads(len(missing))
    if missing:
        _look_up(missing, result, run)
        reading = replace(progress, seen=frozenset(result.done))
        run.memory.stage(
            Changes(records=tuple(result.records), hidden_by_github=tuple(result.hidden_by_github), reading=reading)
        )
        counts = f"Missing from the history: {result.missing:,}; gone from GitHub: {result.gone:,}"
        run.note(f"{counts}; not checked yet: {result.left:,}.")
    return result


def _missing_threads(run: Tools, progress: HistoryProgress) -> dict[int, datetime]:
    """The issues that the reading did not find, with the times of their revisions, except those changed since it began,
    which another run has read."""
    return {
        entry.id: entry.updated_at
        for entry in run.memory.index.of_kind(Kind.ISSUE)
        if isinstance(entry.id, int)
        and entry.id not in progress.seen
        and entry.id < TRACKED_NUMBER_LIMIT
        and entry.updated_at < progress.began
    }


def _look_up(missing: Mapping[int, datetime], result: MissingThreads, run: Tools) -> None:
    total = min(MAX_LOOKUPS, len(missing))
    for number, revised_at in islice(sorted(missing.items()), MAX_LOOKUPS):
        if len(result.done) % PROGRESS_THREADS == 0:
            run.clock.tell(f"{len(result.done):,} of {total:,} missing threads checked")
        try:
            keep_event_reserve(run.forge)
            stored = run.memory.state.records([number]).get(number)
            result.records.append(read_thread(run.forge, run.own, number, stored)[0])
        except IssuesOff:
            raise
        except Gone as error:
            if error.certain:  # its record has GitHub's time, which may be ahead of the runner's clock
                result.records.append(tombstone(number, error, max(run.now, revised_at)))
            elif run.memory.state.is_shown(number):
                result.hidden_by_github.append(Tombstone(number, run.now, "unseen"))
        except ForgeError as error:
            if isinstance(error, RateLimited) or run.forge.troubles:
                result.stopped = error
                return
        result.done.add(number)


EVENT_SECONDS = 60.0
"""How long an event's run continues an unfinished rebuild once it has answered."""


def rebuild(run: Tools, limit: float | None = None) -> Backtest | None:
    """Read the whole history again, or continue an unfinished reading; then learn from it and rebuild the index, which
    replaces the old one in one write.

    Returns a backtest; None if this run has learned already, or if ``limit`` seconds or a GitHub limit ended it early
    and a later run continues. Without a ``limit``, somebody is waiting for the result, so an outage is raised.
    """
    started = run.clock.seconds()
    read = _read_next_part(run, run.memory.open().state.manifest.reading or HistoryProgress(run.now), limit)
    return _finish(run, started, limit) if read.complete else None


def continue_rebuild(run: Tools, *, unattended: bool) -> None:
    """Continue an unfinished rebuild for a while, unless GitHub limits this run. ``unattended``: nobody waits; it may
    take the last steps too."""
    reading = None if run.forge.troubles else run.memory.state.manifest.reading
    if reading and unattended:
        rebuild(run, run.reading_seconds)
    elif reading:
        _read_next_part(run, reading, EVENT_SECONDS)


def _read_next_part(run: Tools, reading: HistoryProgress, limit: float | None) -> HistoryRead:
    """Read the next part. Raises a fault that will not pass by itself."""
    if reading.upto:
        run.note(f"The rebuild that began on {reading.began:%Y-%m-%d} at {reading.began:%H:%M} UTC continues.")
    deadline = Deadline(run.clock, run.now, limit, max_age=run.max_age)
    read = backfill(run.memory, run.history, deadline, reading.upto, partial(unread_requests, run=run), reading)
    run.on_history(read)
    if read.seen or read.complete:
        changed = f"{read.changed:,} would change" if run.is_dry else f"{read.changed:,} records changed"
        run.note(f"{len(read.seen):,} threads were read, {changed}.")
    if isinstance(read.stopped, Unreachable) and limit is None:
        raise Unreachable(_outage_message(run, read, read.stopped)) from read.stopped
    if read.stopped and not isinstance(read.stopped, (RateLimited, Unreachable)):
        raise read.stopped
    if not read.complete:
        _report_unfinished(run, read.stopped, read.why, has_read=bool(read.seen))
    return read


def _outage_message(run: Tools, read: HistoryRead, stopped: ForgeError) -> str:
    how_far = " completely" if read.seen else ""
    kept = " What was read is kept." if read.seen and not run.is_dry else ""
    goes_on = "" if run.is_dry else "; scheduled runs continue it too"
    return f"The history could not be read{how_far}: {stopped.cause}.{kept} Start `rebuild` again later{goes_on}."


def _report_unfinished(run: Tools, stopped: ForgeError | None, why: str, *, has_read: bool = True) -> None:
    """Report that the rebuild is unfinished, ``why``, and what happens next. A limit is reported
    as a fault, so the note does not repeat it."""
    if isinstance(stopped, RateLimited):
        run.report_fault(stopped)
    cause = "" if isinstance(stopped, RateLimited) else f" ({why})"
    if run.is_dry:
        outlook = "Nothing is kept; a dry run starts over."
    else:
        outlook = "What was read is kept, and the next runs continue." if has_read else "The next runs continue."
    run.note(f"The rebuild is not finished{cause}. {outlook}")


def _finish(run: Tools, started: float, limit: float | None) -> Backtest | None:
    """Finish a rebuild after the last page of history. None if more threads are missing than one run asks about, or if
    this run has already learned and read little since."""
    memory = run.memory
    progress = memory.state.manifest.reading
    lookups = record_missing(run, progress) if progress else None
    if lookups and lookups.left:
        memory.commit(f"Checkpoint: {memory.state.manifest.threads} threads")
        _report_unfinished(run, lookups.stopped, str(lookups.stopped or "more threads are missing than one run checks"))
        return None
    reread_discussions(run, progress.began if progress else run.now, limit)
    memory.stage(refresh_pages(run.pages, memory, {}, run.now, run.note))
    is_current = memory.has_learned and not is_due(memory, unattended=True)
    if memory.embedder:
        run.clock.tell(f"Reading {memory.state.manifest.threads:,} threads with the text model")
    memory.rebuild_index(until=run.clock.seconds() + REBUILD_MODEL_SECONDS)
    backtest = None if is_current else learn_from_memory(run, LEARNING_SECONDS)
    memory.stage(Changes(read_whole=progress.began if progress else None))
    link_threads(memory, run.now, run.clock.seconds, LINK_SECONDS)
    memory.commit(f"Rebuild: {memory.state.manifest.threads} threads")
    if not run.is_dry:
        memory.settle_notes()
    _report_end(run, run.clock.seconds() - started)
    return backtest


def _report_end(run: Tools, seconds: float) -> None:
    subject = "The dry run of the rebuild" if run.is_dry else "The rebuild"
    took = f"{seconds / 60:.0f} min" if seconds >= 60 else "less than a minute"
    verb = "would be" if run.is_dry else "are"
    count = run.memory.state.manifest.threads
    run.note(f"{subject} is complete after {took}: {count:,} issues, pull requests and pages {verb} in memory.")
