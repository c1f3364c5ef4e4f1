"""The closing of a thread that counts, and what the events around it say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.model import Kind, OutcomeKind, Thread, TimelineEvent
from bot.reading.phrases import MERGE_BOT
from bot.reading.verdict import Verdict

SLACK = timedelta(minutes=2)
"""So late may come what belongs to a closing: many close first and then say why."""

FLIP = timedelta(minutes=10)
"""Closed, reopened and closed again within this time is one closing by a slip of the hand."""

CLOSING_PULL = "closing pull request"
"""The evidence that GitHub itself names the pull request whose merge closed the thread."""

_COMMIT_BEFORE = timedelta(days=3)
_COMMIT_AFTER = timedelta(hours=1)
_PULL_BEFORE = timedelta(days=7)
_DUPLICATE_AROUND = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing that counts. What was said before ``since`` belongs to an earlier one that was taken back."""

    at: datetime
    by: str | None
    since: datetime | None
    event: TimelineEvent | None


def closing_of(thread: Thread) -> Closing | None:
    """The last closing of ``thread``, None while it is open."""
    if not thread.is_closed or thread.closed_at is None:
        return None
    at = thread.closed_at
    events = [event for event in thread.events if event.at <= at + SLACK]
    closed = next((event for event in reversed(events) if event.name == "closed"), None)
    reopened = [event.at for event in events if event.name == "reopened" and at - event.at > FLIP]
    by = thread.closed_by or (closed.actor if closed else None)
    return Closing(at, by, max(reopened, default=None), closed)


def recorded(thread: Thread, closing: Closing) -> Verdict | None:
    """What the events around the closing say."""
    until = closing.at + _DUPLICATE_AROUND
    marked = [event for event in thread.events if event.name.endswith("marked_as_duplicate") and event.at <= until]
    if marked and marked[-1].name == "marked_as_duplicate":
        return Verdict(OutcomeKind.DUPLICATE, ("marked as duplicate",), 0.95, duplicate_of=marked[-1].source)
    if thread.state_reason == "duplicate":
        return Verdict(OutcomeKind.DUPLICATE, ("closed as duplicate",), 0.95)
    fix = _fix(thread, closing)
    if thread.state_reason == "not_planned" and not (fix and fix.kind is OutcomeKind.FIXED):
        return Verdict(OutcomeKind.NOT_PLANNED, ("closed as not planned",), 0.6)
    return fix


def _fix(thread: Thread, closing: Closing) -> Verdict | None:
    event = closing.event
    if event and event.commit:
        return Verdict(OutcomeKind.FIXED, ("closing commit",), 0.95, fix=event.commit)
    if event and event.source is not None and event.source_kind is Kind.PULL:
        return Verdict(OutcomeKind.FIXED, (CLOSING_PULL,), 0.95, fix=f"#{event.source}")
    known = [event for event in thread.events if closing.since is None or event.at > closing.since]
    commits = [event.commit for event in known if event.name == "referenced" and _is_around(event, closing)]
    merged = bool(closing.by and MERGE_BOT.match(closing.by))
    if commits and commits[-1]:
        return Verdict(OutcomeKind.FIXED, ("commit shortly before closing",), 0.9 if merged else 0.75, fix=commits[-1])
    pulls = {event.source for event in known if event.source_kind is Kind.PULL and _is_before(event, closing)}
    if len(pulls) == 1:
        evidence, pull = ("pull request shortly before closing",), f"#{pulls.pop()}"
        if merged:
            return Verdict(OutcomeKind.FIXED, evidence, 0.9, fix=pull)
        return Verdict(OutcomeKind.UNKNOWN, evidence, 0.6, claimed=pull)
    return Verdict(OutcomeKind.FIXED, ("closed by a merge",), 0.85) if merged else None


def _is_around(event: TimelineEvent, closing: Closing) -> bool:
    return closing.at - _COMMIT_BEFORE <= event.at <= closing.at + _COMMIT_AFTER


def _is_before(event: TimelineEvent, closing: Closing) -> bool:
    return event.name == "cross-referenced" and closing.at - _PULL_BEFORE <= event.at <= closing.at
