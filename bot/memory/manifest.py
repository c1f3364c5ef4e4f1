"""The manifest: what a branch holds, in which format, up to which moment, and the SHA-256 of every index file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from bot.archive import parse_key, stamp
from bot.memory.records import canonical
from bot.model import ThreadId

FORMAT = 1
PATH = "manifest.json"
MAX_PENDING = 200


@dataclass(frozen=True, slots=True)
class Manifest:
    """``cursor``: everything that changed before it is remembered. ``pending``: threads whose comment was promised."""

    format: int = FORMAT
    analyser: str = ""
    cursor: datetime | None = None
    threads: int = 0
    tombstones: int = 0
    pending: tuple[ThreadId, ...] = ()
    index: dict[str, str] = field(default_factory=dict)

    def with_index(self, folder: Path, analyser: str) -> Manifest:
        """The manifest with the hashes of the index files in ``folder``; known files are not read again."""
        names = sorted(path.name for path in folder.iterdir())
        hashes = {name: self.index.get(name) or file_hash(folder / name) for name in names}
        return replace(self, index=hashes, analyser=analyser)


def encode(manifest: Manifest) -> bytes:
    """The canonical bytes of the manifest."""
    return canonical(
        {
            "format": manifest.format,
            "analyser": manifest.analyser,
            "cursor": stamp(manifest.cursor),
            "threads": manifest.threads,
            "tombstones": manifest.tombstones,
            "pending": list(manifest.pending),
            "index": manifest.index,
        }
    )


def decode(data: bytes) -> Manifest:
    """The manifest of these bytes; ValueError when they are damaged."""
    try:
        fields = json.loads(data)
        cursor = fields.get("cursor")
        return Manifest(
            format=int(fields["format"]),
            analyser=str(fields.get("analyser", "")),
            cursor=datetime.fromisoformat(cursor) if cursor else None,
            threads=int(fields.get("threads", 0)),
            tombstones=int(fields.get("tombstones", 0)),
            pending=tuple(parse_key(key) for key in fields.get("pending", ()))[:MAX_PENDING],
            index={str(name): str(digest) for name, digest in fields.get("index", {}).items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"the manifest is damaged: {error}") from error


def file_hash(path: Path) -> str:
    """SHA-256 of a file, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged_files(manifest: Manifest, folder: Path) -> list[str]:
    """The index files that are missing, unknown, or not as the manifest says."""
    present = {path.name for path in folder.iterdir()}
    wrong = present.symmetric_difference(manifest.index)
    return sorted(wrong | {name for name in present - wrong if file_hash(folder / name) != manifest.index[name]})


def next_pending(before: Iterable[ThreadId], promised: Iterable[ThreadId], settled: Iterable[ThreadId]) -> tuple[ThreadId, ...]:
    """The promised comments that nobody has seen yet, oldest promise first, at most MAX_PENDING."""
    done = set(settled)
    kept = [key for key in before if key not in done]
    return tuple([*kept, *(key for key in promised if key not in kept)][-MAX_PENDING:])
