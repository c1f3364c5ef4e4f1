"""The threads of one batch of history, each read by itself: one that cannot be had costs no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bot.github.catch_up import STEP, News, tombstone
from bot.github.errors import Gone, IssuesOff
from bot.model import Record

Json = dict[str, Any]


class Listed(NamedTuple):
    """An issue as a list shows it: it is there, whatever becomes of reading the rest of it."""

    number: int
    created_at: datetime
    updated_at: datetime


def read_each(listed: Mapping[Listed, Json], read: Callable[[Json], Record]) -> News:
    """The news of these issues, as far as each can be read; the cursor is behind all of them.

    What GitHub calls gone is a tombstone. What only cannot be seen is listed, and left as it is. Raises ForgeError for
    all that is no matter of one issue.
    """
    records: list[Record] = []
    unread: dict[int, datetime] = {}
    for place, shown in listed.items():
        try:
            records.append(read(shown))
        except IssuesOff:
            raise
        except Gone as error:
            if error.certain:  # since it was listed
                records.append(tombstone(place.number, error, place.updated_at + STEP))
            else:
                unread[place.number] = place.created_at
    cursor = max((place.updated_at for place in listed), default=None)
    return News(tuple(records), cursor=cursor, listed=frozenset(place.number for place in listed), unread=unread)
