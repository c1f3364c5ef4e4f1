"""An index in the folders of a store: checks, opens and rebuilds it, and collects the files to write."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from bot.index import build_index, open_index
from bot.index.protocol import LAYOUT_VERSION, Index, IndexDocument
from bot.memory.store import Edits
from bot.memory.stored_state import StoredState
from bot.reading.analyzer import ANALYSER_VERSION


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_hashes(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the files in ``folder`` by name. A name stands for one content, so ``known`` files are not read."""
    names = sorted(path.name for path in folder.iterdir())
    return {name: known.get(name) or file_hash(folder / name) for name in names}


def damaged_files(hashes: Mapping[str, str], folder: Path) -> list[str]:
    """The files that are missing, unknown, or differ from these hashes."""
    present = {path.name for path in folder.iterdir()}
    unexpected = present.symmetric_difference(hashes)
    return sorted(unexpected | {name for name in present - unexpected if file_hash(folder / name) != hashes[name]})


def other_maker(layout: int, analyser: str) -> str:
    """The program that made an index of this layout with this analyser; empty if it was this version."""
    if layout != LAYOUT_VERSION:
        return "an older version" if layout < LAYOUT_VERSION else "a newer version"
    return "" if analyser == ANALYSER_VERSION else "another analyser"


class StoredIndex:
    """The index whose files are in ``folder``. ``has_changed``: its files differ from the stored ones."""

    def __init__(self, base: StoredState, folder: str) -> None:
        self._base, self._name = base, folder
        self._folder: Path | None = None
        self.index: Index | None = None
        self.has_changed = False

    def damage(self, hashes: Mapping[str, str]) -> str:
        """How the stored files differ from these hashes; empty if they match."""
        damaged = self._base.snapshot.foreign_files(self._name) or damaged_files(hashes, self._checkout())
        return f"damaged ({', '.join(f'{name!a:.80}' for name in damaged[:3])})" if damaged else ""

    def open(self) -> Index:
        """The stored index. Raises IndexCorrupt."""
        self.index = open_index(self._checkout())
        return self.index

    def close(self) -> None:
        """Release the files of the index. It can be opened again."""
        if self.index:
            self.index.close()
        self.index = None

    def build(self, documents: Iterable[IndexDocument]) -> Index:
        """Build a new index of these documents; the stored one is not read. Raises IndexCorrupt, OSError."""
        self.close()
        self._folder = self._base.snapshot.checkout(f"empty-{secrets.token_hex(8)}")
        build_index(self._folder, documents)
        self.has_changed = True
        return self.open()

    def edits(self, known: Mapping[str, str]) -> tuple[Edits, dict[str, str]]:
        """The edits to write, and the hashes of the index files. Files with the ``known`` hashes are stored already."""
        if not self.has_changed or self._folder is None:
            return {}, dict(known)
        hashes = file_hashes(self._folder, known)
        kept = {f"{self._name}/{name}" for name in hashes}
        file_edits: dict[str, Path | None] = {
            path: None for path in self._base.all_paths(self._name) if path not in kept
        }
        file_edits |= {f"{self._name}/{name}": self._folder / name for name in hashes.keys() - known.keys()}
        return file_edits, hashes

    def removal(self) -> Edits:
        """The edits that remove the whole index from the store."""
        return dict.fromkeys(self._base.all_paths(self._name))

    def _checkout(self) -> Path:
        if self._folder is None:
            self._folder = self._base.snapshot.checkout(self._name)
        return self._folder
