"""Records: one canonical JSON document for each thread, and its place in the store."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from bot.domain.thread import Record, Thread, Tombstone, is_forgotten
from bot.domain.thread_json import (
    MAX_MESSAGES,
    archive_fields,
    parse_key,
    parse_time,
    stamp,
    storable,
    thread_from_archive,
    without_defaults,
)
from bot.memory.bounds import load_json
from bot.memory.paths import RECORD_FOLDER, record_path

_PATH = re.compile(rf"{RECORD_FOLDER}/(\d{{4,}}|x[0-9a-f]{{2}})/([A-Za-z0-9][A-Za-z0-9._-]{{0,63}})\.json", re.ASCII)


class CorruptRecord(ValueError):
    """This program never wrote such a record."""


def sorted_record_paths(paths: Iterable[str]) -> list[str]:
    """The paths that may hold a record: numbers in order, then names in order, then hashed names."""
    matches = ((match, path) for path in paths if (match := _PATH.fullmatch(path)))
    return [path for _, path in sorted((_order(match[1], match[2]), path) for match, path in matches)]


def _order(folder: str, name: str) -> tuple[bool, bool, int, str]:
    is_name = folder.startswith("x")
    return is_name, is_name and len(name) == hashlib.sha256().digest_size * 2, 0 if is_name else len(name), name


def wins(new: Record, old: Record | None, read_since: datetime | None = None) -> bool:
    """Whether ``new`` replaces ``old``: a later revision does; a tombstone stays; equal content changes nothing.

    A forgotten thread stays forgotten whatever comes later, as another run may still have a copy of its text. Callers
    leave out what was remembered again. ``read_since``: the forge was asked for ``new`` after this moment, so it
    replaces whatever claims to be of then or earlier; its time may be forged.
    """
    if old is None:
        return True
    if is_forgotten(new) or is_forgotten(old):
        return not is_forgotten(old)
    if read_since and old.revised_at <= read_since:
        return not same_content(new, old) or new.revised_at < old.revised_at
    if new.revised_at != old.revised_at:
        return new.revised_at > old.revised_at and not same_content(new, old)
    if isinstance(old, Tombstone):
        return False
    return isinstance(new, Tombstone) or not same_content(new, old)


def same_content(new: Record, old: Record) -> bool:
    """Equal apart from the time of a thread's last update, which our own comment also changes, or of its deletion."""
    if isinstance(new, Thread) and isinstance(old, Thread):
        return replace(new, updated_at=None) == replace(old, updated_at=None)
    return isinstance(new, Tombstone) and isinstance(old, Tombstone) and replace(new, at=old.at) == old


def encode_record(record: Record) -> bytes:
    """The canonical bytes of a record: sorted keys, one line per field, UTF-8. Equal records give equal bytes."""
    fields = _tombstone_fields(record) if isinstance(record, Tombstone) else archive_fields(record)
    return canonical(fields)


def canonical(value: object) -> bytes:
    """Readable JSON with one representation for each value."""
    return (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()


def decode_record(data: bytes, path: str = "") -> Record:
    """The record in these bytes. Raises CorruptRecord if they are none, or not that of the file at ``path``."""
    try:
        fields = load_json(data)
        if not isinstance(fields, dict):
            raise CorruptRecord("a record is a JSON object")
        if path and record_path(parse_key(fields["id"])) != path:  # first, as everything else takes longer
            raise CorruptRecord(f"it claims to be {fields['id']!a:.40}")
        if any(isinstance(value, list | dict) and len(value) > MAX_MESSAGES for value in fields.values()):
            raise CorruptRecord(f"it has more than {MAX_MESSAGES:,} comments or events")
        if "tombstone" in fields:
            tombstone = fields["tombstone"]
            moved = storable(tombstone.get("moved_to")) or None
            return Tombstone(parse_key(fields["id"]), parse_time(tombstone["at"]), storable(tombstone["reason"]), moved)
        return thread_from_archive(fields)
    except CorruptRecord:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptRecord(f"{type(error).__name__}: {error}"[:120]) from error


def _tombstone_fields(gone: Tombstone) -> dict[str, object]:
    what = {"at": stamp(gone.at), "reason": gone.reason, **without_defaults({"moved_to": gone.moved_to})}
    return {"id": gone.id, "tombstone": what}
