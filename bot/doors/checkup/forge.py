"""What is judged of the forge: the token, the repository and the limits of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.doors.checkup.finding import Finding, age, moment
from bot.doors.checkup.memory import token_remedy
from bot.doors.checkup.place import Place
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, Unauthorised

LOW = 100
"""Requests left for an hour that may not be enough for a run that catches up; of small allowances a tenth."""


@dataclass(frozen=True, slots=True)
class Forge:
    """What the API told. ``has_token``: one was given; ``fault`` is why the repository could not be read.

    ``limits`` are None where nobody could tell.
    """

    has_token: bool = False
    repository: Mapping[str, Any] | None = None
    fault: ForgeError | None = None
    limits: Mapping[str, Any] | None = None


def repository(seen: Forge, place: Place, *, git_reads: bool = False) -> Finding:
    """Whether the API answers, takes the token and shows the repository.

    ``git_reads``: git could read it, so that a private one is no wrong name.
    """
    if git_reads and not seen.has_token and isinstance(seen.fault, Gone | NotPermitted | Unauthorised):
        says = f"the API shows nothing of {place.repository} without a token: its part was left out"
        return Finding("repository", "note", says, token_remedy(place))
    if seen.fault:
        return _fault(seen, seen.fault, place)
    return Finding(
        "repository", "ok", f"{(seen.repository or {}).get('full_name') or place.repository} on {place.server}"
    )


def _fault(seen: Forge, fault: ForgeError, place: Place) -> Finding:
    if isinstance(fault, Unauthorised) and seen.has_token:
        remedy = f"make a new token at {place.server}/settings/tokens and put it in PRECEDENT_TOKEN"
        return Finding("token", "error", fault.cause, remedy)
    if isinstance(fault, Gone | NotPermitted | Unauthorised):
        why = fault.cause if seen.has_token else "it is private, or does not exist"
        says = f"{place.repository} cannot be seen {'with this' if seen.has_token else 'without a'} token: {why}"
        return Finding("repository", "error", says, f"check the name; {token_remedy(place)}")
    if isinstance(fault, RateLimited):
        return Finding("rate limit", "warning", fault.cause, _later(fault.until), outside=True)
    says = f"the API at {place.api} does not answer: {fault.cause}"
    return Finding(
        "repository", "error", says, "run it again later, or with `precedent doctor --offline`", outside=True
    )


def _later(until: datetime | None) -> str:
    return f"run it again after {moment(until)}" if until else "run it again in a few minutes"


def limits(seen: Forge, now: datetime) -> Iterator[Finding]:
    """What is left of the hour's requests of this token, for both APIs, and when the hour begins anew."""
    if seen.limits is None:
        yield Finding("rate limit", "ok", "the server tells of none")
        return
    resources = seen.limits.get("resources")
    for name in ("core", "graphql"):
        told = resources.get(name) if isinstance(resources, Mapping) else None
        if isinstance(told, Mapping) and all(_is_count(told.get(key)) for key in ("remaining", "limit", "reset")):
            yield _limit(name, told, now)


def _limit(name: str, told: Mapping[str, Any], now: datetime) -> Finding:
    left, most, until = told["remaining"], told["limit"], datetime.fromtimestamp(told["reset"], UTC)
    says = f"{name}: {left:,} of {most:,} requests left, anew at {moment(until)} (in {age(until - now)})"
    if most and left < min(LOW, most // 10):
        return Finding("rate limit", "warning", says, _later(until), outside=True)
    return Finding("rate limit", "ok", says)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**11
