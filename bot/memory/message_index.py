"""The index of all messages of a state, used only by a search by words.

An ordinary run does not read it, but only notes which threads the index is behind on (`MessageFiles`). They are added
by a run that searches, or when there are many, and at once when a thread is gone, as its words must leave the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count, takewhile
from typing import TypeVar

from bot.domain.card import id_order, message_id
from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.index.protocol import LAYOUT_VERSION, Index, IndexCorrupt, IndexDocument, IndexSegment
from bot.memory.manifest import MESSAGE_FOLDER, MessageFiles
from bot.memory.staged_state import Progress, StagedState
from bot.memory.store import Edits
from bot.memory.stored_index import StoredIndex, other_maker
from bot.reading.analyzer import ANALYSER_VERSION

Answer = TypeVar("Answer")

MAX_THREADS_BEHIND = 100
"""Threads that the index may be behind on: a search reads that many more records, and the manifest lists them."""


class MessageIndex:
    """Holds the index of the messages of ``state``, from whose records it can always be rebuilt.

    It may be behind on ``threads_behind`` threads.
    """

    def __init__(self, state: StagedState, threads_behind: int = MAX_THREADS_BEHIND) -> None:
        self._state, self._threads_behind = state, threads_behind
        self._stored = StoredIndex(state.base, MESSAGE_FOLDER)
        if state.manifest.messages is None and not state.manifest.threads:
            state.manifest = replace(state.manifest, messages=MessageFiles())
        self._has_gone = False

    def close(self) -> None:
        """Release the files of the index."""
        self._stored.close()

    @property
    def exists(self) -> bool:
        """Whether the memory has such an index; after damage to the manifest, it has none until it is rebuilt."""
        return self._state.manifest.messages is not None

    def ask(self, question: Callable[[Index], Answer], default: Answer) -> Answer:
        """Query the index, brought up to date. A missing or damaged one is rebuilt; if that fails, the run continues
        with ``default`` and a note."""
        try:
            try:
                return question(self._open_current())
            except IndexCorrupt as error:
                return question(self._repair(f"damaged ({error!s:.120})"))
        except (IndexCorrupt, OSError) as error:
            self._state.manifest = replace(self._state.manifest, messages=None)
            note = f"The index of messages could not be used ({error!s:.120}): comments were not searched."
            self._state.notes.add(note)
            return default

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name, see `Index.segments`; none if there is no index."""
        return self.ask(lambda index: index.segments(), {}) if self.exists else {}

    def update(self, records: Iterable[Record]) -> None:
        """Mark the index as behind on these threads, which replaced others in this state."""
        stored = self._state.manifest.messages
        if stored is None:
            return
        behind = set(stored.behind)
        for record in records:
            self._has_gone |= isinstance(record, Tombstone) and (record.id in behind or self._may_have(record.id))
            behind.add(record.id)
        in_order = tuple(sorted(behind, key=id_order))  # the same threads make the same files
        self._state.manifest = replace(self._state.manifest, messages=replace(stored, behind=in_order))

    def rebuild(self, tick: Progress = lambda _: None) -> Index:
        """Rebuild the index from the records; the stored one is not read. Raises IndexCorrupt, OSError."""
        self._state.manifest = replace(self._state.manifest, messages=MessageFiles())
        return self._stored.build(_documents(self._state.living_threads(tick)))

    def edits(self) -> tuple[Edits, MessageFiles | None]:
        """The index files to write, and the manifest's new entry for the index."""
        stored = self._state.manifest.messages
        is_due = stored and len(stored.behind) > (0 if self._has_gone and stored.files else self._threads_behind)
        if is_due:
            self.ask(lambda _: None, None)
        stored = self._state.manifest.messages
        if stored is None:
            return self._stored.removal(), None
        if not self._stored.has_changed:
            return {}, stored
        file_edits, files = self._stored.edits(stored.files)
        return file_edits, MessageFiles(files, LAYOUT_VERSION, ANALYSER_VERSION, stored.behind)

    def _open_current(self) -> Index:
        stored = self._state.manifest.messages
        if stored is None:
            return self.rebuild()
        index = self._stored.index
        if index is None:
            if stored.files and (fault := self._fault(stored)):
                return self._repair(fault)
            index = self._stored.open() if stored.files else self._stored.build(())
        if stored.behind:
            self._catch_up(stored.behind, index)
            self._state.manifest = replace(self._state.manifest, messages=replace(stored, behind=()))
        return index

    def _catch_up(self, behind: Iterable[ThreadId], index: Index) -> None:
        records = self._state.records(behind)
        threads = [record for record in records.values() if isinstance(record, Thread)]
        index.update(_documents(threads), [name for key in behind for name in _indexed(key, index)])
        self._stored.has_changed = True

    def _fault(self, stored: MessageFiles) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        maker = other_maker(stored.layout, stored.analyser)
        return f"made by {maker}" if maker else self._stored.damage(stored.files)

    def _repair(self, fault: str) -> Index:
        index = self.rebuild()
        self._state.notes.add(f"The index of messages was {fault}: it was rebuilt from the records.")
        return index

    def _may_have(self, key: ThreadId) -> bool:
        """Whether the index may have messages of a thread in the stored state."""
        return isinstance(self._state.base.known.get(key), Thread) or self._state.is_damaged(key)


def _indexed(key: ThreadId, index: Index) -> Iterator[str]:
    """The ids of the messages of a thread that the index has."""
    ids = (message_id(key, position) for position in count())
    return takewhile(lambda name: bool(index.entries([name])), ids)


def _documents(threads: Iterable[Thread]) -> Iterator[IndexDocument]:
    from bot.index.document import message_documents  # slow to load

    for thread in threads:
        yield from message_documents(thread)
