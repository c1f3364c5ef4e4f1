"""Two kinds of columns: rows of one width, and rows of any.

    rows of one width:  the width                                  uint32
                        the rows, zeros for a document without     documents · width bytes
    rows of any width:  the rows                                   as many bytes as the lengths say
                        the length of each                         documents · uint32

All numbers are little-endian. The sizes must come out to the byte, and nothing that is read is copied.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from whoosh.columns import Column, ColumnWriter

from bot.numeric.scores import Numbers, ends
from bot.numeric.vectors import MAX_LENGTH

FLIPS = ("flip1", "flip2", "flip3", "flip4")
NUMBERS = ("created", "key", "target", "target_at", "length", "kind", "alone", "account", *FLIPS)
"""Columns of numbers of eight bytes: when a document was created, what stands for its thread, what stands for the
thread that it is a duplicate of, since when that is known (0 for none), how many characters it has, of which kind it is
(`names.py`), until when nobody stood behind it but a stranger (0 for never; negative where nobody told what its author
is to the repository) and what stands for their account, and when it was closed, reopened, closed and reopened again (0
for never). Times are seconds since 1970, rounded up: what a search ``before`` a moment sees was before it."""

_WIDTH = struct.Struct("<I")
_LENGTH = struct.Struct("<I")


class RowWriter(ColumnWriter):  # type: ignore[misc]
    """Writes rows of the width that the first of them has."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._width = self._count = 0

    def add(self, document: int, row: bytes) -> None:
        self.extend(document, row, len(row))

    def extend(self, document: int, rows: bytes, width: int) -> None:
        """Add rows for this document and those after it. Raises ValueError when their width is not that of the rest."""
        if not self._width:
            self._width = width
            self._file.write(_WIDTH.pack(width))
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
        [width] = _WIDTH.unpack(buffer[: _WIDTH.size])
        if not 0 < width <= MAX_LENGTH or len(buffer) != _WIDTH.size + count * width:
            raise ValueError("a column is damaged")
        return buffer[_WIDTH.size :], width


class PieceWriter(ColumnWriter):  # type: ignore[misc]
    """Writes rows of any width, one for each document."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lengths = bytearray()

    def add(self, document: int, row: bytes) -> None:
        self.extend([row])

    def extend(self, rows: Sequence[bytes | memoryview]) -> None:
        """Add rows for the next documents."""
        self._lengths += b"".join(_LENGTH.pack(len(row)) for row in rows)
        self._file.write(b"".join(rows))

    def finish(self, count: int) -> None:
        self._file.write(self._lengths)


class Pieces(Column):  # type: ignore[misc]
    """Rows of any width."""

    Writer = PieceWriter

    @staticmethod
    def read(buffer: memoryview, count: int) -> tuple[memoryview, Numbers]:
        """All rows of a column of ``count`` documents, and where each ends. Raises ValueError, IndexError."""
        size = len(buffer) - count * _LENGTH.size
        if size < 0:
            raise ValueError("a column is damaged")
        found = ends(buffer[size:])
        if int(found[-1]) != size:
            raise ValueError("a column is damaged")
        return buffer[:size], found
