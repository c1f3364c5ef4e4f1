"""Whether a change of a thread can be seen where a comment shows the thread."""

from __future__ import annotations

from bot.model import Record, Thread
from bot.reading.digest import digest


def is_visible(old: Record | None, new: Record, repo: str | None) -> bool:
    """Whether a comment that shows ``old`` (None: nothing is known of it) may say something else of ``new``, or quotes
    what does not stand there any more. That people go on talking is no such change until it decides something."""
    if not isinstance(old, Thread) or not isinstance(new, Thread):
        return True
    return not _texts(old) <= _texts(new) or _facts(old, repo) != _facts(new, repo)


def _texts(thread: Thread) -> set[str]:
    return {thread.title, thread.body, *(comment.text for comment in thread.comments)}


def _facts(thread: Thread, repo: str | None) -> tuple[object, ...]:
    state = (thread.kind, thread.state, thread.state_reason, thread.closed_by, thread.draft, thread.merged_at)
    told = digest(thread, repo=repo)
    return *state, thread.flips, told.outcome, told.decisions, told.summary, told.files, told.duplicate_of
