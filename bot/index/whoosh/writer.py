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
from itertools import accumulate, compress, zip_longest
from pathlib import Path
from typing import Any

from whoosh.fields import FieldType, Schema
from whoosh.index import FileIndex, LockError
from whoosh.util import fib
from whoosh.writing import SegmentWriter

from bot.domain.thread import ThreadId
from bot.index import arrays, bm25f, vectors
from bot.index.posting_lists import Inversion
from bot.index.protocol import USUAL, VECTOR_FIELDS, IndexDocument, Sizes
from bot.index.segment_file import encode_key
from bot.index.vectors import MAX_LENGTH
from bot.index.whoosh.codec import (
    CORE_EXT,
    FLIPS,
    KINDS,
    LETTERS,
    NAME,
    NUMBERS,
    Codec,
    Pieces,
    Rows,
    Segment,
    Storage,
    id_term,
    pack_stored,
    stand_in,
)
from bot.index.whoosh.segment_parts import FIELDS, Core, IndexParts, PostingLayout, encode_core
from bot.index.whoosh.segment_reader import SegmentReader, open_segment

MANY = 8
"""Most segments in parts; with more, a question would read too many files."""

_NUMBER = struct.Struct("<q")


class TermsField(FieldType):  # type: ignore[misc]
    """A field whose value is a mapping of terms to levels: Whoosh analyses nothing."""

    analyzer = format = scorable = stored = unique = vector = column_type = None
    indexed = True

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def index(self, value: Mapping[str, int], **options: Any) -> Iterator[tuple[bytes, int, int, bytes]]:
        letter = self.letter
        return ((encode_key(letter, term), 1, level, b"") for term, level in value.items())


class ColumnField(FieldType):  # type: ignore[misc]
    """A field that is stored as a column."""

    analyzer = format = scorable = stored = unique = vector = None
    indexed = False

    def __init__(self, column: Any) -> None:
        self.column_type = column

    def to_column_value(self, value: Any) -> Any:
        return value


SCHEMA = Schema(
    entry=ColumnField(Pieces()),
    **{name: ColumnField(Rows()) for name in (*NUMBERS, *VECTOR_FIELDS)},
    **{name: TermsField(letter) for name, letter in LETTERS.items()},
)


class IndexWriter(SegmentWriter):  # type: ignore[misc]
    """One batch of changes. As a context it commits at the end, and after an error leaves the folder as it was.

    With ``purges`` deleted documents leave no trace in the files. Large segments are written in ``parts``.
    """

    def __init__(self, index: Any, parts: IndexParts, sizes: Sizes = USUAL) -> None:
        self.parts, self._sizes = parts, sizes
        self._before = set(index.storage.list())
        try:
            super().__init__(index, codec=Codec())
        except LockError:
            raise
        except BaseException:
            self._clean_up(index.storage)
            raise
        self.purges = False
        self.pool = Pool()
        self._numbers: dict[ThreadId, int] = {}
        self._widths: dict[str, int] = {}

    @property
    def most(self) -> int:
        """Most documents in all segments in one file together; the next merge puts more into parts.

        Fewer next to segments in parts, because an event fetches these files as a whole.
        """
        usual = self._sizes.documents
        return usual // 4 if any(segment.in_parts for segment in self.segments) else usual

    def add(self, document: IndexDocument) -> None:
        """Add a document in place of an earlier one of this batch with its id. Raises ValueError as `check_vectors`."""
        check_vectors([document], self._widths)
        entry = document.entry
        earlier = self._numbers.get(entry.id)
        if earlier is not None:
            self.newsegment.delete_document(earlier)
        self._numbers[entry.id] = self.docnum
        self.add_document(
            created=_seconds(entry.created_at),
            key=_NUMBER.pack(stand_in(entry.id)),
            target=_NUMBER.pack(0 if entry.duplicate_of is None else stand_in(entry.duplicate_of)),
            target_at=_seconds(entry.duplicate_at),
            length=_NUMBER.pack(entry.length),
            kind=_NUMBER.pack(KINDS[entry.kind]),
            alone=_seconds(entry.unvouched_until, 1 if document.has_role else -1),
            account=_NUMBER.pack(stand_in(entry.author.casefold()) if entry.unvouched_until else 0),
            **{name: _seconds(at) for name, at in zip_longest(FLIPS, entry.flips[: len(FLIPS)])},
            entry=pack_stored(entry),
            id={id_term(entry.id): 1},
            notes=bm25f.note_impacts(document),
            text=bm25f.text_impacts(document),
            **document.vectors,
        )

    def take_over(self, segment: Segment) -> None:
        """Add the documents of a segment that are not deleted."""
        reader = open_segment(self.storage, segment, self.parts)
        self.parts.prefetch(reader.parts)
        base = self.docnum
        alive = [number not in reader.deleted for number in range(reader.count)]
        self._copy_columns(reader, alive)
        renumbered = list(accumulate(alive, initial=base))
        for key, documents, levels in reader.items():
            kept = [alive[document] for document in documents]
            if any(kept):
                numbers = [renumbered[document] for document in compress(documents, kept)]
                self.pool.extend(key, numbers, bytes(compress(levels, kept)))
        self._added = self.docnum > 0

    def _copy_columns(self, reader: SegmentReader, alive: list[bool]) -> None:
        kept = list(compress(range(reader.count), alive))
        self._column("entry").extend([reader.piece(number) for number in kept])
        for name, rows in reader.rows():
            self._column(name).extend(self.docnum, rows[kept].tobytes(), rows.shape[1])
        self.perdocwriter.pass_by(len(kept))
        self.docnum += len(kept)

    def _column(self, name: str) -> Any:
        return self.perdocwriter.column(name, SCHEMA[name].column_type)

    def _finalize_segment(self) -> Segment:
        if self.docnum <= self.most:
            whole: Segment = super()._finalize_segment()
            return whole
        self.perdocwriter.close()
        self.fieldwriter.close()
        segment: Segment = self.get_segment()
        columns = {name: self._loose(segment, f".{name}.col") for name in self.perdocwriter.names()}
        self._loose(segment, Codec.TERMS_EXT)
        data = split_segment(columns, self.pool, self.docnum, self.parts, self._sizes)
        segment.segid, segment.in_parts = hashlib.sha256(data).hexdigest()[:16], True
        Path(self.storage.folder, segment.make_filename(CORE_EXT)).write_bytes(data)
        self._close_segment()
        return segment

    def _loose(self, segment: Segment, ending: str) -> bytes:
        """Read and delete one of the files that a segment is made from."""
        path = Path(self.storage.folder, segment.make_filename(ending))
        data = path.read_bytes()
        path.unlink()
        return data

    def __enter__(self) -> IndexWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        committed = False
        try:
            if kind is None:
                self.commit(mergetype=merge_segments)
                committed = True
            else:
                self.cancel()
        finally:
            if not committed:
                self._abandon()
                self._clean_up(self.storage)

    def _commit_toc(self, segments: list[Segment]) -> None:
        # The number in the name of a new table of contents depends on its content, so a name never means two things,
        # even when an index is built again in place of another.
        if self.generation == 1 and segments:
            self.generation += int(segments[0].segid[:7], 16)
        super()._commit_toc(segments)

    def _finish(self) -> None:
        super()._finish()
        Path(self.storage.folder, f"{NAME}_WRITELOCK").unlink(missing_ok=True)

    def _abandon(self) -> None:
        # Whoosh leaves these open when a merge fails.
        for part in (self.fieldwriter, self.perdocwriter):
            if not part.is_closed:
                part.abandon()

    def _clean_up(self, storage: Storage) -> None:
        # After a failure Whoosh 2.7.4 keeps the lock, and every version leaves some files behind.
        if self.writelock is not None and self.writelock.fd is not None:
            self.writelock.release()
        for name in set(storage.list()) - self._before:
            path = Path(storage.folder, name)
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


class Pool(Inversion):
    """Collects postings in the form of Whoosh's writer."""

    def add(self, item: tuple[str, bytes, int, float, bytes]) -> None:
        self.append(item[1], item[2], int(item[3]))

    def iter_postings(self) -> Inversion:
        return self

    def cleanup(self) -> None:
        self.clear()


def write_index(folder: Path, documents: Iterable[IndexDocument], sizes: Sizes | None = None) -> None:
    """Write an index of ``documents`` into an empty folder, see `bot.index.build_index`."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with IndexWriter(FileIndex.create(Storage(str(folder)), SCHEMA), IndexParts(folder), sizes or USUAL) as writer:
            for document in documents:
                writer.add(document)
    except BaseException:
        for path in folder.glob("*.toc"):  # of the empty index that it began with
            path.unlink()
        raise


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


def _seconds(moment: datetime | None, sign: int = 1) -> bytes:
    return _NUMBER.pack(0 if moment is None else sign * math.ceil(moment.timestamp()))


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
    if writer.docnum + sum(segment.doc_count_all() for segment in rest) > writer.most:
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
    matrices = {arm: vectors.matrix(*Rows.read(memoryview(columns[arm]), documents)) for arm in arms}
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
    found = [arrays.numbers(Rows.read(memoryview(columns[name]), core.documents)[0]) for name in NUMBERS]
    step = core.rows
    return (arrays.pack_planes([column[at : at + step] for column in found]) for at in range(0, core.documents, step))


def _codes(rows: vectors.Matrix, step: int) -> Iterator[bytes]:
    book = vectors.train_codes(rows)
    yield vectors.pack_book(book)
    for at in range(0, len(rows), step):
        yield vectors.encode_vectors(rows[at : at + step], book).tobytes()


def _entries(column: bytes, core: Core) -> Iterator[bytes]:
    pieces, ends = Pieces.read(memoryview(column), core.documents)
    borders = [0, *ends.tolist()]
    for at in range(0, core.documents, core.block):
        file = BytesIO()
        writer = Pieces.Writer(file)
        last = min(at + core.block, core.documents)
        writer.extend([pieces[borders[number] : borders[number + 1]] for number in range(at, last)])
        writer.finish(last - at)
        yield file.getvalue()


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
        file = BytesIO()
        lists.write(file, keys)
        yield file.getvalue()


def _sizes(lists: Inversion, letter: str) -> dict[bytes, int]:
    start = letter.encode()
    return {key: size for key, size in lists.sizes().items() if key.startswith(start)}
