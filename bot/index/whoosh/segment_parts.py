"""How a segment is stored: small ones in one file, large ones in parts, which are listed in a small file, the core.

The core:

    magic, number of documents, size of the description      4 + 4 + 4 bytes
    the description                                          JSON
    half of the SHA-256 of each part                         16 bytes each

Parts come in this order: blocks of the columns of numbers; the book and blocks of codes of the vectors, if there are
any; blocks of entries; for each field its buckets, then its heavy lists. The description says how many documents a
block has. The CRC-32 of a key determines its bucket. All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from bot.index import arrays, vectors
from bot.index.arrays import Numbers, Scores
from bot.index.posting_lists import TermFile
from bot.index.protocol import NOTES, PARTS_FOLDER, TEXT, Fetch, IndexCorrupt
from bot.index.vectors import MAX_DIMENSIONS, Book, Codes, Matrix, Squares
from bot.index.whoosh.codec import (
    FIELD_LETTERS,
    MIN_ENTRY_BYTES,
    NUMBER_COLUMNS,
    TERMS_FILE,
    read_pieces,
    read_rows,
    read_vectors,
)

TARGET_PART_BYTES = 1 << 20
"""Most bytes in a part, except for a list of more than 300,000 documents: GitHub recommends files below a megabyte."""

PARTED_FIELDS = (FIELD_LETTERS[TEXT], FIELD_LETTERS[NOTES])
"""The fields whose lists are in parts; a thread is found by its hash in the column ``key``."""

MAX_PARTS = 1 << 16
_MAX_BUCKETS = 1 << 13
_MAX_ROWS = 1 << 16
_MAGIC = b"PCF1"
_HEADER = struct.Struct("<4sII")


@dataclass(frozen=True)
class PostingLayout:
    """Where the lists of one field are: in this many buckets, but each heavy list has its own part."""

    buckets: int
    heavy: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return self.buckets + len(self.heavy)

    @cached_property
    def _heavy(self) -> Mapping[bytes, int]:
        return {key: self.buckets + number for number, key in enumerate(self.heavy)}

    def part_number(self, key: bytes) -> int:
        """The number of the part to look in for this key."""
        return self._heavy[key] if key in self._heavy else crc32(key) % self.buckets


@dataclass(frozen=True)
class Core:
    """The description of a segment in parts, and the names of its parts.

    ``width`` is the length of the vectors, 0 if there are none; ``rows`` is the number of documents whose numbers and
    codes are in one part, ``block`` the number whose entries are."""

    documents: int
    width: int
    rows: int
    block: int
    lists: Mapping[str, PostingLayout]
    names: Sequence[str]

    def numbers(self) -> Sequence[str]:
        return self._section("numbers")

    def vectors(self) -> Sequence[str]:
        """The parts with the vectors, the code book first."""
        return self._section("vectors")

    def entries(self) -> Sequence[str]:
        return self._section("entries")

    def list_of(self, key: bytes) -> str:
        """The part to look in for this key. Raises KeyError for a key of another field."""
        letter = chr(key[0])
        return self._section(letter)[self.lists[letter].part_number(key)]

    def all_lists(self) -> list[str]:
        return [name for letter in PARTED_FIELDS for name in self._section(letter)]

    def _section(self, name: str) -> Sequence[str]:
        return self.names[slice(*self._borders[name])]

    @cached_property
    def _borders(self) -> Mapping[str, tuple[int, int]]:
        borders, at = {}, 0
        for name, size in self.sizes().items():
            borders[name] = at, at + size
            at += size
        return borders

    @property
    def code_rows(self) -> int:
        """How many rows of codes are in one part."""
        return min(self.rows, TARGET_PART_BYTES // vectors.groups(self.width))

    def sizes(self) -> dict[str, int]:
        """How many parts each section has."""
        counts = {"numbers": _blocks(self.documents, self.rows)}
        counts["vectors"] = 1 + _blocks(self.documents, self.code_rows) if self.width else 0
        counts["entries"] = _blocks(self.documents, self.block)
        return counts | {letter: self.lists[letter].size for letter in PARTED_FIELDS}


def encode_core(core: Core) -> bytes:
    lists = {
        name: [layout.buckets, [key.decode("latin-1") for key in layout.heavy]] for name, layout in core.lists.items()
    }
    description = {"width": core.width, "rows": core.rows, "block": core.block, "lists": lists}
    text = json.dumps(description, separators=(",", ":")).encode()
    return _HEADER.pack(_MAGIC, core.documents, len(text)) + text + bytes.fromhex("".join(core.names))


def decode_core(data: bytes, documents: int) -> Core:
    """The core of a segment of this many documents. Raises ValueError, KeyError, TypeError or struct.error for bytes
    that `encode_core` would not write."""
    magic, count, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or count != documents or size > len(data):
        raise ValueError("the core of a segment is damaged")
    description: Any = json.loads(data[_HEADER.size : _HEADER.size + size])
    digests = data[_HEADER.size + size :]
    names = [digests[at : at + DIGEST_BYTES].hex() for at in range(0, len(digests), DIGEST_BYTES)]
    lists = {letter: _lists(*description["lists"][letter]) for letter in PARTED_FIELDS}
    core = Core(documents, description["width"], description["rows"], description["block"], lists, names)
    are_counts = _is_count(core.rows, _MAX_ROWS) and _is_count(core.block, _MAX_ROWS)
    if not are_counts or not _is_count(core.width, MAX_DIMENSIONS, least=0):
        raise ValueError("the core of a segment is damaged")
    if len(digests) != DIGEST_BYTES * sum(core.sizes().values()) or len(names) > MAX_PARTS:
        raise ValueError("the core of a segment has other parts than it lists")
    return core


def _lists(buckets: object, heavy: list[str]) -> PostingLayout:
    keys = tuple(key.encode("latin-1") for key in heavy)
    if not _is_count(buckets, _MAX_BUCKETS) or len({*keys}) != len(keys):
        raise ValueError("the core of a segment is damaged")
    assert isinstance(buckets, int)
    return PostingLayout(buckets, keys)


def _is_count(value: object, most: int, least: int = 1) -> bool:
    return type(value) is int and least <= value <= most


def _blocks(documents: int, size: int) -> int:
    return -(-documents // size)


# -- parts -----------------------------------------------------------------------------------------------------------

PART_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)
DIGEST_BYTES = 16
MAX_PART_BYTES = 16 << 20
"""Our own parts have at most a sixteenth of that."""


class IndexParts:
    """The parts of an index: new ones are in its folder, others are fetched once each.

    A name is half of the SHA-256 of the content; a part whose content does not match raises IndexCorrupt.
    """

    def __init__(self, folder: Path, fetch: Fetch | None = None) -> None:
        self._folder = folder / PARTS_FOLDER
        self._fetch = fetch
        self._contents: dict[str, bytes] = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Load these parts, fetching all missing ones in one exchange."""
        missing = [name for name in dict.fromkeys(names) if name not in self._contents]
        local = {path.name for path in self._folder.iterdir()} if missing and self._folder.is_dir() else set()
        for name in missing:
            if name in local:
                self._keep(name, (self._folder / name).read_bytes())
        absent = [name for name in missing if name not in local]
        found = self._fetch(absent) if absent and self._fetch else {}
        for name in absent:
            if name not in found:
                raise IndexCorrupt(f"its part {name} is missing")
            self._keep(name, found[name])

    def __getitem__(self, name: str) -> bytes:
        """The content of a part, fetched if needed."""
        if name not in self._contents:
            self.prefetch([name])
        return self._contents[name]

    def save(self, data: bytes) -> str:
        name = _name(data)
        self._folder.mkdir(exist_ok=True)
        (self._folder / name).write_bytes(data)
        return name

    def drop(self, keep: Iterable[str]) -> None:
        """Delete all parts except these."""
        kept = set(keep)
        self._contents = {name: data for name, data in self._contents.items() if name in kept}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in kept:
                path.unlink()

    def _keep(self, name: str, data: bytes) -> None:
        if len(data) > MAX_PART_BYTES or _name(data) != name:
            raise IndexCorrupt(f"its part {name} does not match its name")
        self._contents[name] = data


def _name(data: bytes) -> str:
    return hashlib.sha256(data).digest()[:DIGEST_BYTES].hex()


# -- reading ---------------------------------------------------------------------------------------------------------


class PlainVectors(NamedTuple):
    """Uncompressed vectors, a row for each document, and their squared lengths."""

    matrix: Matrix
    squares: Squares

    def cosines(self, vector: bytes, end: int) -> Scores:
        """How close the documents below ``end`` are to a vector of the same length."""
        return vectors.cosines(self.matrix[:end], vector, self.squares[:end])


class CodedVectors(NamedTuple):
    """The same as codes, with their code book."""

    codes: Codes
    book: Book
    squares: Squares
    length: int

    @property
    def matrix(self) -> Matrix:
        """The vectors, as exact as the codes."""
        return vectors.decode_vectors(self.codes, self.book, self.length)

    def cosines(self, vector: bytes, end: int) -> Scores:
        return vectors.coded_cosines(self.codes[:, :end], self.book, vector, self.squares[:end])


class Block(NamedTuple):
    """Consecutive entries, and where each of them ends."""

    pieces: memoryview
    ends: Sequence[int]

    @classmethod
    def read(cls, column: bytes | memoryview, count: int) -> Block:
        pieces, ends = read_pieces(column, count)
        if len(pieces) < count * MIN_ENTRY_BYTES:
            raise ValueError("there are fewer entries than documents")
        return cls(pieces, ends.data)  # yields single plain numbers faster than the array


class WholeSegment:
    """A segment of ``count`` documents in one file: plain columns, all entries in one block, all lists in one file
    of terms. ``width`` is the length of its vectors, 0 if it has none. Raises ValueError and others for damaged bytes.
    """

    names: Sequence[str] = ()

    def __init__(self, columns: Mapping[str, memoryview], count: int) -> None:
        self.count = self.block = count
        self._entries = Block.read(columns["entry"], count)
        self._rows = {name: read_rows(columns[name], count) for name in NUMBER_COLUMNS}
        if any(width != arrays.NUMBER_BYTES for _, width in self._rows.values()):
            raise ValueError("a column is damaged")
        self._vectors, self.width = read_vectors(columns, count)
        self._terms = TermFile(columns[TERMS_FILE], count)

    def needed(self, keys: Iterable[bytes], documents: Iterable[int], with_vectors: bool = False) -> Iterable[str]:
        return ()

    def numbers(self) -> dict[str, Numbers]:
        return {name: arrays.numbers(self._rows[name][0]) for name in NUMBER_COLUMNS}

    def vectors(self) -> PlainVectors:
        rows = vectors.matrix(self._vectors, self.width)
        return PlainVectors(rows, vectors.squares(rows))

    def entries(self, number: int) -> Block:
        return self._entries

    def term_file(self, key: bytes) -> TermFile:
        return self._terms

    def term_files(self) -> Iterator[TermFile]:
        yield self._terms


class PartedSegment:
    """The same in parts, which its core lists. The content of a part is checked when it is first read."""

    def __init__(self, core: Core, parts: IndexParts) -> None:
        self._core, self._parts = core, parts
        self.count, self.block, self.width, self.names = core.documents, core.block, core.width, core.names
        self._terms: dict[str, TermFile] = {}

    def numbers(self) -> dict[str, Numbers]:
        blocks = [
            arrays.unpack_planes(self._parts[name], len(NUMBER_COLUMNS), size)
            for name, size in zip(self._core.numbers(), self._sizes(self._core.rows), strict=True)
        ]
        columns = [arrays.join_arrays(parts, np.int64) for parts in zip(*blocks, strict=True)]
        return dict(zip(NUMBER_COLUMNS, columns, strict=True))

    def vectors(self) -> CodedVectors:
        first, *rest = self._core.vectors()
        book = vectors.read_book(self._parts[first], self.width)
        sizes = self._sizes(self._core.code_rows)
        read = [vectors.read_codes(self._parts[part], self.width, size) for part, size in zip(rest, sizes, strict=True)]
        codes = np.concatenate(read, axis=1)
        return CodedVectors(codes, book, vectors.coded_squares(codes, book), self.width)

    def entries(self, number: int) -> Block:
        size = min(self.block, self.count - number * self.block)
        return Block.read(self._parts[self._core.entries()[number]], size)

    def term_file(self, key: bytes) -> TermFile:
        name = self._core.list_of(key)
        if name not in self._terms:
            self._terms[name] = TermFile(memoryview(self._parts[name]), self.count)
        return self._terms[name]

    def term_files(self) -> Iterator[TermFile]:
        return (TermFile(memoryview(self._parts[name]), self.count) for name in self._core.all_lists())

    def needed(self, keys: Iterable[bytes], documents: Iterable[int], with_vectors: bool = False) -> Iterable[str]:
        """The parts with the numbers, these lists, the vectors if wanted, and the entries of these documents."""
        yield from self._core.numbers()
        yield from map(self._core.list_of, keys)
        yield from self._core.vectors() if with_vectors else ()
        blocks = self._core.entries()
        yield from (blocks[number] for number in {document // self.block for document in documents})

    def _sizes(self, block: int) -> list[int]:
        return [min(block, self.count - start) for start in range(0, self.count, block)]
