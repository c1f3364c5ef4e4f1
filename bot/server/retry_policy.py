"""What an error means for the delivery that met it: it is over, tried again at some time, or put aside."""

from __future__ import annotations

from bot.errors import PrecedentError, UserError, WorldError
from bot.git.errors import Archived, AuthFailed, RemoteRefused
from bot.github.errors import (
    CannotComment,
    Gone,
    Invalid,
    IssuesOff,
    NotInstalled,
    NotPermitted,
    RateLimited,
    Unauthorised,
)
from bot.memory.manifest import ForeignFormat
from bot.server.model import MINUTE, Delivery, Instant, Result, Stopping

FIRST = 15_000
"""Milliseconds before the second try; each further one comes after twice as long."""

BUG_TRIES = 3
SILENT = (Gone, Archived, CannotComment, Invalid, UserError)
"""Nobody can do anything about it here, so that silence is right. A `UserError` is one of the repository's settings."""

FOR_THE_OWNER = (NotPermitted, RemoteRefused, ForeignFormat)
"""No further try mends it, somebody does; then `precedent jobs retry` goes on."""


class Bug(PrecedentError):
    """An error that nobody expected; the message is its line for a report."""


class RepositoryMoved(WorldError):
    """The repository is not where the run looked for it."""


def judge(error: PrecedentError, delivery: Delivery, now: Instant, most: int, chance: float = 1.0) -> Result:
    """What becomes of the delivery; ``most`` is how many tries it has.

    ``chance``, a number about 1 that differs from one try to the next, keeps those apart that failed together.
    """
    seq, why = delivery.seq, str(error)
    if isinstance(error, NotInstalled):
        return Result(seq, "dropped", why)
    if isinstance(error, (Stopping, RepositoryMoved)):
        return Result(seq, "waiting", why, now, counts=False)
    if isinstance(error, RateLimited):
        return Result(seq, "waiting", why, limit_over(error, now), counts=False)
    if isinstance(error, SILENT) and not _can_pass(error):
        return Result(seq, "done", why, said="silent")
    tries = delivery.attempts + 1
    if isinstance(error, FOR_THE_OWNER) or tries >= (min(most, BUG_TRIES) if isinstance(error, Bug) else most):
        return Result(seq, "dead", why)
    is_first = tries == 1 and isinstance(error, (Unauthorised, AuthFailed))  # there is a new token to be tried at once
    pause = 0 if is_first else round(FIRST * 2 ** (tries - 1) * chance)
    return Result(seq, "waiting", why, now + pause)


def _can_pass(error: PrecedentError) -> bool:
    """A 404 is also what GitHub says for a moment where something is new or moves; without issues it is for good."""
    return isinstance(error, Gone) and not error.certain and not isinstance(error, IssuesOff)


def limit_over(error: RateLimited, now: Instant) -> Instant:
    """When GitHub may be asked again: in a minute at the earliest."""
    return max(now + MINUTE, round(error.until.timestamp() * 1000) if error.until else 0)
