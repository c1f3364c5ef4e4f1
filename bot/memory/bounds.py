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
    """How much may be read of one state of a memory with so many threads."""

    def __init__(self, threads: int) -> None:
        self.most_read = 64_000_000 + 32_000 * threads
        """Maximum bytes of files that are read one after the other: several times as many as long threads take."""

        self.most_kept = 64_000_000 + 2_000 * threads
        """Maximum bytes of files and records that are kept."""

        self._kept = 0

    def check(self, size: int) -> None:
        """Raises MemoryTooLarge if files of this size together are not read one after the other."""
        if size > self.most_read:
            raise MemoryTooLarge(f"files with more than {self.most_read // 1_000_000:,} MB")

    def keep(self, size: int) -> None:
        """Count bytes that are kept from now on. Raises MemoryTooLarge."""
        self._kept += size
        if self._kept > self.most_kept:
            raise MemoryTooLarge(f"more than {self.most_kept // 1_000_000:,} MB about the threads of one run")

    def keep_record(self, record: Record | None) -> Record | None:
        """The record itself, whose comments and events are kept from now on. Raises MemoryTooLarge."""
        if isinstance(record, Thread):
            self.keep(_PART_BYTES * (len(record.comments) + len(record.events)))
        return record
