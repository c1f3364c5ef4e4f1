"""Reads the messages of a few threads from the records of a memory on this machine, without the network.

A search from a shell does this: the records are read as plain JSON, which is much quicker to load than what makes
threads of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.domain.card import CardId, SaidMessage
from bot.errors import StoreError
from bot.local_cache.local_memory import LocalMemory, early_settings_of
from bot.memory.places import CLONE, record_path

GHOST = "ghost"
"""As `bot.domain.thread.GHOST`, which is slow to load."""

_MAX_TEXT = 65_536
_REFUSED = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


class LocalMessages:
    """The messages of threads, by id, the opening text first. Left out: threads whose record is
    damaged or not here.

    Messages of people in ``ignore.people`` have no text.
    """

    def __init__(self, place: LocalMemory) -> None:
        self._place = place

    def __call__(self, keys: Iterable[CardId]) -> dict[CardId, Sequence[SaidMessage]]:
        quiet = frozenset(login.casefold() for login in early_settings_of(self._place).people)
        found: dict[CardId, Sequence[SaidMessage]] = {}
        for content in self._contents([record_path(key) for key in dict.fromkeys(keys)]):
            with suppress(*_REFUSED):
                key, said = _record(json.loads(content))
                found[key] = [one._replace(text="") if one.author.casefold() in quiet else one for one in said]
        return found

    def _contents(self, paths: Sequence[str]) -> Iterator[bytes]:
        place = self._place
        if place.store:
            yield from _in_folder(place.store, paths)
        elif place.cache and (revision := place.local_cache.fact("stamp")):
            from bot.git.blobs import read_blobs

            yield from read_blobs(place.cache / CLONE, [f"{revision}:{path}" for path in paths])


def _in_folder(store: Path, paths: Iterable[str]) -> Iterator[bytes]:
    from bot.files import refuse_detour, regular_bytes

    for path in paths:
        with suppress(StoreError, OSError):
            refuse_detour(store, path)
            if content := regular_bytes(store / path):
                yield content


def _record(fields: Mapping[str, Any]) -> tuple[CardId, list[SaidMessage]]:
    """The id and the messages of a record; raises one of _REFUSED for a damaged one, and for a tombstone."""
    opening = _message(fields, "author_association")._replace(comment_id=None)
    return fields["id"], [opening, *(_message(each, "association") for each in fields.get("comments", ()))]


def _message(fields: Mapping[str, Any], role: str) -> SaidMessage:
    at = datetime.fromisoformat(fields["created_at"])
    number = fields.get("id")
    return SaidMessage(
        _text(fields.get("author")) or GHOST,
        _text(fields.get(role)),
        at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC),
        _text(fields.get("body"))[:_MAX_TEXT],
        number if isinstance(number, int) else None,
    )


def _text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
