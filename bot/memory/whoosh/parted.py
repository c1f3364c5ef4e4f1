"""A segment in parts, open for reading: each part is brought when something in it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from bot.indexed import Entry
from bot.memory.postings import Postings, TermFile
from bot.memory.whoosh import stored
from bot.memory.whoosh.columns import NUMBERS, Pieces
from bot.memory.whoosh.core import Core
from bot.memory.whoosh.leaf import Item, Leaf
from bot.memory.whoosh.names import id_key, stand_in
from bot.memory.whoosh.parts import Parts
from bot.model import ThreadId
from bot.numeric import codes, planes, scores, vectors
from bot.numeric.codes import Book, Codes
from bot.numeric.scores import Numbers, Scores
from bot.numeric.vectors import Matrix, Squares


class CodedArm(NamedTuple):
    """The vectors of one kind as codes, with their book and the squared length of each."""

    book: Book
    codes: Codes
    squares: Squares


class Block(NamedTuple):
    """Entries that lie one after the other, and where each of them ends."""

    pieces: memoryview
    ends: Sequence[int]


class PartedLeaf(Leaf):
    """A segment whose ``core`` names its parts. What a part holds is checked when it is first looked at."""

    def __init__(self, core: Core, deleted: Iterable[int], parts: Parts) -> None:
        self._core, self._parts = core, parts
        self.count, self.deleted = core.documents, frozenset(deleted)
        self.widths = dict(core.arms)
        self._arms: dict[str, CodedArm] = {}
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
        places = scores.places(self.numbers("key"), stand_in(key))
        alive = [number for number in places if number not in self.deleted]
        return alive[-1] if alive else None

    def cosines(self, arm: str, vector: bytes, end: int) -> Scores | None:
        if arm not in self.widths:
            return None
        if arm not in self._arms:
            self._arms[arm] = self._read_arm(arm)
        book, found, squared = self._arms[arm]
        return codes.cosines(found[:, :end], book, vector, squared[:end])

    def rows(self) -> Iterator[tuple[str, Matrix]]:
        """The columns of numbers as they are, those of vectors as near as codes are."""
        for name in NUMBERS:
            yield name, vectors.matrix(planes.rows_of(self.numbers(name)), planes.BYTES)
        for arm, length in self.widths.items():
            book, found, _ = self._read_arm(arm)
            yield arm, codes.decode(found, book, length)

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

    def parts_of_arms(self, arms: Iterable[str]) -> Iterable[str]:
        return [name for arm in arms for name in self._core.vectors(arm)]

    def parts_of_entries(self, documents: Iterable[int]) -> Iterable[str]:
        names = self._core.entries()
        return [names[number] for number in {document // self._core.block for document in documents}]

    def parts(self) -> Sequence[str]:
        return self._core.names

    @cached_property
    def _numbers(self) -> dict[str, Numbers]:
        blocks = [
            planes.unpack(self._parts[name], len(NUMBERS), size)
            for name, size in zip(self._core.numbers(), self._sizes(self._core.rows), strict=True)
        ]
        columns = [scores.joined_numbers(parts) for parts in zip(*blocks, strict=True)]
        return dict(zip(NUMBERS, columns, strict=True))

    def _read_arm(self, arm: str) -> CodedArm:
        length = self.widths[arm]
        first, *rest = self._core.vectors(arm)
        book = codes.read_book(self._parts[first], length)
        sizes = self._sizes(self._core.rows_of(arm))
        read = [codes.read_codes(self._parts[name], length, size) for name, size in zip(rest, sizes, strict=True)]
        found = codes.joined(read)
        return CodedArm(book, found, codes.squares(found, book))

    def _read_block(self, number: int) -> Block:
        size = min(self._core.block, self.count - number * self._core.block)
        pieces, ends = Pieces.read(memoryview(self._parts[self._core.entries()[number]]), size)
        if len(pieces) < size * stored.LEAST_BYTES:
            raise ValueError("a block of entries is damaged")
        return Block(pieces, ends.tolist())

    def _term_file(self, name: str) -> TermFile:
        if name not in self._terms:
            self._terms[name] = TermFile(memoryview(self._parts[name]), self.count)
        return self._terms[name]

    def _sizes(self, block: int) -> list[int]:
        """How many documents each block has."""
        borders = [*range(0, self.count, block), self.count]
        return [end - start for start, end in pairwise(borders)]


def is_of(entry: Entry, key: ThreadId) -> bool:
    """Whether it is the entry of this very thread: `find` goes by a number of 63 bits."""
    return entry.id == key and type(entry.id) is type(key)
