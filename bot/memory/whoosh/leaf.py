"""One segment, open for reading, and what of it exists at a moment."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from bot.indexed import Entry
from bot.memory.index import ARMS
from bot.memory.postings import Postings
from bot.memory.whoosh import stored
from bot.memory.whoosh.columns import NUMBERS, Pieces, Rows
from bot.numeric import scores, vectors
from bot.numeric.scores import Flags, Numbers, Scores
from bot.numeric.vectors import Matrix, Squares

NUMBER_BYTES = 8


class Arm(NamedTuple):
    """The vectors of one kind, a row for each document, and their squared lengths."""

    rows: Matrix
    squares: Squares


class Leaf:
    """A segment whose columns have the sizes that they should have; any other raises ValueError and others.

    ``rows`` holds each column of one width with this width, ``widths`` how long the vectors of each arm are.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.count: int = reader.doc_count_all()
        self.deleted = frozenset(reader.segment().deleted_docs())
        self.pieces, ends = Pieces.read(reader._perdoc.column("entry"), self.count)
        self._ends = ends.data  # gives plain numbers, one by one, faster than the array
        if len(self.pieces) < self.count * stored.LEAST_BYTES:
            raise ValueError("fewer documents than the table of contents says")
        arms = [arm for arm in ARMS if reader._perdoc.has_column(arm)]
        self.rows = {name: Rows.read(reader._perdoc.column(name), self.count) for name in (*NUMBERS, *arms)}
        self.widths = {arm: self.rows[arm][1] for arm in arms}
        self.created, self.keys, self.targets, self.targets_at, self.lengths, *self.flips = map(self._numbers, NUMBERS)
        self._arms: dict[str, Arm] = {}

    def postings(self, key: bytes) -> Postings | None:
        found: Postings | None = self._reader._terms.get(key)
        return found

    def entry(self, document: int) -> Entry:
        return stored.unpack(self.piece(document))

    def piece(self, document: int) -> bytes:
        """The bytes of an entry."""
        return bytes(self.pieces[self._ends[document - 1] if document else 0 : self._ends[document]])

    def find(self, key: bytes) -> int | None:
        """The document that holds a key, of several the last."""
        found = self.postings(key)
        alive = [number for number in found.documents.tolist() if number not in self.deleted] if found else []
        return alive[-1] if alive else None

    def arm(self, name: str) -> Arm | None:
        """Its vectors of one kind, None where no document has any."""
        if name not in self._arms and name in self.widths:
            rows = vectors.matrix(*self.rows[name])
            self._arms[name] = Arm(rows, vectors.squares(rows))
        return self._arms.get(name)

    def close(self) -> None:
        self._reader.close()

    @cached_property
    def is_chronological(self) -> bool:
        return scores.is_ascending(self.created)

    @cached_property
    def hidden(self) -> Flags:
        """A flag for each document that was deleted."""
        return scores.flags(self.count, self.deleted)

    def _numbers(self, column: str) -> Numbers:
        rows, width = self.rows[column]
        if width != NUMBER_BYTES:
            raise ValueError("a column is damaged")
        return scores.numbers(rows)


class View:
    """The documents of a leaf that exist for one search: those that were not deleted, and were created ``before``.

    Documents are numbered below ``end``; ``hidden`` has a flag for each that does not exist.
    """

    def __init__(self, leaf: Leaf, before: datetime | None) -> None:
        self.leaf, self.end, self.hidden = leaf, leaf.count, leaf.hidden
        if before is not None:
            late = leaf.created >= before.timestamp()
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
        return len(documents) if self.count == self.end else scores.frequency(documents, self.hidden)

    def cosines(self, name: str, vector: bytes) -> Scores:
        """How close the vectors of one kind are to ``vector``, 0 for what cannot be compared with it."""
        arm = self.leaf.arm(name)
        if arm is None or len(vector) != self.leaf.widths[name]:
            return scores.zeros(self.end)
        return vectors.cosines(arm.rows[: self.end], vector, arm.squares[: self.end])

    def closed(self, at: datetime) -> Numbers:
        """Since when each document was closed at that moment, in seconds, 0 for those that were open."""
        return scores.last_odd([flips[: self.end] for flips in self.leaf.flips], at.timestamp())

    def targets(self, until: datetime | None) -> Numbers:
        """Which threads its documents were known at this moment to be duplicates of, each as often as it is."""
        at, targets = self.leaf.targets_at[: self.end], self.leaf.targets[: self.end]
        known = (targets != 0) & ~self.hidden
        if until is not None:
            known &= (at != 0) & (at <= until.timestamp())
        found: Numbers = targets[known]
        return found
