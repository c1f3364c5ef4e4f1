"""Which deliveries are handled together, what becomes of each, and when the next run of a repository is due."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from bot.domain.post import COMMENT
from bot.domain.reason import Reason
from bot.domain.thread import Kind, ThreadId
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
    app_remedy,
)
from bot.github.events import CATCH_UP_EVENT, ORGANISATION_EVENT, Event
from bot.github.threads import OwnComment
from bot.memory.bounds import MemoryTooLarge
from bot.memory.manifest import ForeignFormat
from bot.memory.memory import Memory
from bot.pipeline.comments import OTHER_RUN_POSTING, RUN_LIMIT_REACHED
from bot.pipeline.draft import NOT_VISIBLE
from bot.pipeline.outlook import Outlook
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import INVALID_SETTINGS
from bot.pipeline.site import RepositorySite
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


EVENT_PROCESSED = "the event was processed"
HANDLED_TOGETHER = "it was handled together with a later delivery"


@dataclass(slots=True)
class Outcomes:
    """What became of the ``deliveries`` of a run so far, of which each has at most ``most`` tries.

    ``errors`` is what failed, by delivery; ``comments`` the result for each thread.
    """

    deliveries: Sequence[Delivery]
    now: Callable[[], Instant]
    most: int
    errors: dict[int, PrecedentError] = field(default_factory=dict)
    comments: dict[ThreadId, CommentResult] = field(default_factory=dict)
    _results: dict[int, Result] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        return list(self._results.values())

    @property
    def unfinished(self) -> list[Delivery]:
        """The deliveries that have no result yet."""
        return [each for each in self.deliveries if each.seq not in self._results]

    def store(self, results: Iterable[Result]) -> None:
        self._results |= {each.seq: replace(each, reason=app_remedy(each.reason)) for each in results}

    def fail(self, deliveries: Iterable[Delivery], error: PrecedentError) -> None:
        """Judge deliveries by the error that stopped them."""
        failed = list(deliveries)
        self.errors |= {each.seq: error for each in failed}
        self.store(judge_all(error, failed, self.now(), self.most))

    def add(self, results: Iterable[CommentResult], number: int) -> CommentResult | None:
        """Add what an event came to. Returns the result for its own issue: a comment or a reply rather than silence."""
        own = [result for result in results if not result.renews]
        for result in own:
            earlier = self.comments.get(result.id)
            if earlier is None or not earlier.spoke:
                self.comments[result.id] = result
        return min((each for each in own if each.id == number), key=lambda each: not each.spoke, default=None)

    def is_done(self, group: DeliveryGroup) -> bool:
        """Whether an earlier event of this run already did the work for this one; then it is recorded."""
        earlier = self.comments.get(group.number)
        if group.event.name == CATCH_UP_EVENT:
            is_done = any(each.state == "done" for each in self._results.values())
        else:
            asks_again = group.event.name in (COMMENT_EVENT, ORGANISATION_EVENT) or group.event.forgets
            is_done = bool(earlier and not earlier.error) and not asks_again
        if is_done:
            self.record(group, earlier, EVENT_PROCESSED)
        return is_done

    def record(self, group: DeliveryGroup, own: CommentResult | None, default: str) -> None:
        """Store the outcome under the last delivery that led to it. If another run is working on it, look again later,
        as that run may have been killed."""
        *others, last = group.deliveries
        self.store(Result(each.seq, "done", HANDLED_TOGETHER) for each in others)
        if own is None:
            result = Result(last.seq, "done", default, said="silent")
        elif own.is_owed and own.reason in (OTHER_RUN_POSTING, RUN_LIMIT_REACHED):
            later = self.now() + (PROMISE_DELAY if own.reason == OTHER_RUN_POSTING else 0)
            result = Result(last.seq, "waiting", own.reason, later, counts=False)
        else:
            url = own.comment.url if own.comment else ""
            reason = default if own.is_owed and own.reason == INVALID_SETTINGS else own.reason
            shown, near = matches(own), nearest(own)
            result = Result(last.seq, "done", reason, said=own.action, url=url, matches=shown, nearest=near)
            if own.is_owed and own.reason.startswith(NOT_VISIBLE):
                self.errors[last.seq] = Gone(own.reason, certain=False)
        self.store([result])


def undone_renewals(results: Iterable[CommentResult], group: DeliveryGroup) -> dict[int, PrecedentError]:
    """The issues of an event whose comments still show what must be withdrawn, with what stopped that."""
    undone = (each for each in results if each.renews and each.is_undone and each.slot == COMMENT)
    return {
        each.id: each.error or WorldError(each.reason)
        for each in undone
        if isinstance(each.id, int) and each.id in group.event.numbers
    }


def without(group: DeliveryGroup, numbers: Iterable[int]) -> DeliveryGroup:
    """The group without the deliveries of these issues."""
    left_out = frozenset(numbers)
    return replace(group, deliveries=tuple(each for each in group.deliveries if each.event.number not in left_out))


def fault_of(
    own: CommentResult | None, error: PrecedentError | None, met: Iterable[PrecedentError]
) -> PrecedentError | None:
    """What stopped an event: what stopped its own comment, else the ``error`` of a feature, else a fault that the run
    ``met`` meanwhile, if its issue has no result."""
    if own and own.error and not own.is_refused:
        return own.error
    if error or (own and not own.is_owed):
        return error
    return next((each for each in met if not is_history_limit(each)), None)


def earlier_result(memory: Memory, number: int, site: RepositorySite) -> CommentResult | None:
    """Return an earlier comment from memory, whose run may have died before it could report it."""
    post = memory.state.comments([number]).get(number)
    if post and post.state == "pending" and post.trying_since:
        return CommentResult(number, "", "silent", OTHER_RUN_POSTING, is_owed=True)
    if post is None or post.state not in ("said", "silent", "removed", "withdrawn"):
        return None
    if post.state != "said":
        return CommentResult(number, "", "silent", post.reason)
    entry = memory.entries([number]).get(number)
    traits = (entry.kind if entry else Kind.ISSUE).traits
    url = f"{site.server_url}/{site.repository}/{traits.path}/{number}{traits.comment_path}{post.comment_id}"
    comment = OwnComment(post.comment_id, "", url) if post.comment_id else None
    return CommentResult(number, "", "unchanged", "the comment was already posted", comment=comment)


def nearest(spoken: CommentResult) -> tuple[tuple[int, float, str], ...]:
    """Return the most similar issues, shown or not, with similarity in 0..1 and the kinds of reasons."""
    return tuple((m.id, m.similarity, _kinds(m.why)) for m in spoken.nearest if isinstance(m.id, int))


def _kinds(why: Iterable[str]) -> str:
    """The kinds of reasons: words of issues are not stored in the inbox."""
    return ", ".join(kind.rstrip(": ") for kind in Reason if any(reason.startswith(kind) for reason in why))


def matches(spoken: CommentResult) -> tuple[tuple[int, float], ...]:
    """Return the issues that were shown, with similarity in 0..1."""
    shown = (*spoken.context.seen_before, *spoken.context.open_now)
    return tuple((match.id, match.similarity) for match in shown if isinstance(match.id, int))
