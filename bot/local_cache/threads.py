"""Finds one thread of a memory, or of the transcripts on this machine, by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot.domain.card import Card, card_of
from bot.domain.thread import Thread
from bot.local_cache.local_memory import LocalMemory, settings_of
from bot.local_cache.sessions import session_named
from bot.memory.shards import DIGESTS
from bot.questions.requests import keys_of
from bot.reading.digest import digest
from bot.recall.library import WithoutWords

if TYPE_CHECKING:
    from bot.memory.memory import Memory


def thread_named(place: LocalMemory, text: str) -> Thread | None:
    """Return the thread of this name, without words of people in `ignore.people`; a session only if no thread fits."""
    keys = keys_of(text, place.repo)
    if not place.missing:
        with open_records(place) as memory:
            found = WithoutWords(memory, settings_of(place).ignore.people).records(keys)
        for key in keys:
            if isinstance(one := found.get(key), Thread):
                return one
    return session_named(place, next(key for key in keys if isinstance(key, str)))


def card_named(place: LocalMemory, thread: Thread) -> Card:
    """Return the card of a thread; made from the thread if the memory has none."""
    known = place.local_cache.cards([thread.id]).get(thread.id)
    known = known or card_of(DIGESTS.line(digest(thread, repo=place.repo or None)) or "")
    assert known is not None
    return known


@contextmanager
def open_records(place: LocalMemory) -> Iterator[Memory]:
    """Open the whole memory with its records, as it was when the cache was opened. Slow to load."""
    from bot.local_cache.sync import memory_of

    with memory_of(place) as memory:
        yield memory
