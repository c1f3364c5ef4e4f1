"""Large segments, in parts: the core, a small file that names them, the parts, and the segment open for reading.

The core:

    magic, number of documents, size of the description      4 + 4 + 4 bytes
    the description                                          JSON
    half of the SHA-256 of each part                         16 bytes each

Parts come in this order: blocks of the columns of numbers; of each vector field its book and blocks of codes; blocks of
entries; of each field its buckets, and its heavy lists. The description says how many documents a block has. Which
bucket has a key is told by the key's CRC-32. All numbers are little-endian.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from bot.domain.digest import IndexEntry
from bot.domain.thread import ThreadId
from bot.index import arrays, vectors
from bot.index.arrays import Numbers, Scores
from bot.index.posting_lists import Postings, TermFile
from bot.index.protocol import NOTES, PARTS_FOLDER, TEXT, VECTOR_FIELDS, IndexCorrupt
from bot.index.vectors import MAX_LENGTH, Book, Codes, Matrix, Squares
from bot.index.whoosh import segment_reader
from bot.index.whoosh.codec import NUMBERS, Pieces
from bot.index.whoosh.segment_reader import LETTERS, Item, SegmentReader, id_key, stand_in

LARGEST = 1 << 20
"""Bytes of a part at most, but for a list of more than 300,000 documents: GitHub recommends files below a megabyte."""

FIELDS = (LETTERS[TEXT], LETTERS[NOTES])
"""The fields whose lists lie in parts; threads are found by the column of what stands for them."""

MAX_PARTS = 1 << 16
_MAX_BUCKETS = 1 << 13
_MAX_ROWS = 1 << 16
_MAGIC = b"PCF1"
_HEADER = struct.Struct("<4sII")


@dataclass(frozen=True)
class PostingLayout:
    """Where the lists of one field lie: in so many buckets, but each heavy one in a part of its own."""

    buckets: int
    heavy: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return self.buckets + len(self.heavy)

    @cached_property
    def _heavy(self) -> Mapping[bytes, int]:
        return {key: self.buckets + number for number, key in enumerate(self.heavy)}

    def place(self, key: bytes) -> int:
        """The number of the part that has this key if any has."""
        return self._heavy[key] if key in self._heavy else crc32(key) % self.buckets


@dataclass(frozen=True)
class Core:
    """``vector_fields`` tells how long the vectors of each kind are; ``rows`` is the number of documents whose numbers
    and codes are in one part, ``block`` that of those whose entries are."""

    documents: int
    vector_fields: Mapping[str, int]
    rows: int
    block: int
    lists: Mapping[str, PostingLayout]
    names: Sequence[str]

    def numbers(self) -> Sequence[str]:
        return self._section("numbers")

    def vectors(self, arm: str) -> Sequence[str]:
        """The parts with the vectors of one kind; the first is their book. Nothing for a kind that it has not."""
        return self._section(arm) if arm in self.vector_fields else ()

    def entries(self) -> Sequence[str]:
        return self._section("entries")

    def list_of(self, key: bytes) -> str:
        """The part that has this key if any has. Raises KeyError for one of no such field."""
        letter = chr(key[0])
        return self._section(letter)[self.lists[letter].place(key)]

    def all_lists(self) -> list[str]:
        return [name for letter in FIELDS for name in self._section(letter)]

    def _section(self, name: str) -> Sequence[str]:
        return self.names[slice(*self._borders[name])]

    @cached_property
    def _borders(self) -> Mapping[str, tuple[int, int]]:
        found, at = {}, 0
        for name, size in self.sizes().items():
            found[name] = at, at + size
            at += size
        return found

    def rows_of(self, arm: str) -> int:
        """How many rows of codes of this kind are in one part."""
        return min(self.rows, LARGEST // vectors.groups(self.vector_fields[arm]))

    def sizes(self) -> dict[str, int]:
        """How many parts each section has."""
        return {
            "numbers": _blocks(self.documents, self.rows),
            **{
                arm: 1 + _blocks(self.documents, self.rows_of(arm))
                for arm in VECTOR_FIELDS
                if arm in self.vector_fields
            },
            "entries": _blocks(self.documents, self.block),
            **{letter: self.lists[letter].size for letter in FIELDS},
        }


def encode_core(core: Core) -> bytes:
    lists = {name: [one.buckets, [key.decode("latin-1") for key in one.heavy]] for name, one in core.lists.items()}
    description = {"arms": dict(core.vector_fields), "rows": core.rows, "block": core.block, "lists": lists}
    text = json.dumps(description, separators=(",", ":")).encode()
    return _HEADER.pack(_MAGIC, core.documents, len(text)) + text + bytes.fromhex("".join(core.names))


def decode_core(data: bytes, documents: int) -> Core:
    """The core of a segment of so many documents. Raises ValueError, KeyError, TypeError or struct.error for bytes that
    are none."""
    magic, count, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or count != documents or size > len(data):
        raise ValueError("the core of a segment is damaged")
    told: Any = json.loads(data[_HEADER.size : _HEADER.size + size])
    digests = data[_HEADER.size + size :]
    names = [digests[at : at + DIGEST_BYTES].hex() for at in range(0, len(digests), DIGEST_BYTES)]
    lists = {letter: _lists(*told["lists"][letter]) for letter in FIELDS}
    arms = {arm: told["arms"][arm] for arm in VECTOR_FIELDS if arm in told["arms"]}
    core = Core(documents, arms, told["rows"], told["block"], lists, names)
    bounded = [(core.rows, _MAX_ROWS), (core.block, _MAX_ROWS), *((length, MAX_LENGTH) for length in arms.values())]
    if not all(_is_count(value, most) for value, most in bounded):
        raise ValueError("the core of a segment is damaged")
    if len(digests) != DIGEST_BYTES * sum(core.sizes().values()) or len(names) > MAX_PARTS:
        raise ValueError("the core of a segment has other parts than it says")
    return core


def _lists(buckets: object, heavy: list[str]) -> PostingLayout:
    keys = tuple(key.encode("latin-1") for key in heavy)
    if not _is_count(buckets, _MAX_BUCKETS) or len({*keys}) != len(keys):
        raise ValueError("the core of a segment is damaged")
    assert isinstance(buckets, int)
    return PostingLayout(buckets, keys)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 < value <= most


def _blocks(documents: int, size: int) -> int:
    return -(-documents // size)


# -- parts -----------------------------------------------------------------------------------------------------------

PART = re.compile(r"[0-9a-f]{32}", re.ASCII)
DIGEST_BYTES = 16
MAX_PART_BYTES = 16 << 20
"""Ours have at most a sixteenth of that."""

Fetch = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Names of parts → those of them that are there, all in one exchange."""


class IndexParts:
    """The parts of an index: those written here lie in its folder, others are fetched, each once.

    A name is half of the SHA-256 of the content, so what came under it is what its segment means, or IndexCorrupt.
    """

    def __init__(self, folder: Path, fetch: Fetch | None = None) -> None:
        self._folder = folder / PARTS_FOLDER
        self._fetch = fetch
        self._held: dict[str, bytes] = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Have these parts here, with one exchange for all that are not."""
        missing = [name for name in dict.fromkeys(names) if name not in self._held]
        there = {path.name for path in self._folder.iterdir()} if missing and self._folder.is_dir() else set()
        for name in missing:
            if name in there:
                self._hold(name, (self._folder / name).read_bytes())
        absent = [name for name in missing if name not in there]
        found = self._fetch(absent) if absent and self._fetch else {}
        for name in absent:
            if name not in found:
                raise IndexCorrupt(f"its part {name} is missing")
            self._hold(name, found[name])

    def __getitem__(self, name: str) -> bytes:
        """The content of a part, brought if it is not here."""
        if name not in self._held:
            self.prefetch([name])
        return self._held[name]

    def save(self, data: bytes) -> str:
        """Write a part into the folder; its name."""
        name = _name(data)
        self._folder.mkdir(exist_ok=True)
        (self._folder / name).write_bytes(data)
        return name

    def drop(self, keep: Iterable[str]) -> None:
        """Forget all parts but these."""
        kept = set(keep)
        self._held = {name: data for name, data in self._held.items() if name in kept}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in kept:
                path.unlink()

    def _hold(self, name: str, data: bytes) -> None:
        if len(data) > MAX_PART_BYTES or _name(data) != name:
            raise IndexCorrupt(f"its part {name} is not what its name says")
        self._held[name] = data


def _name(data: bytes) -> str:
    return hashlib.sha256(data).digest()[:DIGEST_BYTES].hex()


# -- reading ---------------------------------------------------------------------------------------------------------


class CodedVectorField(NamedTuple):
    """The vectors of one kind as codes, with their book and the squared length of each."""

    book: Book
    codes: Codes
    squares: Squares


class Block(NamedTuple):
    """Entries that lie one after the other, and where each of them ends."""

    pieces: memoryview
    ends: Sequence[int]


class PartedSegmentReader(SegmentReader):
    """A segment whose ``core`` names its parts. What a part holds is checked when it is first looked at."""

    def __init__(self, core: Core, deleted: Iterable[int], parts: IndexParts) -> None:
        self._core, self._parts = core, parts
        self.count, self.deleted = core.documents, frozenset(deleted)
        self.widths = dict(core.vector_fields)
        self._arms: dict[str, CodedVectorField] = {}
        self._blocks: dict[int, Block] = {}
        self._terms: dict[str, TermFile] = {}

    def numbers(self, column: str) -> Numbers:
        return self._numbers[column]

    def postings(self, key: bytes) -> Postings | None:
        return self._term_file(self._core.list_of(key)).get(key)

    def piece(self, document: int) -> bytes:
        number, place = divmod(document, self._core.block)
        if number not in self._blocks:
            self._blocks[number] = self._read_block(number)
        pieces, ends = self._blocks[number]
        return bytes(pieces[ends[place - 1] if place else 0 : ends[place]])

    def find(self, key: ThreadId) -> int | None:
        """The document of a thread, told by the number that stands for it, as lists of ids would be large."""
        places = np.flatnonzero(self.numbers("key") == stand_in(key)).tolist()
        alive = [number for number in places if number not in self.deleted]
        return alive[-1] if alive else None

    def cosines(self, arm: str, vector: bytes, end: int) -> Scores | None:
        if arm not in self.widths:
            return None
        if arm not in self._arms:
            self._arms[arm] = self._read_arm(arm)
        book, found, squared = self._arms[arm]
        return vectors.coded_cosines(found[:, :end], book, vector, squared[:end])

    def rows(self) -> Iterator[tuple[str, Matrix]]:
        """The columns of numbers as they are, those of vectors as near as codes are."""
        for name in NUMBERS:
            yield name, vectors.matrix(arrays.rows_of(self.numbers(name)), arrays.BYTES)
        for arm, length in self.widths.items():
            book, found, _ = self._read_arm(arm)
            yield arm, vectors.decode_vectors(found, book, length)

    def items(self) -> Iterator[Item]:
        for name in self._core.all_lists():
            yield from TermFile(memoryview(self._parts[name]), self.count).items()
        for document in range(self.count):
            yield id_key(self.entry(document).id), [document], b"\1"

    def close(self) -> None:
        for file in self._terms.values():
            file.close()

    def parts_of_numbers(self) -> Iterable[str]:
        return self._core.numbers()

    def parts_of_keys(self, keys: Iterable[bytes]) -> Iterable[str]:
        return [self._core.list_of(key) for key in keys]

    def parts_of_vector_fields(self, arms: Iterable[str]) -> Iterable[str]:
        return [name for arm in arms for name in self._core.vectors(arm)]

    def parts_of_entries(self, documents: Iterable[int]) -> Iterable[str]:
        names = self._core.entries()
        return [names[number] for number in {document // self._core.block for document in documents}]

    def parts(self) -> Sequence[str]:
        return self._core.names

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        blocks = [
            arrays.unpack_planes(self._parts[name], len(NUMBERS), size)
            for name, size in zip(self._core.numbers(), self._sizes(self._core.rows), strict=True)
        ]
        columns = [arrays.joined(parts, np.int64) for parts in zip(*blocks, strict=True)]
        return dict(zip(NUMBERS, columns, strict=True))

    def _read_arm(self, arm: str) -> CodedVectorField:
        length = self.widths[arm]
        first, *rest = self._core.vectors(arm)
        book = vectors.read_book(self._parts[first], length)
        sizes = self._sizes(self._core.rows_of(arm))
        read = [vectors.read_codes(self._parts[name], length, size) for name, size in zip(rest, sizes, strict=True)]
        found = np.concatenate(read, axis=1)
        return CodedVectorField(book, found, vectors.coded_squares(found, book))

    def _read_block(self, number: int) -> Block:
        size = min(self._core.block, self.count - number * self._core.block)
        pieces, ends = Pieces.read(memoryview(self._parts[self._core.entries()[number]]), size)
        if len(pieces) < size * segment_reader.LEAST_BYTES:
            raise ValueError("a block of entries is damaged")
        return Block(pieces, ends.tolist())

    def _term_file(self, name: str) -> TermFile:
        if name not in self._terms:
            self._terms[name] = TermFile(memoryview(self._parts[name]), self.count)
        return self._terms[name]

    def _sizes(self, block: int) -> list[int]:
        borders = [*range(0, self.count, block), self.count]
        return [end - start for start, end in pairwise(borders)]


def is_of(entry: IndexEntry, key: ThreadId) -> bool:
    """Whether it is the entry of this very thread: `find` goes by a number of 63 bits."""
    return entry.id == key and type(entry.id) is type(key)
