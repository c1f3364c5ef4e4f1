"""A folder of segments as an index: checked, opened, searched, updated, built."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from os import scandir
from pathlib import Path

from whoosh.index import TOC, FileIndex
from whoosh.reading import SegmentReader

from bot.indexed import Entry, Hit
from bot.memory.index import Document, IndexCorrupt, Query
from bot.memory.postings import encode_key
from bot.memory.whoosh.codec import NAME, SEGMENT_ID, Segment, Storage
from bot.memory.whoosh.leaf import Leaf
from bot.memory.whoosh.search import Corpus, Search
from bot.memory.whoosh.writer import LETTERS, SCHEMA, Writer, check_vectors, id_term
from bot.model import ThreadId

MAX_FILE_BYTES = 512 << 20
MAX_TOC_BYTES = 16 << 20
MAX_SEGMENTS = 64

_SEGMENT_FILE = re.compile(rf"{NAME}_{SEGMENT_ID.pattern}\.seg", re.ASCII)
_TOC_FILE = re.compile(rf"_{NAME}_[0-9]{{1,9}}\.toc", re.ASCII)


class WhooshIndex:
    """An index in a folder of its own, as `bot.memory.index.Index` describes it. Make one with ``open_index``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leaves: list[Leaf] = []
        self._widths: dict[str, int] = {}
        self._searched: Corpus | None = None
        self._open()

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[Entry], bool] | None = None,
    ) -> list[Hit]:
        if query.blend and before is None:
            raise ValueError("a blend needs a moment")
        with _damage_is_corruption():
            self._searched = Corpus(self._leaves, before)
            found = Search(self._searched, query)
        is_kept = (lambda _: True) if keep is None else cache(lambda number: keep(found.entry(number)))
        chosen = _best(found, limit, is_kept)
        with _damage_is_corruption():
            hits = found.hits(chosen)
        return sorted(hits, key=lambda hit: _place(hit.score, hit.entry))

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> dict[str, float]:
        asked = list(terms)
        known = self._searched  # whoever asks has mostly just searched for these terms
        with _damage_is_corruption():
            corpus = known if known and known.before == before else Corpus(self._leaves, before)
            return corpus.rarity(asked)

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Entry]:
        found: dict[ThreadId, Entry] = {}
        with _damage_is_corruption():
            for key in ids:
                for leaf in self._leaves:
                    document = leaf.find(_id_key(key))
                    if document is not None:
                        found[key] = leaf.entry(document)
        return found

    def update(self, documents: Iterable[Document], remove: Iterable[ThreadId] = ()) -> None:
        """As `bot.memory.index.Index` has it. Raises ValueError for vectors that are not like those of the index."""
        batch = {document.entry.id: document for document in documents}
        self._open()
        check_vectors(batch.values(), dict(self._widths))
        with _damage_is_corruption():
            with Writer(FileIndex(Storage(str(self._folder)), SCHEMA)) as writer:
                gone = set(remove)
                writer.purges = bool(gone - batch.keys())
                for key in {*batch, *gone}:
                    self._delete(writer, _id_key(key))
                for document in batch.values():
                    writer.add(document)
            self._open()

    def close(self) -> None:
        for leaf in self._leaves:
            leaf.close()
        self._leaves, self._widths, self._searched = [], {}, None

    def __len__(self) -> int:
        return sum(leaf.count - len(leaf.deleted) for leaf in self._leaves)

    def _open(self) -> None:
        # Always anew: Whoosh's own refresh of a reader finds deleted copies in some of its versions.
        self.close()
        with _damage_is_corruption():
            check_folder(self._folder)
            storage = Storage(str(self._folder))
            segments: list[Segment] = TOC.read(storage, NAME, schema=SCHEMA).segments
            files = {segment.make_filename(segment.COMPOUND_EXT) for segment in segments}
            if len(segments) > MAX_SEGMENTS or files != {name for name in storage.list() if name.endswith(".seg")}:
                raise IndexCorrupt("its files are not those that its table of contents names")
            for segment in segments:
                leaf = Leaf(SegmentReader(storage, SCHEMA, segment))
                self._leaves.append(leaf)
                if any(self._widths.setdefault(arm, width) != width for arm, width in leaf.widths.items()):
                    raise IndexCorrupt("its vectors are of several lengths")

    def _delete(self, writer: Writer, key: bytes) -> None:
        base = 0
        for leaf in self._leaves:
            document = leaf.find(key)
            if document is not None:
                writer.delete_document(base + document)
            base += leaf.count


def open_index(folder: Path) -> WhooshIndex:
    """The index in ``folder``, which nobody else may change meanwhile. Raises IndexCorrupt."""
    return WhooshIndex(folder)


def build(folder: Path, documents: Iterable[Document]) -> None:
    """Write an index of ``documents`` into an empty folder, as one segment.

    Searches ``before`` a moment are fastest when the documents come in the order of their creation. Of two with one id
    the later one stays. The same documents give the same files, and a name of a file never stands for two contents.
    Raises ValueError for vectors that are not alike.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with Writer(FileIndex.create(Storage(str(folder)), SCHEMA)) as writer:
            for document in documents:
                writer.add(document)
    except BaseException:
        for path in folder.glob("*.toc"):  # of the empty index that it began with
            path.unlink()
        raise


@contextmanager
def _damage_is_corruption() -> Iterator[None]:
    """Whatever goes wrong while bytes of a stranger are read says only one thing: they are not an index of ours."""
    try:
        yield
    except IndexCorrupt:
        raise
    except Exception as error:
        raise IndexCorrupt(f"{type(error).__name__}: {error}".rstrip(": ")) from error


def check_folder(folder: Path) -> None:
    """Raises IndexCorrupt unless there are only regular files, with names that we give and sizes that we read."""
    if folder.is_symlink():
        raise IndexCorrupt("its folder is a symbolic link")
    tocs = 0
    with scandir(folder) as found:
        for file in found:
            status = file.stat(follow_symlinks=False)
            is_toc = _TOC_FILE.fullmatch(file.name) is not None
            if not (is_toc or _SEGMENT_FILE.fullmatch(file.name)) or not stat.S_ISREG(status.st_mode):
                raise IndexCorrupt(f"an unexpected file: {file.name!a:.100}")
            if status.st_size > (MAX_TOC_BYTES if is_toc else MAX_FILE_BYTES):
                raise IndexCorrupt(f"a file of {status.st_size:,} bytes: {file.name}")
            tocs += is_toc
    if tocs != 1:
        raise IndexCorrupt(f"{tocs} tables of contents")


def _id_key(key: ThreadId) -> bytes:
    return encode_key(LETTERS["id"], id_term(key))


def _best(found: Search, count: int, is_kept: Callable[[int], bool]) -> list[int]:
    """The ``count`` best documents of those that are kept."""
    ranking, wanted = found.ranking, count
    while True:
        with _damage_is_corruption():
            places = ranking.best(wanted)
            entries = {number: found.entry(number) for number in places}
        kept = [number for number in places if is_kept(number)]
        if len(kept) > count:
            return sorted(kept, key=lambda number: _place(float(ranking.values[number]), entries[number]))[:count]
        if len(kept) == count or len(places) < wanted:
            return kept
        wanted *= 4


def _place(score: float, entry: Entry) -> tuple[float, bool, ThreadId]:
    return -score, isinstance(entry.id, str), entry.id
