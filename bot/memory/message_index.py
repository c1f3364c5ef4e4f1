"""The index of all messages of a state, which only a search by words asks.

An ordinary run does not read it: it only notes which threads the index is behind on (`MessageFiles`). They are taken in
by a run that searches, when there are many, and at once when a thread is gone, as its words must leave the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from bot.domain.thread import Record, Thread, ThreadId, Tombstone
from bot.index.document import message_documents, message_id
from bot.index.protocol import LAYOUT, USUAL, Index, IndexCorrupt, IndexDocument, IndexSegment, Sizes
from bot.memory.manifest import MESSAGE_PARTS, MESSAGES, MessageFiles
from bot.memory.records import sort_key
from bot.memory.state import MemoryState, Progress
from bot.memory.store import Edits
from bot.memory.stored_index import StoredIndex, other_maker
from bot.reading.analyzer import ANALYSER_VERSION

Answer = TypeVar("Answer")

MOST_BEHIND = 100
"""Threads that the index may be behind on: a search reads so many records more, and the manifest names them."""

_DAMAGED_COUNT = 10_000
"""Messages that a damaged record may have had: more than GitHub shows of any issue."""


class MessageIndex:
    """Holds the index of the messages of ``state``, whose records it can always be built from.

    ``sizes`` tell which parts of the index are files of their own.
    """

    def __init__(self, state: MemoryState, sizes: Sizes = USUAL) -> None:
        self._state = state
        self._stored = StoredIndex(state.base, MESSAGES, MESSAGE_PARTS, sizes)
        if state.manifest.messages is None and not state.manifest.threads:
            state.manifest = replace(state.manifest, messages=MessageFiles())
        self._has_gone = False

    @property
    def is_there(self) -> bool:
        """Whether the memory has such an index; one that an earlier version wrote has none until the next rebuild."""
        return self._state.manifest.messages is not None

    def ask(self, question: Callable[[Index], Answer], nothing: Answer) -> Answer:
        """Ask the index as of now. A missing or damaged one is built; if that fails, the run goes on with ``nothing``,
        and a note."""
        try:
            try:
                return question(self._ready())
            except IndexCorrupt as error:
                return question(self._repaired(f"damaged ({error!s:.120})"))
        except (IndexCorrupt, OSError) as error:
            self._state.manifest = replace(self._state.manifest, messages=None)
            lost = f"The index of messages could not be used ({error!s:.120}): comments were not searched."
            self._state.notes.add(lost)
            return nothing

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name, see `Index.segments`; none where there is no index."""
        return self.ask(lambda index: index.segments(), {}) if self.is_there else {}

    def update(self, records: Iterable[Record]) -> None:
        """Be behind on these threads, which replaced others in this state."""
        known = self._state.manifest.messages
        if known is None:
            return
        behind = dict(known.behind)
        for record in records:
            count = max(behind.get(record.id, 0), _count(record), self._stored_count(record.id))
            self._has_gone |= bool(count) and isinstance(record, Tombstone)
            behind[record.id] = count
        self._state.manifest = replace(self._state.manifest, messages=replace(known, behind=behind))

    def rebuild(self, tick: Progress = lambda _: None) -> Index:
        """Make the index again from the records; the stored one is not read. Raises IndexCorrupt, OSError."""
        self._state.manifest = replace(self._state.manifest, messages=MessageFiles())
        return self._stored.build(_documents(self._state.living(tick)))

    def edits(self) -> tuple[Edits, MessageFiles | None]:
        """The files of the index that have to be written, and what the manifest says of it then."""
        known = self._state.manifest.messages
        is_due = known and len(known.behind) > (0 if self._has_gone and known.files else MOST_BEHIND)
        if is_due:
            self.ask(lambda _: None, None)
        known = self._state.manifest.messages
        if known is None:
            return self._stored.removal(), None
        if not self._stored.has_changed:
            return {}, known
        found, files = self._stored.edits(known.files)
        return found, MessageFiles(files, LAYOUT, ANALYSER_VERSION, known.behind)

    def _ready(self) -> Index:
        known = self._state.manifest.messages
        if known is None:
            return self.rebuild()
        index = self._stored.index
        if index is None:
            if known.files and (fault := self._fault(known)):
                return self._repaired(fault)
            index = self._stored.open() if known.files else self._stored.build(())
        if known.behind:
            self._take_in(known.behind, index)
            self._state.manifest = replace(self._state.manifest, messages=replace(known, behind={}))
        return index

    def _take_in(self, behind: Mapping[ThreadId, int], index: Index) -> None:
        records = self._state.records(sorted(behind, key=sort_key))  # the same threads make the same files
        threads = [record for record in records.values() if isinstance(record, Thread)]
        gone = (message_id(key, position) for key, count in behind.items() for position in range(count))
        index.update(_documents(threads), gone)
        self._stored.has_changed = True

    def _fault(self, known: MessageFiles) -> str:
        """Why the stored index cannot be used as it is; empty when it can."""
        maker = other_maker(known.layout, known.analyser)
        return f"made by {maker}" if maker else self._stored.damage(known.files)

    def _repaired(self, fault: str) -> Index:
        index = self.rebuild()
        self._state.notes.add(f"The index of messages was {fault}: it was rebuilt from the records.")
        return index

    def _stored_count(self, key: ThreadId) -> int:
        stored = self._state.base.known.get(key)
        return _count(stored) if stored else _DAMAGED_COUNT if self._state.is_damaged(key) else 0


def _count(record: Record) -> int:
    return 1 + len(record.comments) if isinstance(record, Thread) else 0


def _documents(threads: Iterable[Thread]) -> Iterator[IndexDocument]:
    for thread in threads:
        yield from message_documents(thread)
