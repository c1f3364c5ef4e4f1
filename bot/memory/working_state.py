"""One state of memory with this run's changes on top, searchable before it is written."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar, Unpack

from bot.domain.changes import Changes
from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone, is_forgotten
from bot.errors import StoreError, UnreadableFile
from bot.files import is_fit
from bot.index import build_index, open_index
from bot.index.document import document_of
from bot.index.protocol import (
    LAYOUT,
    PARTS_FOLDER,
    USUAL,
    Index,
    IndexCorrupt,
    IndexDocument,
    IndexSegment,
    Narrowing,
    Query,
    Sizes,
)
from bot.memory.base_state import CHUNK, Notes
from bot.memory.manifest import INDEX, MANIFEST_PATH, PARTS, Manifest, bytes_hash, damaged_files, encode_manifest
from bot.memory.model_store import BACKTEST, RANKING, WORDS, Embedder, Encoder, ModelUpdate
from bot.memory.records import RECORD_FOLDER, in_order, record_path
from bot.memory.shards import DIGESTS
from bot.memory.staged_changes import Progress, StagedChanges
from bot.memory.store import Edits, Snapshot
from bot.reading.analyzer import ANALYSER_VERSION
from bot.reading.digest import digest as read_digest

Answer = TypeVar("Answer")


class WorkingState(StagedChanges):
    """Searches see the snapshot and the changes, as other reads do.

    ``expected`` names files that will be read, so that they are read together. ``embedder``: a downloaded model.
    ``sizes`` tell which parts of the index lie apart.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        notes: Notes,
        expected: Iterable[str] = (),
        embedder: Embedder | None = None,
        repo: str | None = None,
        sizes: Sizes = USUAL,
    ) -> None:
        super().__init__(snapshot, notes, expected, repo)
        self._sizes = sizes
        self._embedder = embedder
        self._model_files: dict[str, bytes] = {}
        self._begun_with = self.manifest.threads
        self._folder: Path | None = None
        self._index: Index | None = None
        self._index_changed = False
        self._behind: dict[ThreadId, Record] = {}  # applied, but not indexed yet

    # -- reading ---------------------------------------------------------------------------------------------------

    def search(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]:
        """The best hits of the index; a damaged index is made anew from the records and asked again."""
        return self._ask(lambda index: index.search(query, **options), [])

    def rarity(self, terms: Iterable[str], before: datetime | None) -> dict[str, float]:
        """How rare each term is among the titles and opening texts in the index; nothing when it cannot be had."""
        wanted = list(terms)
        return self._ask(lambda index: index.rarity(wanted, before=before), {})

    def held_by(self, groups: Iterable[frozenset[str]], before: datetime | None) -> dict[frozenset[str], int]:
        """How many threads hold all terms of each group; nothing when it cannot be had."""
        wanted = list(groups)
        return self._ask(lambda index: index.held_by(wanted, before=before), {})

    @property
    def issues(self) -> int:
        return self._ask(lambda index: index.count(Kind.ISSUE), 0)

    @cached_property
    def encoder(self) -> Encoder:
        embedder = self._embedder
        if embedder and embedder.fingerprint != self.manifest.embedder:
            told = "The index has no vectors of the model that the settings name: they are made by a rebuild."
            self.notes.fault("", told, "")
            embedder = None
        return Encoder(replace(self.learned(), embedder=embedder), self.notes.add)

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, IndexEntry]:
        wanted = list(ids)
        return self._ask(lambda index: index.entries(wanted), {})

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name; a damaged index is made anew."""
        return self._ask(lambda index: index.segments(), {})

    def digest_shards(self) -> Iterator[tuple[str, bytes]]:
        paths = self._digest_paths()
        for start in range(0, len(paths), CHUNK):
            found = self._contents(paths[start : start + CHUNK])
            yield from sorted(found.items())

    def digest_shard_count(self) -> int:
        return len(self._digest_paths())

    def _digest_paths(self) -> list[str]:
        return sorted(DIGESTS.among(self.snapshot.paths(DIGESTS.folder)))

    # -- changing --------------------------------------------------------------------------------------------------

    def apply(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top, see `StagedChanges.apply`; the index takes them in when it is next asked."""
        records = super().apply(changes, tick)
        self._behind |= {record.id: record for record in records}
        if any(map(is_forgotten, records)):
            self._unlearn()
        return records

    def look_at(self, places: Iterable[str]) -> None:
        """Look again at what was damaged, and at what the index lacked."""
        super().look_at(places)
        _ = self.encoder

    def edits(self) -> dict[str, bytes | Path | None]:
        """What has to be written so that the store holds this state; nothing when nothing changed."""
        if self._behind:
            self._ask(lambda _: None, None)
        found: dict[str, bytes | Path | None] = {**self._file_edits()}
        found |= {path: data or None for path, data in self._model_files.items() if data or self._contents([path])}
        manifest = self.manifest
        if self._index_changed and self._folder is not None:
            manifest = manifest.with_index(self._folder, ANALYSER_VERSION, LAYOUT)
            kept = {f"{INDEX}/{name}" for name in manifest.index}
            found |= {path: None for path in self._paths_in(INDEX) if path not in kept}
            new = manifest.index.keys() - self.manifest.index.keys()
            found |= {f"{INDEX}/{name}": self._folder / name for name in new}
            found |= self._part_edits(self._folder / PARTS_FOLDER)
        data = encode_manifest(manifest)
        if data != self._files[MANIFEST_PATH]:
            found[MANIFEST_PATH] = data
        return found

    def in_the_way(self, clashes: Container[str], edits: Edits) -> dict[str, None]:
        """The deletions that make room for ``edits`` where these paths would be files and folders: of a file of that
        name, or of what is below it."""
        brought = {path for path, content in edits.items() if content is not None}
        there = [path for path in (*self.snapshot.paths(""), *self.snapshot.foreign_files("")) if is_fit(path)]
        return {path: None for path in there if path not in brought and (path in clashes or _folders(path) & brought)}

    def install_model(self, update: ModelUpdate) -> None:
        self._model_files = update.files()
        self._files |= {path: data or None for path, data in self._model_files.items()}
        known = self.manifest.model | {path: bytes_hash(data) for path, data in self._model_files.items()}
        model = {path: digest for path, digest in known.items() if self._model_files.get(path) != b""}
        learned_from = min(update.threads, self.manifest.threads)  # the branch may have gone back meanwhile
        self.manifest = replace(self.manifest, model=model, learned_from=learned_from)
        self.__dict__.pop("encoder", None)

    def _unlearn(self) -> None:
        """Give up what was learned, as it holds words of all threads: a run that comes soon learns again."""
        self._model_files = dict.fromkeys((WORDS, RANKING, BACKTEST), b"")
        self._files |= dict.fromkeys(self._model_files)
        self.manifest = replace(self.manifest, model={}, learned_from=0)
        self.__dict__.pop("encoder", None)

    def rebuild_index(self, tick: Progress = lambda _: None, *, embeds: bool = False) -> Index:
        """Make the index anew from the records, and digests that this version makes otherwise; the stored index is not
        used. Raises IndexCorrupt, OSError.

        ``embeds``: with the vectors of the downloaded model too, which takes its time.
        """
        if self._index:
            self._index.close()
        self._index, self._behind = None, {}
        fingerprint = self._embedder.fingerprint if self._embedder and embeds else ""
        self.manifest = replace(self.manifest, index={}, embedder=fingerprint)
        self.__dict__.pop("encoder", None)
        self._folder = self.snapshot.checkout(f"empty-{secrets.token_hex(8)}")
        self._read(DIGESTS.among(self.snapshot.paths(DIGESTS.folder)))
        build_index(self._folder, map(self._document_anew, self._living(tick)), self._sizes)
        self._index, self._index_changed = open_index(self._folder, self._fetch, self._sizes), True
        return self._index

    def _ask(self, question: Callable[[Index], Answer], nothing: Answer) -> Answer:
        """Ask the index, made anew once if it is damaged. One that cannot be had costs the answer, not the run."""
        try:
            try:
                return question(self._ready())
            except IndexCorrupt as error:
                return question(self._rebuild(f"damaged ({error!s:.120})"))
        except (IndexCorrupt, OSError) as error:
            self.manifest = replace(self.manifest, index={})
            self.notes.add(f"The index could not be used ({error!s:.120}): similar threads were not looked for.")
            return nothing

    def _living(self, tick: Progress) -> Iterator[Thread]:
        """The threads that are there; when all were seen, the counts of the manifest are right."""
        gone = 0
        for record in self.every_record(tick):
            if isinstance(record, Thread):
                yield record
            else:
                gone += 1
                self._renewed[record.id] = None
        files = {*in_order(self.snapshot.paths(RECORD_FOLDER)), *map(record_path, self._written)}
        self.manifest = replace(self.manifest, threads=len(files) - gone, tombstones=gone)

    def _document(self, thread: Thread) -> IndexDocument:
        digest = self._digests.get(thread.id) or read_digest(thread, repo=self.repo)
        return document_of(thread, digest, self.encoder.vectors(thread))

    def _document_anew(self, thread: Thread) -> IndexDocument:
        return document_of(thread, self._digest_anew(thread), self.encoder.vectors(thread))

    def _ready(self) -> Index:
        if self._index is None:
            fault = self._fault()
            if fault:
                return self._rebuild(fault)
            self._index = open_index(self._index_folder(), self._fetch, self._sizes)
        if self._behind:
            threads = [record for record in self._behind.values() if isinstance(record, Thread)]
            gone = [record.id for record in self._behind.values() if isinstance(record, Tombstone)]
            self._index.update(map(self._document, threads), gone)
            self._behind, self._index_changed = {}, True
        return self._index

    def _fault(self) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        if not self.manifest.index:
            return "missing"
        if maker := other_maker(self.manifest):
            return f"made by {maker}"
        wrong = self.snapshot.foreign_files(INDEX) or damaged_files(self.manifest, self._index_folder())
        return f"damaged ({', '.join(f'{name!a:.80}' for name in wrong[:3])})" if wrong else ""

    def _rebuild(self, fault: str) -> Index:
        index = self.rebuild_index()
        if self._begun_with:
            self.notes.add(f"The index was {fault}: it was made anew from {self.manifest.threads} records.")
        return index

    def _index_folder(self) -> Path:
        if self._folder is None:
            self._folder = self.snapshot.checkout(INDEX)
        return self._folder

    def _fetch(self, names: Iterable[str]) -> dict[str, bytes]:
        """Those of these parts of the index that the store has, in one exchange."""
        there = set(self.snapshot.paths(PARTS))
        wanted = {path: name for name in names if (path := part_path(name)) in there}
        try:
            return {wanted[path]: data for path, data in self.snapshot.read(wanted).items()}
        except StoreError as error:
            if type(error) in (StoreError, UnreadableFile):  # not the network or the disk: what lies there is not ours
                raise IndexCorrupt(str(error)) from error
            raise

    def _part_edits(self, folder: Path) -> dict[str, Path | None]:
        """The parts that were written, and all that lies where they belong and is none of the index's."""
        kept = {part_path(name): folder / name for name in (self._index.parts() if self._index else ())}
        there = self._paths_in(PARTS)
        gone: dict[str, Path | None] = {path: None for path in there if path not in kept}
        return gone | {path: file for path, file in kept.items() if file.is_file()}

    def _paths_in(self, folder: str) -> list[str]:
        return [path for path in (*self.snapshot.paths(folder), *self.snapshot.foreign_files(folder)) if is_fit(path)]


def _folders(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}


def other_maker(manifest: Manifest) -> str:
    """Who made the index that this manifest tells of, where it was not this version; empty where it was."""
    if manifest.layout != LAYOUT:
        return "an older version" if manifest.layout < LAYOUT else "a newer version"
    return "" if manifest.analyser == ANALYSER_VERSION else "another analyser"


def part_path(name: str) -> str:
    """Where a store has this part of the index."""
    return f"{PARTS}/{name[0]}/{name}"
