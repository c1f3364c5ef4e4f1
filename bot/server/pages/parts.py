"""What several pages share: their frame, addresses, and words for states, times and counts."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from urllib.parse import urlencode

from bot.comment.render import render_page
from bot.github.events import Event
from bot.server.model import DAY, HOUR, MINUTE, Delivery, Instant, State

PAGE_SIZE = 25
"""Deliveries per page."""

DEAD_PATH = "/dead"
"""The address of the page of dead deliveries."""

DIGESTS_PATH = "/digests"
"""The folder of the addresses of digests; each ends in the key of its repository."""

Values = dict[str, object]


@cache
def style() -> str:
    return render_page("pages.css", {})


@cache
def policy(*, has_forms: bool = False) -> str:
    """Return the content security policy: nothing may be loaded, except the style of the page.

    Forms may be sent only from a page that has some, and only to this server.
    """
    digest = b64encode(hashlib.sha256(style().encode()).digest()).decode()
    target = "'self'" if has_forms else "'none'"
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action {target}"


def frame(now: Instant, *, has_forms: bool = False) -> Values:
    return {"style": style(), "policy": policy(has_forms=has_forms), "now": moment(now)}


def dead_link(reason: str, before: int = 0) -> str:
    return f"{DEAD_PATH}?{urlencode({'reason': reason} | ({'before': before} if before else {}))}"


def repository_of(delivery: Delivery, name: str = "") -> str:
    """Return the name of the delivery's repository, else ``name``, else its numbers."""
    repository = delivery.repository
    return (
        delivery.name or name or (repository.text if repository.number else f"installation {repository.installation}")
    )


OUTCOME_BADGES = {
    "created": ("spoke", "Commented"),
    "updated": ("spoke", "Comment updated"),
    "unchanged": ("spoke", "Unchanged"),
    "replied": ("spoke", "Replied"),
    "withdrawn": ("spoke", "Comment withdrawn"),
    "would say": ("spoke", "Would comment"),
    "silent": ("silent", "Silent"),
    "failed": ("failed", "Failed"),
}
"""The outcome of a run → its style and name."""

STATE_BADGES: Mapping[State, tuple[str, str]] = {
    "waiting": ("waiting", "Waiting"),
    "working": ("waiting", "In progress"),
    "done": ("silent", "Done"),
    "dead": ("failed", "Put aside"),
    "dropped": ("silent", "Dropped"),
}

EVENT_NOUNS = {
    "issues": "issue",
    "issue_comment": "comment",
    "discussion": "discussion",
    "discussion_comment": "comment on a discussion",
    "push": "push to the default branch",
    "gollum": "wiki edited",
    "catch-up": "automatic check",
    "schedule": "daily check",
    "installation": "App",
    "installation_repositories": "repositories",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A word for the outcome of a delivery, and its kind: spoke, silent, waiting or failed."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A time for people and, as ``iso``, for machines. ``ago`` is relative to now."""

    iso: str
    text: str
    ago: str = ""


def badge(delivery: Delivery) -> Badge:
    if delivery.state == "done" and delivery.said in OUTCOME_BADGES:
        return Badge(*OUTCOME_BADGES[delivery.said])
    if delivery.state == "waiting" and delivery.attempts:
        return Badge("waiting", "Retrying")
    return Badge(*STATE_BADGES[delivery.state])


def describe_event(event: Event) -> str:
    """The event in a few words: "issue opened"."""
    name = EVENT_NOUNS.get(event.name, event.name.replace("_", " "))
    return f"{name} {event.action.replace('_', ' ')}".strip()


def moment(at: Instant, now: Instant | None = None) -> Moment:
    """A time in UTC; ``ago`` is empty without a ``now``."""
    when = datetime.fromtimestamp(at / 1000, UTC)
    return Moment(when.isoformat(timespec="milliseconds"), f"{when:%-d %B %Y, %H:%M:%S}", _ago(at, now) if now else "")


def format_duration(seconds: float) -> str:
    if seconds < 0.001:
        return "0 s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def count_of(number: int, one: str, many: str = "") -> str:
    """A number of things: "1 repository", "2 repositories"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def join_names(names: Sequence[str]) -> str:
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
