"""Writes segments: documents into columns and inverted lists, small segments into one, large ones into parts."""

from __future__ import annotations

import hashlib
import math
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from itertools import accumulate, chain, compress, zip_longest
from pathlib import Path

from whoosh.codec.whoosh3 import STORED_COLUMN
from whoosh.fields import STORED, Schema
from whoosh.filedb.structfile import StructFile
from whoosh.index import TOC, LockError, clean_files
from whoosh.util import fib

from bot.domain.thread import ThreadId
from bot.index import arrays, bm25f, vectors
from bot.index.posting_lists import Inversion
from bot.index.protocol import NOTES, TEXT, USUAL, VECTOR_FIELDS, IndexDocument, Sizes
from bot.index.segment_file import encode_key
from bot.index.vectors import MAX_LENGTH
from bot.index.whoosh.codec import (
    FLIPS,
    KINDS,
    LETTERS,
    NAME,
    NUMBERS,
    TERMS,
    RowWriter,
    Segment,
    Storage,
    id_key,
    pack_columns,
    pack_pieces,
    pack_stored,
    read_pieces,
    read_rows,
    stand_in,
)
from bot.index.whoosh.segment_parts import FIELDS, Core, IndexParts, PostingLayout, encode_core
from bot.index.whoosh.segment_reader import open_segment

MANY = 8
"""Most segments in parts; with more, a question would read too many files."""

_NUMBER = struct.Struct("<q")


SCHEMA = Schema(terms=STORED)
"""Whoosh asks for a schema, which is never written; the columns and fields are in `codec`."""


class IndexWriter:
    """One batch of changes. As a context it commits at the end, and after an error leaves the folder as it was.

    With ``purges`` deleted documents leave no trace in the files. Large segments are written in ``parts``.
    """

    def __init__(self, folder: Path, parts: IndexParts, sizes: Sizes, toc: TOC) -> None:
        self.parts, self.count, self.purges = parts, 0, False
        self._storage, self._sizes, self._toc = Storage(str(folder)), sizes, toc
        self._before = set(self._storage.list())
        self._lists, self._entries = Inversion(), list[bytes | memoryview]()
        self._columns: dict[str, RowWriter] = {}
        self._documents: dict[ThreadId, int] = {}
        self._deleted: set[int] = set()
        self._widths: dict[str, int] = {}
        self._lock = self._storage.lock(f"{NAME}_WRITELOCK")
        if not self._lock.acquire():
            raise LockError

    @property
    def most(self) -> int:
        """Most documents in all segments in one file together; the next merge puts more into parts.

        Fewer next to segments in parts, because an event fetches these files as a whole.
        """
        usual = self._sizes.documents
        return usual // 4 if any(segment.in_parts for segment in self._toc.segments) else usual

    def delete(self, segment: int, document: int) -> None:
        """Delete a document from one of the segments by its number."""
        self._toc.segments[segment].delete_document(document)

    def add(self, document: IndexDocument) -> None:
        """Add a document in place of an earlier one of this batch with its id. Raises ValueError as `check_vectors`."""
        check_vectors([document], self._widths)
        entry, number = document.entry, self.count
        self._deleted |= {self._documents[entry.id]} if entry.id in self._documents else set()
        self._documents[entry.id] = number
        numbers = {
            "created": _seconds(entry.created_at),
            "key": stand_in(entry.id),
            "target": 0 if entry.duplicate_of is None else stand_in(entry.duplicate_of),
            "target_at": _seconds(entry.duplicate_at),
            "length": entry.length,
            "kind": KINDS[entry.kind],
            "alone": _seconds(entry.unvouched_until) * (1 if document.has_role else -1),
            "account": stand_in(entry.author.casefold()) if entry.unvouched_until else 0,
            **{name: _seconds(at) for name, at in zip_longest(FLIPS, entry.flips[: len(FLIPS)])},
        }
        for name, row in chain(
            ((name, _NUMBER.pack(value)) for name, value in numbers.items()), document.vectors.items()
        ):
            self._column(name).extend(number, row, len(row))
        self._entries.append(pack_stored(entry))
        self._lists.append(id_key(entry.id), number, 1)
        for field, levels in ((NOTES, bm25f.note_impacts(document)), (TEXT, bm25f.text_impacts(document))):
            for term, level in levels.items():
                self._lists.append(encode_key(LETTERS[field], term), number, level)
        self.count += 1

    def take_over(self, segment: Segment) -> None:
        """Add the documents of a segment that are not deleted."""
        reader = open_segment(self._storage, segment, self.parts)
        self.parts.prefetch(reader.parts)
        alive = [number not in reader.deleted for number in range(reader.count)]
        kept = list(compress(range(reader.count), alive))
        self._entries += [reader.piece(number) for number in kept]
        for name, rows in reader.rows():
            self._column(name).extend(self.count, rows[kept].tobytes(), rows.shape[1])
        renumbered = list(accumulate(alive, initial=self.count))
        for key, documents, levels in reader.items():
            is_kept = [alive[document] for document in documents]
            if any(is_kept):
                numbers = [renumbered[document] for document in compress(documents, is_kept)]
                self._lists.extend(key, numbers, bytes(compress(levels, is_kept)))
        self.count += len(kept)

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
            for name in {*(set(self._storage.list()) - self._before), f"{NAME}_WRITELOCK"}:
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
        # The number in the name of a new table of contents depends on its content, so a name never means two things,
        # even when an index is built again in place of another.
        if generation == 1 and segments:
            generation += int(segments[0].segid[:7], 16)
        TOC(SCHEMA, segments, generation).write(self._storage, NAME)
        clean_files(self._storage, NAME, generation, segments)

    def _segment(self) -> Segment:
        columns = {name: column.packed(self.count) for name, column in self._columns.items()}
        columns["entry"] = pack_pieces(self._entries)
        in_parts = self.count > self.most
        if in_parts:
            data = split_segment(columns, self._lists, self.count, self.parts, self._sizes)
        else:
            data = pack_columns(columns | {TERMS: self._lists.packed(), "_stored": _stored(self.count)})
        name = hashlib.sha256(data).hexdigest()[:16]
        segment = Segment(None, NAME, doccount=self.count, segid=name, deleted=self._deleted or None)
        segment.in_parts = in_parts
        Path(self._storage.folder, segment.file_name).write_bytes(data)
        return segment


def _stored(count: int) -> bytes:
    """Whoosh's column of stored fields, which are none."""
    file = StructFile(BytesIO())
    STORED_COLUMN.writer(file).finish(count)
    packed: bytes = file.raw_file().getvalue()
    return packed


def write_index(folder: Path, documents: Iterable[IndexDocument], sizes: Sizes | None = None) -> None:
    """Write an index of ``documents`` into an empty folder, see `bot.index.build_index`."""
    folder.mkdir(parents=True, exist_ok=True)
    with IndexWriter(folder, IndexParts(folder), sizes or USUAL, TOC(SCHEMA, [], 0)) as writer:
        for document in documents:
            writer.add(document)


def check_vectors(documents: Iterable[IndexDocument], widths: dict[str, int]) -> None:
    """Raises ValueError for a vector of an unknown field, or of another length than in ``widths``.

    The lengths of the first vectors are added to ``widths`` for fields that it does not have.
    """
    for document in documents:
        for arm, vector in document.vectors.items():
            if arm not in VECTOR_FIELDS or not 0 < len(vector) <= MAX_LENGTH:
                raise ValueError(f"a vector of {len(vector)} numbers for {arm!a:.40}")
            if len(vector) != widths.setdefault(arm, len(vector)):
                raise ValueError(f"a vector of {len(vector)} numbers for {arm}, where others have {widths[arm]}")


def _seconds(moment: datetime | None) -> int:
    return 0 if moment is None else math.ceil(moment.timestamp())


def merge_segments(writer: IndexWriter, segments: list[Segment]) -> list[Segment]:
    """Merge small segments, and copy those of which most is deleted, or must be gone; returns the others.

    Segments in parts are left alone, because an event would fetch and push them as a whole; but when there are many,
    all but the largest become one. A memory that has doubled learns again, and its index is then one segment again.
    """
    ordered = sorted(segments, key=lambda found: found.doc_count_all())
    parted = [segment for segment in ordered if segment.in_parts]
    whole = [segment for segment in ordered if not segment.in_parts]
    small = _small(whole)
    for segment in small:
        writer.take_over(segment)
    rest = whole[len(small) :] if small else [segment for segment in segments if not segment.in_parts]
    merged = parted[:-1] if len(parted) > MANY else []
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


def _small(ordered: Sequence[Segment]) -> Sequence[Segment]:
    """The smallest segments, as many as Whoosh's own policy merges: at least five that hold few documents together."""
    total = 0
    for number, segment in enumerate(ordered):
        total += segment.doc_count_all()
        if number > 3 and total < fib(number + 5):
            return ordered[: number + 1]
    return ()


# -- parts -----------------------------------------------------------------------------------------------------------

MAX_BUCKETS = 4_096


def split_segment(
    columns: Mapping[str, bytes], lists: Inversion, documents: int, parts: IndexParts, sizes: Sizes
) -> bytes:
    """Save the parts of a segment and return the bytes of its core; ``columns`` are as `codec` writes them."""
    arms = [arm for arm in VECTOR_FIELDS if arm in columns]
    matrices = {arm: vectors.matrix(*read_rows(columns[arm], documents)) for arm in arms}
    kept = {letter: _places(lists, letter, sizes) for letter in FIELDS}
    widths = {arm: rows.shape[1] for arm, rows in matrices.items()}
    core = Core(documents, widths, sizes.rows, sizes.entries, kept, [])
    made = [
        _numbers(columns, core),
        *(_codes(rows, core.rows_of(arm)) for arm, rows in matrices.items()),
        _entries(columns["entry"], core),
        *(_lists(lists, letter, kept[letter]) for letter in FIELDS),
    ]
    return encode_core(replace(core, names=[parts.save(part) for section in made for part in section]))


def _numbers(columns: Mapping[str, bytes], core: Core) -> Iterator[bytes]:
    found = [arrays.numbers(read_rows(columns[name], core.documents)[0]) for name in NUMBERS]
    step = core.rows
    return (arrays.pack_planes([column[at : at + step] for column in found]) for at in range(0, core.documents, step))


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


def _places(lists: Inversion, letter: str, sizes: Sizes) -> PostingLayout:
    found = _sizes(lists, letter)
    heavy = tuple(sorted(key for key, size in found.items() if size >= sizes.heavy))
    light = sum(size for size in found.values() if size < sizes.heavy)
    buckets = 1 << max(0, round(light / sizes.bucket) - 1).bit_length()
    return PostingLayout(min(MAX_BUCKETS, buckets), heavy)


def _lists(lists: Inversion, letter: str, kept: PostingLayout) -> Iterator[bytes]:
    places: list[list[bytes]] = [[] for _ in range(kept.size)]
    for key in _sizes(lists, letter):
        places[kept.place(key)].append(key)
    for keys in places:
        yield lists.packed(keys)


def _sizes(lists: Inversion, letter: str) -> dict[bytes, int]:
    start = letter.encode()
    return {key: size for key, size in lists.sizes().items() if key.startswith(start)}
