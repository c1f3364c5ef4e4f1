"""A posting list as bytes, and its key; read and written without NumPy.

A list is the width of its numbers in bytes (1, 2 or 4), the gaps between document numbers, and a level for each
document: 1 + n·width + n bytes, little-endian.
"""

from __future__ import annotations

import struct
import sys
from array import array
from itertools import accumulate
from operator import sub

MAX_KEY_BYTES = 4096
TYPE_CODES = {1: "B", 2: "H", 4: "I"}
"""Width of a number in bytes → type code of an array."""

_SINGLE = struct.Struct("<BHB")


def encode_key(field: str, term: str) -> bytes:
    """The key of a term in the field with this letter: the same for the same arguments, at most 4,096 bytes.

    Terms that differ only beyond that share a key.
    """
    key = (field + term).encode("utf-8", "surrogatepass")
    if b"\0" in key or b"\\" in key:
        key = key.replace(b"\\", b"\\\\").replace(b"\0", b"\\0")
    return key[:MAX_KEY_BYTES]


def pack(documents: array[int], levels: bytes | bytearray) -> bytes:
    """The bytes of a list of documents, ascending and not empty, with a level for each."""
    if len(documents) == 1 and documents[0] < 1 << 16:
        return _SINGLE.pack(2, documents[0], levels[0])
    gaps = [documents[0], *map(sub, documents[1:], documents)]
    largest = max(gaps)
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    return bytes((width,)) + little_endian(array(TYPE_CODES[width], gaps)).tobytes() + levels


def unpack(packed: bytes) -> tuple[list[int], bytes]:
    """The inverse of `pack`. Raises ValueError, KeyError or IndexError for other bytes."""
    width = packed[0]
    count, rest = divmod(len(packed) - 1, width + 1)
    if rest or not count:
        raise ValueError("a list is damaged")
    gaps = little_endian(array(TYPE_CODES[width], packed[1 : 1 + count * width]))
    return list(accumulate(gaps)), packed[1 + count * width :]


def little_endian(numbers: array[int]) -> array[int]:
    """The array, byte-swapped on big-endian machines."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
