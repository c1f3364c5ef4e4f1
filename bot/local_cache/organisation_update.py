"""Updates the index of an organisation on this machine from the memories of its repositories."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bot.domain.card import key_of, name_of
from bot.domain.organisation import OrganisationThread
from bot.errors import PrecedentError, UserError
from bot.files import on_disk, read_regular, replace
from bot.local_cache.local_memory import LocalMemory, MemoryOptions, ProgressBar
from bot.local_cache.location import open_memory
from bot.local_cache.organisation import (
    INDEX_FOLDER,
    MAX_SOURCES,
    OrganisationSource,
    SourceList,
    SourceUpdate,
    open_index,
    read_sources,
    require_sources,
    write_sources,
)
from bot.local_cache.sync import memory_of
from bot.memory.branch_store import lock_folder
from bot.organisation.documents import DOCUMENT_VERSION, MemorySource, all_threads, changed_threads
from bot.recall.candidates import Candidates, OrganisationUnavailable

BATCH_SIZE = 500
"""Threads written to the index at once."""


Marks = dict[str, str]
"""The name of each thread of a memory (`name_of`) → a hash of its card."""


class OrganisationUpdate(NamedTuple):
    """The options of an update: its folder, and how to show progress. ``refresh`` fetches every memory; ``index_at``
    opens the index in the folder."""

    folder: Path
    progress: ProgressBar
    refresh: bool = True
    index_at: Callable[[Path], AbstractContextManager[Candidates]] = open_index

    def options(self, source: OrganisationSource) -> MemoryOptions:
        """Where the memory of this source is."""
        path = Path(source.path) if source.path else None
        store = path if path and _is_of_store(source) else None
        repo = "" if path else source.name
        return MemoryOptions(
            path or self.folder, store, repo, source.branch, refresh=self.refresh, progress=self.progress
        )


def is_store(folder: Path) -> bool:
    """Whether the folder is a store or a checkout of a memory branch: other projects have a manifest.json, too."""
    return (folder / "manifest.json").is_file() and (folder / "records").is_dir()


def _is_of_store(source: OrganisationSource) -> bool:
    return bool(source.path) and is_store(Path(source.path))


def add_sources(sources: Sequence[OrganisationSource], update: OrganisationUpdate) -> list[SourceUpdate]:
    """Add repositories to the list and to the index; only their name or path and their branch are used.

    Raises UserError, and adds none, if a memory cannot be read or there are too many repositories.
    """
    with _lock(update.folder):
        source_list, added = read_sources(update.folder), []
        for requested in sources:
            with open_memory(update.options(requested)) as local_memory:
                source = _identify(requested, local_memory.require(), source_list)
            source_list = source_list.with_source(source)
            added.append(source.number)
        if len(source_list.sources) > MAX_SOURCES:
            raise UserError(
                f"one folder holds at most {MAX_SOURCES:,} repositories: add others to another folder with --org"
            )
        write_sources(update.folder, source_list)
        return _update(source_list, added, update._replace(refresh=False))


def _identify(source: OrganisationSource, local_memory: LocalMemory, source_list: SourceList) -> OrganisationSource:
    """The source with a name, a key and a number; the existing one if it is already in the list.

    Raises UserError for a name that only a store says it has, and another source has too: results would be taken for
    those of the other one.
    """
    location = local_memory.home.casefold() or (local_memory.cache.name if local_memory.cache else source.path)
    key = f"{location} {source.branch}"
    for existing in source_list.sources:
        if existing.key == key:
            return existing
    name = local_memory.repo or local_memory.local_cache.fact("repo") or Path(source.path).name
    for existing in source_list.sources:
        if existing.name.casefold() == name.casefold() and (_is_of_store(existing) or _is_of_store(source)):
            where = source.path if _is_of_store(source) else existing.path
            raise UserError(
                f"the store {where} says that it is {name}, which is in the list once more: remove one of them first"
            )
    return source._replace(number=source_list.next, name=name, key=key)


def update_sources(numbers: Collection[int], update: OrganisationUpdate) -> list[SourceUpdate]:
    """Write to the index what changed in the memories of these sources, and remove what is gone.

    A source that cannot be read stays as it was, with the reason as its ``fault``.
    """
    with _lock(update.folder):
        return _update(require_sources(update.folder), numbers, update)


def remove_sources(numbers: Collection[int], update: OrganisationUpdate) -> None:
    """Take sources out of the index and off the list."""
    folder = update.folder
    with _lock(folder), update.index_at(folder) as index:
        source_list = read_sources(folder)
        for number in numbers:
            _marks_file(folder, number).unlink(missing_ok=True)  # first: without marks, everything is read again
            index.delete(number)
        index.compact(purges=True)
        kept = tuple(source for source in source_list.sources if source.number not in numbers)
        write_sources(folder, source_list._replace(sources=kept))  # last: a failure before is repaired by the next run


def rebuild_index(update: OrganisationUpdate) -> list[SourceUpdate]:
    """Rebuild the index from all memories. Searches see the old one until the new one is complete."""
    with _lock(update.folder):
        source_list = require_sources(update.folder)
        _forget_marks(update.folder, source_list)
        source_list = source_list._replace(revision=_revision(source_list))
        try:
            return _rebuild(source_list, update)
        except OrganisationUnavailable:  # too damaged for its engine; everything in it is in the memories
            shutil.rmtree(update.folder / INDEX_FOLDER, ignore_errors=True)
            return _rebuild(source_list, update)


def _rebuild(source_list: SourceList, update: OrganisationUpdate) -> list[SourceUpdate]:
    with update.index_at(update.folder) as index:
        reader = _RebuildReader(source_list, update)
        index.rebuild(reader.threads())
        return reader.finish()


class _RebuildReader:
    """Reads all memories for a rebuild, one after the other, and records the state of each."""

    def __init__(self, source_list: SourceList, update: OrganisationUpdate) -> None:
        self._source_list, self._update = source_list, update
        self._marks: dict[int, Marks] = {}
        self._document_keys: dict[int, str] = {}
        self._counts: dict[int, int] = {}

    def threads(self) -> Iterator[OrganisationThread]:
        for source in self._source_list.sources:
            self._counts[source.number] = 0
            try:
                yield from self._read_source(source)
            except PrecedentError as error:
                self._source_list = self._source_list.with_source(source._replace(tip="", threads=0, fault=str(error)))

    def _read_source(self, source: OrganisationSource) -> Iterator[OrganisationThread]:
        begun = datetime.now(UTC)
        with open_memory(self._update.options(source)) as local_memory:
            marks = marks_of(local_memory.require())
            with (
                memory_of(local_memory) as memory,
                self._update.progress(f"Reading {source.name}", len(marks)) as tick,
            ):
                for thread in all_threads(memory, _memory_source(source, local_memory, self._source_list.revision)):
                    yield thread
                    self._counts[source.number] += 1
                    tick(1)
            self._marks[source.number] = marks
            self._document_keys[source.number] = _document_key(local_memory)
            self._source_list = self._source_list.with_source(_updated_source(source, local_memory, marks, begun))

    def finish(self) -> list[SourceUpdate]:
        """Save the new state, after the new index has replaced the old one."""
        for number, marks in self._marks.items():
            _write_marks(self._update.folder, number, marks, self._document_keys[number])
        write_sources(self._update.folder, self._source_list)
        return [SourceUpdate(source, self._counts.get(source.number, 0)) for source in self._source_list.sources]


def _update(source_list: SourceList, numbers: Collection[int], update: OrganisationUpdate) -> list[SourceUpdate]:
    results = []
    with update.index_at(update.folder) as index:
        if not index.exists():
            _forget_marks(update.folder, source_list)
        for source in (listed for listed in source_list.sources if listed.number in numbers):
            source_list = source_list._replace(revision=_revision(source_list))
            try:
                result = _update_one(source, source_list.revision, index, update)
            except OrganisationUnavailable:
                raise
            except PrecedentError as error:
                result = SourceUpdate(source._replace(fault=str(error)))
            source_list = source_list.with_source(result.source)
            write_sources(update.folder, source_list)
            results.append(result)
        index.compact()  # also if nothing changed: files replaced by the last update may go now
    return results


def _update_one(
    source: OrganisationSource, revision: int, index: Candidates, update: OrganisationUpdate
) -> SourceUpdate:
    begun = datetime.now(UTC)
    with open_memory(update.options(source)) as local_memory:
        old_marks = _known_marks(update.folder, source.number, _document_key(local_memory))
        if old_marks and local_memory.require().local_cache.fact("stamp") == source.tip:
            return SourceUpdate(_updated_source(source, local_memory, old_marks, begun))
        if not old_marks:  # unknown what the index has of it, and what of that is gone by now
            index.delete(source.number)
        marks = marks_of(local_memory.require())
        names = [name for name in {**old_marks, **marks} if old_marks.get(name) != marks.get(name)]
        if names:
            _write_threads(names, source, local_memory, _IndexWriter(index, revision, update.progress))
        _write_marks(
            update.folder, source.number, marks, _document_key(local_memory)
        )  # last: a kill before it only repeats the work
        return SourceUpdate(_updated_source(source, local_memory, marks, begun), len(names))


class _IndexWriter(NamedTuple):
    engine: Candidates
    revision: int
    progress: ProgressBar


def _write_threads(
    names: Sequence[str], source: OrganisationSource, local_memory: LocalMemory, writer: _IndexWriter
) -> None:
    """Write the current state of these threads to the index."""
    keys = [key_of(name) for name in names]
    with memory_of(local_memory) as memory, writer.progress(f"Reading {source.name}", len(keys)) as tick:
        threads = changed_threads(keys, memory, _memory_source(source, local_memory, writer.revision))
        while batch := list(islice(threads, BATCH_SIZE)):
            writer.engine.upsert(batch)
            tick(len(batch))


def _memory_source(source: OrganisationSource, local_memory: LocalMemory, revision: int) -> MemorySource:
    server = local_memory.home.removesuffix(f"/{local_memory.repo}")
    return MemorySource(source.number, source.name, revision, server)


def _updated_source(
    source: OrganisationSource, local_memory: LocalMemory, marks: Marks, begun: datetime
) -> OrganisationSource:
    """The source after its memory was read, with a fault if the fetch failed and an old copy was read."""
    fetched = local_memory.local_cache.fact("fetched")
    is_stale = bool(fetched) and local_memory.store is None and datetime.fromisoformat(fetched) < begun
    return source._replace(
        tip=local_memory.local_cache.fact("stamp"),
        updated=(datetime.fromisoformat(fetched) if is_stale else begun).isoformat(timespec="seconds"),
        threads=len(marks),
        fault=local_memory.note.partition("\n")[0] if is_stale else "",
    )


def marks_of(local_memory: LocalMemory) -> Marks:
    """The marks of all threads that may be in an organisation's index."""
    return {
        name_of(card.id): blake2b(repr(card).encode("utf-8", "replace"), digest_size=12).hexdigest()
        for card in local_memory.local_cache.all_cards()
        if card.kind.traits.is_suggested
    }


def _document_key(local_memory: LocalMemory) -> str:
    """What documents depend on besides the memory: their version, and the people left out by the settings."""
    return " ".join([DOCUMENT_VERSION, *sorted(local_memory.local_cache.hidden.logins)])


def _known_marks(folder: Path, number: int, document_key: str) -> Marks:
    """The marks of the indexed threads; {} if everything must be read again."""
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, PrecedentError):
        fields = json.loads(read_regular(_marks_file(folder, number)) or b"")
        if fields["made"] == document_key:
            return {str(name): str(mark) for name, mark in fields["threads"].items() if name[:1] in ("#", "=")}
    return {}


def _write_marks(folder: Path, number: int, marks: Mapping[str, str], document_key: str) -> None:
    with on_disk(f"write in {folder}"):
        replace(_marks_file(folder, number), json.dumps({"made": document_key, "threads": marks}).encode())


def _forget_marks(folder: Path, source_list: SourceList) -> None:
    """Make the next update read all threads again."""
    for source in source_list.sources:
        _marks_file(folder, source.number).unlink(missing_ok=True)


def _marks_file(folder: Path, number: int) -> Path:
    return folder / f"threads-{number}.json"


def _revision(source_list: SourceList) -> int:
    """A revision later than all before, even if the clock was set back."""
    return max(time.time_ns() // 1_000_000, source_list.revision + 1)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    with on_disk(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock_folder(folder):
        yield
