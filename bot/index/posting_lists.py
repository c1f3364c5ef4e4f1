"""Inverted lists in memory and on disk: the documents that contain a term, and its level in each.

The file of terms contains no code and no compression, so reading it can neither run anything nor expand:

    magic, number of terms, size of the keys                            4 + 4 + 4 bytes
    for every 128th term: where its key is, where its list is           2 arrays of uint32
    length of every list                                                array of uint32
    keys, sorted, a NUL before, between and after them
    lists: width in bytes, gaps between document numbers, levels        1 + n·width + n bytes each

All numbers are little-endian. A key is a letter for the field and a term without NUL.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import sub
from typing import NamedTuple

import numpy as np

from bot.index import arrays
from bot.index.arrays import Levels, Numbers
from bot.index.segment_file import MAX_KEY_BYTES, TYPE_CODES, little_endian, pack

_MAGIC = b"PTF1"
_HEADER = struct.Struct("<4sII")
_BLOCK_SIZE = 128


class Postings(NamedTuple):
    """The list of one term, never empty: ascending document numbers, and as many levels."""

    documents: Numbers
    levels: Levels


class PostingCollector:
    """Collects postings, in ascending order of documents, until they are written."""

    def __init__(self) -> None:
        self._lists: dict[bytes, tuple[array[int], bytearray]] = {}

    def append(self, key: bytes, document: int, level: int) -> None:
        postings = self._lists.get(key)
        if postings is None:
            self._lists[key] = (array("I", (document,)), bytearray((level,)))
        else:
            postings[0].append(document)
            postings[1].append(level)

    def extend(self, key: bytes, documents: Iterable[int], levels: bytes) -> None:
        postings = self._lists.setdefault(key, (array("I"), bytearray()))
        postings[0].extend(documents)
        postings[1].extend(levels)

    def packed(self) -> bytes:
        """Make a file of terms. Raises OverflowError above 4 GiB."""
        keys, lists = bytearray(b"\0"), bytearray()
        lengths, key_at, list_at = array("I"), array("I"), array("I")
        for number, key in enumerate(sorted(self._lists)):
            if number % _BLOCK_SIZE == 0:
                key_at.append(len(keys) - 1)
                list_at.append(len(lists))
            keys += key + b"\0"
            packed = pack(*self._lists[key])
            lengths.append(len(packed))
            lists += packed
        columns = (little_endian(numbers).tobytes() for numbers in (key_at, list_at, lengths))
        return b"".join((_HEADER.pack(_MAGIC, len(lengths), len(keys)), *columns, keys, lists))


class TermFile:
    """A file of terms, read in place. Methods take time linear in the number of bytes, whatever the bytes are.

    Raises ValueError (also IndexError, KeyError, struct.error) for bytes that `PostingCollector.packed` would not write
    for ``documents`` documents.
    """

    def __init__(self, buffer: memoryview, documents: int) -> None:
        magic, self._count, keys_size = _HEADER.unpack(buffer[: _HEADER.size])
        if magic != _MAGIC:
            raise ValueError("not a file of terms")
        blocks = -(-self._count // _BLOCK_SIZE)
        at = _HEADER.size
        self._key_at, at = _read_numbers(buffer, at, blocks)
        self._list_at, at = _read_numbers(buffer, at, blocks)
        self._lengths, at = _read_numbers(buffer, at, self._count)
        self._keys = bytes(buffer[at : at + keys_size])
        self._lists = buffer[at + keys_size :]
        self._documents = documents
        if self._keys.count(0) != self._count + 1 or self._keys[:1] != b"\0" or self._keys[-1:] != b"\0":
            raise ValueError("the keys are damaged")
        self._key_at.append(len(self._keys) - 1)
        if not all(0 < size <= _BLOCK_SIZE * (MAX_KEY_BYTES + 1) for size in map(sub, self._key_at[1:], self._key_at)):
            raise ValueError("the keys are damaged")
        self._first = [self._read_key(start + 1) for start in self._key_at[:-1]]

    def get(self, key: bytes) -> Postings | None:
        """The list of one term, None if no document contains it."""
        block = bisect_right(self._first, key) - 1
        if block < 0:
            return None
        start = self._key_at[block]
        at = self._keys.find(b"\0" + key + b"\0", start, self._key_at[block + 1] + 1)
        if at < 0:
            return None
        number = block * _BLOCK_SIZE + self._keys.count(0, start, at)
        offset = self._list_at[block] + sum(self._lengths[block * _BLOCK_SIZE : number])
        width, gaps, levels = self._split_list(offset, self._lengths[number])
        documents = arrays.document_numbers(gaps, width)
        self._check_document(int(documents[-1]))
        return Postings(documents, np.frombuffer(levels, np.uint8))

    def items(self) -> Iterator[tuple[bytes, list[int], bytes]]:
        """All terms, sorted by key, with their documents and levels, as lists because most are short."""
        keys = self._keys[1:-1].split(b"\0") if self._count else []
        for key, end, length in zip(keys, accumulate(self._lengths), self._lengths, strict=True):
            width, gaps, levels = self._split_list(end - length, length)
            documents = list(accumulate(little_endian(array(TYPE_CODES[width], gaps.tobytes()))))
            self._check_document(documents[-1])
            yield key, documents, levels.tobytes()

    def close(self) -> None:
        self._lists.release()

    def _read_key(self, start: int) -> bytes:
        return self._keys[start : self._keys.index(0, start, start + MAX_KEY_BYTES + 1)]

    def _split_list(self, offset: int, length: int) -> tuple[int, memoryview, memoryview]:
        packed = self._lists[offset : offset + length]
        width = packed[0]
        count, rest = divmod(len(packed) - 1, width + 1)
        if rest or not 0 < count <= self._documents or len(packed) != length:
            raise ValueError("a list is damaged")
        return width, packed[1 : 1 + count * width], packed[1 + count * width :]

    def _check_document(self, last: int) -> None:
        if last >= self._documents:
            raise ValueError("a list names a missing document")


def _read_numbers(buffer: memoryview, at: int, count: int) -> tuple[array[int], int]:
    end = at + 4 * count
    numbers = array("I", buffer[at:end].tobytes())
    if len(numbers) != count:
        raise ValueError("the file of terms is cut off")
    return little_endian(numbers), end
