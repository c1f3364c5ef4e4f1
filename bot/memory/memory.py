"""Memory: what a repository knows, over any store, with every write re-applied until it lands."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar, Unpack

from bot.domain.changes import (
    AnswerRecord,
    Changes,
    CommentKey,
    FixInfo,
    HistoryProgress,
    Renewal,
    Request,
    ThreadComments,
)
from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Record, Thread, ThreadId, is_forgotten
from bot.errors import PathClash, StoreError, TipMoved
from bot.index.protocol import USUAL, IndexSegment, Narrowing, Query, Sizes
from bot.memory.base_state import Notes, files_of
from bot.memory.manifest import INDEX, MANIFEST_PATH, WRITTEN_WITHIN, Manifest
from bot.memory.model_store import MODEL_FOLDER, CachingEmbedder, Embedder, ModelUpdate
from bot.memory.staged_changes import Progress
from bot.memory.store import Edits, Snapshot, Store
from bot.memory.working_state import WorkingState
from bot.ranking.weights import RankingModels

Promise = TypeVar("Promise", AnswerRecord, Request)

PATIENCE = 120.0
"""Seconds that a write goes on trying while others write: twenty writers at once, ten times each, land within it."""

WENT_BACK = "The memory branch was deleted or set back meanwhile: the next runs read what is missing."

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 8.0
"""Seconds: the limits of the random delay between two tries, which doubles with each."""


class Memory:
    """One repository's memory. `stage` makes changes searchable, `commit` makes them durable.

    ``repo`` (OWNER/NAME) tells links to the repository itself from links elsewhere, ``sizes`` which parts of the index
    lie apart.
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
        self.embedder = CachingEmbedder(embedder) if embedder else None
        self._model_update: ModelUpdate | None = None
        self._patience = patience
        self._sleep = sleep
        self._staged: list[Changes] = []
        self._made_anew = False
        self.taken: set[ThreadId] = set()
        """Threads that another run spoke for first, between the opening of this memory and its writing."""
        self.taken_requests: set[int] = set()
        """Comments whose requests another run took up first, in the same sense; that one only waits takes nothing."""
        self.is_outdated = False
        """Whether a thread was forgotten meanwhile, as found by the last `commit`: what was planned may show it, and is
        put off."""
        self.has_moved = False
        """Whether somebody else wrote between the opening of this memory and the end of the last `commit`."""
        self.taken_comments: set[CommentKey] = set()
        """Comments of ours that another run worked out first, in the same sense."""
        self.has_learned = False
        """Whether this run installed a learned model."""
        self.notes = Notes()
        self._draft: WorkingState | None = None
        self._from = Manifest()
        self._went_back = False

    def open(self, want: Iterable[ThreadId] = ()) -> Memory:
        """Take the newest state; ``want`` names threads that will be read or changed.

        Raises ForeignFormat for a memory that this version does not read, StoreError where it cannot be had.
        """
        self._went_back = False
        paths = files_of(want)
        self._go_on_from(self._store.open([MANIFEST_PATH, INDEX, MODEL_FOLDER, *paths]), paths)
        return self

    @property
    def draft(self) -> WorkingState:
        if self._draft is None:
            self.open()
        assert self._draft is not None
        return self._draft

    @property
    def repo(self) -> str | None:
        """The repository (OWNER/NAME): as it was given, else as the store has it; None where nobody said."""
        return self.draft.repo

    @property
    def cursor(self) -> datetime | None:
        """Everything that changed before this moment is remembered; None in an empty memory."""
        return self.draft.manifest.cursor

    @property
    def reading(self) -> HistoryProgress | None:
        """A reading of the whole history that is not at its end; None when none was begun."""
        return self.draft.manifest.reading

    @property
    def pending(self) -> tuple[ThreadId, ...]:
        """Threads for which a comment was promised that has not been seen yet."""
        return self.draft.manifest.pending

    @property
    def owed(self) -> tuple[Renewal, ...]:
        """The comments of ours to be worked out again, as a thread that they show has changed; oldest change first."""
        return self.draft.manifest.owed

    def written(self, now: datetime) -> int:
        """How many new comments were promised within the 24 hours before ``now``, replies too."""
        return sum(moment > now - WRITTEN_WITHIN for moment in self.draft.manifest.written)

    @property
    def size(self) -> int:
        """Number of threads remembered: issues, pull requests and pages."""
        return self.draft.manifest.threads

    @property
    def issues(self) -> int:
        """Number of issues among them: what is looked through for one that is alike."""
        return self.draft.issues

    def prefetch(self, ids: Iterable[ThreadId]) -> None:
        """Have all that is kept of these threads here, in one exchange with a remote store."""
        self.draft.prefetch(ids)

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        """What is held of these threads, without those that GitHub does not show now."""
        unseen = self.draft.manifest.unseen
        return self.draft.records(key for key in ids if key not in unseen)

    def answers(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, AnswerRecord]:
        return self.draft.answers(ids)

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]:
        return self.draft.entries(ids)

    def search(self, query: Query, **options: Unpack[Narrowing]) -> list[Hit]:
        return self.draft.search(query, **options)

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]:
        return self.draft.rarity(terms, before)

    def held_by(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]:
        return self.draft.held_by(groups, before)

    @property
    def ranking(self) -> RankingModels:
        return self.draft.encoder.learned.ranking

    @property
    def has_words(self) -> bool:
        """Whether word vectors were trained."""
        return self.draft.encoder.learned.words is not None

    @property
    def learned_from(self) -> int:
        """From how many threads the word vectors and the ranking were learned; 0 where nothing was."""
        return self.draft.manifest.learned_from

    def fixes(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, FixInfo]:
        return self.draft.fixes(ids)

    def requests(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Request, ...]]:
        return self.draft.requests(ids)

    def thread_comments(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, ThreadComments]:
        """Our comments that stand on these threads, and the keys of those that show them."""
        return self.draft.thread_comments(ids)

    def recent_requests(self, since: datetime) -> tuple[Request, ...]:
        """What was asked for on any thread since then, oldest first: what the manifest has, so it costs nothing.

        It has the hour before the newest request, of those that still wait a week, and of many the newest 200, by turns
        of the accounts.
        """
        return tuple(request for request in self.draft.manifest.recent if request.at >= since)

    @property
    def pages(self) -> Mapping[str, str]:
        """Which state of each source of pages was read, such as a commit."""
        return self.draft.manifest.pages

    def page_ids(self) -> list[ThreadId]:
        """The ids of the pages that are remembered. Reads the digests of all threads that have names."""
        return self.draft.page_ids()

    def every_answer(self) -> Iterator[AnswerRecord]:
        """What was said on all threads, in no order. Reads all shards of answers, in one go."""
        return self.draft.every_answer()

    def every_request(self) -> Iterator[Request]:
        """What was asked for on all threads, in no order. Reads all shards of requests, in one go."""
        return self.draft.every_request()

    def every_fix(self) -> Iterator[FixInfo]:
        """Where the fixes of all threads are, in no order. Reads all shards of fixes, in one go."""
        return self.draft.every_fix()

    def vectors(self, thread: Thread) -> Mapping[str, bytes]:
        return self.draft.encoder.vectors(thread)

    def stage(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top of this state, so that searches see them. Nothing is durable yet.

        Returns the records that replaced what was held. Once the branch went back, how far this run has read says
        nothing of what memory holds, until it is opened again.
        """
        if self._went_back:
            changes = replace(changes, cursor=None, reading=None, read_whole=None)
        self._staged.append(changes)
        if any(map(is_forgotten, changes.records)):
            self._model_update = None  # it may have learned from them
        return self.draft.apply(changes, tick)

    def commit(self, message: str, *, squash: bool = False) -> bool:
        """Write what is staged; when somebody was first, apply it to their state and try again.

        Returns whether anything was written. With ``squash`` all earlier states are given up. Raises StoreError when
        the store refuses or others keep winning.
        """
        until = time.monotonic() + self._patience
        self.is_outdated = self.has_moved = False
        wait, read = SHORTEST_WAIT, dict[ThreadId, Record]()
        while True:
            try:
                edits = self.draft.edits()
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
            self._go_on_from(written)
            return True

    def _write(self, edits: Edits, message: str, *, squash: bool) -> Snapshot:
        snapshot = self.draft.snapshot
        try:
            return self._store.write(snapshot, edits, message, squash=squash)
        except PathClash as clash:  # somebody put a folder where a file of ours belongs, or a file where a folder does
            edits = {**self.draft.in_the_way(clash.paths, edits), **edits}
            return self._store.write(snapshot, edits, message, squash=squash)

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids."""
        return self.draft.every_record(tick)

    def segments(self) -> Mapping[str, IndexSegment]:
        """The segments of the index by name, see `Index.segments`."""
        return self.draft.segments()

    def digest_shards(self) -> Iterator[tuple[str, bytes]]:
        """All shards of digests with their paths, as they are stored."""
        return self.draft.digest_shards()

    def digest_shard_count(self) -> int:
        """How many shards of digests there are, without a look into them."""
        return self.draft.digest_shard_count()

    def rebuild_index(self, tick: Progress = lambda _: None) -> None:
        """Make the index anew from the records (staged; `commit` writes it)."""
        self.draft.rebuild_index(tick, embeds=True)
        self._made_anew = True

    @property
    def lacks_vectors(self) -> bool:
        """Whether the index was made without the text model that is at hand."""
        return self.embedder is not None and self.embedder.fingerprint != self.draft.manifest.embedder

    def install_model(self, update: ModelUpdate) -> None:
        """Keep what was learned (staged); the index has to be made anew after it."""
        self._model_update, self.has_learned = update, True
        self.draft.install_model(update)

    def settle_notes(self) -> None:
        """Once everything was made anew and written: damage that this mended is told of as what was."""
        self.notes.settle(self.draft.look_at)

    def close(self) -> None:
        self._store.close()

    def _go_on_from(self, snapshot: Snapshot, paths: Iterable[str] = ()) -> None:
        """Have this state with nothing staged; ``paths`` will be read."""
        self._draft = WorkingState(snapshot, self.notes, paths, self.embedder, self._repo, self._sizes)
        self._staged, self._made_anew, self._model_update = [], False, None
        self._from = self._draft.manifest

    def _reapply(self, read: dict[ThreadId, Record]) -> None:
        """Take the new tip and put this run's changes on top of it, but for promises that somebody made meanwhile, for
        what was read if that does not hold there, and for what was learned from threads that are forgotten there.
        ``read`` collects the threads that this run's comments show, as it knew them: what changed since, is owed to
        these comments."""
        staged, made_anew, update = self._staged, self._made_anew, self._model_update
        standing = [one for changes in staged for one in changes.standing]
        read |= self.draft.records({key for one in standing for key in one.shows} - read.keys())
        promised = {said.id for changes in staged for said in changes.answers if said.state == "pending"}
        requested = {one.comment_id: one.id for changes in staged for one in changes.requests if one.state == "pending"}
        before, asked = self.draft.answer_before(promised), self.draft.requests_before(requested.values())
        stood = self.draft.standing_before(one.id for one in standing)
        known, went_back = self._from, self._went_back
        self.open([*_touched(staged), *read])
        self.has_moved = True
        self.is_outdated |= self._from.forgotten != known.forgotten
        self._went_back = went_back or self._from.lacks(known)
        if self._went_back:
            self.notes.add(WENT_BACK)
        self.taken |= {key for key, said in self.draft.answer_before(promised).items() if said != before.get(key)}
        now = self.draft.requests_before(requested.values())
        self.taken_requests |= {
            key
            for key, request in now.items()
            if key in requested and request != asked.get(key) and _is_taken_up(request)
        }
        self.taken_comments |= {
            one.comment_key for one in self.draft.standing_before(one.id for one in standing) - stood
        }
        for changes in staged:
            self.stage(self._still_mine(changes, known))
        self.draft.promise_renewal(read)
        if update and not self.is_outdated:
            self.install_model(update)
        if made_anew:
            self.rebuild_index()

    def _still_mine(self, changes: Changes, known: Manifest) -> Changes:
        """The changes without what another run took up, and without what was read if that does not hold here. What this
        run planned is put off where a thread was forgotten, as it may show it."""
        mine = replace(
            changes,
            pages=self._from.fit_pages(changes.pages, known),
            answers=tuple(said for said in changes.answers if said.id not in self.taken),
            requests=tuple(request for request in changes.requests if request.comment_id not in self.taken_requests),
            standing=tuple(one for one in changes.standing if one.comment_key not in self.taken_comments),
        )
        if not self.is_outdated:
            return mine
        return replace(
            mine, answers=postponed(mine.answers), requests=postponed(mine.requests), standing=(), renewed=()
        )


def postponed(promises: Iterable[Promise]) -> tuple[Promise, ...]:
    """The promises as they are while no run is at work with them."""
    return tuple(replace(one, trying_since=None) if one.state == "pending" else one for one in promises)


def _is_taken_up(request: Request) -> bool:
    return request.state != "pending" or request.trying_since is not None


def _touched(staged: Iterable[Changes]) -> list[ThreadId]:
    parts = ((*one.records, *one.answers, *one.requests, *one.fixes, *one.standing) for one in staged)
    return list(dict.fromkeys(each.id for part in parts for each in part))


def is_shown(key: ThreadId, memory: Memory) -> bool:
    """Whether a comment of ours shows this thread."""
    linked = memory.thread_comments([key]).get(key)
    return linked is not None and bool(linked.shown_in)
