"""Memory: what a repository knows, over any store. Every write is applied again until it lands."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar, Unpack

from bot.domain.changes import (
    AnswerRecord,
    Changes,
    CommentKey,
    FixInfo,
    NoticeKey,
    ReleaseNotice,
    Request,
    StandingComment,
)
from bot.domain.cluster import ClusterLinks
from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Kind, Record, Thread, ThreadId, is_forgotten
from bot.errors import PathClash, StoreError, TipMoved
from bot.index.protocol import USUAL, Narrowing, Query, Sizes
from bot.memory.base_state import BaseState, Notes, files_of
from bot.memory.index_slot import IndexSlot
from bot.memory.manifest import INDEX, MANIFEST_PATH, Manifest, encode_manifest
from bot.memory.message_index import MessageIndex
from bot.memory.model_store import MODEL_FOLDER, CachingEmbedder, Embedder, ModelUpdate
from bot.memory.shards import ANSWERS, COMMENTS, REQUESTS
from bot.memory.state import MemoryState, Progress
from bot.memory.store import Edits, Snapshot, Store
from bot.ranking.weights import RankingModels

Promise = TypeVar("Promise", AnswerRecord, Request)

PATIENCE = 120.0
"""Seconds for which a write is tried again: enough for twenty writers at once, ten times each."""

WENT_BACK = "The memory branch was deleted or set back meanwhile: the next runs read what is missing."

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 8.0
"""Seconds: the limits of the random delay between two tries, which doubles each time."""


class Memory:
    """One repository's memory, and the library that recall asks. `stage` makes changes searchable, `commit` durable.

    ``state`` is the newest known state with this run's changes on top, ``index`` and ``messages`` are its indexes;
    `open` and `commit` replace all three. ``repo`` (OWNER/NAME) tells links to the repository itself from others,
    ``sizes`` which parts of an index are files of their own.
    """

    def __init__(
        self,
        store: Store,
        *,
        patience: float = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
        embedder: Embedder | None = None,
        repo: str | None = None,
        sizes: Sizes = USUAL,
    ) -> None:
        self._store, self._repo, self._sizes = store, repo, sizes
        self._patience, self._sleep = patience, sleep
        self.embedder = CachingEmbedder(embedder) if embedder else None
        self.notes = Notes()
        self.taken: set[ThreadId] = set()
        """Threads that another run answered first, between the opening of this memory and its writing."""
        self.taken_requests: set[int] = set()
        """Comments with requests that another run took up first. A request that merely waits was not taken up."""
        self.taken_comments: set[CommentKey] = set()
        """Our comments that another run worked out first."""
        self.taken_notices: set[NoticeKey] = set()
        """Release notices that another run promised or posted first."""
        self.is_outdated = False
        """Whether the last `commit` found that a thread was forgotten meanwhile. Whatever was planned may show it, and
        is put off."""
        self.has_moved = False
        """Whether somebody else wrote between the opening of this memory and the end of the last `commit`."""
        self.has_learned = False
        """Whether this run installed a learned model."""
        self._went_back = False
        self._index: IndexSlot | None = None
        self._messages: MessageIndex | None = None
        self._staged: list[Changes] = []
        self._model_update: ModelUpdate | None = None
        self._was_rebuilt = False

    def open(self, want: Iterable[ThreadId] = ()) -> Memory:
        """Take the newest state; ``want`` names threads that will be read or changed.

        Raises ForeignFormat for a memory that this version does not read, StoreError when the store cannot be read.
        """
        self._went_back = False
        paths = files_of(want)
        self._show(self._store.open([MANIFEST_PATH, INDEX, MODEL_FOLDER, *paths]), paths)
        return self

    def close(self) -> None:
        self._store.close()

    @property
    def index(self) -> IndexSlot:
        if self._index is None:
            self.open()
        assert self._index is not None
        return self._index

    @property
    def messages(self) -> MessageIndex:
        if self._messages is None:
            self.open()
        assert self._messages is not None
        return self._messages

    @property
    def state(self) -> MemoryState:
        return self.index.state

    # -- the library that recall asks ------------------------------------------------------------------------------

    @property
    def issues(self) -> int:
        """Number of issues, as far as the index can be used."""
        return self.index.ask(lambda index: index.count(Kind.ISSUE), 0)

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        """The records of these threads, without those that GitHub does not show now."""
        unseen = self.state.manifest.unseen
        return self.state.records(key for key in ids if key not in unseen)

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]:
        wanted = list(ids)
        return self.index.ask(lambda index: index.entries(wanted), {})

    def shown_entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]:
        """The entries of these threads, without those that GitHub does not show now."""
        unseen = frozenset(self.state.manifest.unseen)
        return self.entries(key for key in ids if key not in unseen)

    def search(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]:
        return self.index.ask(lambda index: index.search(query, **options), [])

    @property
    def message_count(self) -> int:
        """Number of messages that a search looks through."""
        return self.messages.ask(len, 0)

    def search_messages(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]:
        """Search all messages; the id of an entry is a `message_id`. Where the index is behind, it is brought up to
        date, and `commit` writes it."""
        return self.messages.ask(lambda index: index.search(query, **options), [])

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]:
        wanted = list(terms)
        return self.index.ask(lambda index: index.rarity(wanted, before=before), {})

    def held_by(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]:
        wanted = list(groups)
        return self.index.ask(lambda index: index.held_by(wanted, before=before), {})

    @property
    def ranking(self) -> RankingModels:
        return self.index.encoder.learned.ranking

    def vectors(self, thread: Thread) -> Mapping[str, bytes]:
        return self.index.encoder.vectors(thread)

    def fixes(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, FixInfo]:
        return self.state.fixes(ids)

    def requests(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Request, ...]]:
        return self.state.requests(ids)

    def cluster_links(self) -> Mapping[ThreadId, ClusterLinks]:
        """The signs of clusters by thread, without the threads that GitHub does not show now."""
        unseen = frozenset(self.state.manifest.unseen)
        kept = {key: found for key, found in self.state.every_link().items() if key not in unseen}
        return {
            key: replace(found, links=tuple(link for link in found.links if link.to not in unseen))
            for key, found in kept.items()
        }

    def every_request(self) -> Sequence[Request]:
        return self.state.every_request()

    # -- changing --------------------------------------------------------------------------------------------------

    def stage(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top of this state, so that searches see them. Nothing is durable yet.

        Returns the records that replaced stored ones. Once the branch went back, how far this run has read does not
        count until memory is opened again.
        """
        if self._went_back:
            changes = replace(changes, cursor=None, reading=None, read_whole=None, discussions=None)
        self._staged.append(changes)
        if any(map(is_forgotten, changes.records)):
            self._model_update = None  # it may have learned from them
        records = self.state.apply(changes, tick)
        self.index.update(records)
        self.messages.update(records)
        if any(map(is_forgotten, records)):
            self.index.drop_encoder()
        return records

    def install_model(self, update: ModelUpdate) -> None:
        """Keep what was learned (staged). The index has to be rebuilt after it."""
        self._model_update, self.has_learned = update, True
        self.state.install_model(update)
        self.index.drop_encoder()

    def rebuild_index(self, tick: Progress = lambda _: None) -> None:
        """Make both indexes again from the records (staged; `commit` writes them)."""
        self.index.rebuild(tick, embeds=True)
        self.messages.rebuild()
        self._was_rebuilt = True

    def edits(self) -> Edits:
        """The files that `commit` would write; empty when nothing changed."""
        index, manifest = self.index.edits()
        if self.index.was_rebuilt and self.state.base.manifest.messages is None:  # an upgrade ends here
            if not self.messages.is_there:
                self.messages.ask(lambda _: None, None)
            self.state.owe_outdated()
        messages, known = self.messages.edits()
        found = {**self.state.edits(), **index, **messages}
        data = encode_manifest(replace(manifest, messages=known, owed=self.state.manifest.owed))
        return found if data == self.state.base.files[MANIFEST_PATH] else {**found, MANIFEST_PATH: data}

    def commit(self, message: str, *, squash: bool = False) -> bool:
        """Write what is staged. When somebody else was first, apply it to their state and try again.

        Returns whether anything was written. With ``squash`` all earlier states are given up. Raises StoreError when
        the store refuses or others keep winning.
        """
        until = time.monotonic() + self._patience
        self.is_outdated = self.has_moved = False
        wait, read = SHORTEST_WAIT, dict[ThreadId, Record]()
        while True:
            try:
                edits = self.edits()
                if not edits and not squash:
                    return False
                written = self._write(edits, message, squash=squash)
            except TipMoved:
                if time.monotonic() > until:
                    raise StoreError("others keep writing to the memory branch: the next run will catch up") from None
                self._sleep(random.uniform(0, wait))
                wait = min(LONGEST_WAIT, wait * 2)
                self._reapply(read)
                continue
            self._show(written)
            return True

    def settle_notes(self) -> None:
        """After a complete rebuild was written: report damage that it repaired as repaired."""

        def look(places: Iterable[str]) -> None:
            self.state.base.look_at(places)
            self.state.learned()
            _ = self.index.encoder

        self.notes.settle(look)

    def _show(self, snapshot: Snapshot, paths: Iterable[str] = ()) -> None:
        """Take this state with nothing staged; ``paths`` will be read."""
        state = MemoryState(BaseState(snapshot, self.notes, paths), self._repo)
        self._index = IndexSlot(state, self.embedder, self._sizes)
        self._messages = MessageIndex(state, self._sizes)
        self._staged, self._model_update, self._was_rebuilt = [], None, False

    def _write(self, edits: Edits, message: str, *, squash: bool) -> Snapshot:
        base = self.state.base
        try:
            return self._store.write(base.snapshot, edits, message, squash=squash)
        except PathClash as clash:  # a foreign folder where one of our files belongs, or the reverse
            brought = {path for path, content in edits.items() if content is not None}
            there = (path for path in base.every_path("") if path not in brought)
            room = {path: None for path in there if path in clash.paths or _folders(path) & brought}
            return self._store.write(base.snapshot, {**room, **edits}, message, squash=squash)

    def _reapply(self, read: dict[ThreadId, Record]) -> None:
        """Take the new tip and stage this run's changes again, except promises that another run made meanwhile, reading
        progress that does not hold there, and a model learned from threads that are forgotten there.

        ``read`` collects the threads that this run's comments show, as it knew them: if they changed since, these
        comments are renewed.
        """
        staged, update, was_rebuilt = self._staged, self._model_update, self._was_rebuilt
        shows = {key for changes in staged for one in changes.standing for key in one.shows}
        read |= self.state.records(shows - read.keys())
        before, known, went_back = _stored(staged, self.state.base), self.state.base.manifest, self._went_back
        self.open([*_touched(staged), *read])
        now, manifest = _stored(staged, self.state.base), self.state.base.manifest
        self.has_moved = True
        self.is_outdated |= manifest.forgotten != known.forgotten
        self._went_back = went_back or manifest.lacks(known)
        if self._went_back:
            self.notes.add(WENT_BACK)
        promised = {said.id: said for changes in staged for said in changes.answers if said.state == "pending"}
        self.taken |= {
            key for key, said in now.answers.items() if _is_taken(promised[key], before.answers.get(key), said)
        }
        self.taken_requests |= {
            key
            for key, request in now.requests.items()
            if request != before.requests.get(key) and (request.state != "pending" or request.trying_since)
        }
        self.taken_comments |= {one.comment_key for one in now.standing - before.standing}
        self.taken_notices |= {one.notice_key for one in now.notices - before.notices}
        for changes in staged:
            self.stage(self._still_mine(changes, known))
        self.state.promise_renewal(read)
        if update and not self.is_outdated:
            self.install_model(update)
        if was_rebuilt:
            self.rebuild_index()

    def _still_mine(self, changes: Changes, known: Manifest) -> Changes:
        """The changes without what another run took up. Where a thread was forgotten, the plans of this run are put
        off, as they may show it."""
        mine = replace(
            changes,
            pages=self.state.base.manifest.fit_pages(changes.pages, known),
            linked_to=self.state.base.manifest.fit_linked(changes.linked_to, known),
            discussions=self.state.base.manifest.fit_discussions(changes.discussions, known),
            answers=tuple(said for said in changes.answers if said.id not in self.taken),
            requests=tuple(request for request in changes.requests if request.comment_id not in self.taken_requests),
            standing=tuple(one for one in changes.standing if one.comment_key not in self.taken_comments),
            notices=tuple(one for one in changes.notices if one.notice_key not in self.taken_notices),
        )
        if not self.is_outdated:
            return mine
        answers, requests = postponed(mine.answers), postponed(mine.requests)
        return replace(mine, answers=answers, requests=requests, standing=(), renewed=(), notices=())


def postponed(promises: Iterable[Promise]) -> tuple[Promise, ...]:
    """The promises as they are while no run is working on them."""
    return tuple(replace(one, trying_since=None) if one.state == "pending" else one for one in promises)


class StoredPromises(NamedTuple):
    """What a stored state has of some answers by thread, of requests by comment, of standing comments and notices."""

    answers: dict[ThreadId, AnswerRecord]
    requests: dict[int, Request]
    standing: set[StandingComment]
    notices: set[ReleaseNotice]


def _stored(staged: Iterable[Changes], base: BaseState) -> StoredPromises:
    """What ``base`` has where the staged changes make a promise."""
    answers = {said.id for changes in staged for said in changes.answers if said.state == "pending"}
    requests = {one.comment_id: one.id for changes in staged for one in changes.requests if one.state == "pending"}
    asked = [one for each in base.values(REQUESTS, requests.values()).values() for one in each]
    standing = [one.id for changes in staged for one in changes.standing]
    linked = base.values(COMMENTS, [*standing, *(one.id for changes in staged for one in changes.notices)])
    return StoredPromises(
        base.values(ANSWERS, answers),
        {one.comment_id: one for one in asked if one.comment_id in requests},
        {one for each in linked.values() for one in each.comments},
        {one for each in linked.values() for one in each.notices},
    )


def _is_taken(promised: AnswerRecord, before: AnswerRecord | None, now: AnswerRecord) -> bool:
    """Whether the run that left the answer ``now`` took up what this one has ``promised`` to say.

    A run that only counted thumbs did not, nor one that saw what had become of an earlier promise; but a comment that
    a person deleted is not written again.
    """
    if before is None or now.at != before.at or now.question != before.question or now.state == "removed":
        return now != before
    is_settled = now.state != before.state and promised.at == before.at
    return is_settled or now.trying_since not in (None, before.trying_since)


def _touched(staged: Iterable[Changes]) -> list[ThreadId]:
    parts = ((*one.records, *one.answers, *one.requests, *one.fixes, *one.standing) for one in staged)
    notices = (each.id for one in staged for each in one.notices)
    return list(dict.fromkeys([*(each.id for part in parts for each in part), *notices]))


def _folders(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}
