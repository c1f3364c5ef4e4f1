"""Which threads a push to a memory branch changed, as far as other repositories may be shown them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bot.errors import StoreError
from bot.memory.manifest import MANIFEST_PATH, decode_manifest
from bot.memory.places import RECORD_FOLDER
from bot.memory.shards import FIXES, read_texts
from bot.memory.store import Edits, Snapshot

_RECORD = re.compile(rf"{RECORD_FOLDER}/[0-9]+/(0|[1-9][0-9]{{0,17}})\.json")


def numbered(paths: Iterable[str]) -> Iterator[int]:
    """The issues, pull requests and discussions whose records are at these paths."""
    return (int(found[1]) for path in paths if (found := _RECORD.fullmatch(path)))


def changed_threads(base: Snapshot, edits: Edits) -> set[int]:
    """The numbers of the threads whose record, fix or visibility differs after ``edits``."""
    changed = set(numbered(edits))
    others = {path: _content(edits, path) for path in (*FIXES.among(edits), *({MANIFEST_PATH} & edits.keys()))}
    try:
        before = base.read(others)
    except StoreError:  # something odd lay there; the push went well
        before = {}
    for path, now in others.items():
        read = _unseen if path == MANIFEST_PATH else _fixes
        changed |= {key for key, _ in read(before.get(path, b"")) ^ read(now) if isinstance(key, int)}
    return changed


def _content(edits: Edits, path: str) -> bytes:
    content = edits[path]
    return content if isinstance(content, bytes) else b""


def _fixes(shard: bytes) -> set[tuple[int | str, str]]:
    return set(read_texts(shard))


def _unseen(manifest: bytes) -> set[tuple[int | str, str]]:
    try:
        return {(key, "") for key in decode_manifest(manifest).unseen}
    except ValueError:  # there was none, or it was damaged
        return set()
