"""A draft: one state of memory with this run's changes on top, searchable before it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from bot.memory import manifest as manifests
from bot.memory.documents import document_of
from bot.memory.index import Index, IndexCorrupt, Query
from bot.memory.manifest import FORMAT, Manifest
from bot.memory.records import CorruptRecord, decode, encode, record_path, sort_key
from bot.memory.shards import answer_path, digest_line, digest_path, edit_shards, parse_said, read_shard, said_line
from bot.memory.store import Snapshot
from bot.memory.whoosh import build, open_index
from bot.model import Changes, Digest, Entry, Hit, Record, Said, Thread, ThreadId, Tombstone
from bot.reading.digest import digest as read_digest
from bot.reading.words import ANALYSER_VERSION

Progress = Callable[[int], None]
Answer = TypeVar("Answer")
CHUNK = 1_000
"""Records read at a time when the index is made anew."""


def wins(new: Record, old: Record | None) -> bool:
    """Whether ``new`` replaces ``old``: the later revision does, a tombstone stays, equal content changes nothing."""
    if old is None:
        return True
    if new.revised_at != old.revised_at:
        return new.revised_at > old.revised_at and not _same_content(new, old)
    if isinstance(old, Tombstone):
        return False
    return isinstance(new, Tombstone) or not _same_content(new, old)


def _same_content(new: Record, old: Record) -> bool:
    """Equal apart from the time of the last update, which our own comment moves too."""
    if isinstance(new, Thread) and isinstance(old, Thread):
        return replace(new, updated_at=None) == replace(old, updated_at=None)
    return type(new) is type(old)


class Draft:
    """Reads go to the snapshot, changes lie on top. ``notes`` collects what a maintainer should know.

    ``expected`` names files that will be read, so that they are read together.
    """

    def __init__(self, snapshot: Snapshot, notes: list[str], expected: Iterable[str] = ()) -> None:
        self.snapshot = snapshot
        self.notes = notes
        self._files: dict[str, bytes | None] = {}
        self._read([manifests.PATH, *expected])
        self.manifest = self._read_manifest()
        self._records: dict[ThreadId, Record | None] = {}
        self._written: dict[ThreadId, Record] = {}
        self._digests: dict[ThreadId, Digest] = {}
        self._said: dict[ThreadId, Said] = {}
        self._folder: Path | None = None
        self._index: Index | None = None
        self._index_changed = False

    @property
    def is_newer(self) -> bool:
        """Whether a later version of this program wrote the branch; then nothing is written over it."""
        return self.manifest.format > FORMAT

    # -- reading ---------------------------------------------------------------------------------------------------

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        """The records of these threads; unknown and damaged ones are left out."""
        wanted = list(dict.fromkeys(ids))
        missing = {record_path(key): key for key in wanted if key not in self._records}
        if missing:
            self._records.update(dict.fromkeys(missing.values()))
            for path, data in self._read(missing).items():
                self._records[missing[path]] = self._decode(path, data)
        return {key: record for key in wanted if (record := self._records[key]) is not None}

    def said(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Said]:
        """What was said on these threads before and in this run."""
        wanted = list(dict.fromkeys(ids))
        shards = self._read(sorted({answer_path(key) for key in wanted}))
        found: dict[ThreadId, Said] = {}
        for path, data in shards.items():
            lines = read_shard(data)
            for key in wanted:
                if answer_path(key) == path and key in lines:
                    found |= _valid_said(key, lines[key])
        return found | {key: self._said[key] for key in wanted if key in self._said}

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[Entry], bool] | None = None,
    ) -> list[Hit]:
        """The best hits of the index; a damaged index is made anew from the records and asked again."""
        return self._ask(lambda index: index.search(query, limit=limit, before=before, keep=keep), [])

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Entry]:
        """What the index knows of these threads."""
        wanted = list(ids)
        return self._ask(lambda index: index.entries(wanted), {})

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids, a thousand read at a time."""
        paths = [path for path in self.snapshot.paths("records") if path.endswith(".json")]
        paths.sort(key=lambda path: (len(path), path))
        written = {record_path(key): record for key, record in self._written.items()}
        for start in range(0, len(paths), CHUNK):
            part = paths[start : start + CHUNK]
            found = self.snapshot.read(part)
            for path in part:
                record = written.pop(path, None) or self._decode(path, found.get(path, b""))
                if record is not None:
                    yield record
            tick(len(part))
        yield from sorted(written.values(), key=lambda record: sort_key(record.id))

    # -- changing --------------------------------------------------------------------------------------------------

    def apply(self, changes: Changes, tick: Progress = lambda _: None) -> None:
        """Put changes on top. Applying the same ones twice, or older ones later, changes nothing."""
        held = self.records(record.id for record in changes.records)
        newest = {record.id: record for record in sorted(changes.records, key=lambda record: record.revised_at)}
        winners = [record for key, record in newest.items() if wins(record, held.get(key))]
        threads = tombstones = 0
        for record in winners:
            old = held.get(record.id)
            threads += isinstance(record, Thread) - isinstance(old, Thread)
            tombstones += isinstance(record, Tombstone) - isinstance(old, Tombstone)
            self._records[record.id] = self._written[record.id] = record
        if winners:
            self._index_records(winners, tick)
        self._said |= {said.id: said for said in changes.said}
        cursors = [moment for moment in (self.manifest.cursor, changes.cursor) if moment]
        self.manifest = replace(
            self.manifest,
            cursor=max(cursors, default=None),
            threads=self.manifest.threads + threads,
            tombstones=self.manifest.tombstones + tombstones,
            pending=manifests.next_pending(
                self.manifest.pending,
                [said.id for said in changes.said if said.state == "pending"],
                [said.id for said in changes.said if said.state != "pending"],
            ),
        )

    def edits(self) -> dict[str, bytes | Path | None]:
        """What has to be written so that the store holds this draft; nothing when nothing changed."""
        found: dict[str, bytes | Path | None] = {record_path(key): encode(r) for key, r in self._written.items()}
        found |= self._shard_edits()
        manifest = self.manifest
        if self._index_changed and self._folder is not None:
            manifest = manifest.with_index(self._folder, ANALYSER_VERSION)
            found |= {f"index/{name}": self._folder / name for name in manifest.index.keys() - self.manifest.index.keys()}
            found |= {f"index/{name}": None for name in self.manifest.index.keys() - manifest.index.keys()}
        data = manifests.encode(manifest)
        if data != self._files[manifests.PATH]:
            found[manifests.PATH] = data
        return found

    def rebuild_index(self, tick: Progress = lambda _: None) -> Index:
        """Make the index anew from the records."""
        folder = self._index_folder()
        for path in folder.iterdir():
            path.unlink()
        threads = (record for record in self.every_record(tick) if isinstance(record, Thread))
        build(folder, (document_of(thread, self._digests.get(thread.id)) for thread in threads))
        self._index, self._index_changed = open_index(folder), True
        return self._index

    def _ask(self, question: Callable[[Index], Answer], nothing: Answer) -> Answer:
        """Ask the index; made anew once if it is damaged. An index that cannot be had at all costs the answer only."""
        try:
            return question(self._open_index()[0])
        except IndexCorrupt as error:
            fault = str(error)
        try:
            return question(self._rebuild(fault))
        except IndexCorrupt as error:
            self.notes.append(f"The index could not be used ({error}): similar threads were not looked for.")
            return nothing

    # -- parts -----------------------------------------------------------------------------------------------------

    def _shard_edits(self) -> dict[str, bytes | None]:
        lines = [
            (key, digest_line(self._digests[key]) if key in self._digests else None) for key in self._written
        ]
        said = [(key, said_line(said)) for key, said in self._said.items()]
        paths = {digest_path(key) for key, _ in lines} | {answer_path(key) for key, _ in said}
        shards = self._read(sorted(paths))
        return edit_shards(shards, lines, digest_path) | edit_shards(shards, said, answer_path)

    def _index_records(self, records: list[Record], tick: Progress) -> None:
        for record in records:
            if isinstance(record, Thread):
                self._digests[record.id] = read_digest(record)
            else:
                self._digests.pop(record.id, None)
            tick(1)
        try:
            index, made_anew = self._open_index()
            if not made_anew:
                threads = [record for record in records if isinstance(record, Thread)]
                gone = [record.id for record in records if isinstance(record, Tombstone)]
                index.update([document_of(thread, self._digests[thread.id]) for thread in threads], gone)
                self._index_changed = True
        except IndexCorrupt as error:
            self._rebuild(str(error))

    def _open_index(self) -> tuple[Index, bool]:
        """The index, and whether it had to be made anew just now (then it holds this draft's records already)."""
        if self._index is not None:
            return self._index, False
        folder = self._index_folder()
        fault = self._fault(folder)
        if fault:
            return self._rebuild(fault), True
        self._index = open_index(folder)
        return self._index, False

    def _fault(self, folder: Path) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        if self.is_newer:
            return "written by a newer version"
        if not self.manifest.index:
            return "missing"
        if self.manifest.analyser != ANALYSER_VERSION:
            return "made by another analyser"
        wrong = manifests.damaged_files(self.manifest, folder)
        return f"damaged ({', '.join(wrong[:3])})" if wrong else ""

    def _rebuild(self, fault: str) -> Index:
        if self.manifest.threads:
            self.notes.append(f"The index was {fault}: it was made anew from {self.manifest.threads} records.")
        return self.rebuild_index()

    def _index_folder(self) -> Path:
        if self._folder is None:
            self._folder = self.snapshot.checkout("index")
        return self._folder

    def _read_manifest(self) -> Manifest:
        data = self._files[manifests.PATH]
        if data is None:
            return Manifest()
        try:
            return manifests.decode(data)
        except ValueError as error:
            self.notes.append(f"{error}: made anew; the next runs catch up from the beginning.")
            paths = self.snapshot.paths("records")
            return Manifest(threads=len(paths))

    def _read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files; each is asked for once, as asking a remote store costs a round trip."""
        wanted = list(paths)
        missing = [path for path in wanted if path not in self._files]
        if missing:
            self._files |= dict.fromkeys(missing)
            self._files |= self.snapshot.read(missing)
        return {path: data for path in wanted if (data := self._files[path]) is not None}

    def _decode(self, path: str, data: bytes) -> Record | None:
        try:
            return decode(data)
        except CorruptRecord as error:
            self.notes.append(f"{path} is damaged and was left out ({error}).")
            return None


def _valid_said(key: ThreadId, fields: dict[str, object]) -> dict[ThreadId, Said]:
    try:
        return {key: parse_said(fields)}
    except (KeyError, TypeError, ValueError):
        return {}
