"""The index of a state: opened when first asked, kept up to date with changes, rebuilt where it is damaged."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from bot.domain.digest import Digest
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.errors import StoreError, UnreadableFile
from bot.index import build_index, open_index
from bot.index.document import document_of
from bot.index.protocol import LAYOUT, PARTS_FOLDER, USUAL, Index, IndexCorrupt, IndexDocument, IndexSegment, Sizes
from bot.memory.manifest import INDEX, PARTS, Manifest, damaged_files
from bot.memory.model_store import Embedder, Encoder
from bot.memory.state import MemoryState, Progress
from bot.memory.store import Edits
from bot.reading.analyzer import ANALYSER_VERSION

Answer = TypeVar("Answer")


def other_maker(manifest: Manifest) -> str:
    """The program that made the index of this manifest; empty if it was this version."""
    if manifest.layout != LAYOUT:
        return "an older version" if manifest.layout < LAYOUT else "a newer version"
    return "" if manifest.analyser == ANALYSER_VERSION else "another analyser"


def part_path(name: str) -> str:
    """Where a store has this part of the index."""
    return f"{PARTS}/{name[0]}/{name}"


class IndexSlot:
    """Holds the index of ``state``, whose records it can always be rebuilt from.

    ``embedder`` is a downloaded model, used where the index has its vectors. ``sizes`` tell which parts of the index
    are files of their own.
    """

    def __init__(self, state: MemoryState, embedder: Embedder | None = None, sizes: Sizes = USUAL) -> None:
        self.state, self._embedder, self._sizes = state, embedder, sizes
        self._encoder: Encoder | None = None
        self._folder: Path | None = None
        self._index: Index | None = None
        self._has_changed = False
        self._behind: dict[ThreadId, Record] = {}

    @property
    def encoder(self) -> Encoder:
        """Makes the vectors of threads, as the index has them."""
        if self._encoder is None:
            embedder = self._embedder
            if embedder and self.lacks_vectors:
                lack = "The index has no vectors of the model that the settings name: they are made by a rebuild."
                self.state.notes.fault("", lack, "")
                embedder = None
            self._encoder = Encoder(replace(self.state.learned(), embedder=embedder), self.state.notes.add)
        return self._encoder

    def drop_encoder(self) -> None:
        """Read the learned models again when they are next needed."""
        self._encoder = None

    @property
    def lacks_vectors(self) -> bool:
        """Whether the index was made without the text model that is at hand."""
        return self._embedder is not None and self._embedder.fingerprint != self.state.manifest.embedder

    def ask(self, question: Callable[[Index], Answer], nothing: Answer) -> Answer:
        """Ask the index. A damaged one is rebuilt once; if that fails, the run goes on with ``nothing``, and a note."""
        try:
            try:
                return question(self._ready())
            except IndexCorrupt as error:
                return question(self._repaired(f"damaged ({error!s:.120})"))
        except (IndexCorrupt, OSError) as error:
            self.state.manifest = replace(self.state.manifest, index={})
            self.state.notes.add(f"The index could not be used ({error!s:.120}): similar threads were not looked for.")
            return nothing

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name, see `Index.segments`."""
        return self.ask(lambda index: index.segments(), {})

    def update(self, records: Iterable[Record]) -> None:
        """Have the index take in these records when it is next asked."""
        self._behind |= {record.id: record for record in records}

    def rebuild(self, tick: Progress = lambda _: None, *, embeds: bool = False) -> Index:
        """Make the index again from the records; the stored one is not read. Raises IndexCorrupt, OSError.

        With ``embeds`` it has the slow vectors of the downloaded model too. Digests that this version makes differently
        are renewed.
        """
        if self._index:
            self._index.close()
        self._index, self._behind = None, {}
        fingerprint = self._embedder.fingerprint if self._embedder and embeds else ""
        self.state.manifest = replace(self.state.manifest, index={}, embedder=fingerprint)
        self.drop_encoder()
        self._folder = self.state.base.snapshot.checkout(f"empty-{secrets.token_hex(8)}")
        threads = self.state.living(tick)
        build_index(
            self._folder, (self._document(each, self.state.fresh_digest(each)) for each in threads), self._sizes
        )
        self._index, self._has_changed = open_index(self._folder, self._fetch, self._sizes), True
        return self._index

    def edits(self) -> tuple[Edits, Manifest]:
        """The files of the index that have to be written, and the manifest of the state with them."""
        if self._behind:
            self.ask(lambda _: None, None)
        known = self.state.manifest
        if not self._has_changed or self._folder is None:
            return {}, known
        manifest = known.with_index(self._folder, ANALYSER_VERSION, LAYOUT)
        kept = {f"{INDEX}/{name}" for name in manifest.index}
        found: dict[str, Path | None] = {path: None for path in self.state.base.every_path(INDEX) if path not in kept}
        found |= {f"{INDEX}/{name}": self._folder / name for name in manifest.index.keys() - known.index.keys()}
        return found | self._part_edits(self._folder / PARTS_FOLDER), manifest

    def _part_edits(self, folder: Path) -> dict[str, Path | None]:
        """The parts that were written; whatever else lies in their place is deleted."""
        kept = {part_path(name): folder / name for name in (self._index.parts() if self._index else ())}
        gone: dict[str, Path | None] = {path: None for path in self.state.base.every_path(PARTS) if path not in kept}
        return gone | {path: file for path, file in kept.items() if file.is_file()}

    def _document(self, thread: Thread, digest: Digest) -> IndexDocument:
        return document_of(thread, digest, self.encoder.vectors(thread))

    def _ready(self) -> Index:
        if self._index is None:
            if fault := self._fault():
                return self._repaired(fault)
            self._index = open_index(self._stored_folder(), self._fetch, self._sizes)
        if self._behind:
            threads = [record for record in self._behind.values() if isinstance(record, Thread)]
            gone = [record.id for record in self._behind.values() if isinstance(record, Tombstone)]
            self._index.update((self._document(each, self.state.digest(each)) for each in threads), gone)
            self._behind, self._has_changed = {}, True
        return self._index

    def _fault(self) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        manifest = self.state.manifest
        if not manifest.index:
            return "missing"
        if maker := other_maker(manifest):
            return f"made by {maker}"
        wrong = self.state.base.snapshot.foreign_files(INDEX) or damaged_files(manifest, self._stored_folder())
        return f"damaged ({', '.join(f'{name!a:.80}' for name in wrong[:3])})" if wrong else ""

    def _repaired(self, fault: str) -> Index:
        index = self.rebuild()
        if self.state.base.manifest.threads:
            count = self.state.manifest.threads
            self.state.notes.add(f"The index was {fault}: it was rebuilt from {count} records.")
        return index

    def _stored_folder(self) -> Path:
        if self._folder is None:
            self._folder = self.state.base.snapshot.checkout(INDEX)
        return self._folder

    def _fetch(self, names: Iterable[str]) -> dict[str, bytes]:
        """The parts of these names that the store has, in one exchange."""
        snapshot = self.state.base.snapshot
        stored = set(snapshot.paths(PARTS))
        wanted = {path: name for name in names if (path := part_path(name)) in stored}
        try:
            return {wanted[path]: data for path, data in snapshot.read(wanted).items()}
        except StoreError as error:
            if type(error) in (StoreError, UnreadableFile):  # a foreign file, not trouble with the network or the disk
                raise IndexCorrupt(str(error)) from error
            raise
