"""Threads and messages for tests of reading, short to write: a thread opened long ago, by octocat."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bot.domain.thread import Message, Thread

OPENED = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)


def message(text: str, author: str = "hubot", role: str = "NONE", hours: int = 1, number: int | None = None) -> Message:
    """A comment so many hours after `OPENED`."""
    return Message(author, role, OPENED + timedelta(hours=hours), text, id=number)


def closed(*comments: Message, **fields: object) -> Thread:
    """A thread that a maintainer closed after 90 days."""
    thread = Thread(
        id=42,
        title="Login loops",
        body="It loops.",
        author="octocat",
        created_at=CLOSED - timedelta(days=90),
        state="closed",
        closed_at=CLOSED,
        closed_by="monalisa",
        comments=comments,
    )
    return replace(thread, **fields)  # type: ignore[arg-type]
