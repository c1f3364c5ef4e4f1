"""Writes segments: puts documents into columns and inverted lists, merges small segments."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import accumulate, compress, zip_longest
from pathlib import Path

from whoosh.codec.whoosh3 import STORED_COLUMN
from whoosh.fields import STORED, Schema
from whoosh.filedb.structfile import StructFile
from whoosh.index import TOC, LockError, clean_files
from whoosh.util import fib

from bot.domain.thread import ThreadId
from bot.index import bm25f
from bot.index.posting_lists import PostingCollector
from bot.index.protocol import NOTES, TEXT, IndexDocument
from bot.index.segment_file import encode_key
from bot.index.vectors import MAX_DIMENSIONS
from bot.index.whoosh.codec import (
    FIELD_LETTERS,
    FLIP_COLUMNS,
    INDEX_NAME,
    KIND_NUMBERS,
    TERMS_FILE,
    VECTOR_COLUMN,
    RowWriter,
    Segment,
    Storage,
    flip_numbers,
    hash_key,
    id_key,
    pack_columns,
    pack_pieces,
    pack_stored,
    whole_seconds,
)
from bot.index.whoosh.segment_reader import SegmentReader

FULL_SEGMENT_DOCUMENTS = 1 << 15
"""A segment with this many documents is full: nothing is added to it. With vectors, it has about 33 MB. GitHub refuses
files of 100 MB."""

_NUMBER = struct.Struct("<q")


SCHEMA = Schema(terms=STORED)
"""Whoosh requires a schema, which is never written; the columns and fields are in `codec`."""


class IndexWriter:
    """One batch of changes. As a context manager it commits at the end; after an error, the folder is unchanged.

    With ``purges`` deleted documents leave no trace in the files. A segment with ``full`` documents gets no more.
    """

    def __init__(self, folder: Path, toc: TOC, full: int = FULL_SEGMENT_DOCUMENTS) -> None:
        self.purges, self.full = False, full
        self._storage, self._toc = Storage(str(folder)), toc
        self._before = set(self._storage.list())
        self._written: list[Segment] = []
        self._places: dict[ThreadId, tuple[int, int]] = {}
        self._width = 0
        self._begin_segment()
        self._lock = self._storage.lock(f"{INDEX_NAME}_WRITELOCK")
        if not self._lock.acquire():
            raise LockError

    def _begin_segment(self) -> None:
        self.count = 0
        self._lists, self._entries = PostingCollector(), list[bytes]()
        self._columns: dict[str, RowWriter] = {}
        self._deleted: set[int] = set()

    def _end_full_segment(self) -> None:
        if self.count >= self.full:
            self._written.append(self._segment())
            self._begin_segment()

    def delete(self, segment: int, document: int) -> None:
        """Delete a document, by its number, from one of the segments."""
        self._toc.segments[segment].delete_document(document)

    def add(self, document: IndexDocument) -> None:
        """Add a document, replacing any with its id in this batch. Raises ValueError like `check_vectors`."""
        self._width = check_vectors([document], self._width)
        self._end_full_segment()
        entry, number = document.entry, self.count
        self._delete_earlier(entry.id)
        self._places[entry.id] = len(self._written), number
        numbers = {
            "created": whole_seconds(entry.created_at),
            "key": hash_key(entry.id),
            "target": 0 if entry.duplicate_of is None else hash_key(entry.duplicate_of),
            "target_at": whole_seconds(entry.duplicate_at),
            "length": entry.length,
            "kind": KIND_NUMBERS[entry.kind],
            "alone": whole_seconds(entry.unvouched_until) * (1 if document.has_role else -1),
            "account": hash_key(entry.author.casefold()) if entry.unvouched_until else 0,
            "is_embedded": int(document.vector is not None),
            **{name: at or 0 for name, at in zip_longest(FLIP_COLUMNS, flip_numbers(entry.state_changes))},
        }
        for name, value in numbers.items():
            self._column(name).extend(number, _NUMBER.pack(value), _NUMBER.size)
        if document.vector:
            self._column(VECTOR_COLUMN).extend(number, document.vector, len(document.vector))
        self._entries.append(pack_stored(entry))
        self._lists.append(id_key(entry.id), number, 1)
        for field, levels in ((NOTES, bm25f.note_impacts(document)), (TEXT, bm25f.text_impacts(document))):
            for term, level in levels.items():
                self._lists.append(encode_key(FIELD_LETTERS[field], term), number, level)
        self.count += 1

    def _delete_earlier(self, key: ThreadId) -> None:
        """Delete the document that this batch has for an id, if any."""
        if key in self._places:
            segment, number = self._places[key]
            if segment < len(self._written):
                self._written[segment].delete_document(number)
            else:
                self._deleted.add(number)

    def take_over(self, segment: Segment) -> None:
        """Add the documents of a segment that are not deleted."""
        self._end_full_segment()
        reader = SegmentReader(self._storage, segment)
        alive = [number not in reader.deleted for number in range(reader.count)]
        alive_numbers = list(compress(range(reader.count), alive))
        self._entries += [reader.piece(number) for number in alive_numbers]
        for name, rows in reader.rows():
            self._column(name).extend(self.count, rows[alive_numbers].tobytes(), rows.shape[1])
        renumbered = list(accumulate(alive, initial=self.count))
        for key, documents, levels in reader.items():
            is_kept = [alive[document] for document in documents]
            if any(is_kept):
                numbers = [renumbered[document] for document in compress(documents, is_kept)]
                self._lists.extend(key, numbers, bytes(compress(levels, is_kept)))
        self.count += len(alive_numbers)

    def _column(self, name: str) -> RowWriter:
        return self._columns.setdefault(name, RowWriter())

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._commit()
                self._before = set(self._storage.list())
        finally:
            self._lock.release()
            for name in {*(set(self._storage.list()) - self._before), f"{INDEX_NAME}_WRITELOCK"}:
                Path(self._storage.folder, name).unlink(missing_ok=True)

    def _commit(self) -> None:
        kept = merge_segments(self, self._toc.segments)
        segments = [*kept, *self._written, *([self._segment()] if self.count else [])]
        generation = self._toc.generation + 1
        # The number in the name of a new table of contents depends on its content, so a name never has two meanings,
        # even when an index is built again in place of another.
        if generation == 1 and segments:
            names = "".join(segment.segid for segment in segments)
            generation += int(hashlib.sha256(names.encode()).hexdigest()[:7], 16)
        TOC(SCHEMA, segments, generation).write(self._storage, INDEX_NAME)
        clean_files(self._storage, INDEX_NAME, generation, segments)

    def _segment(self) -> Segment:
        columns = {name: column.packed(self.count) for name, column in self._columns.items()}
        columns["entry"] = pack_pieces(self._entries)
        data = pack_columns(columns | {TERMS_FILE: self._lists.packed(), "_stored": _stored_fields(self.count)})
        name = hashlib.sha256(data).hexdigest()[:16]
        segment = Segment(None, INDEX_NAME, doccount=self.count, segid=name, deleted=self._deleted or None)
        Path(self._storage.folder, segment.file_name).write_bytes(data)
        return segment


def _stored_fields(count: int) -> bytes:
    """Whoosh's column of stored fields, which is empty."""
    file = StructFile(BytesIO())
    STORED_COLUMN.writer(file).finish(count)
    packed: bytes = file.raw_file().getvalue()
    return packed


def write_index(folder: Path, documents: Iterable[IndexDocument], full: int = FULL_SEGMENT_DOCUMENTS) -> None:
    """Write an index of ``documents`` into an empty folder, see `bot.index.build_index`."""
    folder.mkdir(parents=True, exist_ok=True)
    with IndexWriter(folder, TOC(SCHEMA, [], 0), full) as writer:
        for document in documents:
            writer.add(document)


def check_vectors(documents: Iterable[IndexDocument], width: int) -> int:
    """The length of all vectors: ``width`` or, if 0, that of the first. Raises ValueError if another one differs."""
    for vector in (document.vector for document in documents if document.vector):
        width = width or len(vector)
        if len(vector) != width or width > MAX_DIMENSIONS:
            raise ValueError(f"a vector of {len(vector)} numbers among vectors of {width}, at most {MAX_DIMENSIONS}")
    return width


def merge_segments(writer: IndexWriter, segments: list[Segment]) -> list[Segment]:
    """Merge small segments, and rewrite those with mostly deleted documents or ones to purge; returns the others."""
    partial = [segment for segment in segments if segment.doc_count_all() < writer.full]
    small = _smallest_to_merge(sorted(partial, key=lambda each: each.doc_count_all()))
    for segment in small:
        writer.take_over(segment)
    kept = []
    for segment in (segment for segment in segments if segment not in small):
        deleted = segment.deleted_count()
        if 2 * deleted > segment.doc_count_all() or (writer.purges and deleted):
            writer.take_over(segment)
        else:
            kept.append(segment)
    return kept


def _smallest_to_merge(ordered: Sequence[Segment]) -> Sequence[Segment]:
    """The smallest segments, as many as Whoosh's own policy merges: at least five that have few documents in total."""
    total = 0
    for number, segment in enumerate(ordered):
        total += segment.doc_count_all()
        if number > 3 and total < fib(number + 5):
            return ordered[: number + 1]
    return ()
