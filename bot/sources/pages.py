"""Reads pages (docs, wiki, releases) again when their source has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from bot.domain.changes import Changes
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.errors import WorldError
from bot.reading.pages import source_of

EVENTS = frozenset({"gollum", "push", "release", "schedule", "workflow_dispatch"})
"""Events after which pages may have changed; after others, pages are read only if they never were."""

OFF = "off"
"""The state of a source that is switched off in the settings."""

_STEP = timedelta(seconds=1)


class PageStore(Protocol):
    """The stored pages."""

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

    def page_ids(self) -> Iterable[ThreadId]:
        """Return the ids of the stored pages, in any order."""


@dataclass(frozen=True, slots=True)
class PageReading:
    """The content of a source. ``state`` identifies it; ``present`` has the ids of all its pages, and ``pages`` those
    that may have changed, with the time of the version read."""

    state: str
    present: frozenset[ThreadId]
    pages: tuple[Thread, ...] = ()


class PageSource(Protocol):
    """A source of pages; ``name`` is the first part of their ids."""

    @property
    def name(self) -> str: ...

    def read(self, known: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the source; None if it still is in the state ``known``. Raises WorldError."""


@dataclass(frozen=True, slots=True)
class DisabledPages:
    """A source that is switched off: its stored pages are removed."""

    name: str

    def read(self, known: str, _: PageStore, __: Callable[[str], None]) -> PageReading | None:
        return None if known in ("", OFF) else PageReading(OFF, frozenset())


def fresh_pages(
    sources: Iterable[PageSource],
    store: PageStore,
    known: Mapping[str, str],
    now: datetime,
    note: Callable[[str], None],
) -> Changes:
    """Return the changes that bring the stored pages up to date; empty if no source has changed.

    ``known`` is the stored state of each source, empty to read all again. A source that cannot be read only causes a
    note, and its stored pages stay.
    """
    records: list[Record] = []
    states: list[tuple[str, str]] = []
    for source in sources:
        try:
            reading = source.read(known.get(source.name, ""), store, note)
        except WorldError as error:
            note(f"The pages of {source.name} could not be read, and stay as they are remembered: {error}")
            continue
        if reading is not None:
            records += _changed(reading, store, now)
            records += _gone(source.name, reading, store, now)
            states.append((source.name, reading.state))
    return Changes(records=tuple(records), pages=tuple(states))


def _changed(reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    held = store.records(page.id for page in reading.pages)
    return [_revised(page, held.get(page.id), now) for page in reading.pages if not _is_same(page, held.get(page.id))]


def _is_same(page: Thread, held: Record | None) -> bool:
    told = (page.title, page.body, page.author)
    return isinstance(held, Thread) and (held.title, held.body, held.author) == told


def _revised(page: Thread, held: Record | None, now: datetime) -> Thread:
    """The page as the newest revision: commits may have any time, and a branch may go back to an older one."""
    at = min(page.revised_at, now)
    if held is not None:
        at = max(at, held.revised_at + _STEP)
    return replace(page, created_at=min(page.created_at, at), updated_at=at)


def _gone(name: str, reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    missing = sorted(str(key) for key in store.page_ids() if source_of(key) == name and key not in reading.present)
    held = store.records(missing)
    return [Tombstone(key, max(now, record.revised_at)) for key, record in held.items() if isinstance(record, Thread)]
