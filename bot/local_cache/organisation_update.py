"""Brings the index of an organisation on this machine up to date with the memories of its repositories."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bot.domain.card import key_of, name_of
from bot.domain.organisation import OrganisationThread
from bot.errors import PrecedentError, UserError
from bot.files import on_disk, regular_bytes, replace
from bot.local_cache.local_memory import LocalMemory, MemoryOptions, ProgressBar, early_settings_of
from bot.local_cache.location import open_memory
from bot.local_cache.organisation import (
    INDEX,
    MAX_SOURCES,
    OrganisationSource,
    SourceList,
    SourceUpdate,
    listed_sources,
    open_index,
    read_sources,
    write_sources,
)
from bot.local_cache.sync import memory_of
from bot.memory.branch_store import alone
from bot.organisation.documents import MADE, MemorySource, changed_threads, whole_memory
from bot.recall.candidates import Candidates, OrganisationUnavailable

BATCH = 500
"""Threads that are written to the index at once."""


Marks = dict[str, str]
"""The name of each thread of a memory (`name_of`) → a mark that changes with it."""


class OrganisationUpdate(NamedTuple):
    """How an update goes about it: its folder, and where it shows its progress. ``refresh`` fetches every memory."""

    folder: Path
    progress: ProgressBar
    refresh: bool = True

    def options(self, source: OrganisationSource) -> MemoryOptions:
        """Where the memory of this source is."""
        path = Path(source.path) if source.path else None
        store = path if path and is_store(path) else None
        repo = "" if path else source.name
        return MemoryOptions(
            path or self.folder, store, repo, source.branch, refresh=self.refresh, progress=self.progress
        )


def is_store(folder: Path) -> bool:
    """Whether the folder is a store or a checkout of a memory branch: other projects have a manifest.json, too."""
    return (folder / "manifest.json").is_file() and (folder / "records").is_dir()


def add_sources(given: Sequence[OrganisationSource], doing: OrganisationUpdate) -> list[SourceUpdate]:
    """Add repositories, of which only name or path and branch count, to the list and to the index.

    Raises UserError if one of them has no memory that can be read, or for too many; none is added then.
    """
    with _alone(doing.folder):
        listed, added = read_sources(doing.folder), []
        for one in given:
            with open_memory(doing.options(one)) as place:
                source = _identified(one, place.demand(), listed)
            listed = listed.with_source(source)
            added.append(source.number)
        if len(listed.sources) > MAX_SOURCES:
            raise UserError(
                f"one folder holds at most {MAX_SOURCES:,} repositories: put others into another, with --org"
            )
        write_sources(doing.folder, listed)
        return _update(listed, added, doing._replace(refresh=False))


def _identified(given: OrganisationSource, place: LocalMemory, listed: SourceList) -> OrganisationSource:
    """The source with a name, a key and a number: its old one if it is in the list already."""
    where = place.home.casefold() or (place.cache.name if place.cache else given.path)
    key = f"{where} {given.branch}"
    for known in listed.sources:
        if known.key == key:
            return known
    name = place.repo or place.local_cache.fact("repo") or Path(given.path).name
    return given._replace(number=listed.next, name=name, key=key)


def update_sources(wanted: Collection[int], doing: OrganisationUpdate) -> list[SourceUpdate]:
    """Write to the index what changed in the memories of these sources, and take out what is gone.

    One that cannot be read stays as it was, with the reason as its ``fault``.
    """
    with _alone(doing.folder):
        return _update(listed_sources(doing.folder), wanted, doing)


def remove_sources(unwanted: Collection[int], folder: Path) -> None:
    """Take sources out of the index and off the list."""
    with _alone(folder), open_index(folder) as index:
        listed = read_sources(folder)
        for number in unwanted:
            _marks_file(folder, number).unlink(missing_ok=True)  # first: without them all is read again
            index.delete(number)
        index.compact(purges=True)
        kept = tuple(one for one in listed.sources if one.number not in unwanted)
        write_sources(folder, listed._replace(sources=kept))  # last: what failed before is done again


def rebuild_index(doing: OrganisationUpdate) -> list[SourceUpdate]:
    """Make the index again from all memories. Searches see the old one until the new one is complete."""
    with _alone(doing.folder):
        listed = listed_sources(doing.folder)
        _forget_marks(doing.folder, listed)
        listed = listed._replace(revision=_revision(listed))
        try:
            return _rebuilt(listed, doing)
        except OrganisationUnavailable:  # too damaged for its engine; all of it is in the memories
            shutil.rmtree(doing.folder / INDEX, ignore_errors=True)
            return _rebuilt(listed, doing)


def _rebuilt(listed: SourceList, doing: OrganisationUpdate) -> list[SourceUpdate]:
    with open_index(doing.folder) as index:
        read = _RebuildReader(listed, doing)
        index.rebuild(read.threads())
        return read.finished()


class _RebuildReader:
    """Reads all memories for a rebuild, one after the other, and keeps what was learned of each."""

    def __init__(self, listed: SourceList, doing: OrganisationUpdate) -> None:
        self._listed, self._doing = listed, doing
        self._marks: dict[int, Marks] = {}
        self._made: dict[int, str] = {}
        self._counts: dict[int, int] = {}

    def threads(self) -> Iterator[OrganisationThread]:
        for source in self._listed.sources:
            self._counts[source.number] = 0
            try:
                yield from self._of(source)
            except PrecedentError as error:
                self._listed = self._listed.with_source(source._replace(tip="", threads=0, fault=str(error)))

    def _of(self, source: OrganisationSource) -> Iterator[OrganisationThread]:
        begun = datetime.now(UTC)
        with open_memory(self._doing.options(source)) as place:
            marks = marks_of(place.demand())
            with (
                memory_of(place) as memory,
                self._doing.progress(f"Reading {source.name}", len(marks)) as tick,
            ):
                for one in whole_memory(memory, _memory_source(source, place, self._listed.revision)):
                    yield one
                    self._counts[source.number] += 1
                    tick(1)
            self._marks[source.number] = marks
            self._made[source.number] = _made(place)
            self._listed = self._listed.with_source(_read(source, place, marks, begun))

    def finished(self) -> list[SourceUpdate]:
        """What was done, after the new index took the place of the old one."""
        for number, marks in self._marks.items():
            _write_marks(self._doing.folder, number, marks, self._made[number])
        write_sources(self._doing.folder, self._listed)
        return [SourceUpdate(one, self._counts.get(one.number, 0)) for one in self._listed.sources]


def _update(listed: SourceList, wanted: Collection[int], doing: OrganisationUpdate) -> list[SourceUpdate]:
    done = []
    with open_index(doing.folder) as index:
        if not index.exists():
            _forget_marks(doing.folder, listed)
        for source in (one for one in listed.sources if one.number in wanted):
            listed = listed._replace(revision=_revision(listed))
            try:
                told = _update_one(source, listed.revision, index, doing)
            except OrganisationUnavailable:
                raise
            except PrecedentError as error:
                told = SourceUpdate(source._replace(fault=str(error)))
            listed = listed.with_source(told.source)
            write_sources(doing.folder, listed)
            done.append(told)
        index.compact()  # also if nothing changed: files that the last time replaced may go now
    return done


def _update_one(
    source: OrganisationSource, revision: int, index: Candidates, doing: OrganisationUpdate
) -> SourceUpdate:
    begun = datetime.now(UTC)
    with open_memory(doing.options(source)) as place:
        known = _known_marks(doing.folder, source.number, _made(place))
        if known and place.demand().local_cache.fact("stamp") == source.tip:
            return SourceUpdate(_read(source, place, known, begun))
        if not known:  # nobody knows what the index has of it, and what of that is gone by now
            index.delete(source.number)
        marks = marks_of(place.demand())
        names = [name for name in {**known, **marks} if known.get(name) != marks.get(name)]
        if names:
            _write(names, source, place, _Writing(index, revision, doing.progress))
        _write_marks(doing.folder, source.number, marks, _made(place))  # last: a kill before it only repeats the work
        return SourceUpdate(_read(source, place, marks, begun), len(names))


class _Writing(NamedTuple):
    engine: Candidates
    revision: int
    progress: ProgressBar


def _write(names: Sequence[str], source: OrganisationSource, place: LocalMemory, writing: _Writing) -> None:
    """Write these threads to the index as the memory has them now."""
    keys = [key_of(name) for name in names]
    with memory_of(place) as memory, writing.progress(f"Reading {source.name}", len(keys)) as tick:
        threads = changed_threads(keys, memory, _memory_source(source, place, writing.revision))
        while part := list(islice(threads, BATCH)):
            writing.engine.upsert(part)
            tick(len(part))


def _memory_source(source: OrganisationSource, place: LocalMemory, revision: int) -> MemorySource:
    server = place.home.removesuffix(f"/{place.repo}")
    return MemorySource(source.number, source.name, revision, server, early_settings_of(place).people)


def _read(source: OrganisationSource, place: LocalMemory, marks: Marks, begun: datetime) -> OrganisationSource:
    """The source after its memory was read; with a fault if that is only as it was once fetched."""
    fetched = place.local_cache.fact("fetched")
    is_old = bool(fetched) and place.store is None and datetime.fromisoformat(fetched) < begun
    return source._replace(
        tip=place.local_cache.fact("stamp"),
        updated=(datetime.fromisoformat(fetched) if is_old else begun).isoformat(timespec="seconds"),
        threads=len(marks),
        fault=place.note.partition("\n")[0] if is_old else "",
    )


def marks_of(place: LocalMemory) -> Marks:
    """The marks of all threads that an organisation's index may have."""
    return {
        name_of(card.id): blake2b(repr(card).encode("utf-8", "replace"), digest_size=12).hexdigest()
        for card in place.local_cache.every()
        if card.kind.traits.is_suggested
    }


def _made(place: LocalMemory) -> str:
    """What documents depend on besides the memory: other people are left out of them with other settings."""
    return " ".join([MADE, *sorted(early_settings_of(place).people)])


def _known_marks(folder: Path, number: int, made: str) -> Marks:
    """The marks of what the index has; {} if all has to be read again."""
    with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, PrecedentError):
        fields = json.loads(regular_bytes(_marks_file(folder, number)) or b"")
        if fields["made"] == made:
            return {str(name): str(mark) for name, mark in fields["threads"].items() if name[:1] in ("#", "=")}
    return {}


def _write_marks(folder: Path, number: int, marks: Mapping[str, str], made: str) -> None:
    with on_disk(f"write in {folder}"):
        replace(_marks_file(folder, number), json.dumps({"made": made, "threads": marks}).encode())


def _forget_marks(folder: Path, listed: SourceList) -> None:
    """From now on all threads have to be read again."""
    for source in listed.sources:
        _marks_file(folder, source.number).unlink(missing_ok=True)


def _marks_file(folder: Path, number: int) -> Path:
    return folder / f"threads-{number}.json"


def _revision(listed: SourceList) -> int:
    """A revision later than all before, also after the clock was set back."""
    return max(time.time_ns() // 1_000_000, listed.revision + 1)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with on_disk(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with alone(folder):
        yield
