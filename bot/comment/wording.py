"""Every word of ours that a reader sees, in one place; nothing here comes from a stranger."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.model import GHOST, MAINTAINER_ROLES, Kind, ThreadId

MENTIONED = "Mentioned here"
SEEN_BEFORE = "Seen before"
OPEN_NOW = "Open now"
PAGES = "From the docs"
ALSO_MENTIONED = "Also mentioned"
HOW_IT_WENT = "How it went"
WHY = "Why"
DECIDED = "Decided"
NO_RECORD = "no record of this issue"
WITHDRAWN = "There was a note here about earlier issues. It no longer applies, so it was taken back."
NOTHING_FOUND = "Nothing in this repository's memory answers this."

HEADINGS = {
    "mentioned": MENTIONED,
    "seen_before": SEEN_BEFORE,
    "open_now": OPEN_NOW,
    "pages": PAGES,
    "also_mentioned": ALSO_MENTIONED,
    "how_it_went": HOW_IT_WENT,
    "why": WHY,
    "decided": DECIDED,
    "nothing_found": NOTHING_FOUND,
}
"""What templates find under ``words``."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_CLOSED_AS = {
    "completed": "closed as completed",
    "not_planned": "closed as not planned",
    "duplicate": "closed as a duplicate",
}
_ROLES = {"CONTRIBUTOR": "contributor"}
_AGES = ((365, "year"), (30, "month"), (7, "week"), (1, "day"))


def day(moment: datetime) -> str:
    """The calendar day in UTC, as ``12 March 2025``; no locale takes part. A naive moment is taken as UTC."""
    utc = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"{utc.day} {_MONTHS[utc.month - 1]} {utc.year}"


def count(number: int, noun: str) -> str:
    """``1 comment``, ``1,204 comments``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def age(since: datetime, now: datetime) -> str:
    """How old something is, in the largest unit that fits twice (days: once): ``4 days old``, ``opened today``."""
    days = (_utc(now) - _utc(since)).days
    for length, unit in _AGES:
        if days >= length * (1 if unit == "day" else 2):
            return f"{count(days // length, unit)} old"
    return "opened today"


def closed(state_reason: str | None) -> str:
    """How GitHub says that a thread was closed; a reason that is not known adds nothing."""
    return _CLOSED_AS.get((state_reason or "").lower(), "closed")


def numbered(thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
    """A thread by its id, never as ``#12``, which GitHub would turn into a link on the other issue."""
    if isinstance(thread, str):
        return thread
    return f"pull request {thread}" if kind is Kind.PULL else f"issue {thread}"


def speaker(author: str | None, role: str | None) -> str:
    """Who speaks, by role where it carries weight, otherwise by login (raw: defang it)."""
    if role in MAINTAINER_ROLES:
        return "maintainer"
    if role in _ROLES:
        return _ROLES[role]
    return author if author and author != GHOST else "a participant"


def provenance(searched: int) -> str:
    """The first sentence of the footer: that a bot wrote this, and from how much."""
    if searched < 1:
        return "Precedent, a bot, wrote this from the memory of this repository."
    return f"Precedent, a bot, looked through {count(searched, 'thread')} of this repository."


def controls(commands: bool) -> str:
    """The second sentence of the footer: how to correct or silence the bot."""
    if not commands:
        return "Not helpful? 👎"
    return "Not helpful? 👎, or comment `/precedent wrong #N` · `/precedent off`"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
