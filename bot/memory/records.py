"""Records: one canonical JSON document for each thread, and where it lies in the store."""

from __future__ import annotations

import hashlib
import json
import re

from bot.archive import archive_fields, clean, parse_key, parse_time, stamp, thread_from_archive, without_defaults
from bot.model import Record, ThreadId, Tombstone

FOLDER_SIZE = 100
_PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\Z", re.ASCII)


class CorruptRecord(ValueError):
    """The bytes of a record are not what this program writes."""


def folder_of(key: ThreadId) -> str:
    """The name of the folder that a thread shares with its neighbours: number // 100, or a hash for other keys."""
    if isinstance(key, int):
        return f"{key // FOLDER_SIZE:04d}"
    return "x" + hashlib.sha256(key.encode()).hexdigest()[:2]


def record_path(key: ThreadId) -> str:
    """Where the record of a thread lies, for example ``records/0042/4242.json``."""
    if isinstance(key, str) and not _PLAIN_KEY.match(key):
        key = hashlib.sha256(key.encode()).hexdigest()
    return f"records/{folder_of(key)}/{key}.json"


def sort_key(key: ThreadId) -> tuple[int, int, str]:
    """Numbers in order, then names in order."""
    return (0, key, "") if isinstance(key, int) else (1, 0, key)


def encode(record: Record) -> bytes:
    """The canonical bytes of a record: sorted keys, one line a field, UTF-8. Equal records give equal bytes."""
    fields = _tombstone_fields(record) if isinstance(record, Tombstone) else archive_fields(record)
    return canonical(fields)


def canonical(value: object) -> bytes:
    """Readable JSON with one representation for a value."""
    return (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()


def decode(data: bytes) -> Record:
    """The record of these bytes; CorruptRecord when they are no record."""
    try:
        fields = json.loads(data)
        if not isinstance(fields, dict):
            raise CorruptRecord("a record is a JSON object")
        if "tombstone" in fields:
            gone = fields["tombstone"]
            moved = gone.get("moved_to")
            return Tombstone(parse_key(fields["id"]), parse_time(gone["at"]), clean(gone["reason"]), clean(moved) or None)
        return thread_from_archive(fields)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise CorruptRecord(f"not a record: {error}") from error


def _tombstone_fields(gone: Tombstone) -> dict[str, object]:
    what = without_defaults({"at": stamp(gone.at), "reason": gone.reason, "moved_to": gone.moved_to})
    return {"id": gone.id, "tombstone": what}
