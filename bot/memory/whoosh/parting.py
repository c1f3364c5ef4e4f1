"""Takes a segment that was just written apart: its columns and lists become parts, and a core that names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import BytesIO

from bot.memory.index import ARMS
from bot.memory.layout import Sizes
from bot.memory.postings import Inversion
from bot.memory.whoosh.columns import NUMBERS, Pieces, Rows
from bot.memory.whoosh.core import FIELDS, Core, Lists, encode
from bot.memory.whoosh.parts import Parts
from bot.numeric import codes, planes, scores, vectors

MAX_BUCKETS = 4_096


def take_apart(columns: Mapping[str, bytes], lists: Inversion, documents: int, parts: Parts, sizes: Sizes) -> bytes:
    """Save the parts of a segment of so many documents; the bytes of its core.

    ``columns`` holds the bytes of each column as `columns.py` writes them.
    """
    arms = [arm for arm in ARMS if arm in columns]
    matrices = {arm: vectors.matrix(*Rows.read(memoryview(columns[arm]), documents)) for arm in arms}
    kept = {letter: _places(lists, letter, sizes) for letter in FIELDS}
    widths = {arm: rows.shape[1] for arm, rows in matrices.items()}
    core = Core(documents, widths, sizes.rows, sizes.entries, kept, [])
    made = [
        _numbers(columns, core),
        *(_codes(rows, core.rows_of(arm)) for arm, rows in matrices.items()),
        _entries(columns["entry"], core),
        *(_lists(lists, letter, kept[letter]) for letter in FIELDS),
    ]
    return encode(replace(core, names=[parts.save(part) for section in made for part in section]))


def _numbers(columns: Mapping[str, bytes], core: Core) -> Iterator[bytes]:
    found = [scores.numbers(Rows.read(memoryview(columns[name]), core.documents)[0]) for name in NUMBERS]
    step = core.rows
    return (planes.pack([column[at : at + step] for column in found]) for at in range(0, core.documents, step))


def _codes(rows: vectors.Matrix, step: int) -> Iterator[bytes]:
    book = codes.train(rows)
    yield codes.pack_book(book)
    for at in range(0, len(rows), step):
        yield codes.encode(rows[at : at + step], book).tobytes()


def _entries(column: bytes, core: Core) -> Iterator[bytes]:
    pieces, ends = Pieces.read(memoryview(column), core.documents)
    borders = [0, *ends.tolist()]
    for at in range(0, core.documents, core.block):
        file = BytesIO()
        writer = Pieces.Writer(file)
        last = min(at + core.block, core.documents)
        writer.extend([pieces[borders[number] : borders[number + 1]] for number in range(at, last)])
        writer.finish(last - at)
        yield file.getvalue()


def _places(lists: Inversion, letter: str, sizes: Sizes) -> Lists:
    """Where the lists of one field go."""
    found = _sizes(lists, letter)
    heavy = tuple(sorted(key for key, size in found.items() if size >= sizes.heavy))
    light = sum(size for size in found.values() if size < sizes.heavy)
    buckets = 1 << max(0, round(light / sizes.bucket) - 1).bit_length()
    return Lists(min(MAX_BUCKETS, buckets), heavy)


def _lists(lists: Inversion, letter: str, kept: Lists) -> Iterator[bytes]:
    """The files of the lists of one field."""
    places: list[list[bytes]] = [[] for _ in range(kept.size)]
    for key in _sizes(lists, letter):
        places[kept.place(key)].append(key)
    for keys in places:
        file = BytesIO()
        lists.write(file, keys)
        yield file.getvalue()


def _sizes(lists: Inversion, letter: str) -> dict[bytes, int]:
    start = letter.encode()
    return {key: size for key, size in lists.sizes().items() if key.startswith(start)}
