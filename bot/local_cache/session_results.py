"""What a search of sessions returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from bot.domain.card import SessionOutline
    from bot.domain.thread import Thread

Found = TypeVar("Found")


class SessionAnswer(NamedTuple, Generic[Found]):
    """What was found in sessions, and sentences for the user: ``notes`` on what was left out, and ``searched``, the
    usual folders of agents that were searched, and the files in them that cannot be read."""

    found: tuple[Found, ...] = ()
    notes: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()


class SessionRecord(NamedTuple):
    """A session, and its messages as a thread."""

    outline: SessionOutline
    thread: Thread
