"""Reads the messages of a few threads from the records of a memory on this machine, without the network.

For searches from a shell: it reads the records as plain JSON, because the code that makes threads of them is slow to
load.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.domain.card import CardId, ThreadMessage
from bot.domain.hidden_people import GHOST
from bot.domain.roles import known_role
from bot.errors import StoreError
from bot.local_cache.local_memory import LocalMemory
from bot.memory.paths import CLONE_FOLDER, record_path

_MAX_TEXT = 65_536
_RECORD_ERRORS = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


class LocalMessages:
    """The messages of threads, by id, the opening text first. Threads whose record is damaged or missing are left out.

    Messages of hidden people have no text.
    """

    def __init__(self, memory: LocalMemory) -> None:
        self._memory = memory

    def __call__(self, keys: Iterable[CardId]) -> dict[CardId, Sequence[ThreadMessage]]:
        people = self._memory.local_cache.hidden
        found: dict[CardId, Sequence[ThreadMessage]] = {}
        for content in self._contents([record_path(key) for key in dict.fromkeys(keys)]):
            with suppress(*_RECORD_ERRORS):
                key, messages = _parse_record(json.loads(content))
                found[key] = [
                    message._replace(author=GHOST, text="") if message.author in people else message
                    for message in messages
                ]
        return found

    def _contents(self, paths: Sequence[str]) -> Iterator[bytes]:
        memory = self._memory
        if memory.store:
            yield from _read_folder(memory.store, paths)
        elif memory.cache and (revision := memory.local_cache.fact("stamp")):
            from bot.git.blobs import read_blobs

            yield from read_blobs(memory.cache / CLONE_FOLDER, [f"{revision}:{path}" for path in paths])


def _read_folder(store: Path, paths: Iterable[str]) -> Iterator[bytes]:
    from bot.files import read_regular, refuse_symlinks

    for path in paths:
        with suppress(StoreError, OSError):
            refuse_symlinks(store, path)
            if content := read_regular(store / path):
                yield content


def _parse_record(fields: Mapping[str, Any]) -> tuple[CardId, list[ThreadMessage]]:
    """The id and the messages of a record. Raises one of _RECORD_ERRORS for a damaged record and for a tombstone."""
    opening = _parse_message(fields, "author_association")._replace(comment_id=None)
    return fields["id"], [opening, *(_parse_message(each, "association") for each in fields.get("comments", ()))]


def _parse_message(fields: Mapping[str, Any], role: str) -> ThreadMessage:
    at = datetime.fromisoformat(fields["created_at"])
    number = fields.get("id")
    return ThreadMessage(
        _to_text(fields.get("author")) or GHOST,
        known_role(fields.get(role)),
        at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC),
        _to_text(fields.get("body"))[:_MAX_TEXT],
        number if isinstance(number, int) else None,
    )


def _to_text(value: object) -> str:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
