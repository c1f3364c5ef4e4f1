"""A Whoosh codec without pickles: segments whose every byte is checked as data.

Whoosh's own codec stores segments, directories, posting blocks and stored fields as pickles, which makes an index from
a stranger a program. Here a record is JSON, a posting list is as `posting_lists` writes it, and an entry is a column of
bytes; the classes of Whoosh that could still unpickle are replaced where they are made, so there is no list of names to
allow.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from whoosh.codec.base import FieldWriter, TermsReader
from whoosh.codec.whoosh3 import W3Codec, W3PerDocReader, W3PerDocWriter, W3Segment
from whoosh.columns import Column, ColumnWriter
from whoosh.filedb.compound import CompoundStorage
from whoosh.filedb.filestore import FileStorage
from whoosh.filedb.structfile import BufferFile, StructFile

from bot.index.arrays import Numbers, ends
from bot.index.posting_lists import Inversion, Postings, TermFile
from bot.index.vectors import MAX_LENGTH

NAME = "MAIN"
"""Whoosh's name of an index that has none."""

SEGMENT_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
CORE_EXT = ".core"
MAX_DOCUMENTS = 1 << 20
"""Of one segment; the largest repositories have a quarter of that."""

_UNNAMED = "0" * 16
_TOC = ".toc"
_MAX_RECORD = 16 << 20


class JsonFile(StructFile):  # type: ignore[misc]
    """A file whose records, which Whoosh would pickle, are JSON with its length in front."""

    def write_pickle(self, obj: Any, protocol: int = -1) -> None:
        text = json.dumps(obj, default=_segment_record, separators=(",", ":"))
        self.write_string4(text.encode())

    def read_pickle(self) -> Any:
        size = self.read_int()
        if not 0 < size <= _MAX_RECORD:
            raise ValueError("a record is damaged")
        return json.loads(self.read(size))

    def read_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte: int = self.read_byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number is damaged")


class TocFile(JsonFile):
    """The table of contents: the segments, and no schema, because the schema is ours."""

    def read_pickle(self) -> list[Segment]:
        return [_segment(record) for record in super().read_pickle()]

    def write_string(self, s: bytes) -> None:
        super().write_string(b"")

    def skip_string(self) -> None:
        if self.read_varint():
            raise ValueError("a schema where none is written")


class Storage(FileStorage):  # type: ignore[misc]
    """A folder of such files. The same documents give the same bytes: nothing depends on order or time of files."""

    def create_file(self, name: str, *args: Any, **options: Any) -> JsonFile:
        return self._checked(super().create_file(name, *args, **options), name)

    def open_file(self, name: str, *args: Any, **options: Any) -> JsonFile:
        if name.endswith(_TOC):
            return TocFile(BytesIO(Path(self.folder, name).read_bytes()), name=name)
        return self._checked(super().open_file(name, *args, **options), name)

    def list(self) -> list[str]:
        return sorted(super().list())

    def file_modified(self, name: str) -> float:
        return 0

    @staticmethod
    def _checked(file: StructFile, name: str) -> JsonFile:
        return (TocFile if _TOC in name else JsonFile)(file.raw_file(), name=name)


class Slice(BufferFile):  # type: ignore[misc]
    """A part of a segment, read in place."""

    def __init__(self, buffer: memoryview, name: str) -> None:
        self.buffer = self._buf = buffer
        self._name = name
        self.file = self.onclose = None
        self.is_real = self.is_closed = False


class SegmentFile(CompoundStorage):  # type: ignore[misc]
    """The files of a segment within its one file."""

    def open_file(self, name: str, *args: Any, **options: Any) -> Slice:
        offset, size = self.range(name)
        whole = memoryview(self._source)
        if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size <= len(whole):
            raise ValueError("the directory of a segment is damaged")
        return Slice(whole[offset : offset + size], name)


class Segment(W3Segment):  # type: ignore[misc]
    """What the table of contents says of a segment.

    Its file is named by its content, so a name never means two things; the files within have names that do not depend
    on it. One ``in_parts`` has a core in the place of that file.
    """

    in_parts = False

    @property
    def file_name(self) -> str:
        """Its one file in the folder of the index."""
        return self.make_filename(CORE_EXT if self.in_parts else self.COMPOUND_EXT)

    def make_filename(self, ext: str) -> str:
        return f"{NAME}_{self.segid if ext in (self.COMPOUND_EXT, CORE_EXT) else _UNNAMED}{ext}"

    def create_compound_file(self, storage: Storage) -> None:
        super().create_compound_file(storage)
        unnamed = self.make_filename(self.COMPOUND_EXT)
        with storage.open_file(unnamed) as file:
            self.segid = hashlib.file_digest(file.raw_file(), "sha256").hexdigest()[:16]
        storage.rename_file(unnamed, self.make_filename(self.COMPOUND_EXT))

    def open_compound_file(self, storage: Storage) -> SegmentFile:
        file = storage.open_file(self.make_filename(self.COMPOUND_EXT))
        try:
            return SegmentFile(file)
        except BaseException:
            file.close()
            raise


class Codec(W3Codec):  # type: ignore[misc]
    """How segments are written and read."""

    length_stats = False

    def new_segment(self, storage: Storage, indexname: str) -> Segment:
        return Segment(self, indexname, segid=_UNNAMED)

    def field_writer(self, storage: Storage, segment: Segment) -> TermWriter:
        return TermWriter(segment.create_file(storage, self.TERMS_EXT))

    def terms_reader(self, storage: Storage, segment: Segment) -> Terms:
        return Terms(segment.open_file(storage, self.TERMS_EXT), segment.doc_count_all())

    def per_document_writer(self, storage: Storage, segment: Segment) -> PerDocumentWriter:
        return PerDocumentWriter(self, storage, segment)

    def per_document_reader(self, storage: Storage, segment: Segment) -> PerDocument:
        return PerDocument(storage, segment)


class PerDocumentWriter(W3PerDocWriter):  # type: ignore[misc]
    """Writes columns, also those of many documents at once."""

    def column(self, field: str, kind: Any) -> Any:
        """The writer of a column, begun where none of the documents so far had one."""
        if not self._has_column(field):
            self._create_column(field, kind)
        return self._get_column(field)

    def names(self) -> list[str]:
        return list(self._colwriters)

    def pass_by(self, documents: int) -> None:
        """Go on behind so many documents, whose columns are written."""
        self._doccount += documents

    def abandon(self) -> None:
        self._cols._temp.close()


class PerDocument(W3PerDocReader):  # type: ignore[misc]
    """The columns of a segment; stored fields, which would be pickles, are not read."""

    def column(self, field: str) -> memoryview:
        """The bytes of a column, in place. Raises NameError or OSError where there is none."""
        file, _, _ = self._get_column_file(field)
        found: memoryview = file.buffer
        return found

    def stored_fields(self, docnum: int) -> dict[str, Any]:
        return {}


class TermWriter(FieldWriter):  # type: ignore[misc]
    """Writes the file of terms."""

    def __init__(self, file: JsonFile) -> None:
        self._file = file
        self.is_closed = False

    def add_postings(self, schema: object, lengths: object, items: Inversion) -> None:
        items.write(self._file)

    def close(self) -> None:
        self._file.close()
        self.is_closed = True

    abandon = close


class Terms(TermsReader):  # type: ignore[misc]
    """Reads the file of terms."""

    def __init__(self, file: Slice, documents: int) -> None:
        self._file = file
        self._terms = TermFile(file.buffer, documents)

    def get(self, key: bytes) -> Postings | None:
        return self._terms.get(key)

    def items(self) -> Iterator[tuple[bytes, list[int], bytes]]:
        return self._terms.items()

    def close(self) -> None:
        self._terms.close()
        self._file.close()


def _segment_record(segment: Segment) -> dict[str, Any]:
    deleted = sorted(segment.deleted_docs())
    record = {"id": segment.segid, "documents": segment.doc_count_all(), "deleted": deleted}
    return record | ({"parts": True} if segment.in_parts else {})


def _segment(record: dict[str, Any]) -> Segment:
    """The segment of a record from disk. Raises ValueError, KeyError or TypeError for anything but an honest one."""
    name, documents, deleted = record["id"], record["documents"], record["deleted"]
    if not SEGMENT_ID.fullmatch(name) or type(documents) is not int or not 0 < documents <= MAX_DOCUMENTS:
        raise ValueError("a segment record is damaged")
    if not all(type(number) is int and 0 <= number < documents for number in deleted):
        raise ValueError("a segment record is damaged")
    segment = Segment(Codec(), NAME, doccount=documents, segid=name, deleted=set(deleted) or None)
    segment.in_parts = record.get("parts", False)
    if type(segment.in_parts) is not bool:
        raise ValueError("a segment record is damaged")
    segment.compound = not segment.in_parts
    return segment


# -- columns ---------------------------------------------------------------------------------------------------------

FLIPS = ("flip1", "flip2", "flip3", "flip4")
NUMBERS = ("created", "key", "target", "target_at", "length", "kind", "alone", "account", *FLIPS)
"""Columns of numbers of eight bytes: when a document was created, what stands for its thread, what stands for the
thread that it is a duplicate of, since when that is known (0 for none), how many characters it has, of which kind it is
(`segment_reader.KINDS`), until when nobody vouched for it (0 for never; negative where nobody told what its author is
to the repository) and what stands for their account, and when it was closed, reopened, closed and reopened again (0 for
never). Times are seconds since 1970, rounded up: what a search ``before`` a moment sees was before it."""

_COUNT = struct.Struct("<I")


class RowWriter(ColumnWriter):  # type: ignore[misc]
    """Writes rows of the width that the first of them has: the width, then all rows, zeros for a document without."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._width = self._count = 0

    def add(self, document: int, row: bytes) -> None:
        self.extend(document, row, len(row))

    def extend(self, document: int, rows: bytes, width: int) -> None:
        """Add rows for this document and those after it. Raises ValueError when their width is not that of the rest."""
        if not self._width:
            self._width = width
            self._file.write(_COUNT.pack(width))
        if width != self._width:
            raise ValueError(f"a row of {width} bytes among rows of {self._width}")
        self.fill(document)
        self._file.write(rows)
        self._count += len(rows) // width

    def fill(self, document: int) -> None:
        self._file.write(bytes(self._width * (document - self._count)))
        self._count = document

    def finish(self, count: int) -> None:
        self.fill(count)


class Rows(Column):  # type: ignore[misc]
    """Rows of one width."""

    Writer = RowWriter

    @staticmethod
    def read(buffer: memoryview, count: int) -> tuple[memoryview, int]:
        """All rows of a column of ``count`` documents, and their width. Raises ValueError, struct.error."""
        [width] = _COUNT.unpack(buffer[: _COUNT.size])
        if not 0 < width <= MAX_LENGTH or len(buffer) != _COUNT.size + count * width:
            raise ValueError("a column is damaged")
        return buffer[_COUNT.size :], width


class PieceWriter(ColumnWriter):  # type: ignore[misc]
    """Writes rows of any width, one for each document: all rows, then the length of each."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lengths = bytearray()

    def add(self, document: int, row: bytes) -> None:
        self.extend([row])

    def extend(self, rows: Sequence[bytes | memoryview]) -> None:
        """Add rows for the next documents."""
        self._lengths += b"".join(_COUNT.pack(len(row)) for row in rows)
        self._file.write(b"".join(rows))

    def finish(self, count: int) -> None:
        self._file.write(self._lengths)


class Pieces(Column):  # type: ignore[misc]
    """Rows of any width."""

    Writer = PieceWriter

    @staticmethod
    def read(buffer: memoryview, count: int) -> tuple[memoryview, Numbers]:
        """All rows of a column of ``count`` documents, and where each ends. Raises ValueError, IndexError."""
        size = len(buffer) - count * _COUNT.size
        if size < 0:
            raise ValueError("a column is damaged")
        found = ends(buffer[size:])
        if int(found[-1]) != size:
            raise ValueError("a column is damaged")
        return buffer[:size], found
