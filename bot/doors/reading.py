"""One thread of a memory, or of the transcripts on this machine, as somebody names it."""

from __future__ import annotations

from bot.card import Card
from bot.doors.given import keys_of
from bot.doors.located import Place
from bot.doors.own_settings import settings_of
from bot.doors.place import whole
from bot.doors.transcripts import session_named
from bot.glance.cards import card_of
from bot.memory.families import DIGESTS
from bot.model import Thread
from bot.reading.digest import digest
from bot.recall.library import WithoutWords


def thread_named(place: Place, text: str) -> Thread | None:
    """The thread that is meant, without words of those who are not to be quoted; None where there is none.

    A session comes last.
    """
    keys = keys_of(text, place.repo)
    if not place.missing:
        with whole(place) as memory:
            found = WithoutWords(memory, settings_of(place).ignore.people).records(keys)
        for key in keys:
            if isinstance(one := found.get(key), Thread):
                return one
    return session_named(place, next(key for key in keys if isinstance(key, str)))


def card_named(place: Place, thread: Thread) -> Card:
    """The card of a thread, made of itself where the memory has none."""
    known = place.glance.cards([thread.id]).get(thread.id)
    known = known or card_of(DIGESTS.line(digest(thread, repo=place.repo or None)) or "")
    assert known is not None
    return known
