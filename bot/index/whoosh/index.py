"""An index in a folder of segments: checked, opened, searched and updated."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from os import DirEntry, scandir
from pathlib import Path

from whoosh.index import TOC

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Kind, ThreadId
from bot.index.protocol import IndexCorrupt, IndexDocument, Query
from bot.index.whoosh.codec import INDEX_NAME, SEGMENT_ID, Segment, Storage
from bot.index.whoosh.search import IndexSearcher, Search
from bot.index.whoosh.segment_reader import SegmentReader
from bot.index.whoosh.writer import SCHEMA, IndexWriter, check_vectors

MAX_FILE_BYTES = 512 << 20
MAX_TOC_BYTES = 16 << 20
MAX_SEGMENTS = 64

_TRIPLING_THRESHOLD = 4
"""Beyond this many times the wanted number, each further search triples in size, so that there are few of them."""

_SEGMENT_FILE = re.compile(rf"{INDEX_NAME}_{SEGMENT_ID.pattern}\.seg", re.ASCII)
_TOC_FILE = re.compile(rf"_{INDEX_NAME}_[0-9]{{1,9}}\.toc", re.ASCII)


class WhooshIndex:
    """An index in a folder of its own, as `bot.index.protocol.Index` describes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readers: list[SegmentReader] = []
        self._names: list[str] = []
        self._last_searcher: IndexSearcher | None = None
        self._open()

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[IndexEntry], bool] | None = None,
    ) -> list[IndexHit]:
        if query.blend is not None and before is None:
            raise ValueError("a blend needs a moment")
        with _damage_is_corruption():
            self._last_searcher = IndexSearcher(self._readers, before)
            ranked = Search(self._last_searcher, query)
        is_kept = (lambda _: True) if keep is None else cache(lambda number: keep(ranked.entry(number)))
        numbers = _best(ranked, limit, is_kept)
        with _damage_is_corruption():
            hits = ranked.hits(numbers)
        return sorted(hits, key=lambda hit: _sort_key(hit.score, hit.entry))

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> dict[str, float]:
        wanted = list(terms)
        with _damage_is_corruption():
            return self._searcher_at(before).rarity(wanted)

    def joint_frequency(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> dict[frozenset[str], int]:
        wanted = set(groups)
        with _damage_is_corruption():
            return self._searcher_at(before).joint_frequency(wanted)

    def _searcher_at(self, before: datetime | None) -> IndexSearcher:
        last = self._last_searcher  # most callers have just searched for these terms
        return last if last and last.before == before else IndexSearcher(self._readers, before)

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, IndexEntry]:
        found: dict[ThreadId, IndexEntry] = {}
        with _damage_is_corruption():
            places = [(key, reader, document) for key in ids for reader, document in self._find(key)]
            searcher = IndexSearcher(self._readers if places else (), None)
            for key, reader, document in places:
                entry = reader.entry(document)
                if entry.id == key and type(entry.id) is type(key):  # `find` compares hashes of 63 bits
                    found[key] = searcher.apply_roles(entry)
        return found

    def vectors(self) -> dict[ThreadId, bytes]:
        with _damage_is_corruption():
            found: dict[ThreadId, bytes] = {}
            for reader in self.segments().values():
                documents = reader.documents(is_embedded=True)
                found |= zip((reader.entry(number).id for number in documents), reader.vectors(documents), strict=True)
            return found

    def unread(self) -> list[ThreadId]:
        with _damage_is_corruption():
            lacking = [(reader, reader.documents(is_embedded=False)) for reader in self._readers]
            entries = [reader.entry(number) for reader, numbers in lacking for number in numbers]
            return [entry.id for entry in sorted(entries, key=lambda entry: entry.created_at, reverse=True)]

    def update(self, documents: Iterable[IndexDocument], remove: Iterable[ThreadId] = ()) -> None:
        batch = {document.entry.id: document for document in documents}
        self._open()
        width = check_vectors(batch.values(), 0)
        if any(reader.width not in (0, width) for reader in self._readers if width):
            raise IndexCorrupt("its vectors have another length than those to add")
        with _damage_is_corruption():
            toc = TOC.read(Storage(str(self._folder)), INDEX_NAME, schema=SCHEMA)
            with IndexWriter(self._folder, toc) as writer:
                gone = set(remove)
                writer.purges = bool(gone - batch.keys())
                for reader, number in (place for key in {*batch, *gone} for place in self._find(key)):
                    writer.delete(self._readers.index(reader), number)
                for document in batch.values():
                    writer.add(document)
            self._open()

    def of_kind(self, kind: Kind) -> list[IndexEntry]:
        with _damage_is_corruption():
            return [reader.entry(document) for reader in self._readers for document in reader.of_kind(kind)]

    def count(self, kind: Kind) -> int:
        with _damage_is_corruption():
            return sum(len(reader.of_kind(kind)) for reader in self._readers)

    def close(self) -> None:
        # The files are closed along with their readers.
        self._readers, self._names, self._last_searcher = [], [], None

    def __len__(self) -> int:
        return sum(reader.count - len(reader.deleted) for reader in self._readers)

    def _open(self) -> None:
        # Never refreshed: in some versions of Whoosh, a refresh finds deleted copies.
        self.close()
        with _damage_is_corruption():
            check_folder(self._folder)
            storage = Storage(str(self._folder))
            segments: list[Segment] = TOC.read(storage, INDEX_NAME, schema=SCHEMA).segments
            files = {segment.file_name for segment in segments}
            if len(segments) > MAX_SEGMENTS or files != {
                name for name in storage.list() if _SEGMENT_FILE.fullmatch(name)
            }:
                raise IndexCorrupt("its files do not match its table of contents")
            for segment in segments:
                self._readers.append(SegmentReader(storage, segment))
                self._names.append(segment.segid)
            if len({reader.width for reader in self._readers} - {0}) > 1:
                raise IndexCorrupt("its vectors differ in length")

    def segments(self) -> Mapping[str, SegmentReader]:
        return dict(zip(self._names, self._readers, strict=True))

    def _find(self, key: ThreadId) -> list[tuple[SegmentReader, int]]:
        places = ((reader, reader.find(key)) for reader in self._readers)
        return [(reader, document) for reader, document in places if document is not None]


@contextmanager
def _damage_is_corruption() -> Iterator[None]:
    """Turn any error while reading untrusted bytes into IndexCorrupt."""
    try:
        yield
    except IndexCorrupt:
        raise
    except Exception as error:
        raise IndexCorrupt(f"{type(error).__name__}: {error}".rstrip(": ")) from error


def check_folder(folder: Path) -> None:
    """Raises IndexCorrupt unless all files are regular, named like ours, and within the size limits."""
    if folder.is_symlink():
        raise IndexCorrupt("its folder is a symbolic link")
    tocs = 0
    with scandir(folder) as files:
        for file in files:
            is_toc = _TOC_FILE.fullmatch(file.name) is not None
            _check_file(file, is_toc or _SEGMENT_FILE.fullmatch(file.name), MAX_TOC_BYTES if is_toc else MAX_FILE_BYTES)
            tocs += is_toc
    if tocs != 1:
        raise IndexCorrupt(f"{tocs} tables of contents")


def _check_file(file: DirEntry[str], has_our_name: object, most: int) -> None:
    status = file.stat(follow_symlinks=False)
    if not has_our_name or not stat.S_ISREG(status.st_mode):
        raise IndexCorrupt(f"an unexpected file: {file.name!a:.100}")
    if status.st_size > most:
        raise IndexCorrupt(f"a file of {status.st_size:,} bytes: {file.name}")


def _best(search: Search, count: int, is_kept: Callable[[int], bool]) -> list[int]:
    ranking, wanted = search.ranking, count
    while True:
        with _damage_is_corruption():
            numbers = ranking.best(wanted)
            entries = {number: search.entry(number) for number in numbers}
        kept = [number for number in numbers if is_kept(number)]
        if len(kept) > count:
            return sorted(kept, key=lambda number: _sort_key(float(ranking.values[number]), entries[number]))[:count]
        if len(kept) == count or len(numbers) < wanted:
            return kept
        wanted += max(2 * (count - len(kept)), 2 * wanted if wanted > _TRIPLING_THRESHOLD * count else 0)


def _sort_key(score: float, entry: IndexEntry) -> tuple[float, bool, ThreadId]:
    return -score, isinstance(entry.id, str), entry.id
