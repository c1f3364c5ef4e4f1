"""A store that is looked at and never written: for dry runs."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from pathlib import Path

from bot.memory.disk import on_disk
from bot.memory.paths import below, checked_folder
from bot.memory.store import Edits, Snapshot, Store


class Pretended:
    """A snapshot as it would be with these edits."""

    def __init__(self, base: Snapshot, edits: Edits) -> None:
        self.revision = base.revision
        self._base, self._edits = base, edits

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = list(paths)
        found = self._base.read(path for path in wanted if path not in self._edits)
        return found | {path: _content(new) for path in wanted if (new := self._edits.get(path)) is not None}

    def paths(self, prefix: str) -> list[str]:
        folder = checked_folder(prefix)
        kept = {path for path in self._base.paths(prefix) if path not in self._edits}
        return sorted(kept | {path for path, new in self._edits.items() if new is not None and below(path, folder)})

    def strangers(self, prefix: str) -> list[str]:
        return [path for path in self._base.strangers(prefix) if path not in self._edits]

    def checkout(self, prefix: str) -> Path:
        place = self._base.checkout(f"empty-{secrets.token_hex(8)}")
        with on_disk("write a working copy"):
            for path, content in self.read(self.paths(prefix)).items():
                (place / path.rpartition("/")[2]).write_bytes(content)
        return place


class ReadOnlyStore:
    """Reads from another store; what is written is seen by this store's own reader only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:  # noqa: ARG002 - nothing is written
        return Pretended(base, {path: new if new is None else _content(new) for path, new in edits.items()})

    def close(self) -> None:
        self._store.close()


def _content(new: bytes | Path) -> bytes:
    return new if isinstance(new, bytes) else new.read_bytes()
