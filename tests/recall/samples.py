"""Sample threads, short to write where only a few fields matter."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.domain.answer import Match
from bot.domain.thread import Message, Thread, ThreadId
from bot.recall.library import Library
from bot.recall.similar import Limits, find_similar

START = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)


def at(days: float) -> datetime:
    """A moment, in days after the start of the samples' history."""
    return START + timedelta(days=days)


def message(text: str, days: float = 1, author: str = "octocat", role: str = "NONE", **rest: Any) -> Message:
    return Message(author=author, role=role, created_at=at(days), text=text, **rest)


def thread(
    key: ThreadId, title: str = "Something is odd", body: str = "", days: float | None = None, **rest: Any
) -> Thread:
    """An open issue; by default each number is opened a day after the one before."""
    number = key if isinstance(key, int) else 0
    values: dict[str, Any] = {"author": "monalisa", "created_at": at(number if days is None else days), **rest}
    return Thread(id=key, title=title, body=body, **values)


def closed(key: ThreadId, title: str = "Something is odd", body: str = "", after: float = 0.5, **rest: Any) -> Thread:
    """An issue that a maintainer closed after ``after`` days."""
    issue = thread(key, title, body, **rest)
    closing = {"state": "closed", "closed_at": issue.created_at + timedelta(days=after), "closed_by": "hubot"}
    return thread(key, title, body, **(closing | rest))


def duplicate(key: int, of: int, title: str = "Something is odd", body: str = "", **rest: Any) -> Thread:
    """An issue that a maintainer closed as a duplicate."""
    comment = message(f"Duplicate of #{of}.", key + 0.5, "hubot", "MEMBER")
    return closed(key, title, body, comments=(comment,), **rest)


def similar(
    question: Thread, library: Library, before: datetime | None, skip: Iterable[ThreadId], limits: Limits
) -> tuple[tuple[Match, ...], tuple[Match, ...]]:
    """The similar threads that would be shown for a question: the closed ones and the open ones."""
    result = find_similar(question, library, before, skip, limits)
    return result.seen, result.still_open
