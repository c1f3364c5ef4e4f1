"""What one state of the store holds, as far as it can be read, and notes of what is damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from bot.domain.changes import AnswerRecord, FixInfo, Request, ThreadComments
from bot.domain.thread import Record, ThreadId
from bot.errors import StoreError, UnreadableFile
from bot.memory.manifest import INDEX, MANIFEST_PATH, PARTS, Manifest, bytes_hash, decode_manifest
from bot.memory.model_store import MODEL_FOLDER, RANKING, WORDS, LearnedModel, read_ranking, read_words
from bot.memory.records import RECORD_FOLDER, CorruptRecord, decode_record, in_order, record_path
from bot.memory.shards import ANSWERS, COMMENTS, FIXES, REQUESTS, SCHEMAS, StoredShard
from bot.memory.store import Snapshot
from bot.ranking.weights import shipped

Model = TypeVar("Model")
Value = TypeVar("Value")

_DAMAGED = b"\0"
"""Stands for the content of what cannot be read: no file of ours has it."""

CHUNK = 1_000
"""Files read at a time when all are read."""

_KEPT: tuple[StoredShard[Any], ...] = (ANSWERS, REQUESTS, FIXES, COMMENTS)
_OURS = frozenset((MANIFEST_PATH, RECORD_FOLDER, INDEX, PARTS, MODEL_FOLDER, *(family.folder for family in SCHEMAS)))


def files_of(ids: Iterable[ThreadId]) -> list[str]:
    """The files in which a store keeps something of these threads: each one's record, and its shards."""
    return list(dict.fromkeys(path for key in ids for path in (record_path(key), *(f.path(key) for f in SCHEMAS))))


class Notes(list[str]):
    """What a maintainer should know of a memory, each once, in the order in which it was noted; of damage, whether it
    is there still or was mended."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: dict[str, tuple[str, str]] = {}

    def add(self, text: str) -> None:
        """Note something that stays true."""
        if text not in self:
            self.append(text)

    def fault(self, place: str, now: str, mended: str) -> None:
        """Note damage: ``now`` says that it is there, ``mended`` that it was, empty where that is not worth a line."""
        self._faults.setdefault(place, (now, mended))
        self.add(now)

    def settle(self, look: Callable[[Iterable[str]], None]) -> None:
        """Tell of damage that is mended by now as of what was. ``look`` looks at these places again, and notes the
        damage that is there still."""
        found, self._faults = self._faults, {}
        told = {now for now, _ in found.values()}
        self[:] = [note for note in self if note not in told]
        look(found)
        for place, (_, mended) in found.items():
            if mended and place not in self._faults:
                self.add(mended)


class BaseState:
    """Reads go to the snapshot, each file once. ``notes`` collects what a maintainer should know.

    Raises ForeignFormat for a snapshot of a format that this version does not read.
    """

    def __init__(self, snapshot: Snapshot, notes: Notes, expected: Iterable[str] = ()) -> None:
        self.snapshot = snapshot
        self.notes = notes
        self._files: dict[str, bytes | None] = {}
        self._read([MANIFEST_PATH, *expected])
        self.manifest = self._read_manifest()
        self._records: dict[ThreadId, Record | None] = {}

    def prefetch(self, ids: Iterable[ThreadId]) -> None:
        self._read(files_of(ids))

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        """The records of these threads; unknown and damaged ones are left out.

        Their requests, fixes and our comments come along where there are any: who reads a thread asks for them next.
        """
        wanted = list(dict.fromkeys(ids))
        missing = {record_path(key): key for key in wanted if key not in self._records}
        if missing:
            self._records.update(dict.fromkeys(missing.values()))
            beside = {family.path(key) for family in (REQUESTS, FIXES, COMMENTS) for key in missing.values()}
            files = self._read([*missing, *sorted(beside)])
            for path, key in missing.items():
                if path in files:
                    self._records[key] = self._decode(path, files[path])
        return {key: record for key in wanted if (record := self._records[key]) is not None}

    def answers(self, ids: Iterable[ThreadId]) -> dict[ThreadId, AnswerRecord]:
        """What was said on these threads, as far as it can be read."""
        return self._kept(ANSWERS, ids)

    def requests(self, ids: Iterable[ThreadId]) -> dict[ThreadId, tuple[Request, ...]]:
        return self._kept(REQUESTS, ids)

    def fixes(self, ids: Iterable[ThreadId]) -> dict[ThreadId, FixInfo]:
        """Where the fixes of these threads are, as far as that was looked up."""
        return self._kept(FIXES, ids)

    def thread_comments(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        return self._kept(COMMENTS, ids)

    def learned(self) -> LearnedModel:
        """What this memory has learned, as far as it can be read; the shipped ranking where it has learned none."""
        files = self._read(sorted({WORDS, RANKING} & self.manifest.model.keys()))
        words = self._model_file(WORDS, files, read_words)
        return LearnedModel(self._model_file(RANKING, files, read_ranking) or shipped(), words)

    def look_at(self, places: Iterable[str]) -> None:
        """Read again what was found to be damaged in an earlier state; what is damaged still is noted."""
        for path, data in self._read(places).items():
            if in_order([path]):
                self._decode(path, data)
            for family in _KEPT:
                if family.among([path]):
                    self._values(family, path, data, None)
        self.learned()

    def _kept(self, family: StoredShard[Value], ids: Iterable[ThreadId]) -> dict[ThreadId, Value]:
        wanted: dict[str, list[ThreadId]] = {}
        for key in dict.fromkeys(ids):
            wanted.setdefault(family.path(key), []).append(key)
        found: dict[ThreadId, Value] = {}
        for path, data in self._read(sorted(wanted)).items():
            found |= self._values(family, path, data, wanted[path])
        return found

    def _every(self, family: StoredShard[Value]) -> Iterator[tuple[ThreadId, Value]]:
        paths = family.among(self.snapshot.paths(family.folder))
        for start in range(0, len(paths), CHUNK):
            for path, data in self._read(paths[start : start + CHUNK]).items():
                yield from self._values(family, path, data, None).items()

    def _values(
        self, family: StoredShard[Value], path: str, data: bytes, wanted: Iterable[ThreadId] | None
    ) -> dict[ThreadId, Value]:
        values, is_whole = family.read(path, data, wanted)
        if not is_whole:
            self.notes.fault(path, f"{path} is damaged: {family.loss}.", f"{path} was damaged: {family.loss}.")
        return values

    def _model_file(self, path: str, files: Mapping[str, bytes], read: Callable[[bytes], Model]) -> Model | None:
        wanted = self.manifest.model.get(path)
        if wanted is None:
            return None
        try:
            if bytes_hash(files[path]) != wanted:
                raise ValueError("it is not what the manifest says")
            return read(files[path])
        except (KeyError, ValueError) as error:
            what = "missing" if isinstance(error, KeyError) else f"damaged ({error!s:.80})"
            told = f"{path} is {what}: the search goes without it until the next rebuild."
            self.notes.fault(path, told, f"{path} was {what}: this rebuild made it anew.")
            return None

    def _read_manifest(self) -> Manifest:
        data = self._files[MANIFEST_PATH]
        there = len(in_order(self.snapshot.paths(RECORD_FOLDER)))
        try:
            manifest = decode_manifest(data) if data is not None else Manifest()
            fault = "missing" if data is None and there else ""
        except ValueError as error:
            manifest, fault = Manifest(), f"damaged ({error})"
        if not there and (data is None or fault):
            self._refuse_other_branch()
        if fault:
            told = f"The manifest was {fault}: "
            now = f"{told}it is made anew, and the next runs catch up from the beginning."
            self.notes.fault(MANIFEST_PATH, now, f"{told}this rebuild made it anew.")
        return replace(manifest, threads=there) if fault else manifest

    def _refuse_other_branch(self) -> None:
        """StoreError where there is no memory and something else: it is not ours to write into, or to squash."""
        strange = next((path for path in self.snapshot.paths("") if path.partition("/")[0] not in _OURS), "")
        if strange:
            raise StoreError(
                f"there is {strange[:80]!r} where memory is to be kept, and no memory: choose another branch"
            )

    def _read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files; each is asked for once, as asking a remote store costs a round trip."""
        wanted = list(paths)
        missing = [path for path in wanted if path not in self._files]
        if missing:
            self._files |= dict.fromkeys(missing)
            self._files |= self._contents(missing)
        return {path: data for path in wanted if (data := self._files[path]) is not None}

    def _contents(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files; what is no file of ours counts as a damaged one, and is mended like that."""
        wanted = dict.fromkeys(paths)
        odd: dict[str, bytes] = {}
        while True:
            try:
                return self.snapshot.read(path for path in wanted if path not in odd) | odd
            except UnreadableFile as error:
                if error.paths <= odd.keys():
                    raise
                odd |= dict.fromkeys(error.paths, _DAMAGED)

    def _decode(self, path: str, data: bytes) -> Record | None:
        try:
            record = decode_record(data)
            if record_path(record.id) != path:
                raise CorruptRecord(f"it says that it is {record.id!a:.40}")
        except CorruptRecord as error:
            mended = f"{path} was damaged ({error}): this rebuild made it anew."
            self.notes.fault(path, f"{path} is damaged and was left out ({error}).", mended)
            return None
        return record
