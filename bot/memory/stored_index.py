"""An index in the folders of a store: checked, opened, built again, and the files that have to be written for it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from bot.errors import StoreError, UnreadableFile
from bot.index import build_index, open_index
from bot.index.protocol import LAYOUT, PARTS_FOLDER, Index, IndexCorrupt, IndexDocument, Sizes
from bot.memory.base_state import BaseState
from bot.memory.store import Edits
from bot.reading.analyzer import ANALYSER_VERSION


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_hashes(folder: Path, known: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the files in ``folder`` by name; a name stands for one content, so ``known`` ones are not read."""
    names = sorted(path.name for path in folder.iterdir() if not path.is_dir())
    return {name: known.get(name) or file_hash(folder / name) for name in names}


def damaged_files(hashes: Mapping[str, str], folder: Path) -> list[str]:
    """The files that are missing, unknown, or differ from these hashes."""
    present = {path.name for path in folder.iterdir()}
    wrong = present.symmetric_difference(hashes)
    return sorted(wrong | {name for name in present - wrong if file_hash(folder / name) != hashes[name]})


def other_maker(layout: int, analyser: str) -> str:
    """The program that made an index of this layout with this analyser; empty if it was this version."""
    if layout != LAYOUT:
        return "an older version" if layout < LAYOUT else "a newer version"
    return "" if analyser == ANALYSER_VERSION else "another analyser"


def part_path(parts: str, name: str) -> str:
    """Where a store has this part of the index whose parts are in the folder ``parts``."""
    return f"{parts}/{name[0]}/{name}"


class StoredIndex:
    """The index whose files are in ``folder`` and whose parts are in ``parts``.

    ``sizes`` tell which parts of it are files of their own. ``has_changed``: its files are not those that are stored.
    """

    def __init__(self, base: BaseState, folder: str, parts: str, sizes: Sizes) -> None:
        self._base, self._name, self._parts, self._sizes = base, folder, parts, sizes
        self._folder: Path | None = None
        self.index: Index | None = None
        self.has_changed = False

    def damage(self, hashes: Mapping[str, str]) -> str:
        """Why the stored files are not those with these hashes; empty if they are."""
        wrong = self._base.snapshot.foreign_files(self._name) or damaged_files(hashes, self._checkout())
        return f"damaged ({', '.join(f'{name!a:.80}' for name in wrong[:3])})" if wrong else ""

    def open(self) -> Index:
        """The stored index. Raises IndexCorrupt."""
        self.index = open_index(self._checkout(), self._fetch, self._sizes)
        return self.index

    def build(self, documents: Iterable[IndexDocument]) -> Index:
        """A new index of these documents; the stored one is not read. Raises IndexCorrupt, OSError."""
        if self.index:
            self.index.close()
        self.index = None
        self._folder = self._base.snapshot.checkout(f"empty-{secrets.token_hex(8)}")
        build_index(self._folder, documents, self._sizes)
        self.has_changed = True
        return self.open()

    def edits(self, known: Mapping[str, str]) -> tuple[Edits, dict[str, str]]:
        """What has to be written, and the hashes of its files, where those with the ``known`` hashes are stored."""
        if not self.has_changed or self._folder is None:
            return {}, dict(known)
        hashes = file_hashes(self._folder, known)
        kept = {f"{self._name}/{name}" for name in hashes}
        found: dict[str, Path | None] = {path: None for path in self._base.every_path(self._name) if path not in kept}
        found |= {f"{self._name}/{name}": self._folder / name for name in hashes.keys() - known.keys()}
        return found | self._part_edits(self._folder / PARTS_FOLDER), hashes

    def removal(self) -> Edits:
        """What has to be written for the store to hold nothing of the index."""
        return dict.fromkeys((*self._base.every_path(self._name), *self._base.every_path(self._parts)))

    def _part_edits(self, folder: Path) -> dict[str, Path | None]:
        """The parts that were written; whatever else lies in their place is deleted."""
        names = self.index.parts() if self.index else ()
        kept = {part_path(self._parts, name): folder / name for name in names}
        gone: dict[str, Path | None] = {path: None for path in self._base.every_path(self._parts) if path not in kept}
        return gone | {path: file for path, file in kept.items() if file.is_file()}

    def _checkout(self) -> Path:
        if self._folder is None:
            self._folder = self._base.snapshot.checkout(self._name)
        return self._folder

    def _fetch(self, names: Iterable[str]) -> dict[str, bytes]:
        """The parts of these names that the store has, in one exchange."""
        snapshot = self._base.snapshot
        stored = set(snapshot.paths(self._parts))
        wanted = {path: name for name in names if (path := part_path(self._parts, name)) in stored}
        try:
            return {wanted[path]: data for path, data in snapshot.read(wanted).items()}
        except StoreError as error:
            if type(error) in (StoreError, UnreadableFile):  # a foreign file, not trouble with the network or the disk
                raise IndexCorrupt(str(error)) from error
            raise
