"""Times, events and outcomes of the server in words for a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.github.events import Event
from bot.server.nouns import Delivery, Instant, State

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000

SAID = {
    "created": ("spoke", "Commented"),
    "updated": ("spoke", "Comment updated"),
    "unchanged": ("spoke", "Comment stands"),
    "replied": ("spoke", "Replied"),
    "withdrawn": ("spoke", "Comment withdrawn"),
    "would say": ("spoke", "Would comment"),
    "silent": ("silent", "Silent"),
    "failed": ("failed", "Failed"),
}
"""What a turn said → how that looks, and its name."""

STATES: Mapping[State, tuple[str, str]] = {
    "waiting": ("waiting", "Waiting"),
    "working": ("waiting", "At work"),
    "done": ("silent", "Done"),
    "dead": ("failed", "Put aside"),
    "dropped": ("silent", "Dropped"),
}

EVENTS = {
    "issues": "issue",
    "issue_comment": "comment",
    "push": "push to the default branch",
    "gollum": "wiki edited",
    "catch-up": "looked again by itself",
    "schedule": "daily look",
    "installation": "App",
    "installation_repositories": "repositories",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A word for what became of a delivery, and its kind: spoke, silent, waiting or failed."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time for people and, as ``iso``, for machines. ``ago`` is seen from a certain now."""

    iso: str
    text: str
    ago: str = ""


def badge(delivery: Delivery) -> Badge:
    """What became of it."""
    if delivery.state == "done" and delivery.said in SAID:
        return Badge(*SAID[delivery.said])
    if delivery.state == "waiting" and delivery.attempts:
        return Badge("waiting", "Tried again")
    return Badge(*STATES[delivery.state])


def happened(event: Event) -> str:
    """The event in a few words: "issue opened"."""
    name = EVENTS.get(event.name, event.name.replace("_", " "))
    return f"{name} {event.action.replace('_', ' ')}".strip()


def moment(at: Instant, now: Instant | None = None) -> Moment:
    """A time in UTC; ``ago`` is empty without a ``now``."""
    when = datetime.fromtimestamp(at / 1000, UTC)
    return Moment(when.isoformat(timespec="milliseconds"), f"{when:%-d %B %Y, %H:%M:%S}", _ago(at, now) if now else "")


def lasted(seconds: float) -> str:
    """A span of time, as short as it can be said."""
    if seconds < 0.001:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 repository", "2 repositories"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _ago(at: Instant, now: Instant) -> str:
    past = max(0, now - at)
    if past < 2_000:
        return "just now"
    if past < MINUTE:
        return f"{past // 1000}\u00a0s ago"
    if past < HOUR:
        return f"{past // MINUTE}\u00a0min ago"
    return f"{past // HOUR}\u00a0h ago" if past < 2 * DAY else f"{past // DAY}\u00a0days ago"
