"""Where agents ask: the memory, opened anew for each question, and what is to be known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from bot.comment.pack import DATA_NOTICE
from bot.doors.located import Place, Where
from bot.doors.place import opened

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool answers: data, and the same as short text. ``failed``: the text says in one line what went wrong."""

    data: dict[str, Any]
    text: str
    failed: bool = False


class Desk:
    """Where to look, and who asks: ``me`` holds the agent's own accounts. Many may ask at once."""

    def __init__(self, where: Where, me: tuple[str, ...] = ()) -> None:
        self.where, self.me = where, me
        self._opening = Lock()

    @property
    def folder(self) -> Path:
        return self.where.folder

    @contextmanager
    def opened(self) -> Iterator[Place]:
        """The memory as it is now. One at a time brings it up to date; they may read side by side."""
        with ExitStack() as stack:
            with self._opening:
                place = stack.enter_context(opened(self.where))
            yield place.demand()

    def notes(self, place: Place) -> list[str]:
        """What is to be known of this memory, in sentences."""
        notes = [line for line in place.note.split("\n") if line]
        if self.where.offline and place.store is None and place.cache:
            with suppress(ValueError):
                age = now() - datetime.fromisoformat(place.glance.fact("fetched"))
                notes.append(f"Offline: the memory is as of {ago(age.total_seconds())}.")
        return notes

    def answer(self, place: Place, fields: Mapping[str, Any], *, found: bool) -> dict[str, Any]:
        """What each answer from this memory has, and its own fields."""
        return data_of(fields, found=found, searched=place.glance.size, notes=self.notes(place))


def data_of(fields: Mapping[str, Any], *, found: bool, searched: int, notes: Sequence[str] = ()) -> dict[str, Any]:
    """What each answer has, before its own fields."""
    return {
        "nothing_relevant": not found,
        "searched": searched,
        "notes": list(notes),
        "notice": DATA_NOTICE,
        **fields,
    }


def now() -> datetime:
    return datetime.now(UTC)


def ago(seconds: float) -> str:
    """So long ago in the largest unit: ``3 hours ago``."""
    for size, name in _UNITS:
        count = int(seconds // size)
        if count >= 1:
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "less than a minute ago"
