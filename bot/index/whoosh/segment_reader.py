"""One open segment, and the documents in it that exist at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from bot.domain.digest import FAR_FUTURE, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import arrays, vectors
from bot.index.arrays import Flags, Numbers, Scores
from bot.index.posting_lists import Postings
from bot.index.protocol import PostingItem
from bot.index.vectors import Matrix
from bot.index.whoosh.codec import (
    FLIP_COLUMNS,
    KIND_NUMBERS,
    NUMBER_COLUMNS,
    VECTOR_COLUMN,
    Segment,
    Storage,
    hash_key,
    id_key,
    read_columns,
    unpack_stored,
    whole_seconds,
)
from bot.index.whoosh.segment_parts import (
    Block,
    CodedVectors,
    IndexParts,
    PartedSegment,
    PlainVectors,
    WholeSegment,
    decode_core,
)


class SegmentReader:
    """A segment of ``count`` documents, some of which are ``deleted``.

    The parts listed by `needed` should be fetched, for several segments at once, before calling the other methods.
    Whatever the bytes are, the methods return or raise an exception.
    """

    def __init__(self, stored: WholeSegment | PartedSegment, deleted: Iterable[int]) -> None:
        self._stored = stored
        self.count, self.deleted, self.width = stored.count, frozenset(deleted), stored.width
        self.parts, self.needed = stored.names, stored.needed
        self._blocks: dict[int, Block] = {}

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        return self._stored.numbers()

    @cached_property
    def _vectors(self) -> PlainVectors | CodedVectors:
        return self._stored.vectors()

    def numbers(self, column: str) -> Numbers:
        return self._numbers[column]

    def postings(self, key: bytes) -> Postings | None:
        return self._stored.term_file(key).get(key)

    def piece(self, document: int) -> bytes:
        """The bytes of an entry."""
        number, place = divmod(document, self._stored.block)
        if number not in self._blocks:
            self._blocks[number] = self._stored.entries(number)
        pieces, ends = self._blocks[number]
        return bytes(pieces[ends[place - 1] if place else 0 : ends[place]])

    def entry(self, document: int) -> IndexEntry:
        return unpack_stored(self.piece(document))

    def find(self, key: ThreadId) -> int | None:
        """The document of a thread, None if it has none; found by the thread's hash."""
        places = np.flatnonzero(self.numbers("key") == hash_key(key)).tolist()
        return max((number for number in places if number not in self.deleted), default=None)

    def cosines(self, vector: bytes, end: int) -> Scores:
        """How close each document below ``end`` is to a vector; 0 if they cannot be compared."""
        return self._vectors.cosines(vector, end) if len(vector) == self.width else np.zeros(end)

    def rows(self) -> Iterator[tuple[str, Matrix]]:
        """The columns of numbers and of vectors, a row of bytes for each document."""
        for name in NUMBER_COLUMNS:
            yield name, vectors.matrix(arrays.rows_of(self.numbers(name)), arrays.NUMBER_BYTES)
        if self.width:
            yield VECTOR_COLUMN, self._vectors.matrix

    def documents(self, *, is_embedded: bool) -> list[int]:
        """The documents that a text model has read, or the others."""
        return np.flatnonzero(((self.numbers("is_embedded") != 0) == is_embedded) & ~self.hidden).tolist()

    def vectors(self, documents: Sequence[int]) -> list[bytes]:
        """The vectors of these documents, as exact as they are stored; b"" for those without one."""
        if not self.width:
            return [b""] * len(documents)
        return [row.tobytes() if row.any() else b"" for row in self._vectors.matrix[documents]]

    def items(self) -> Iterator[PostingItem]:
        """All lists; those of ids, which are not stored in parts, are made from the entries."""
        for file in self._stored.term_files():
            yield from file.items()
        for document in range(self.count if self.parts else 0):
            yield id_key(self.entry(document).id), [document], b"\1"

    def count_of(self, kind: Kind) -> int:
        return int((self.numbers("kind")[~self.hidden] == KIND_NUMBERS[kind]).sum())

    @cached_property
    def is_chronological(self) -> bool:
        created = self.numbers("created")
        return bool(np.all(created[:-1] <= created[1:]))

    @cached_property
    def hidden(self) -> Flags:
        """A flag for each document that was deleted."""
        found = np.zeros(self.count, np.bool_)
        found[list(self.deleted)] = True
        return found


def open_segment(storage: Storage, segment: Segment, parts: IndexParts) -> SegmentReader:
    """Open a segment for reading. Raises ValueError and others if it is damaged."""
    count, deleted = segment.doc_count_all(), segment.deleted_docs()
    if not segment.in_parts:
        return SegmentReader(WholeSegment(read_columns(storage, segment), count), deleted)
    core = decode_core(Path(storage.folder, segment.file_name).read_bytes(), count)
    return SegmentReader(PartedSegment(core, parts), deleted)


class SegmentSnapshot:
    """The documents of a segment that exist for one search: those that were not deleted, and were created ``before``.

    Documents are numbered below ``end``; ``hidden`` has a flag for each that does not exist.
    """

    def __init__(self, reader: SegmentReader, before: datetime | None) -> None:
        self.reader, self.end, self.hidden = reader, reader.count, reader.hidden
        if before is not None:
            late = reader.numbers("created") >= before.timestamp()
            if reader.is_chronological:
                self.end -= int(late.sum())
                self.hidden = self.hidden[: self.end]
            else:
                self.hidden = self.hidden | late
        self.count = self.end - int(self.hidden.sum())

    def postings(self, key: bytes) -> Postings | None:
        """The list of a term up to ``end``, including hidden documents."""
        found = self.reader.postings(key)
        if found and found.documents[-1] >= self.end:
            end_position = int(found.documents.searchsorted(self.end))
            found = Postings(found.documents[:end_position], found.levels[:end_position])
        return found if found and len(found.documents) else None

    def frequency(self, documents: Numbers) -> int:
        """How many of these documents exist."""
        hidden = 0 if self.count == self.end else int(np.count_nonzero(self.hidden[documents]))
        return len(documents) - hidden

    def numbers(self, column: str) -> Numbers:
        return self.reader.numbers(column)[: self.end]

    def has_roles(self) -> bool:
        """Whether any existing issue records its author's role in the repository."""
        with_role = (
            np.isin(self.numbers("kind"), [KIND_NUMBERS[kind] for kind in Kind if kind.traits.is_suggested])
            & (self.numbers("alone") >= 0)
            & ~self.hidden
        )
        return bool(with_role.any())

    def unvouched(self, at: datetime | None) -> Flags:
        """A flag for each existing document that nobody had vouched for at that moment."""
        found: Flags = (abs(self.numbers("alone")) > (at or FAR_FUTURE).timestamp()) & ~self.hidden
        return found

    def hide(self, more: Flags) -> None:
        """Hide these documents too."""
        self.hidden = self.hidden | more
        self.count = self.end - int(self.hidden.sum())

    def closed(self, at: datetime) -> Numbers:
        """Since when each document had been closed at that moment, in seconds; 0 for open ones."""
        state_changes = [self.numbers(column) for column in FLIP_COLUMNS]
        closed = arrays.last_odd([abs(column) for column in state_changes], at.timestamp())
        # Only in a replay, the columns of a thread that was reopened often may not reach back to the moment.
        for document in np.flatnonzero(state_changes[0] < -at.timestamp()).tolist():
            closed[document] = whole_seconds(self.reader.entry(document).closed_since(at))
        return closed

    def targets(self, until: datetime | None, unvouched: Flags) -> Numbers:
        """The threads that its documents were known to duplicate at this moment, once for each duplicate.

        What ``unvouched`` documents say does not count.
        """
        since, targets = self.numbers("target_at"), self.numbers("target")
        known = (targets != 0) & ~self.hidden & ~unvouched
        if until is not None:
            known &= (since != 0) & (since <= until.timestamp())
        found: Numbers = targets[known]
        return found
