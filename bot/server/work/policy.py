"""Which deliveries are handled together, and what an error means for each: done, tried again later, or put aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.errors import PrecedentError, UserError, WorldError
from bot.files import DiskFault
from bot.git.errors import Archived, AuthFailed, RemoteRefused
from bot.github.errors import (
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
from bot.server.log import Bug
from bot.server.model import HOUR, MINUTE, Delivery, Instant, Result, ServerStopping

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
    because other repositories changed are one event, at most `inbox.MAX_RUN_DELIVERIES` of them: memory is pushed
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


def limit_end(error: RateLimited, now: Instant) -> Instant:
    """Return the end of a limit: in a minute at the earliest."""
    return max(now + MINUTE, round(error.until.timestamp() * 1000) if error.until else 0)
