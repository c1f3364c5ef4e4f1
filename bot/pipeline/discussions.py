"""Remembers discussions, which no list of issues shows: the event's own, recent changes, and their whole history.

A run asks GitHub for them only if an event or memory says that there are some, or if nobody waits for the run.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice

from bot.domain.changes import Changes, DiscussionProgress
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone
from bot.github.discussions import DiscussionReader, changed_since
from bot.github.errors import ForgeError, Gone, NoGraphQL, NotPermitted, RateLimited
from bot.github.events import BACKGROUND_EVENTS, Event
from bot.github.updates import OVERLAP, read_thread
from bot.pipeline.backfill import Deadline
from bot.pipeline.tools import Facts, Tools

MAX_PAGES = 10
"""Pages of the list, twenty discussions each, that a run checks for changes. If more changed, all are read again."""

MAX_LOOKUPS = 100
"""Missing discussions that a rebuild asks GitHub about."""

EVENT_SECONDS = 60.0
"""How long an event's run continues the first reading of discussions once it has answered."""


def look_at_discussions(facts: Facts, run: Tools) -> None:
    """Add the discussions that changed since the last run, if this event is about them or nobody waits."""
    event, progress = facts.event, run.memory.state.manifest.discussions
    is_due = event.is_of_discussion or (event.name in BACKGROUND_EVENTS and progress is not None and progress.is_done)
    if facts.limit or run.forge.troubles or event.forgets or not is_due:
        return
    fetched: dict[int, Record] = {}
    try:
        if progress and progress.is_done:
            changed, facts.discussions = _fetch_changed(run.discussions, progress, run)
            fetched |= {thread.id: thread for thread in changed if isinstance(thread.id, int)}
        if event.is_of_discussion and event.number and event.number not in fetched:
            fetched[event.number] = run.discussions.read_one(event.number)
    except Gone as error:
        run.note(f"Discussion {event.number} is not visible now, and was left unchanged: {error}")
    except ForgeError as error:
        _report(error, run)
    facts.updates = replace(facts.updates, records=(*facts.updates.records, *fetched.values()))
    facts.comments = {**run.memory.state.comments(fetched), **facts.comments}


def _fetch_changed(
    reader: DiscussionReader, progress: DiscussionProgress, run: Tools
) -> tuple[list[Thread], DiscussionProgress]:
    """The discussions changed since the last run, and the progress. If there are too many, all are read again."""
    since = (progress.upto or progress.began) - OVERLAP
    changed: list[Thread] = []
    for count, page in enumerate(reader.newest(since), 1):
        newer = changed_since(page, since)
        changed += newer
        if len(newer) < len(page.threads) or not page.after:
            return changed, replace(progress, upto=_latest_revision(changed, progress.upto))
        if count == MAX_PAGES:
            break
    run.note("Many discussions changed since the last run, so all of them are read again.")
    return changed, DiscussionProgress(run.now)


def _latest_revision(threads: list[Thread] | tuple[Thread, ...], earlier: datetime | None) -> datetime | None:
    return max([*(thread.revised_at for thread in threads), *([earlier] if earlier else [])], default=None)


def read_discussions(event: Event, run: Tools) -> None:
    """Start or continue reading all discussions for a while, unless there are none. Once they are read, asks nothing.

    A run for an issue never starts it: if the token may not read discussions, every such run would be refused.
    """
    progress = run.memory.state.manifest.discussions
    is_unattended = event.is_background
    if run.forge.troubles or (progress and progress.is_done) or event.has_discussions is False:
        return
    if progress or is_unattended or event.is_of_discussion:
        is_sure = bool(progress or event.is_of_discussion or event.has_discussions)
        _read_all(run, progress, run.reading_seconds if is_unattended else EVENT_SECONDS, is_sure=is_sure)


def reread_discussions(run: Tools, began: datetime, limit: float | None) -> None:
    """Read all discussions again, if there are any, as part of the reading of the whole history that ``began`` then."""
    stored = run.memory.state.manifest.discussions
    if stored is None or (stored.began >= began and stored.is_done):
        return
    progress = stored if stored.began >= began else DiscussionProgress(began)
    seen = _read_all(run, progress, limit, is_sure=True)
    read = run.memory.state.manifest.discussions
    if not progress.after and read and read.is_done and read.began == began:
        _hide_missing(seen, began, run)


def _hide_missing(seen: Collection[ThreadId], began: datetime, run: Tools) -> None:
    """Ask about discussions that our comments show and a complete reading did not find. GitHub never says that a
    discussion was deleted, so missing ones stay in memory, and no comment shows them."""
    missing = (
        entry.id
        for entry in run.memory.index.of_kind(Kind.DISCUSSION)
        if entry.updated_at < began and entry.id not in seen and run.memory.state.is_shown(entry.id)
    )
    hidden: list[Tombstone] = []
    for key in islice(missing, MAX_LOOKUPS):
        try:
            run.discussions.read_one(int(key))
        except Gone:
            hidden.append(Tombstone(key, run.now, "unseen"))
        except ForgeError:
            break
    run.memory.stage(Changes(hidden_by_github=tuple(hidden)))


def _read_all(
    run: Tools, stored: DiscussionProgress | None, limit: float | None, *, is_sure: bool
) -> frozenset[ThreadId]:
    """Read the list, oldest change first, with checkpoints; returns the ids read.

    ``is_sure``: it is known that there are discussions; otherwise a server or a token that shows none is no fault.
    """
    seen = set[ThreadId]()
    deadline, progress = Deadline(run.clock, run.now, limit), stored or DiscussionProgress(run.now)
    try:
        while not (progress.is_done or deadline.is_over):
            page = run.discussions.page(progress.after)
            if not page.are_on and not page.threads:
                return frozenset()
            upto = _latest_revision(page.threads, progress.upto)
            progress = replace(progress, upto=upto or run.now, after=page.after, is_done=not page.after)
            run.memory.stage(Changes(records=page.threads, discussions=progress))
            seen |= {thread.id for thread in page.threads}
            deadline.show_progress(len(seen))
            if deadline.is_checkpoint_due(len(page.threads)):
                run.memory.commit(f"Checkpoint: {run.memory.state.manifest.threads} threads")
    except ForgeError as error:
        if progress.after and "cursor" in str(error):  # GitHub no longer knows the cursor
            run.memory.stage(Changes(discussions=DiscussionProgress(run.now)))
        if is_sure or isinstance(error, RateLimited):
            _report(error, run)
    run.memory.commit(f"Remember {run.memory.state.manifest.threads} threads")
    if seen:
        run.note(f"Discussions read: {len(seen):,}{'' if progress.is_done else '; the next runs continue'}.")
    return frozenset(seen)


def read_current(number: int, run: Tools) -> Thread:
    """The issue, pull request or discussion with this number as GitHub has it. Raises ForgeError: Gone for none."""
    try:
        return read_thread(run.forge, run.own, number, None)[0]
    except Gone as error:
        if not error.certain:
            with suppress(Gone, NotPermitted, NoGraphQL):
                return run.discussions.read_one(number)
        raise


def _report(error: ForgeError, run: Tools) -> None:
    if isinstance(error, RateLimited):
        run.report_fault(error)
    run.note(f"Not all discussions could be read: {error}")
