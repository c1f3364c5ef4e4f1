"""Which deliveries are handled together, what an error means for each, and when the next run of a repository is due."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from bot.errors import PrecedentError, UserError, WorldError
from bot.files import DiskFault
from bot.git.errors import Archived, AuthFailed, RemoteRefused
from bot.github.errors import (
    HISTORY_LIMITS,
    CannotComment,
    Gone,
    Invalid,
    IssuesOff,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Suspended,
    Unauthorised,
)
from bot.github.events import CATCH_UP_EVENT, ORGANISATION_EVENT, Event
from bot.memory.bounds import MemoryTooLarge
from bot.memory.manifest import ForeignFormat
from bot.pipeline.outlook import Outlook
from bot.server.log import Bug
from bot.server.model import (
    HOUR,
    MINUTE,
    Delivery,
    HistoryPart,
    Instant,
    Priority,
    RepositoryRow,
    Result,
    RunReport,
    ServerStopping,
)
from bot.server.storage.github_access import limit_end

COMMENT_EVENT = "issue_comment"


@dataclass(frozen=True, slots=True)
class DeliveryGroup:
    """Deliveries that one event stands for, oldest first."""

    event: Event
    deliveries: tuple[Delivery, ...]

    @property
    def number(self) -> int:
        """The issue; 0 if the event is about none."""
        return self.event.number or 0


def coalesce(deliveries: Sequence[Delivery]) -> list[DeliveryGroup]:
    """Group deliveries that one event stands for, in the order of their first one. Follow-ups come last, since all
    others fetch changes too.

    New comments on an issue are one event, everything else that happened to it is another: an opened issue is answered
    at any age, a comment only for what it points at. If the issue is gone, that is the only event. Comments to check
    because other repositories changed are one event, at most `deliveries.MAX_RUN_DELIVERIES` of them: memory is pushed
    once for all.
    """
    groups: dict[tuple[int, str], list[Delivery]] = {}
    gone = {each.event.number for each in deliveries if each.event.forgets}
    for each in deliveries:
        groups.setdefault(_key(each.event, is_gone=each.event.number in gone), []).append(each)
    merged = [DeliveryGroup(_merge([each.event for each in group]), tuple(group)) for group in groups.values()]
    return sorted(merged, key=lambda group: group.event.name == CATCH_UP_EVENT)


def _key(event: Event, *, is_gone: bool) -> tuple[int, str]:
    if not event.number or event.name == ORGANISATION_EVENT:
        return 0, event.name
    is_comment = event.name == COMMENT_EVENT and event.may_be_answered and not is_gone
    return event.number, COMMENT_EVENT if is_comment else "issues"


def _merge(events: Sequence[Event]) -> Event:
    if events[0].name == ORGANISATION_EVENT:
        return Event(ORGANISATION_EVENT, numbers=tuple(dict.fromkeys(each.number for each in events if each.number)))
    event = next((each for each in events if each.forgets), None)
    event = event or next((each for each in reversed(events) if each.may_be_answered), events[-1])
    if event.name != COMMENT_EVENT:
        return event
    comments = dict.fromkeys(each.comment_id for each in events if each.comment_id and each.may_be_answered)
    return replace(event, earlier=tuple(key for key in comments if key != event.comment_id))


FIRST_PAUSE = 15_000
"""Milliseconds before the second try; the pause doubles each time."""

MAX_BUG_TRIES = 3
SILENT_ERRORS = (Gone, Archived, CannotComment, Invalid, UserError)
"""Errors without a remedy here, so silence is right. A `UserError` is about the repository's settings."""

OWNER_ERRORS = (NotPermitted, RemoteRefused, ForeignFormat, MemoryTooLarge)
"""Errors that a person has to fix; then `precedent deliveries replay` continues."""


class RepositoryMoved(WorldError):
    """The repository is not where the run looked for it."""


def judge_all(error: PrecedentError, deliveries: Iterable[Delivery], now: Instant, most: int) -> list[Result]:
    """Judge deliveries that failed together."""
    return [judge(error, each, now, most, random.uniform(0.5, 1.5)) for each in deliveries]


def judge(error: PrecedentError, delivery: Delivery, now: Instant, most: int, chance: float = 1.0) -> Result:
    """Return what becomes of the delivery, which has at most ``most`` tries.

    ``chance`` is a random factor near 1, so that deliveries that failed together are not retried together.
    """
    seq, why = delivery.seq, str(error)
    # Until it succeeds, a comment shows what must be withdrawn, so it is not given up.
    later = Result(seq, "waiting", why, now + HOUR, counts=False)
    is_urgent = delivery.event.name == ORGANISATION_EVENT and not isinstance(error, Bug)
    if isinstance(error, NotInstalled):
        return later if is_urgent and isinstance(error, Suspended) else Result(seq, "dropped", why)
    if isinstance(error, (ServerStopping, RepositoryMoved)):
        return Result(seq, "waiting", why, now, counts=False)
    if isinstance(error, DiskFault):  # the fault of this machine
        return Result(seq, "waiting", why, now + MINUTE, counts=False)
    if isinstance(error, RateLimited):
        return Result(seq, "waiting", why, limit_end(error, now), counts=False)
    if isinstance(error, SILENT_ERRORS) and not _may_be_temporary(error):
        return Result(seq, "done", why, said="silent")
    tries = delivery.attempts + 1
    if isinstance(error, OWNER_ERRORS) or tries >= (min(most, MAX_BUG_TRIES) if isinstance(error, Bug) else most):
        return later if is_urgent else Result(seq, "dead", why)
    is_first = tries == 1 and isinstance(error, (Unauthorised, AuthFailed))  # retry at once with a new token
    pause = 0 if is_first else round(FIRST_PAUSE * 2 ** (tries - 1) * chance)
    return Result(seq, "waiting", why, now + pause)


def _may_be_temporary(error: PrecedentError) -> bool:
    """A 404 may be temporary while something is created or moved, but not if issues are disabled."""
    return isinstance(error, Gone) and not error.certain and not isinstance(error, IssuesOff)


PROMISE_DELAY = 125_000
"""Milliseconds until an unconfirmed promise may be checked: a little over `bot.pipeline.tools.POSTING_WINDOW`."""

MAX_BACKOFF = HOUR
"""Milliseconds until a repository with unfinished work is due again."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended. ``row`` is its repository before it, ``met`` are faults after which it continued.

    ``is_idle``: it only looked for what was left, and wrote nothing. ``has_read_on``: it has read on in an unfinished
    rebuild, so the next run follows at once.
    """

    outlook: Outlook
    row: RepositoryRow
    results: Sequence[Result]
    met: Sequence[PrecedentError]
    is_idle: bool
    has_read_on: bool


def plan_next(end: RunEnd, now: Instant) -> RunReport:
    """How far memory has read, and when to look again even if nothing happens."""
    report, outlook = _report_progress(end), end.outlook
    if any(each.state == "waiting" for each in end.results):
        return report
    limits = [each for each in end.met if is_history_limit(each)]
    limit_ends = max((limit_end(each, now) for each in limits), default=0)
    owed = [round(1000 * since.timestamp()) + PROMISE_DELAY if since else 0 for since in outlook.owed]
    if limit_ends and not owed:
        return replace(report, requeue_after=limit_ends, urgency=Priority.HISTORY)
    is_unfinished = outlook.reading is not None and not limits and not outlook.is_cut_off
    has_advanced = not limits and report.is_unread and report.cursor > end.row.cursor
    if (is_unfinished and end.has_read_on) or has_advanced:
        return replace(report, requeue_after=now)
    if not (is_unfinished or owed):
        return report
    backoff = min(MAX_BACKOFF, 2 * end.row.backoff) if end.is_idle and end.row.backoff else PROMISE_DELAY
    soonest = min((moment for moment in (*owed, limit_ends) if moment > now), default=now + backoff)
    return replace(report, requeue_after=min(soonest, now + backoff), backoff=backoff)


def _report_progress(end: RunEnd) -> RunReport:
    """How far memory has read; of a history that is not read completely, how much is left."""
    outlook, read = end.outlook, end.outlook.read
    cursor = round(outlook.cursor.timestamp() * 1000) if outlook.cursor else 0
    report = RunReport(cursor=cursor, threads=outlook.threads, is_unread=None)
    if read and (outlook.reading or not read.complete):
        total = -1 if read.total is None else read.total
        known = len(outlook.reading.seen) if outlook.reading else outlook.threads
        part = HistoryPart(known, total, max(0, total - len(read.seen)) if total >= 0 else -1)
        return replace(report, history=part, is_unread=None if outlook.reading else True)
    if outlook.reading or not any(each.state == "done" for each in end.results):
        return report
    return replace(report, is_unread=False)


def is_history_limit(error: PrecedentError) -> TypeGuard[RateLimited]:
    """Whether it is a limit that stops only the reading of history, which no delivery waits for."""
    return isinstance(error, RateLimited) and error.resource in HISTORY_LIMITS
