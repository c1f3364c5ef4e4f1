"""The index of a state: opened on first use, kept up to date with changes, rebuilt if it is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import TypeVar

from bot.domain.digest import Digest, IndexEntry
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone
from bot.index.protocol import LAYOUT_VERSION, Index, IndexCorrupt, IndexDocument, IndexSegment
from bot.memory.manifest import INDEX_FOLDER, Manifest
from bot.memory.model_store import Embedder, Encoder
from bot.memory.staged_state import Progress, StagedState
from bot.memory.store import Edits
from bot.memory.stored_index import StoredIndex, other_maker
from bot.reading.analyzer import ANALYSER_VERSION

Answer = TypeVar("Answer")

NEVER = float("-inf")
"""A time that has always passed: the text model reads nothing."""

UPDATE_SECONDS = 10.0
"""How long the text model reads changed threads while somebody waits; it reads the others later."""

BATCH_THREADS = 500
"""How many threads the text model reads between two updates of the index."""


class IndexSlot:
    """Holds the index of ``state``, from whose records it can always be rebuilt.

    ``embedder`` is a text model, used unless the index has vectors of another one.
    """

    def __init__(self, state: StagedState, embedder: Embedder | None = None) -> None:
        self.state, self._embedder = state, embedder
        self._encoder: Encoder | None = None
        self._stored = StoredIndex(state.base, INDEX_FOLDER)
        self._behind: dict[ThreadId, Record] = {}
        self._has_read = False
        self.was_rebuilt = False
        """Whether this run rebuilt the index from the records."""

    def close(self) -> None:
        """Release the files of the index."""
        self._stored.close()

    @property
    def encoder(self) -> Encoder:
        """Computes the vectors that the index has of its threads."""
        if self._encoder is None:
            self._encoder = Encoder(None if self.has_foreign_vectors else self._embedder, self.state.notes.add)
        return self._encoder

    @property
    def has_foreign_vectors(self) -> bool:
        """Whether the index has vectors of another model than the one in use."""
        made_by = self.state.manifest.embedder
        return bool(made_by) and self._embedder is not None and self._embedder.fingerprint != made_by

    def stored_vectors(self) -> Mapping[ThreadId, bytes]:
        """The vectors of the threads that the text model in use has read."""
        is_usable = self._embedder is not None and not self.has_foreign_vectors
        return self.ask(lambda index: index.vectors(), {}) if is_usable else {}

    def unread(self) -> list[ThreadId]:
        """The threads that the text model has still to read, newest first."""
        return self.ask(lambda index: index.unread(), []) if self._embedder else []

    def read_with_model(self, ids: Iterable[ThreadId], until: float, tick: Progress = lambda _: None) -> list[ThreadId]:
        """Have the text model read these threads until ``until`` (monotonic time). Returns those that it read."""
        waiting, read = iter(ids), list[ThreadId]()
        while keys := tuple(islice(waiting, BATCH_THREADS)):
            records = [record for record in self.state.records(keys).values() if isinstance(record, Thread)]
            documents = []
            for thread in records:
                document = self._document(thread, self.state.digest(thread), until)
                if document.vector is None:  # the time is up, or the model failed
                    break
                documents.append(document)
                tick(1)
            if not documents or not self.ask(partial(self._add, documents), False):
                break
            read += [document.entry.id for document in documents]
            if len(documents) < len(records):
                break
        return read

    def _add(self, documents: Sequence[IndexDocument], index: Index) -> bool:
        index.update(documents)
        self._stored.has_changed = True
        self._note_maker()
        return True

    def _note_maker(self) -> None:
        """Note in the manifest whose vectors the index has, once it has some of this run."""
        if self._embedder and self._has_read:
            self.state.manifest = replace(self.state.manifest, embedder=self._embedder.fingerprint)

    def ask(self, question: Callable[[Index], Answer], default: Answer) -> Answer:
        """Query the index. A damaged one is rebuilt once; if that fails, returns ``default`` and adds a note."""
        try:
            try:
                return question(self._open_current())
            except IndexCorrupt as error:
                return question(self._repair(f"damaged ({error!s:.120})"))
        except (IndexCorrupt, OSError) as error:
            self.state.manifest = replace(self.state.manifest, index={})
            self.state.notes.add(f"The index could not be used ({error!s:.120}): similar threads were not looked for.")
            return default

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name, see `Index.segments`."""
        return self.ask(lambda index: index.segments(), {})

    def of_kind(self, kind: Kind) -> list[IndexEntry]:
        """The entries of all threads of this kind, in no order; none if the index cannot be used."""
        nothing: list[IndexEntry] = []
        return self.ask(lambda index: index.of_kind(kind), nothing)

    def update(self, records: Iterable[Record]) -> None:
        """Add these records to the index when it is next queried."""
        self._behind |= {record.id: record for record in records}

    def rebuild(self, tick: Progress = lambda _: None, *, until: float = NEVER) -> Index:
        """Rebuild the index from the records; the stored one is not read. Raises IndexCorrupt, OSError.

        The text model reads threads until ``until`` (monotonic time). Digests that this version would make differently
        are replaced.
        """
        self._behind, self._encoder, self._has_read, self.was_rebuilt = {}, None, False, True
        self.state.manifest = replace(self.state.manifest, index={}, embedder="")
        threads = self.state.living_threads(tick)
        documents = (self._document(thread, self.state.fresh_digest(thread), until) for thread in threads)
        index = self._stored.build(documents)
        self._note_maker()
        return index

    def edits(self) -> tuple[Edits, Manifest]:
        """The index files to write, and the state's manifest that lists them."""
        if self._behind:
            self.ask(lambda _: None, None)
        known = self.state.manifest
        if not self._stored.has_changed:
            return {}, known
        file_edits, hashes = self._stored.edits(known.index)
        return file_edits, replace(known, index=hashes, analyser=ANALYSER_VERSION, layout=LAYOUT_VERSION)

    def _document(self, thread: Thread, digest: Digest, until: float) -> IndexDocument:
        """The document of a thread; with its vector, if the text model can read it before ``until``."""
        from bot.index.document import document_of  # slow to load; most runs on a reader's machine only search

        vector = self.encoder.vector(thread) if monotonic() < until else None
        self._has_read |= vector is not None
        return document_of(thread, digest, vector)

    def _open_current(self) -> Index:
        index = self._stored.index
        if index is None:
            if fault := self._fault():
                return self._repair(fault)
            index = self._stored.open()
        if self._behind:
            threads = [record for record in self._behind.values() if isinstance(record, Thread)]
            gone = [record.id for record in self._behind.values() if isinstance(record, Tombstone)]
            until = monotonic() + UPDATE_SECONDS
            index.update((self._document(thread, self.state.digest(thread), until) for thread in threads), gone)
            self._behind, self._stored.has_changed = {}, True
            self._note_maker()
        return index

    def _fault(self) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        manifest = self.state.manifest
        if not manifest.index:
            return "missing"
        if maker := other_maker(manifest.layout, manifest.analyser):
            return f"made by {maker}"
        return self._stored.damage(manifest.index)

    def _repair(self, fault: str) -> Index:
        index = self.rebuild()
        if self.state.base.manifest.threads:
            count = self.state.manifest.threads
            self.state.notes.add(f"The index was {fault}: it was rebuilt from {count} records.")
        return index
