"""The files of an index: Whoosh's table of contents and segments, with records, columns and entries of our own.

Whoosh stores segments, directories, posting blocks and stored fields as pickles, which would turn a stranger's index
into a program. Here a record is JSON, a posting list is as written by `posting_lists`, a column is plain bytes and an
entry is JSON, and every byte is checked as data. The classes of Whoosh that could still unpickle are replaced where
they are created, so there is no list of allowed names.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from math import ceil
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from whoosh.codec.whoosh3 import W3Segment
from whoosh.filedb.filestore import FileStorage
from whoosh.filedb.structfile import StructFile

from bot.domain.digest import IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index.arrays import Numbers
from bot.index.protocol import NOTES, TEXT
from bot.index.segment_file import encode_key
from bot.index.vectors import MAX_DIMENSIONS

INDEX_NAME = "MAIN"
"""Whoosh's name for an unnamed index."""

SEGMENT_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
MAX_DOCUMENTS = 1 << 20
"""Most documents in one segment; the largest repositories have a quarter of that."""

TERMS_FILE = "trm"
"""The file of terms within a segment; the others are columns."""

VECTOR_COLUMN = "vector"
"""The column of vectors, which an index without any lacks."""

_COLUMN_EXT = ".col"
_UNNAMED_ID = "0" * 16
_LOCATION = struct.Struct(">qi")
_MAX_RECORD_BYTES = 16 << 20


class JsonFile(StructFile):  # type: ignore[misc]
    """A file whose records, which Whoosh would pickle, are JSON prefixed with its length."""

    def write_pickle(self, obj: Any, protocol: int = -1) -> None:
        text = json.dumps(obj, default=_segment_record, separators=(",", ":"))
        self.write_string4(text.encode())

    def read_pickle(self) -> Any:
        size = self.read_int()
        if not 0 < size <= _MAX_RECORD_BYTES:
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
    """The table of contents: the segments, without a schema, because the schema is ours."""

    def read_pickle(self) -> list[Segment]:
        return [_segment(record) for record in super().read_pickle()]

    def write_string(self, s: bytes) -> None:
        super().write_string(b"")

    def skip_string(self) -> None:
        if self.read_varint():
            raise ValueError("an unexpected schema")


class Storage(FileStorage):  # type: ignore[misc]
    """The folder of an index, where Whoosh only reads and writes the table of contents."""

    def create_file(self, name: str, *args: Any, **options: Any) -> TocFile:
        return TocFile(super().create_file(name, *args, **options).raw_file(), name=name)

    def open_file(self, name: str, *args: Any, **options: Any) -> TocFile:
        return TocFile(BytesIO(Path(self.folder, name).read_bytes()), name=name)

    def list(self) -> list[str]:
        return sorted(super().list())


class Segment(W3Segment):  # type: ignore[misc]
    """A segment as the table of contents describes it.

    Its file is named after its content, so a name always stands for the same bytes.
    """

    @property
    def file_name(self) -> str:
        """The segment's only file in the folder of the index."""
        name: str = self.make_filename(self.COMPOUND_EXT)
        return name


def pack_columns(columns: Mapping[str, bytes]) -> bytes:
    """The single file of a segment, in Whoosh's layout: the files inside it, then a directory of them."""
    file, directory = JsonFile(BytesIO()), {}
    file.write(_LOCATION.pack(0, 0))
    names = {
        f"{INDEX_NAME}_{_UNNAMED_ID}.{name}{'' if name == TERMS_FILE else _COLUMN_EXT}": data
        for name, data in columns.items()
    }
    for name, data in sorted(names.items()):
        directory[name] = {"offset": file.tell(), "length": len(data), "modified": 0}
        file.write(data)
    at = file.tell()
    file.write_pickle(directory)
    file.write_pickle({})
    size = file.tell() - at
    file.seek(0)
    file.write(_LOCATION.pack(at, size))
    packed: bytes = file.raw_file().getvalue()
    return packed


def read_columns(storage: Storage, segment: Segment) -> dict[str, memoryview]:
    """The files inside the single file of a segment, in place: by the name of each column, and `TERMS_FILE`.

    Raises ValueError, KeyError or TypeError for a damaged directory.
    """
    with Path(storage.folder, segment.file_name).open("rb") as file:
        content = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    at = int.from_bytes(content[:8], "big")
    directory = JsonFile(BytesIO(content[at : at + 4 + _MAX_RECORD_BYTES])).read_pickle()
    columns, start = {}, len(f"{INDEX_NAME}_{_UNNAMED_ID}.")
    for name, location in directory.items():
        offset, size = location["offset"], location["length"]
        if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size <= len(content):
            raise ValueError("the directory of a segment is damaged")
        columns[name[start:].removesuffix(_COLUMN_EXT)] = content[offset : offset + size]
    return columns


def _segment_record(segment: Segment) -> dict[str, Any]:
    deleted = sorted(segment.deleted_docs())
    return {"id": segment.segid, "documents": segment.doc_count_all(), "deleted": deleted}


def _segment(record: dict[str, Any]) -> Segment:
    """The segment in a record from disk. Raises ValueError, KeyError or TypeError for an invalid record."""
    name, documents, deleted = record["id"], record["documents"], record["deleted"]
    if not (SEGMENT_ID.fullmatch(name) and type(documents) is int and 0 < documents <= MAX_DOCUMENTS):
        raise ValueError("a segment record is damaged")
    if not all(type(number) is int and 0 <= number < documents for number in deleted):
        raise ValueError("a segment record is damaged")
    segment = Segment(None, INDEX_NAME, doccount=documents, segid=name, deleted=set(deleted) or None)
    segment.compound = True
    return segment


# -- columns ---------------------------------------------------------------------------------------------------------

FLIP_COLUMNS = ("flip1", "flip2", "flip3", "flip4")


def flip_numbers(state_changes: Sequence[datetime]) -> list[int]:
    """The state changes that fit into the columns, in seconds: the last ones, from a closing on.

    The first of them is negative if there were earlier ones, which only the entry has.
    """
    surplus = max(0, len(state_changes) - len(FLIP_COLUMNS))
    numbers = list(map(whole_seconds, state_changes[surplus + surplus % 2 :]))
    return [-numbers[0], *numbers[1:]] if surplus else numbers


def whole_seconds(moment: datetime | None) -> int:
    """Seconds since 1970, rounded up: a search ``before`` a moment sees only what was before it. 0 for None."""
    return ceil(moment.timestamp()) if moment else 0


NUMBER_COLUMNS = (
    *("created", "key", "target", "target_at", "length", "kind", "alone", "account", "is_embedded"),
    *FLIP_COLUMNS,
)
"""Columns of 8-byte numbers: creation time, the hash of the thread, the hash of the thread that it duplicates and since
when that is known (0 for none), number of characters, kind (`KIND_NUMBERS`), until when nobody vouched for it (0 for
never; negative if its author's role is not recorded), the hash of the account, whether a text model has read it, and
when it was closed, reopened, closed and reopened again (0 for never; `flip_numbers`). Times are `whole_seconds`."""

FIELD_LETTERS = {"id": "i", NOTES: "n", TEXT: "t"}
"""Field → the first letter of its keys."""

KIND_NUMBERS = {kind: number for number, kind in enumerate(Kind, 1)}
"""Kind → the number that stands for it in a column."""

_COUNT = struct.Struct("<I")


def id_term(key: ThreadId) -> str:
    return f"#{key}" if isinstance(key, int) else f"={key}"


def id_key(key: ThreadId) -> bytes:
    """The key of the list that contains only a thread's document."""
    return encode_key(FIELD_LETTERS["id"], id_term(key))


def hash_key(key: ThreadId) -> int:
    """A stable hash of a thread's id or an account's name: 63 bits, never 0."""
    digest = hashlib.blake2b(id_term(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1 or 1


class RowWriter:
    """Collects rows as wide as the first one. Packed: the width, then all rows, zeros for documents without one."""

    def __init__(self) -> None:
        self._rows = bytearray()
        self._width = self._count = 0

    def extend(self, document: int, rows: bytes, width: int) -> None:
        """Add rows for this document and those after it. Raises ValueError if their width differs from the others."""
        self._width = self._width or width
        if width != self._width:
            raise ValueError(f"a row of {width} bytes among rows of {self._width}")
        self._fill(document)
        self._rows += rows
        self._count += len(rows) // width

    def packed(self, count: int) -> bytes:
        self._fill(count)
        return _COUNT.pack(self._width) + self._rows

    def _fill(self, count: int) -> None:
        self._rows += bytes(self._width * (count - self._count))
        self._count = count


def read_rows(column: bytes | memoryview, count: int) -> tuple[memoryview, int]:
    """All rows of a column of ``count`` documents, and their width. Raises ValueError, struct.error."""
    buffer = memoryview(column)
    [width] = _COUNT.unpack(buffer[: _COUNT.size])
    if not 0 < width <= MAX_DIMENSIONS or len(buffer) != _COUNT.size + count * width:
        raise ValueError("a column is damaged")
    return buffer[_COUNT.size :], width


def read_vectors(columns: Mapping[str, bytes | memoryview], count: int) -> tuple[memoryview, int]:
    """All rows of the column of vectors, and their width: 0 if there is no such column. Raises like `read_rows`."""
    return read_rows(columns[VECTOR_COLUMN], count) if VECTOR_COLUMN in columns else (memoryview(b""), 0)


def pack_pieces(rows: Sequence[bytes | memoryview]) -> bytes:
    """A column of rows of any width: all rows, then the length of each."""
    return b"".join([*rows, *(_COUNT.pack(len(row)) for row in rows)])


def read_pieces(column: bytes | memoryview, count: int) -> tuple[memoryview, Numbers]:
    """All rows of such a column of ``count`` documents, and where each one ends. Raises ValueError, IndexError."""
    buffer = memoryview(column)
    size = len(buffer) - count * _COUNT.size
    if size < 0:
        raise ValueError("a column is damaged")
    ends = np.cumsum(np.frombuffer(buffer[size:], "<u4"), dtype=np.int64)
    if int(ends[-1]) != size:
        raise ValueError("a column is damaged")
    return buffer[:size], ends


# -- entries ---------------------------------------------------------------------------------------------------------

MIN_ENTRY_BYTES = 40
"""Minimum length of a packed entry in bytes."""

_decode = json.JSONDecoder().raw_decode
_KINDS = {kind.value: kind for kind in Kind}
_TIME_TYPES: set[type] = {int, float}
_TEXT_TYPES: set[type] = {str}
_MAX_COUNT = 1 << 53
_FIELD_TYPES: dict[str, set[type]] = {
    "id": {int, str},
    "kind": _TEXT_TYPES,
    "title": _TEXT_TYPES,
    "author": _TEXT_TYPES,
    "state": _TEXT_TYPES,
    "created_at": _TIME_TYPES,
    "updated_at": _TIME_TYPES,
    "labels": {list},
    "length": {int},
    "duplicate_of": {int, str, type(None)},
    "duplicate_at": {*_TIME_TYPES, type(None)},
    "state_changes": {list},
    "unvouched_until": {*_TIME_TYPES, type(None)},
    "role": _TEXT_TYPES,
}
"""The fields of an `IndexEntry` in order, and the JSON types that each may have."""


def pack_stored(entry: IndexEntry) -> bytes:
    """One JSON list in UTF-8 (lone surrogates kept), times in seconds since 1970."""
    values = [getattr(entry, name) for name in _FIELD_TYPES]
    text = json.dumps(values, default=_seconds, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1 << 13)
def unpack_stored(data: bytes) -> IndexEntry:
    """The inverse of `pack_stored`. Raises ValueError, KeyError, OverflowError, OSError or RecursionError."""
    text = str(data, "utf-8", "surrogatepass")
    values, end = _decode(text)
    if end != len(text) or type(values) is not list or not _is_fit(tuple(map(type, values))):
        raise ValueError("an entry is damaged")
    return _entry(*values)


@lru_cache(maxsize=1024)
def _is_fit(types: tuple[type, ...]) -> bool:
    return len(types) == len(_FIELD_TYPES) and all(
        kind in allowed for kind, allowed in zip(types, _FIELD_TYPES.values(), strict=True)
    )


def _entry(id: ThreadId, kind: str, title: str, author: str, state: str, created_at: float, *rest: Any) -> IndexEntry:
    updated_at, labels, length, *more = rest
    duplicate_of, duplicate_at, state_changes, unvouched_until, role = more
    if (labels and not {*map(type, labels)} <= _TEXT_TYPES) or (
        state_changes and not {*map(type, state_changes)} <= _TIME_TYPES
    ):
        raise ValueError("an entry is damaged")
    if not 0 <= length < _MAX_COUNT:
        raise ValueError("an entry is damaged")
    return IndexEntry(
        id,
        _KINDS[kind],
        title,
        author,
        state,
        _moment(created_at),
        _moment(updated_at),
        tuple(labels),
        length,
        duplicate_of,
        None if duplicate_at is None else _moment(duplicate_at),
        tuple(map(_moment, state_changes)),
        None if unvouched_until is None else _moment(unvouched_until),
        role,
    )


def _seconds(moment: datetime) -> float:
    seconds = moment.timestamp()
    return int(seconds) if seconds.is_integer() else seconds


@lru_cache(maxsize=1 << 12)
def _moment(seconds: float) -> datetime:
    # Cached, because the last flip is when the thread was closed, and often when it was last changed.
    return datetime.fromtimestamp(seconds, UTC)
