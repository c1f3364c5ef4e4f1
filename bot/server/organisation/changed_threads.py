"""Finds the threads that a push to a memory branch changed, among those that other repositories may see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from bot.errors import StoreError
from bot.memory.manifest import MANIFEST_PATH, decode_manifest
from bot.memory.paths import RECORD_FOLDER
from bot.memory.shards import FIXES, read_texts
from bot.memory.store import Edits, Snapshot

_RECORD_PATH = re.compile(rf"{RECORD_FOLDER}/[0-9]+/(0|[1-9][0-9]{{0,17}})\.json")


def thread_numbers(paths: Iterable[str]) -> Iterator[int]:
    """The issues, pull requests and discussions whose records are at these paths."""
    return (int(match[1]) for path in paths if (match := _RECORD_PATH.fullmatch(path)))


def changed_threads(base: Snapshot, edits: Edits) -> set[int]:
    """The numbers of the threads whose record, fix or visibility differs after ``edits``."""
    changed = set(thread_numbers(edits))
    after = {path: _content(edits, path) for path in (*FIXES.select_paths(edits), *({MANIFEST_PATH} & edits.keys()))}
    try:
        before = base.read(after)
    except StoreError:  # the old files are unreadable, but the push succeeded
        before = {}
    for path, content in after.items():
        parse = _hidden if path == MANIFEST_PATH else _fixes
        changed |= {key for key, _ in parse(before.get(path, b"")) ^ parse(content) if isinstance(key, int)}
    return changed


def _content(edits: Edits, path: str) -> bytes:
    content = edits[path]
    return content if isinstance(content, bytes) else b""


def _fixes(shard: bytes) -> set[tuple[int | str, str]]:
    return set(read_texts(shard))


def _hidden(manifest: bytes) -> set[tuple[int | str, str]]:
    try:
        return {(key, "") for key in decode_manifest(manifest).hidden_by_github}
    except ValueError:  # it is missing or damaged
        return set()
