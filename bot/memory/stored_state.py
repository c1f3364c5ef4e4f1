"""One state of the store, as far as it can be read, and notes about damage in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from bot.domain.thread import Record, ThreadId
from bot.domain.thread_json import NO_LIMIT, TimeLimit, no_time_after
from bot.errors import StoreError, UnreadableFile
from bot.files import is_safe_path
from bot.memory.bounds import MAX_TWINS, PORTION_BYTES, MemoryTooLarge, ReadingBudget, excess, file_limit
from bot.memory.manifest import (
    INDEX_FOLDER,
    MANIFEST_PATH,
    MESSAGE_FOLDER,
    SETTINGS_PATH,
    Manifest,
    decode_manifest,
)
from bot.memory.model_store import MODEL_FOLDER
from bot.memory.paths import RECORD_FOLDER, record_path
from bot.memory.records import CorruptRecord, decode_record, sorted_record_paths
from bot.memory.shards import (
    DIGESTS,
    EVENT_SCHEMAS,
    SCHEMAS,
    STORED,
    StoredShard,
)
from bot.memory.store import Snapshot

Value = TypeVar("Value")

_DAMAGED = b"\0"
"""Stands for a file that cannot be read. None of our files has this content."""

_CHUNK_SIZE = 1_000
"""Files fetched at a time when all are read."""

MAX_NOTES = 100
MORE_NOTES = "More was found than is listed here."

_OWN_NAMES = frozenset(
    (
        MANIFEST_PATH,
        SETTINGS_PATH,
        RECORD_FOLDER,
        INDEX_FOLDER,
        MESSAGE_FOLDER,
        MODEL_FOLDER,
        *(schema.folder for schema in SCHEMAS),
    )
)


def files_of(ids: Iterable[ThreadId]) -> list[str]:
    """The files that a run needs for these threads: the record of each, and its shards."""
    schemas = EVENT_SCHEMAS
    return list(dict.fromkeys(path for key in ids for path in (record_path(key), *(s.path(key) for s in schemas))))


def _portions(paths: Iterable[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The paths in order, in lists of files that fit into PORTION_BYTES together."""
    portion, total = list[str](), 0
    for path in paths:
        total += sizes.get(path, 0)
        if portion and total > PORTION_BYTES:
            yield portion
            portion, total = [], sizes.get(path, 0)
        portion.append(path)
    if portion:
        yield portion


class Notes(list[str]):
    """Notes for a maintainer about a memory, each once, in order; those on damage say whether it was repaired.

    At most MAX_NOTES, and a note that there are more.
    """

    def __init__(self) -> None:
        super().__init__()
        self._faults: dict[str, tuple[str, str]] = {}

    def add(self, text: str) -> None:
        """Add a note that stays true."""
        if text not in self and MORE_NOTES not in self:
            self.append(text if len(self) < MAX_NOTES else MORE_NOTES)

    def fault(self, path: str, now: str, repaired: str) -> None:
        """Note damage. ``now`` describes it as present, ``repaired`` as past; empty if that is not worth a line."""
        if len(self) < MAX_NOTES:
            self._faults.setdefault(path, (now, repaired))
        self.add(now)

    def settle(self, recheck: Callable[[Iterable[str]], None]) -> None:
        """Report damage that has been repaired as repaired. ``recheck`` reads these paths again and notes the damage
        that is still there."""
        faults, self._faults = self._faults, {}
        reported = {now for now, _ in faults.values()}
        self[:] = [note for note in self if note not in reported]
        recheck(faults)
        for path, (_, repaired) in faults.items():
            if repaired and path not in self._faults:
                self.add(repaired)


class StoredState:
    """Reads one snapshot, each file once. Damage goes into ``notes`` instead of being raised.

    ``expected`` names files that will be read, so that they are fetched together. What has a time after the ``limit``
    is damaged. Raises ForeignFormat for a format that this version does not read, StoreError for a branch that contains
    something other than a memory.
    """

    def __init__(
        self, snapshot: Snapshot, notes: Notes, expected: Iterable[str] = (), limit: TimeLimit = NO_LIMIT
    ) -> None:
        self.snapshot, self.notes, self._limit = snapshot, notes, limit
        self.files: dict[str, bytes | None] = {}
        """The files read so far; None for files that are not in the store."""
        self.known: dict[ThreadId, Record | None] = {}
        """The records read so far; None for one that is absent or damaged."""
        paths = sorted_record_paths(snapshot.paths(RECORD_FOLDER))
        self._twins = snapshot.twins(paths)
        if len(self._twins) > MAX_TWINS:
            raise MemoryTooLarge(f"{len(self._twins):,} records with the content of others")
        self._record_count = len(paths)
        self._budget = ReadingBudget(len(paths) - len(self._twins))
        self._last = ("", b"")
        self.read([MANIFEST_PATH, *expected])
        self.manifest = self._read_manifest()

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        """The records of these threads, without unknown and damaged ones.

        The posts, requests and fixes of these threads are fetched along with them, as callers need them next.
        """
        keys = list(dict.fromkeys(ids))
        missing = {record_path(key): key for key in keys if key not in self.known}
        if missing:
            self.known.update(dict.fromkeys(missing.values()))
            shards = {schema.path(key) for schema in EVENT_SCHEMAS if schema is not DIGESTS for key in missing.values()}
            files = self.read([*missing, *sorted(shards)])
            for path, key in missing.items():
                if path in files:
                    self.known[key] = self._budget.keep_record(self.decode(path, files[path]))
        return {key: record for key in keys if (record := self.known[key]) is not None}

    def values(self, schema: StoredShard[Value], ids: Iterable[ThreadId]) -> dict[ThreadId, Value]:
        """The values of these threads in the shards of this schema, as far as they can be read."""
        keys_by_path: dict[str, list[ThreadId]] = {}
        for key in dict.fromkeys(ids):
            keys_by_path.setdefault(schema.path(key), []).append(key)
        result: dict[ThreadId, Value] = {}
        for path, data in self.read(sorted(keys_by_path)).items():
            result |= self._parse(schema, path, data, keys_by_path[path])
        return result

    def all_values(self, schema: StoredShard[Value]) -> dict[ThreadId, Value]:
        paths = schema.select_paths(self.snapshot.paths(schema.folder))
        result: dict[ThreadId, Value] = {}
        for path, data in self.read(paths).items():
            result |= self._parse(schema, path, data)
        return result

    def digest_paths(self) -> list[str]:
        return sorted(DIGESTS.select_paths(self.snapshot.paths(DIGESTS.folder)))

    def digest_shards(self) -> Iterator[tuple[str, bytes]]:
        """All shards of digests with their paths, as stored."""
        return self.contents(self.digest_paths())

    def recheck(self, damaged_paths: Iterable[str]) -> None:
        """Read files that were damaged in an earlier state, and note those that still are."""
        for path, data in self.read(damaged_paths).items():
            if sorted_record_paths([path]):
                self.decode(path, data)
            for schema in STORED:
                if schema.select_paths([path]):
                    self._parse(schema, path, data)

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files. Each is fetched only once, as a remote store costs a round trip."""
        wanted = list(paths)
        missing = [path for path in wanted if path not in self.files]
        if missing:
            self.files |= dict.fromkeys(missing)
            for path, content in self.contents(missing):
                self._budget.keep(excess(path, len(content)))
                self.files[path] = content
        return {path: data for path in wanted if (data := self.files[path]) is not None}

    def content(self, path: str) -> bytes:
        """The content of a shard, empty if there is none. Of those of numbers, only the last one is kept: nobody needs
        them again. Names are in no order there."""
        if "/x" in path:
            return self.read([path]).get(path, b"")
        if path not in self.files and self._last[0] != path:
            self._last = (path, dict(self.contents([path])).get(path, b""))
        return self.files.get(path) or (self._last[1] if self._last[0] == path else b"")

    def contents(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """These files with their contents, in this order, without caching them: a portion is in memory at a time.

        A symlink, a file that is too large, and a record with the content of another count as damaged.
        """
        wanted, total = list(dict.fromkeys(paths)), 0
        for start in range(0, len(wanted), _CHUNK_SIZE):
            chunk = wanted[start : start + _CHUNK_SIZE]
            sizes = self.snapshot.sizes(path for path in chunk if path not in self._twins)
            damaged = {path for path in chunk if path in self._twins or sizes.get(path, 0) > file_limit(path)}
            sizes = {path: size for path, size in sizes.items() if path not in damaged}
            total += sum(excess(path, size) for path, size in sizes.items())
            self._budget.check(total)
            for portion in _portions(chunk, sizes):
                found = self._read_portion(path for path in portion if path not in damaged)
                found |= dict.fromkeys(damaged.intersection(portion), _DAMAGED)
                yield from ((path, found.pop(path)) for path in portion if path in found)

    def _read_portion(self, paths: Iterable[str]) -> dict[str, bytes]:
        wanted = dict.fromkeys(paths)
        unreadable: dict[str, bytes] = {}
        while True:
            try:
                return self.snapshot.read(path for path in wanted if path not in unreadable) | unreadable
            except UnreadableFile as error:
                if error.paths <= unreadable.keys():
                    raise
                unreadable |= dict.fromkeys(error.paths, _DAMAGED)

    def all_paths(self, folder: str) -> list[str]:
        """All paths in the folder, ours or not, whose names a store accepts."""
        return [
            path for path in (*self.snapshot.paths(folder), *self.snapshot.foreign_files(folder)) if is_safe_path(path)
        ]

    def decode(self, path: str, data: bytes) -> Record | None:
        """The record in the file at ``path``; None, and a note, where it is damaged."""
        try:
            with no_time_after(self._limit):
                record = decode_record(data, path)
        except CorruptRecord as error:
            repaired = f"{path} was damaged ({error}): this rebuild restored it."
            self.notes.fault(path, f"{path} is damaged and was left out ({error}).", repaired)
            return None
        return record

    def _parse(
        self, schema: StoredShard[Value], path: str, data: bytes, wanted: Iterable[ThreadId] | None = None
    ) -> dict[ThreadId, Value]:
        with no_time_after(self._limit):
            values, is_whole = schema.read(path, data, wanted)
        if not is_whole:
            self.notes.fault(path, f"{path} is damaged: {schema.loss}.", f"{path} was damaged: {schema.loss}.")
        return values

    def _read_manifest(self) -> Manifest:
        data = self.files[MANIFEST_PATH]
        count = self._record_count
        try:
            with no_time_after(self._limit):
                manifest = decode_manifest(data) if data is not None else Manifest()
            fault = "missing" if data is None and count else ""
        except ValueError as error:
            manifest, fault = Manifest(), f"damaged ({error})"
        if not count and (data is None or fault):
            self._refuse_other_branch()
        if not fault:
            return manifest
        damage = f"The manifest was {fault}: "
        now = f"{damage}it is written again, and the next runs catch up from the beginning."
        self.notes.fault(MANIFEST_PATH, now, f"{damage}this rebuild restored it.")
        return replace(manifest, threads=count)

    def _refuse_other_branch(self) -> None:
        """Never write to or squash a branch that contains something else."""
        foreign = next((path for path in self.snapshot.paths("") if path.partition("/")[0] not in _OWN_NAMES), "")
        if foreign:
            raise StoreError(
                f"the place for the memory has {foreign[:80]!r} but no memory: choose another branch or folder"
            )
