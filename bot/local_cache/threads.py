"""Finds one thread of a memory, or of the transcripts on this machine, by its name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from bot.domain.card import Card, card_of
from bot.domain.thread import Thread
from bot.local_cache.local_memory import LocalMemory
from bot.local_cache.session_answers import session_named
from bot.questions.requests import keys_of

if TYPE_CHECKING:
    from bot.memory.memory import Memory


def record_named(memory: Memory, text: str, repo: str) -> Thread | None:
    """Return the thread with this name among the records of a memory, which is that of ``repo``."""
    keys = keys_of(text, repo)
    found = memory.records(keys)
    return next((thread for key in keys if isinstance(thread := found.get(key), Thread)), None)


def thread_named(local_memory: LocalMemory, text: str) -> Thread | None:
    """Return the thread with this name, else the session with this name. Warns if sessions cannot be read."""
    if not local_memory.missing:
        from bot.local_cache.sync import memory_of  # slow to load

        with memory_of(local_memory) as memory:
            if thread := record_named(memory, text, local_memory.repo):
                return thread
    name = next(key for key in keys_of(text, local_memory.repo) if isinstance(key, str))
    session = session_named(local_memory, name)
    for note in session.notes:
        local_memory.warn(note)
    return next(iter(session.found), None)


def card_named(local_memory: LocalMemory, thread: Thread) -> Card:
    """Return the card of a thread; made from the thread if the memory has none."""
    return local_memory.local_cache.cards([thread.id]).get(thread.id) or _make_card(local_memory, thread)


def card_at(local_memory: LocalMemory, thread: Thread, now: datetime) -> Card | None:
    """Return the card of a thread as it stood ``now``, which may be in the past; None before it was opened."""
    if thread.created_at > now:
        return None
    return card_named(local_memory, thread) if thread.revised_at <= now else _make_card(local_memory, thread.as_of(now))


def _make_card(local_memory: LocalMemory, thread: Thread) -> Card:
    from bot.memory.shards import DIGESTS
    from bot.reading.digest import digest  # slow to load, and few threads have no card

    card = card_of(DIGESTS.line(digest(thread, repo=local_memory.repo or None)) or "")
    assert card is not None
    return card
