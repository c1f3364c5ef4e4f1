"""Remembers discussions, which no list of issues shows: the event's own, what changed since, and their whole history.

A run asks GitHub for them only where an event or memory says that there are some, or in a run that nobody waits for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from itertools import islice

from bot.domain.changes import Changes, DiscussionProgress
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone
from bot.github.discussions import DiscussionReader, changed_since
from bot.github.errors import ForgeError, Gone, RateLimited
from bot.github.events import UNAWAITED, Event
from bot.github.updates import OVERLAP
from bot.pipeline.backfill import Deadline
from bot.pipeline.run_context import RunContext, RunState

PAGES = 10
"""Parts of the list, twenty discussions each, in which a run looks for changes. If more changed, all are read again."""

ASKED = 100
"""Missing discussions that a rebuild asks about."""

EVENT_SECONDS = 60.0
"""How long an event's run, after its answers, goes on reading discussions for the first time."""


def with_discussions(state: RunState, run: RunContext) -> RunState:
    """The state with the discussions that changed since the last run, if this event is about them or nobody waits."""
    event, known = state.event, run.memory.state.manifest.discussions
    is_due = event.is_of_discussion or (event.name in UNAWAITED and known is not None and known.is_done)
    if run.discussions is None or state.limit or run.forge.troubles or event.forgets or not is_due:
        return state
    found: dict[int, Record] = {}
    read: DiscussionProgress | None = None
    try:
        if known and known.is_done:
            changed, read = _changed(run.discussions, known, run)
            found |= {thread.id: thread for thread in changed if isinstance(thread.id, int)}
        if event.is_of_discussion and event.number and event.number not in found:
            found[event.number] = run.discussions.one(event.number)
    except Gone as error:
        run.note(f"Discussion {event.number} cannot be seen now, and was left as it is: {error}")
    except ForgeError as error:
        run.forge.apply_limit(error)
        _tell(error, run)
    records = (*state.updates.records, *found.values())
    said = {**run.memory.state.answers(found), **state.said}
    return replace(state, updates=replace(state.updates, records=records), said=said, discussions=read)


def _changed(
    reader: DiscussionReader, known: DiscussionProgress, run: RunContext
) -> tuple[list[Thread], DiscussionProgress]:
    """What changed since then, and the progress. If that is too much for one run, all are read again."""
    since = (known.upto or known.began) - OVERLAP
    changed: list[Thread] = []
    for count, page in enumerate(reader.newest(since), 1):
        new = changed_since(page, since)
        changed += new
        if len(new) < len(page.threads) or not page.after:
            return changed, replace(known, upto=_newest(changed, known.upto))
        if count == PAGES:
            break
    run.note("Many discussions changed since the last run, so all of them are read again.")
    return changed, DiscussionProgress(run.now)


def _newest(threads: list[Thread] | tuple[Thread, ...], known: datetime | None) -> datetime | None:
    return max([*(thread.revised_at for thread in threads), *([known] if known else [])], default=None)


def read_discussions(event: Event, run: RunContext) -> None:
    """Begin or go on to read all discussions for a while, unless there are none. Nothing is asked once they are read.

    No run for an issue begins it: where a token may not read discussions, each one would be refused.
    """
    known = run.memory.state.manifest.discussions
    is_calm = event.name in UNAWAITED
    if run.forge.troubles or (known and known.is_done) or event.has_discussions is False:
        return
    if known or is_calm or event.is_of_discussion:
        is_sure = bool(known or event.is_of_discussion or event.has_discussions)
        _read_all(run, known, run.reading_seconds if is_calm else EVENT_SECONDS, is_sure=is_sure)


def read_again(run: RunContext, began: datetime, limit: float | None) -> None:
    """Read all discussions again, where there are any, as a part of the reading of the whole history that ``began``
    then."""
    known = run.memory.state.manifest.discussions
    if known is None or (known.began >= began and known.is_done):
        return
    progress = known if known.began >= began else DiscussionProgress(began)
    met = _read_all(run, progress, limit, is_sure=True)
    read = run.memory.state.manifest.discussions
    if not progress.after and read and read.is_done and read.began == began:
        _hide_missing(met, began, run)


def _hide_missing(met: Collection[ThreadId], began: datetime, run: RunContext) -> None:
    """Ask about discussions that our comments show and that a complete reading did not meet. GitHub never says that one
    was deleted, so those that it does not have stay in memory, and no comment shows them."""
    assert run.discussions
    missing = (
        record.id
        for record in run.memory.state.every_record()
        if isinstance(record, Thread) and record.kind is Kind.DISCUSSION and record.revised_at < began
        if record.id not in met and run.memory.state.is_shown(record.id)
    )
    unseen: list[Tombstone] = []
    for key in islice(missing, ASKED):
        try:
            run.discussions.one(int(key))
        except Gone:
            unseen.append(Tombstone(key, run.now, "unseen"))
        except ForgeError as error:
            run.forge.apply_limit(error)
            break
    run.memory.stage(Changes(unseen=tuple(unseen)))


def _read_all(
    run: RunContext, known: DiscussionProgress | None, limit: float | None, *, is_sure: bool
) -> frozenset[ThreadId]:
    """Read the list, oldest change first, with checkpoints; returns which were met.

    ``is_sure``: it is known that there are discussions; otherwise a server or a token that shows none is no fault.
    """
    met = set[ThreadId]()
    if run.discussions is None:
        return frozenset()
    pace, progress = Deadline(run.clock, run.now, limit), known or DiscussionProgress(run.now)
    try:
        while not (progress.is_done or pace.is_over):
            page = run.discussions.page(progress.after)
            if not page.are_on and not page.threads:
                return frozenset()
            upto = _newest(page.threads, progress.upto)
            progress = replace(progress, upto=upto or run.now, after=page.after, is_done=not page.after)
            run.memory.stage(Changes(records=page.threads, discussions=progress))
            met |= {thread.id for thread in page.threads}
            pace.tell(len(met))
            if pace.saves(len(page.threads)):
                run.memory.commit(f"Checkpoint: {run.memory.state.manifest.threads} threads")
    except ForgeError as error:
        if progress.after and "cursor" in str(error):  # GitHub knows the place no more
            run.memory.stage(Changes(discussions=DiscussionProgress(run.now)))
        run.forge.apply_limit(error)
        if is_sure or isinstance(error, RateLimited):
            _tell(error, run)
    run.memory.commit(f"Remember {run.memory.state.manifest.threads} threads")
    if met:
        run.note(f"Discussions read: {len(met):,}{'' if progress.is_done else '; the next runs go on'}.")
    return frozenset(met)


def one_discussion(number: int, run: RunContext) -> Thread | None:
    """The discussion of this number, which is no issue; None where there are none, or it cannot be read."""
    if run.discussions is None or run.memory.state.manifest.discussions is None:
        return None
    try:
        return run.discussions.one(number)
    except ForgeError as error:
        run.forge.apply_limit(error)
        return None


def _tell(error: ForgeError, run: RunContext) -> None:
    if isinstance(error, RateLimited):
        run.report_fault(error)
    run.note(f"Not all discussions could be read: {error}")
