"""One segment, open for reading, and what of it exists at a moment."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from bot.domain.digest import LATE, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.index import arrays, vectors
from bot.index.arrays import Flags, Numbers, Scores
from bot.index.posting_lists import Postings
from bot.index.protocol import NOTES, TEXT, VECTOR_FIELDS
from bot.index.segment_file import encode_key
from bot.index.vectors import Matrix, Squares
from bot.index.whoosh.codec import FLIPS, NUMBERS, Pieces, Rows

NUMBER_BYTES = 8

Item = tuple[bytes, list[int], bytes]
"""A key, its documents in ascending order, and a level for each."""


class SegmentReader(ABC):
    """A segment of ``count`` documents. ``widths`` holds how long the vectors of each arm are.

    What the ``parts_…`` methods name is brought for several leaves at once before the method beside them is called; it
    is nothing for a segment in one file. Whatever its bytes are, only exceptions come of them.
    """

    count: int
    deleted: frozenset[int]
    widths: dict[str, int]

    @abstractmethod
    def numbers(self, column: str) -> Numbers:
        """A number for each document."""

    @abstractmethod
    def postings(self, key: bytes) -> Postings | None:
        """The list of a term, None when no document holds it."""

    @abstractmethod
    def piece(self, document: int) -> bytes:
        """The bytes of an entry."""

    @abstractmethod
    def find(self, key: ThreadId) -> int | None:
        """The document of a thread, None where there is none."""

    @abstractmethod
    def cosines(self, arm: str, vector: bytes, end: int) -> Scores | None:
        """How close each document below ``end`` is to a vector as long as those of this arm; None where it has none."""

    @abstractmethod
    def rows(self) -> Iterator[tuple[str, Matrix]]:
        """The columns of numbers and of vectors, a row of bytes for each document."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """All lists."""

    @abstractmethod
    def close(self) -> None:
        """Give back the files."""

    def parts_of_numbers(self) -> Iterable[str]:
        return ()

    def parts_of_keys(self, keys: Iterable[bytes]) -> Iterable[str]:
        return ()

    def parts_of_vector_fields(self, arms: Iterable[str]) -> Iterable[str]:
        return ()

    def parts_of_entries(self, documents: Iterable[int]) -> Iterable[str]:
        return ()

    def parts(self) -> Sequence[str]:
        return ()

    def entry(self, document: int) -> IndexEntry:
        return unpack_stored(self.piece(document))

    def count_of(self, kind: Kind) -> int:
        """How many documents of this kind there are; `parts_of_numbers` are needed."""
        return int((self.numbers("kind")[~self.hidden] == KINDS[kind]).sum())

    @cached_property
    def is_chronological(self) -> bool:
        return arrays.is_ascending(self.numbers("created"))

    @cached_property
    def hidden(self) -> Flags:
        """A flag for each document that was deleted."""
        return arrays.as_flags(self.count, self.deleted)


class VectorField(NamedTuple):
    """The vectors of one kind, a row for each document, and their squared lengths."""

    rows: Matrix
    squares: Squares


class WholeSegmentReader(SegmentReader):
    """A segment in one file. Raises ValueError and others when its columns have not the sizes that they should have."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.count = reader.doc_count_all()
        self.deleted = frozenset(reader.segment().deleted_docs())
        self._pieces, ends = Pieces.read(reader._perdoc.column("entry"), self.count)
        self._ends = ends.data  # gives plain numbers, one by one, faster than the array
        if len(self._pieces) < self.count * LEAST_BYTES:
            raise ValueError("fewer documents than the table of contents says")
        arms = [arm for arm in VECTOR_FIELDS if reader._perdoc.has_column(arm)]
        self._rows = {name: Rows.read(reader._perdoc.column(name), self.count) for name in (*NUMBERS, *arms)}
        self.widths = {arm: self._rows[arm][1] for arm in arms}
        self._numbers = {name: self._read_numbers(name) for name in NUMBERS}
        self._arms: dict[str, VectorField] = {}

    def numbers(self, column: str) -> Numbers:
        return self._numbers[column]

    def postings(self, key: bytes) -> Postings | None:
        found: Postings | None = self._reader._terms.get(key)
        return found

    def piece(self, document: int) -> bytes:
        return bytes(self._pieces[self._ends[document - 1] if document else 0 : self._ends[document]])

    def find(self, key: ThreadId) -> int | None:
        found = self.postings(id_key(key))
        alive = [number for number in found.documents.tolist() if number not in self.deleted] if found else []
        return alive[-1] if alive else None

    def cosines(self, arm: str, vector: bytes, end: int) -> Scores | None:
        if arm not in self._arms and arm in self.widths:
            rows = vectors.matrix(*self._rows[arm])
            self._arms[arm] = VectorField(rows, vectors.squares(rows))
        found = self._arms.get(arm)
        return None if found is None else vectors.cosines(found.rows[:end], vector, found.squares[:end])

    def rows(self) -> Iterator[tuple[str, Matrix]]:
        return ((name, vectors.matrix(rows, width)) for name, (rows, width) in self._rows.items())

    def items(self) -> Iterator[Item]:
        found: Iterator[Item] = self._reader._terms.items()
        return found

    def close(self) -> None:
        self._reader.close()

    def _read_numbers(self, column: str) -> Numbers:
        rows, width = self._rows[column]
        if width != NUMBER_BYTES:
            raise ValueError("a column is damaged")
        return arrays.numbers(rows)


class SegmentSnapshot:
    """The documents of a leaf that exist for one search: those that were not deleted, and were created ``before``.

    Documents are numbered below ``end``; ``hidden`` has a flag for each that does not exist.
    """

    def __init__(self, leaf: SegmentReader, before: datetime | None) -> None:
        self.leaf, self.end, self.hidden = leaf, leaf.count, leaf.hidden
        if before is not None:
            late = leaf.numbers("created") >= before.timestamp()
            if leaf.is_chronological:
                self.end -= int(late.sum())
                self.hidden = self.hidden[: self.end]
            else:
                self.hidden = self.hidden | late
        self.count = self.end - int(self.hidden.sum())

    def postings(self, key: bytes) -> Postings | None:
        """The list of a term as far as ``end``, with hidden documents."""
        found = self.leaf.postings(key)
        if found and found.documents[-1] >= self.end:
            cut = int(found.documents.searchsorted(self.end))
            found = Postings(found.documents[:cut], found.levels[:cut])
        return found if found and len(found.documents) else None

    def frequency(self, documents: Numbers) -> int:
        """How many of these documents exist."""
        return len(documents) if self.count == self.end else arrays.frequency(documents, self.hidden)

    def cosines(self, name: str, vector: bytes) -> Scores:
        """How close the vectors of one kind are to ``vector``, 0 for what cannot be compared with it."""
        fits = len(vector) == self.leaf.widths.get(name)
        found = self.leaf.cosines(name, vector, self.end) if fits else None
        return arrays.zeros(self.end) if found is None else found

    def numbers(self, column: str) -> Numbers:
        """A number for each of its documents."""
        return self.leaf.numbers(column)[: self.end]

    def has_roles(self) -> bool:
        """Whether any issue that exists tells what its author is to the repository."""
        told = (self.numbers("kind") == KINDS[Kind.ISSUE]) & (self.numbers("alone") >= 0) & ~self.hidden
        return bool(told.any())

    def unvouched(self, at: datetime | None) -> Flags:
        """A flag for each that exists and that nobody vouched for at that moment."""
        found: Flags = (abs(self.numbers("alone")) > (at or LATE).timestamp()) & ~self.hidden
        return found

    def hide(self, more: Flags) -> None:
        """These do not exist either."""
        self.hidden = self.hidden | more
        self.count = self.end - int(self.hidden.sum())

    def closed(self, at: datetime) -> Numbers:
        """Since when each document was closed at that moment, in seconds, 0 for those that were open."""
        return arrays.last_odd([self.numbers(column) for column in FLIPS], at.timestamp())

    def targets(self, until: datetime | None, unvouched: Flags) -> Numbers:
        """Which threads its documents were known at this moment to be duplicates of, each as often as it is; but not
        by the word of those that are ``unvouched``."""
        at, targets = self.numbers("target_at"), self.numbers("target")
        known = (targets != 0) & ~self.hidden & ~unvouched
        if until is not None:
            known &= (at != 0) & (at <= until.timestamp())
        found: Numbers = targets[known]
        return found


LETTERS = {"id": "i", NOTES: "n", TEXT: "t"}
"""Field → the letter that its keys begin with."""

KINDS = {kind: number for number, kind in enumerate(Kind, 1)}
"""Kind → the number that stands for it in a column."""


def id_term(key: ThreadId) -> str:
    return f"#{key}" if isinstance(key, int) else f"={key}"


def id_key(key: ThreadId) -> bytes:
    """The key of the list that has a thread's document only."""
    return encode_key(LETTERS["id"], id_term(key))


def stand_in(key: ThreadId) -> int:
    """A number in place of a thread: of 63 bits, never 0, and for the same thread always the same."""
    digest = hashlib.blake2b(id_term(key).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1 or 1


# -- entries as bytes --------------------------------------------------------------------------------------------------

LEAST_BYTES = 40
"""No packed entry is shorter."""

_decode = json.JSONDecoder().raw_decode
_KINDS = {kind.value: kind for kind in Kind}
_NUMBER = (int, float)
_TIMES = {*_NUMBER}
_TEXT = {str}
_REMEMBERED = 1 << 13
_MAX_COUNT = 1 << 53
_SHAPE: tuple[tuple[type, ...], ...] = (
    (int, str),  # id
    (str,),  # kind
    (str,),  # title
    (str,),  # author
    (str,),  # state
    _NUMBER,  # created_at
    _NUMBER,  # updated_at
    (*_NUMBER, type(None)),  # closed_at
    (str, type(None)),  # state_reason
    (list,),  # labels
    (int,),  # turn_count
    (int,),  # length
    (int, str, type(None)),  # duplicate_of
    (*_NUMBER, type(None)),  # duplicate_at
    (list,),  # flips
    (*_NUMBER, type(None)),  # alone_until
)


def pack_stored(entry: IndexEntry) -> bytes:
    """One JSON list in UTF-8 (lone surrogates kept), times in seconds since 1970."""
    values = [
        entry.id,
        entry.kind,
        entry.title,
        entry.author,
        entry.state,
        _seconds(entry.created_at),
        _seconds(entry.updated_at),
        entry.closed_at and _seconds(entry.closed_at),
        entry.state_reason,
        entry.labels,
        entry.turn_count,
        entry.length,
        entry.duplicate_of,
        entry.duplicate_at and _seconds(entry.duplicate_at),
        [_seconds(at) for at in entry.flips],
        entry.unvouched_until and _seconds(entry.unvouched_until),
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


@lru_cache(maxsize=_REMEMBERED)
def unpack_stored(data: bytes) -> IndexEntry:
    """The entry that `pack_stored` was given. Raises ValueError, KeyError, OverflowError, OSError or RecursionError for
    other bytes."""
    text = str(data, "utf-8", "surrogatepass")
    values, end = _decode(text)
    if end != len(text) or type(values) is not list or len(values) != len(_SHAPE):
        raise ValueError("an entry is damaged")
    if not _is_fit(tuple(map(type, values))):
        raise ValueError("an entry is damaged")
    return _entry(*values)


@lru_cache(maxsize=1024)
def _is_fit(shape: tuple[type, ...]) -> bool:
    return all(kind in allowed for kind, allowed in zip(shape, _SHAPE, strict=True))


def _entry(id: ThreadId, kind: str, title: str, author: str, state: str, created_at: float, *rest: Any) -> IndexEntry:
    updated_at, closed_at, state_reason, labels, turn_count, length, *more = rest
    duplicate_of, duplicate_at, flips, unvouched_until = more
    if (labels and not {*map(type, labels)} <= _TEXT) or (flips and not {*map(type, flips)} <= _TIMES):
        raise ValueError("an entry is damaged")
    if not (0 <= turn_count < _MAX_COUNT and 0 <= length < _MAX_COUNT):
        raise ValueError("an entry is damaged")
    return IndexEntry(
        id,
        _KINDS[kind],
        title,
        author,
        state,
        _moment(created_at),
        _moment(updated_at),
        None if closed_at is None else _moment(closed_at),
        state_reason,
        tuple(labels),
        turn_count,
        length,
        duplicate_of,
        None if duplicate_at is None else _moment(duplicate_at),
        tuple(map(_moment, flips)),
        None if unvouched_until is None else _moment(unvouched_until),
    )


def _seconds(moment: datetime) -> float:
    seconds = moment.timestamp()
    return int(seconds) if seconds.is_integer() else seconds


@lru_cache(maxsize=1 << 12)
def _moment(seconds: float) -> datetime:
    # Remembered, because the last of the flips is when the thread was closed, and often when it was last changed.
    return datetime.fromtimestamp(seconds, UTC)
