"""The small file of a segment in parts: what it holds, and the names of its parts.

    magic, number of documents, size of the description      4 + 4 + 4 bytes
    the description                                          JSON
    half of the SHA-256 of each part                         16 bytes each

Parts come in this order: blocks of the columns of numbers; of each arm its book and blocks of codes; blocks of entries;
of each field its buckets, and its heavy lists. The description says how many documents a block has. Which bucket has a
key is told by the key's CRC-32. All numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

from bot.memory.index import ARMS, NOTES, TEXT
from bot.memory.whoosh.names import LETTERS
from bot.memory.whoosh.parts import DIGEST_BYTES
from bot.numeric import codes
from bot.numeric.vectors import MAX_LENGTH

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
class Lists:
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
    """``arms`` tells how long the vectors of each kind are; ``rows`` is the number of documents whose numbers and codes
    are in one part, ``block`` that of those whose entries are."""

    documents: int
    arms: Mapping[str, int]
    rows: int
    block: int
    lists: Mapping[str, Lists]
    names: Sequence[str]

    def numbers(self) -> Sequence[str]:
        """The parts with the columns of numbers."""
        return self._section("numbers")

    def vectors(self, arm: str) -> Sequence[str]:
        """The parts with the vectors of one kind; the first is their book. Nothing for a kind that it has not."""
        return self._section(arm) if arm in self.arms else ()

    def entries(self) -> Sequence[str]:
        """The parts with the entries."""
        return self._section("entries")

    def list_of(self, key: bytes) -> str:
        """The part that has this key if any has. Raises KeyError for one of no such field."""
        letter = chr(key[0])
        return self._section(letter)[self.lists[letter].place(key)]

    def all_lists(self) -> list[str]:
        """The parts with the lists of all fields."""
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
        return min(self.rows, LARGEST // codes.groups(self.arms[arm]))

    def sizes(self) -> dict[str, int]:
        """How many parts each section has."""
        return {
            "numbers": _blocks(self.documents, self.rows),
            **{arm: 1 + _blocks(self.documents, self.rows_of(arm)) for arm in ARMS if arm in self.arms},
            "entries": _blocks(self.documents, self.block),
            **{letter: self.lists[letter].size for letter in FIELDS},
        }


def encode(core: Core) -> bytes:
    """The bytes of the file."""
    lists = {
        name: [found.buckets, [key.decode("latin-1") for key in found.heavy]] for name, found in core.lists.items()
    }
    description = {"arms": dict(core.arms), "rows": core.rows, "block": core.block, "lists": lists}
    text = json.dumps(description, separators=(",", ":")).encode()
    return _HEADER.pack(_MAGIC, core.documents, len(text)) + text + bytes.fromhex("".join(core.names))


def decode(data: bytes, documents: int) -> Core:
    """The core of a segment of so many documents. Raises ValueError, KeyError, TypeError or struct.error for bytes that
    are none."""
    magic, count, size = _HEADER.unpack_from(data)
    if magic != _MAGIC or count != documents or size > len(data):
        raise ValueError("the core of a segment is damaged")
    told: Any = json.loads(data[_HEADER.size : _HEADER.size + size])
    digests = data[_HEADER.size + size :]
    names = [digests[at : at + DIGEST_BYTES].hex() for at in range(0, len(digests), DIGEST_BYTES)]
    lists = {letter: _lists(*told["lists"][letter]) for letter in FIELDS}
    arms = {arm: told["arms"][arm] for arm in ARMS if arm in told["arms"]}
    core = Core(documents, arms, told["rows"], told["block"], lists, names)
    bounded = [(core.rows, _MAX_ROWS), (core.block, _MAX_ROWS), *((length, MAX_LENGTH) for length in arms.values())]
    if not all(_is_count(value, most) for value, most in bounded):
        raise ValueError("the core of a segment is damaged")
    if len(digests) != DIGEST_BYTES * sum(core.sizes().values()) or len(names) > MAX_PARTS:
        raise ValueError("the core of a segment has other parts than it says")
    return core


def _lists(buckets: object, heavy: list[str]) -> Lists:
    keys = tuple(key.encode("latin-1") for key in heavy)
    if not _is_count(buckets, _MAX_BUCKETS) or len({*keys}) != len(keys):
        raise ValueError("the core of a segment is damaged")
    assert isinstance(buckets, int)
    return Lists(buckets, keys)


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 < value <= most


def _blocks(documents: int, size: int) -> int:
    return -(-documents // size)
