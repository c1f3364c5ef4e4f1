"""Bounds of what is read from a store: anybody who may push to a memory branch may have written it.

They follow from what this program writes. Beyond them, a file counts as damaged, and a whole memory is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bot.domain.thread import Record, Thread
from bot.errors import StoreError
from bot.files import MAX_FILE_BYTES
from bot.memory.paths import RECORD_FOLDER

MAX_RECORD_BYTES = 12_000_000
"""Maximum size of a record: a million characters of text, six bytes for each at most, and all comments and events."""

MAX_JSON_VALUES = 1_500_000
"""Maximum number of values in a file of JSON, and of commas and brackets in its texts. An empty list takes two bytes in
a file, and sixty in memory."""

MAX_SHARD_LINES = 10_000
"""Maximum number of lines in a shard: a hundred for threads with numbers, and for others a part of all in 256."""

MAX_TWINS = 1_000
"""Maximum number of records that have the content of another one. This program writes none."""

PORTION_BYTES = 32_000_000
"""Bytes read at a time when many files are read."""

_USUAL_RECORD_BYTES, _USUAL_SHARD_BYTES = 64_000, 300_000
"""Size of a long record, and of a shard of long lines; few are larger."""

_PART_BYTES = 500
"""Bytes in memory of a comment or an event without any text."""


class MemoryTooLarge(StoreError):
    """A memory holds more than this program ever writes."""

    usual_remedy = "delete the branch, and run with `rebuild`"

    def __init__(self, cause: str) -> None:
        super().__init__(f"the memory branch has {cause}: this program did not write that", self.usual_remedy)


def file_limit(path: str) -> int:
    """Maximum size of the file at this path."""
    return MAX_RECORD_BYTES if path.startswith(f"{RECORD_FOLDER}/") else MAX_FILE_BYTES


def excess(path: str, size: int) -> int:
    """How many bytes of a file of this size count for a `ReadingBudget`."""
    return max(0, size - (_USUAL_RECORD_BYTES if path.startswith(f"{RECORD_FOLDER}/") else _USUAL_SHARD_BYTES))


def is_dense(data: bytes) -> bool:
    """Whether these bytes may be JSON with more than MAX_JSON_VALUES values."""
    return sum(map(data.count, (b",", b"[", b"{"))) > MAX_JSON_VALUES


def load_json(data: bytes, parse_int: Callable[[str], object] = int) -> Any:
    """The value in these bytes. Raises ValueError if they are not JSON, nested too deeply or have too many values."""
    if is_dense(data):
        raise ValueError(f"it has more than {MAX_JSON_VALUES:,} values")
    try:
        return json.loads(data, parse_int=parse_int)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


class ReadingBudget:
    """How much may be read of one state of a memory with so many threads.

    A file counts as far as it is larger than such files usually are, so that small files do not make room for others.
    """

    def __init__(self, threads: int) -> None:
        self._most = 64_000_000 + 1_000 * threads
        self._kept = 0

    def check(self, size: int) -> None:
        """Raises MemoryTooLarge if files are not read one after the other that count so many bytes."""
        if size > self._most:
            raise MemoryTooLarge(f"too many large files, {self._most // 1_000_000:,} MB and more")

    def keep(self, size: int) -> None:
        """Count bytes that are kept from now on. Raises MemoryTooLarge."""
        self._kept += size
        self.check(self._kept)

    def keep_record(self, record: Record | None) -> Record | None:
        """The record itself, whose comments and events are kept from now on. Raises MemoryTooLarge."""
        if isinstance(record, Thread):
            self.keep(max(0, _PART_BYTES * (len(record.comments) + len(record.events)) - _USUAL_RECORD_BYTES))
        return record
