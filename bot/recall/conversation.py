"""What was said lately in a scope: an issue with its sessions, a person, a folder of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from bot.model import Kind, Thread, ThreadId
from bot.reading.conversation import Conversation, conversations

DAYS, MAX_DAYS = 7, 30


@dataclass(frozen=True, slots=True)
class Past:
    """The conversations of a scope that ended in the last days before ``now``, newest first. ``now`` has a zone, whose
    calendar and clock count."""

    conversations: tuple[Conversation, ...]
    now: datetime

    @property
    def zone(self) -> tzinfo:
        zone = self.now.tzinfo
        if zone is None:
            raise ValueError("now has no time zone")
        return zone

    def since(self, moment: datetime) -> timedelta:
        """How long ago; both as instants, as clocks are set forward and back."""
        return self.now.astimezone(UTC) - moment.astimezone(UTC)

    def days_since(self, moment: datetime) -> int:
        """How many midnights ago."""
        return (self.now.date() - moment.astimezone(self.zone).date()).days


def past(threads: Iterable[Thread], me: Iterable[str], now: datetime, days: int = DAYS) -> Past:
    """The conversations of these threads in the last days. ``me``: the logins that are the agent's own."""
    own = frozenset(login.casefold() for login in me)
    instant = now.astimezone(UTC)
    since = instant - timedelta(days=min(MAX_DAYS, max(1, days)))
    found = [each for thread in threads for each in conversations(thread, own, since, instant)]
    found.sort(key=_place, reverse=True)
    return Past(tuple(found), now)


def _place(one: Conversation) -> tuple[datetime, datetime, bool, str]:
    """Its place in time; that of two at the same time differs by their threads."""
    return one.end, one.start, isinstance(one.thread, str), str(one.thread)


def of_issue(threads: Iterable[Thread], number: int) -> list[Thread]:
    """The thread of an issue or pull request, and the sessions that worked on it: those that it refers to."""
    return [thread for thread in threads if thread.id == number or _worked_on(thread) == number]


def _worked_on(thread: Thread) -> ThreadId | None:
    """The issue that a session worked on."""
    sources = (event.source for event in thread.events if event.name == "cross-referenced")
    return next(sources, None) if thread.kind is Kind.SESSION else None


def of_participant(threads: Iterable[Thread], login: str) -> list[Thread]:
    """The threads in which this account wrote something."""
    wanted = login.casefold()
    return [thread for thread in threads if any(name.casefold() == wanted for name in _writers(thread))]


def _writers(thread: Thread) -> Iterator[str]:
    yield thread.author
    yield from (message.author for message in thread.comments)
