"""One open segment, and the documents in it that exist at a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property

import numpy as np

from bot.domain.digest import FAR_FUTURE, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import arrays, vectors
from bot.index.arrays import Flags, Numbers, Scores
from bot.index.posting_lists import Postings, TermFile
from bot.index.protocol import PostingItem
from bot.index.vectors import Matrix, Squares
from bot.index.whoosh.codec import (
    FLIP_COLUMNS,
    KIND_NUMBERS,
    MIN_ENTRY_BYTES,
    NUMBER_COLUMNS,
    TERMS_FILE,
    VECTOR_COLUMN,
    Segment,
    Storage,
    hash_key,
    read_columns,
    read_pieces,
    read_rows,
    read_vectors,
    unpack_stored,
    whole_seconds,
)


class SegmentReader:
    """A segment of ``count`` documents, some of which are ``deleted``. ``width`` is the length of its vectors, 0 if it
    has none.

    Whatever the bytes are, the methods return or raise an exception. Raises ValueError and others for damaged bytes.
    """

    def __init__(self, storage: Storage, segment: Segment) -> None:
        self.count, self.deleted = segment.doc_count_all(), frozenset(segment.deleted_docs())
        columns = read_columns(storage, segment)
        pieces, ends = read_pieces(columns["entry"], self.count)
        if len(pieces) < self.count * MIN_ENTRY_BYTES:
            raise ValueError("there are fewer entries than documents")
        self._pieces, self._ends = pieces, ends.data  # yields single plain numbers faster than the array
        self._rows = {name: read_rows(columns[name], self.count) for name in NUMBER_COLUMNS}
        if any(width != arrays.NUMBER_BYTES for _, width in self._rows.values()):
            raise ValueError("a column is damaged")
        self._vector_rows, self.width = read_vectors(columns, self.count)
        self._terms = TermFile(columns[TERMS_FILE], self.count)

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        return {name: arrays.numbers(rows) for name, (rows, _) in self._rows.items()}

    @cached_property
    def _matrix(self) -> Matrix:
        return vectors.matrix(self._vector_rows, self.width)

    @cached_property
    def _squares(self) -> Squares:
        return vectors.squares(self._matrix)

    def numbers(self, column: str) -> Numbers:
        return self._numbers[column]

    def postings(self, key: bytes) -> Postings | None:
        return self._terms.get(key)

    def items(self) -> Iterator[PostingItem]:
        """All lists."""
        return self._terms.items()

    def piece(self, document: int) -> bytes:
        """The bytes of an entry."""
        return bytes(self._pieces[self._ends[document - 1] if document else 0 : self._ends[document]])

    def entry(self, document: int) -> IndexEntry:
        return unpack_stored(self.piece(document))

    def find(self, key: ThreadId) -> int | None:
        """The document of a thread, None if it has none; found by the thread's hash."""
        places = np.flatnonzero(self.numbers("key") == hash_key(key)).tolist()
        return max((number for number in places if number not in self.deleted), default=None)

    def cosines(self, vector: bytes, end: int) -> Scores:
        """How close each document below ``end`` is to a vector; 0 if they cannot be compared."""
        if len(vector) != self.width:
            return np.zeros(end)
        return vectors.cosines(self._matrix[:end], vector, self._squares[:end])

    def rows(self) -> Iterator[tuple[str, Matrix]]:
        """The columns of numbers and of vectors, a row of bytes for each document."""
        for name, (rows, width) in self._rows.items():
            yield name, vectors.matrix(rows, width)
        if self.width:
            yield VECTOR_COLUMN, self._matrix

    def documents(self, *, is_embedded: bool) -> list[int]:
        """The documents that a text model has read, or the others."""
        return np.flatnonzero(((self.numbers("is_embedded") != 0) == is_embedded) & ~self.hidden).tolist()

    def vectors(self, documents: Sequence[int]) -> list[bytes]:
        """The vectors of these documents; b"" for those without one."""
        if not self.width:
            return [b""] * len(documents)
        return [row.tobytes() if row.any() else b"" for row in self._matrix[documents]]

    def of_kind(self, kind: Kind) -> list[int]:
        """The documents of this kind that were not deleted."""
        found: list[int] = np.flatnonzero((self.numbers("kind") == KIND_NUMBERS[kind]) & ~self.hidden).tolist()
        return found

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
