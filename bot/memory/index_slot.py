"""The index of a state: opened when first asked, kept up to date with changes, rebuilt where it is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from bot.domain.digest import Digest
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.index.document import document_of
from bot.index.protocol import LAYOUT, USUAL, Index, IndexCorrupt, IndexDocument, IndexSegment, Sizes
from bot.memory.manifest import INDEX, PARTS, Manifest
from bot.memory.model_store import Embedder, Encoder
from bot.memory.state import MemoryState, Progress
from bot.memory.store import Edits
from bot.memory.stored_index import StoredIndex, other_maker
from bot.reading.analyzer import ANALYSER_VERSION

Answer = TypeVar("Answer")


class IndexSlot:
    """Holds the index of ``state``, whose records it can always be rebuilt from.

    ``embedder`` is a downloaded model, used where the index has its vectors. ``sizes`` tell which parts of the index
    are files of their own.
    """

    def __init__(self, state: MemoryState, embedder: Embedder | None = None, sizes: Sizes = USUAL) -> None:
        self.state, self._embedder = state, embedder
        self._encoder: Encoder | None = None
        self._stored = StoredIndex(state.base, INDEX, PARTS, sizes)
        self._behind: dict[ThreadId, Record] = {}
        self.was_rebuilt = False
        """Whether this run made the index from the records."""

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
        self._behind, self.was_rebuilt = {}, True
        fingerprint = self._embedder.fingerprint if self._embedder and embeds else ""
        self.state.manifest = replace(self.state.manifest, index={}, embedder=fingerprint)
        self.drop_encoder()
        threads = self.state.living(tick)
        return self._stored.build(self._document(each, self.state.fresh_digest(each)) for each in threads)

    def edits(self) -> tuple[Edits, Manifest]:
        """The files of the index that have to be written, and the manifest of the state with them."""
        if self._behind:
            self.ask(lambda _: None, None)
        known = self.state.manifest
        if not self._stored.has_changed:
            return {}, known
        found, hashes = self._stored.edits(known.index)
        return found, replace(known, index=hashes, analyser=ANALYSER_VERSION, layout=LAYOUT)

    def _document(self, thread: Thread, digest: Digest) -> IndexDocument:
        return document_of(thread, digest, self.encoder.vectors(thread))

    def _ready(self) -> Index:
        index = self._stored.index
        if index is None:
            if fault := self._fault():
                return self._repaired(fault)
            index = self._stored.open()
        if self._behind:
            threads = [record for record in self._behind.values() if isinstance(record, Thread)]
            gone = [record.id for record in self._behind.values() if isinstance(record, Tombstone)]
            index.update((self._document(each, self.state.digest(each)) for each in threads), gone)
            self._behind, self._stored.has_changed = {}, True
        return index

    def _fault(self) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        manifest = self.state.manifest
        if not manifest.index:
            return "missing"
        if maker := other_maker(manifest.layout, manifest.analyser):
            return f"made by {maker}"
        return self._stored.damage(manifest.index)

    def _repaired(self, fault: str) -> Index:
        index = self.rebuild()
        if self.state.base.manifest.threads:
            count = self.state.manifest.threads
            self.state.notes.add(f"The index was {fault}: it was rebuilt from {count} records.")
        return index
