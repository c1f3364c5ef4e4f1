"""Writes segments: puts documents into columns and inverted lists, merges small segments, splits large ones."""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import accumulate, compress, zip_longest
from pathlib import Path

from whoosh.codec.whoosh3 import STORED_COLUMN
from whoosh.fields import STORED, Schema
from whoosh.filedb.structfile import StructFile
from whoosh.index import TOC, LockError, clean_files
from whoosh.util import fib

from bot.domain.thread import ThreadId
from bot.index import arrays, bm25f, vectors
from bot.index.posting_lists import PostingCollector
from bot.index.protocol import DEFAULT_SIZES, NOTES, TEXT, IndexDocument, Sizes
from bot.index.segment_file import encode_key
from bot.index.vectors import MAX_DIMENSIONS
from bot.index.whoosh.codec import (
    FIELD_LETTERS,
    FLIP_COLUMNS,
    INDEX_NAME,
    KIND_NUMBERS,
    NUMBER_COLUMNS,
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
    read_pieces,
    read_rows,
    read_vectors,
    whole_seconds,
)
from bot.index.whoosh.segment_parts import PARTED_FIELDS, Core, IndexParts, PostingLayout, encode_core
from bot.index.whoosh.segment_reader import open_segment

MAX_PARTED_SEGMENTS = 8
"""Most segments in parts; with more, a query would read too many files."""

_NUMBER = struct.Struct("<q")


SCHEMA = Schema(terms=STORED)
"""Whoosh requires a schema, which is never written; the columns and fields are in `codec`."""


class IndexWriter:
    """One batch of changes. As a context manager it commits at the end; after an error, the folder is unchanged.

    With ``purges`` deleted documents leave no trace in the files. Large segments are written in ``parts``.
    """

    def __init__(self, folder: Path, parts: IndexParts, sizes: Sizes, toc: TOC) -> None:
        self.parts, self.count, self.purges = parts, 0, False
        self._storage, self._sizes, self._toc = Storage(str(folder)), sizes, toc
        self._before = set(self._storage.list())
        self._lists, self._entries = PostingCollector(), list[bytes | memoryview]()
        self._columns: dict[str, RowWriter] = {}
        self._documents: dict[ThreadId, int] = {}
        self._deleted: set[int] = set()
        self._width = 0
        self._lock = self._storage.lock(f"{INDEX_NAME}_WRITELOCK")
        if not self._lock.acquire():
            raise LockError

    @property
    def most(self) -> int:
        """Most documents in all single-file segments together; the next merge puts more into parts.

        Fewer next to segments in parts, because an event fetches single files whole.
        """
        usual = self._sizes.documents
        return usual // 4 if any(segment.in_parts for segment in self._toc.segments) else usual

    def delete(self, segment: int, document: int) -> None:
        """Delete a document, by its number, from one of the segments."""
        self._toc.segments[segment].delete_document(document)

    def add(self, document: IndexDocument) -> None:
        """Add a document, replacing any with its id in this batch. Raises ValueError like `check_vectors`."""
        self._width = check_vectors([document], self._width)
        entry, number = document.entry, self.count
        self._deleted |= {self._documents[entry.id]} if entry.id in self._documents else set()
        self._documents[entry.id] = number
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

    def take_over(self, segment: Segment) -> None:
        """Add the documents of a segment that are not deleted."""
        reader = open_segment(self._storage, segment, self.parts)
        self.parts.prefetch(reader.parts)
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
                path = Path(self._storage.folder, name)
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def _commit(self) -> None:
        segments = merge_segments(self, self._toc.segments)
        if self.count:
            segments.append(self._segment())
        generation = self._toc.generation + 1
        # The number in the name of a new table of contents depends on its content, so a name never has two meanings,
        # even when an index is built again in place of another.
        if generation == 1 and segments:
            generation += int(segments[0].segid[:7], 16)
        TOC(SCHEMA, segments, generation).write(self._storage, INDEX_NAME)
        clean_files(self._storage, INDEX_NAME, generation, segments)

    def _segment(self) -> Segment:
        columns = {name: column.packed(self.count) for name, column in self._columns.items()}
        columns["entry"] = pack_pieces(self._entries)
        in_parts = self.count > self.most
        if in_parts:
            data = split_segment(columns, self._lists, self.count, self.parts, self._sizes)
        else:
            data = pack_columns(columns | {TERMS_FILE: self._lists.packed(), "_stored": _stored_fields(self.count)})
        name = hashlib.sha256(data).hexdigest()[:16]
        segment = Segment(None, INDEX_NAME, doccount=self.count, segid=name, deleted=self._deleted or None)
        segment.in_parts = in_parts
        Path(self._storage.folder, segment.file_name).write_bytes(data)
        return segment


def _stored_fields(count: int) -> bytes:
    """Whoosh's column of stored fields, which is empty."""
    file = StructFile(BytesIO())
    STORED_COLUMN.writer(file).finish(count)
    packed: bytes = file.raw_file().getvalue()
    return packed


def write_index(folder: Path, documents: Iterable[IndexDocument], sizes: Sizes | None = None) -> None:
    """Write an index of ``documents`` into an empty folder, see `bot.index.build_index`."""
    folder.mkdir(parents=True, exist_ok=True)
    with IndexWriter(folder, IndexParts(folder), sizes or DEFAULT_SIZES, TOC(SCHEMA, [], 0)) as writer:
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
    """Merge small segments, and rewrite those with mostly deleted documents or ones to purge; returns the others.

    Segments in parts are left alone, because an event would fetch and push them whole; but when there are many, all but
    the largest become one. A rebuild makes the index one segment again.
    """
    ordered = sorted(segments, key=lambda each: each.doc_count_all())
    parted = [segment for segment in ordered if segment.in_parts]
    unsplit = [segment for segment in ordered if not segment.in_parts]
    small = _smallest_to_merge(unsplit)
    for segment in small:
        writer.take_over(segment)
    rest = unsplit[len(small) :] if small else [segment for segment in segments if not segment.in_parts]
    merged = parted[:-1] if len(parted) > MAX_PARTED_SEGMENTS else []
    if writer.count + sum(segment.doc_count_all() for segment in rest) > writer.most:
        merged, rest = [*merged, *rest], []
    kept = []
    for segment in (*parted, *rest, *(segment for segment in merged if segment not in parted)):
        deleted = segment.deleted_count()
        if segment in merged or 2 * deleted > segment.doc_count_all() or (writer.purges and deleted):
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


# -- parts -----------------------------------------------------------------------------------------------------------

MAX_BUCKETS = 4_096


def split_segment(
    columns: Mapping[str, bytes], lists: PostingCollector, documents: int, parts: IndexParts, sizes: Sizes
) -> bytes:
    """Save the parts of a segment and return the bytes of its core; ``columns`` are as `codec` writes them."""
    layouts = {letter: _layout_of(lists, letter, sizes) for letter in PARTED_FIELDS}
    rows, width = read_vectors(columns, documents)
    core = Core(documents, width, sizes.rows, sizes.entries, layouts, [])
    sections = [
        _numbers(columns, core),
        _codes(vectors.matrix(rows, width), core.code_rows) if width else (),
        _entries(columns["entry"], core),
        *(_lists(lists, letter, layouts[letter]) for letter in PARTED_FIELDS),
    ]
    return encode_core(replace(core, names=[parts.save(part) for section in sections for part in section]))


def _numbers(columns: Mapping[str, bytes], core: Core) -> Iterator[bytes]:
    number_columns = [arrays.numbers(read_rows(columns[name], core.documents)[0]) for name in NUMBER_COLUMNS]
    step = core.rows
    return (
        arrays.pack_planes([column[at : at + step] for column in number_columns])
        for at in range(0, core.documents, step)
    )


def _codes(rows: vectors.Matrix, step: int) -> Iterator[bytes]:
    book = vectors.train_codes(rows)
    yield vectors.pack_book(book)
    for at in range(0, len(rows), step):
        yield vectors.encode_vectors(rows[at : at + step], book).tobytes()


def _entries(column: bytes, core: Core) -> Iterator[bytes]:
    pieces, ends = read_pieces(column, core.documents)
    borders = [0, *ends.tolist()]
    for at in range(0, core.documents, core.block):
        last = min(at + core.block, core.documents)
        yield pack_pieces([pieces[borders[number] : borders[number + 1]] for number in range(at, last)])


def _layout_of(lists: PostingCollector, letter: str, sizes: Sizes) -> PostingLayout:
    list_sizes = _sizes(lists, letter)
    heavy = tuple(sorted(key for key, size in list_sizes.items() if size >= sizes.heavy))
    light = sum(size for size in list_sizes.values() if size < sizes.heavy)
    buckets = 1 << max(0, round(light / sizes.bucket) - 1).bit_length()
    return PostingLayout(min(MAX_BUCKETS, buckets), heavy)


def _lists(lists: PostingCollector, letter: str, layout: PostingLayout) -> Iterator[bytes]:
    keys_by_part: list[list[bytes]] = [[] for _ in range(layout.size)]
    for key in _sizes(lists, letter):
        keys_by_part[layout.part_number(key)].append(key)
    for keys in keys_by_part:
        yield lists.packed(keys)


def _sizes(lists: PostingCollector, letter: str) -> dict[bytes, int]:
    start = letter.encode()
    return {key: size for key, size in lists.sizes().items() if key.startswith(start)}
