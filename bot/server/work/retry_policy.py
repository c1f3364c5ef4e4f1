"""Decides what an error means for a delivery: done, tried again later, or put aside."""

from __future__ import annotations

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
from bot.github.events import ORGANISATION_EVENT
from bot.memory.bounds import MemoryTooLarge
from bot.memory.manifest import ForeignFormat
from bot.server.log import Bug
from bot.server.model import HOUR, MINUTE, Delivery, Instant, Result, ServerStopping

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
