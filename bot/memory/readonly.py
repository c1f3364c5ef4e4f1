"""A store that is looked at and never written: for dry runs."""

from __future__ import annotations

from collections.abc import Iterable

from bot.memory.store import Edits, Snapshot, Store


class ReadOnlyStore:
    """Reads from another store; a write is taken for done and forgotten."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str) -> Snapshot:  # noqa: ARG002 - nothing is written
        return base

    def close(self) -> None:
        self._store.close()
