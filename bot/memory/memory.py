"""Memory: what a repository knows, over any store. A write that loses a race is applied again until it succeeds."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

from bot.domain.card import Card, CardId, card_of, cards_of, id_order, name_of
from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.cluster import ClusterLink, ClusterLinks
from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.hidden_people import HiddenPeople
from bot.domain.post import Post, PostKey
from bot.domain.thread import GHOST, Kind, Record, Thread, ThreadId, is_forgotten
from bot.domain.thread_json import NO_LIMIT, TimeLimit, parse_key
from bot.errors import PathClash, StoreError, TextRefused, TipMoved, UserError, WorldError
from bot.index.protocol import Index, Query, SearchOptions
from bot.memory.index_slot import NEVER, IndexSlot
from bot.memory.manifest import INDEX_FOLDER, MANIFEST_PATH, SETTINGS_PATH, Manifest, encode_manifest
from bot.memory.message_index import MAX_THREADS_BEHIND, MessageIndex
from bot.memory.model_store import MODEL_FOLDER, CachingEmbedder, Embedder, ModelUpdate
from bot.memory.paths import RECORD_FOLDER
from bot.memory.shards import CLUSTERS, FIXES, POSTS, REQUESTS
from bot.memory.staged_state import Progress, StagedState
from bot.memory.store import Edits, Snapshot, Store
from bot.memory.stored_state import Notes, StoredState, files_of
from bot.ranking.weights import RankingModels

if TYPE_CHECKING:
    from bot.settings.schema import Settings

Promise = TypeVar("Promise", Post, Request)

WRITE_TIMEOUT = 120.0
"""Seconds for which a write is retried: enough for twenty writers at once, ten times each."""

BRANCH_RESET = "The memory branch was deleted or set back meanwhile: the next runs read what is missing."

MIN_BACKOFF, MAX_BACKOFF = 0.1, 8.0
"""Seconds: the limits of the random delay between two attempts. The delay doubles each time."""


class Memory:
    """One repository's memory, and the library that recall queries. `stage` makes changes searchable, `commit` durable.

    ``state`` is the newest known state with this run's changes on top, ``index`` and ``messages`` are its indexes;
    `open` and `commit` replace all three. ``repo`` (OWNER/NAME) distinguishes links to the repository itself from
    others.
    """

    def __init__(
        self,
        store: Store,
        *,
        patience: float = WRITE_TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
        embedder: Embedder | None = None,
        repo: str | None = None,
    ) -> None:
        self._store, self._repo = store, repo
        self._patience, self._sleep = patience, sleep
        self.embedder = CachingEmbedder(embedder) if embedder else None
        self.accounts: dict[str, frozenset[str]] = {}
        """Accounts, in lower case, whose statements in threads staged from now on count like a maintainer's."""
        self.time_limit: Callable[[], TimeLimit] = lambda: NO_LIMIT
        """The latest time that may be stored: what claims a later one is damaged."""
        self.hidden: HiddenPeople | None = None
        """The people without whose words and names everything leaves this memory that may be shown; None: those that
        the stored settings name."""
        self.settings: bytes | None = None
        """The repository's settings file, to be stored; empty if it has none, None to leave the stored one as it is."""
        self.threads_behind = MAX_THREADS_BEHIND
        """Threads that the index of messages may be behind on; `open` passes it on."""
        self.is_dry = False
        """Whether nothing is ever written: `commit` leaves everything as it is staged, where reads see it."""
        self.notes = Notes()
        self.taken: set[PostKey] = set()
        """Posts that another run promised, wrote or renewed after this memory was opened and before it was written."""
        self.taken_requests: set[int] = set()
        """Comments with requests that another run began to handle first. A request that merely waits does not count."""
        self.is_outdated = False
        """Whether the last `commit` found that a thread was forgotten meanwhile. Plans may show it, so they are
        postponed."""
        self.has_moved = False
        """Whether somebody else wrote between the opening of this memory and the end of the last `commit`."""
        self.has_learned = False
        """Whether this run installed a learned model."""
        self._known_settings: Settings | None = None
        self._went_back = False
        self._index: IndexSlot | None = None
        self._messages: MessageIndex | None = None
        self._staged: list[Changes] = []
        self._model_update: ModelUpdate | None = None
        self._was_rebuilt = False
        self._newly_read: list[ThreadId] = []
        """The threads that the text model read in this run, besides changed ones."""

    def open(self, want: Iterable[ThreadId] = ()) -> Memory:
        """Load the newest state; ``want`` names threads that will be read or changed.

        Raises ForeignFormat for a memory that this version does not read, StoreError when the store cannot be read.
        """
        self._went_back = False
        paths = files_of(want)
        self._adopt(self._store.open([MANIFEST_PATH, SETTINGS_PATH, INDEX_FOLDER, MODEL_FOLDER, *paths]), paths)
        return self

    def close(self) -> None:
        """Close the store, and release the files of the indexes."""
        self._close_indexes()
        self._store.close()

    def _close_indexes(self) -> None:
        for index in (self._index, self._messages):
            if index:
                index.close()

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
    def state(self) -> StagedState:
        return self.index.state

    # -- the library that recall queries ---------------------------------------------------------------------------

    @property
    def issues(self) -> int:
        """Number of issues; 0 if the index cannot be used."""
        return self.index.ask(lambda index: index.count(Kind.ISSUE), 0)

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        """The records of these threads as they may be shown: without those that GitHub does not show now, and without
        the words of hidden people."""
        people = self.hidden_people
        return {key: record.without(people) for key, record in self.whole_records(ids).items()}

    def whole_records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]:
        """Like `records`, with everybody's words and names: to be compared, answered or stored, never shown."""
        hidden = self.state.manifest.hidden_by_github
        return self.state.records(key for key in ids if key not in hidden)

    @property
    def hidden_people(self) -> HiddenPeople:
        """The people whose words and names are never shown."""
        return self.stored_settings.ignore.hidden if self.hidden is None else self.hidden

    @property
    def stored_settings(self) -> Settings:
        """The repository's settings as the last run read them; the defaults if there are none, or they are wrong."""
        if self._known_settings is None:
            from bot.settings.schema import Settings  # with YAML, slow to load
            from bot.settings.yaml_file import load_settings

            self._known_settings = Settings()
            with suppress(UserError):
                self._known_settings = load_settings(self._stored_settings, SETTINGS_PATH)
        return self._known_settings

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        """The cards of these threads as they may be shown; see `records`."""
        hidden = self.state.manifest.hidden_by_github

        def lines(keys: Iterable[CardId]) -> Iterable[str]:
            return self.state.digest_lines(key for key in keys if key not in hidden).values()

        def find(keys: Iterable[CardId]) -> dict[CardId, Card]:
            return {card.id: card for line in lines(keys) if (card := card_of(line))}

        return {card.id: card for card in cards_of(lines(ids), self.hidden_people, find)}

    def entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]:
        wanted = list(ids)
        return self.index.ask(lambda index: index.entries(wanted), {})

    def shown_entries(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, IndexEntry]:
        """The entries of these threads, without those that GitHub does not show now."""
        hidden = frozenset(self.state.manifest.hidden_by_github)
        return self.entries(key for key in ids if key not in hidden)

    def search(self, query: Query, **options: Unpack[SearchOptions]) -> list[IndexHit]:
        return self.index.ask(lambda index: index.search(query, **options), [])

    @property
    def message_count(self) -> int:
        """Number of messages that a search looks through."""
        return self.messages.ask(len, 0)

    def search_messages(self, query: Query, **options: Unpack[SearchOptions]) -> list[IndexHit]:
        """Search the messages that may be shown; the id of an entry is a `message_id`. An outdated index is first
        brought up to date; `commit` writes it."""
        people, keep = self.hidden_people, options.get("keep")
        if people:
            options["keep"] = lambda entry: entry.author not in people and (keep is None or keep(entry))
        return self.messages.ask(lambda index: index.search(query, **options), [])

    def every_message(self) -> list[IndexEntry]:
        """The facts of all messages that may be shown; ids as in `search_messages`."""
        people = self.hidden_people

        def entries(index: Index) -> list[IndexEntry]:
            return [entry for kind in Kind for entry in index.of_kind(kind)]

        nothing: list[IndexEntry] = []
        return [entry for entry in self.messages.ask(entries, nothing) if entry.author not in people]

    def every_card(self) -> Iterator[Card]:
        """The cards of all threads as they may be shown; see `records`."""
        hidden, people = self.state.manifest.hidden_by_github, self.hidden_people
        return (card.without(people) for card in self.state.cards() if card.id not in hidden)

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> Mapping[str, float]:
        wanted = list(terms)
        return self.index.ask(lambda index: index.rarity(wanted, before=before), {})

    def joint_frequency(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> Mapping[frozenset[str], int]:
        wanted = list(groups)
        return self.index.ask(lambda index: index.joint_frequency(wanted, before=before), {})

    @property
    def ranking(self) -> RankingModels:
        return self.state.ranking

    def vector(self, thread: Thread) -> bytes:
        return self.index.encoder.vector(thread) or b""

    def page_ids(self) -> list[ThreadId]:
        """The ids of the remembered pages, in no order."""
        return [entry.id for entry in self.index.of_kind(Kind.PAGE)]

    def releases(self) -> frozenset[str]:
        """See `bot.recall.library.Library.releases`."""
        from bot.reading.pages import RELEASES, source_of  # slow to load

        keys = (str(key) for key in self.page_ids() if source_of(key) == RELEASES)
        return frozenset(key.partition(":")[2] for key in keys)

    def fixes(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, FixInfo]:
        return self.state.values(FIXES, ids)

    def requests(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, tuple[Request, ...]]:
        """What people asked of the bot on these threads, oldest first; for gone threads, only requests to forget."""
        return self.state.values(REQUESTS, ids)

    def cluster_links(self) -> Mapping[ThreadId, ClusterLinks]:
        """The cluster signs by thread, without the threads that GitHub does not show now, and without words from
        threads of hidden people."""
        hidden, every_link = frozenset(self.state.manifest.hidden_by_github), self.state.every_link()
        hidden_openers = self._opened_by_hidden_people(every_link)

        def shown(key: ThreadId, link: ClusterLink) -> ClusterLink:
            return replace(link, words="") if hidden_openers & {key, link.to} else link

        return {
            key: replace(found, links=tuple(shown(key, link) for link in found.links if link.to not in hidden))
            for key, found in every_link.items()
            if key not in hidden
        }

    def uncompared(self) -> dict[ThreadId, ClusterLinks]:
        """The issues to be compared with older ones: those that changed since they were, then those that were not since
        the last rebuild began, newest first. Each comes with what is known of it, as of now."""
        known, since = self.state.all_values(CLUSTERS), self.state.manifest.read_whole
        due: dict[ThreadId, tuple[bool, ClusterLinks]] = {}
        for entry in self.index.of_kind(Kind.ISSUE):
            links = known.get(entry.id, ClusterLinks(entry.id, entry.updated_at))
            is_known = links.found_at is not None and (since is None or links.found_at >= since)
            if not (is_known and links.at >= entry.updated_at):
                due[entry.id] = not is_known, replace(links, at=entry.updated_at)
        newest_first = sorted(due, key=id_order, reverse=True)
        return {key: due[key][1] for key in sorted(newest_first, key=lambda key: due[key][0])}

    def _opened_by_hidden_people(self, links: Mapping[ThreadId, ClusterLinks]) -> set[ThreadId]:
        if not (people := self.hidden_people):
            return set()
        ids = {key for source, found in links.items() for key in (source, *(link.to for link in found.links))}
        return {key for key, entry in self.entries(ids).items() if entry.author in people}

    def every_request(self) -> Sequence[Request]:
        return self.state.every_request()

    # -- changing --------------------------------------------------------------------------------------------------

    def stage(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top of this state, so that searches see them. Nothing is durable yet.

        Returns the records that replaced stored ones. If the branch was set back, this run's reading progress does not
        count until memory is opened again.
        """
        if any(self.accounts.values()):
            changes = replace(changes, records=tuple(map(self._with_accounts, changes.records)))
        if self._went_back:
            changes = replace(changes, cursor=None, reading=None, read_whole=None, discussions=None)
        self._staged.append(changes)
        if any(map(is_forgotten, changes.records)):
            self._model_update = None  # it may have been learned from them
        records = self.state.apply(changes, tick)
        self.index.update(records)
        self.messages.update(records)
        return records

    @property
    def has_staged(self) -> bool:
        """Whether anything was staged since the last `open` or `commit`."""
        return bool(self._staged)

    def _with_accounts(self, record: Record) -> Record:
        """The record with those of the accounts that took part in it."""
        if not isinstance(record, Thread):
            return record
        authors, actors = (comment.author for comment in record.comments), (event.actor for event in record.events)
        present = dict.fromkeys((record.author, *authors, record.closed_by or GHOST, *actors))
        listed: dict[str, Any] = {
            field: tuple(login for login in present if login.casefold() in logins)
            for field, logins in self.accounts.items()
        }
        return replace(record, **listed)

    def install_model(self, update: ModelUpdate) -> None:
        """Stage a learned model."""
        self._model_update, self.has_learned = update, True
        self.state.install_model(update)

    def rebuild_index(self, tick: Progress = lambda _: None, *, until: float = NEVER) -> None:
        """Rebuild both indexes from the records (staged; `commit` writes them). The text model reads threads until
        ``until`` (monotonic time)."""
        self.index.rebuild(tick, until=until)
        self.messages.rebuild()
        self._was_rebuilt, self._newly_read = True, list(self.index.stored_vectors())

    def read_with_model(self, until: float, tick: Progress = lambda _: None) -> tuple[int, int]:
        """Have the text model read what it has not read yet, newest first, until ``until`` (monotonic time).

        Vectors of another model are dropped. Returns how many threads were read, and how many are left; `commit` writes
        the vectors.
        """
        if self.embedder and self.index.has_foreign_vectors:
            try:
                self.embedder.encode(["Does the model work?"])  # if not, the others are worth more than none
            except WorldError as error:
                self.notes.add(f"The text model cannot be used: {error}")
                return 0, 0
            self.rebuild_index()
        unread = self.index.unread()
        read = self.index.read_with_model(unread, until, tick)
        self._newly_read += read
        return len(read), len(unread) - len(read)

    def edits(self) -> Edits:
        """The files that `commit` would write; empty when nothing changed."""
        index, manifest = self.index.edits()
        if self.index.was_rebuilt and self.state.base.manifest.messages is None:  # the manifest was damaged
            if not self.messages.exists:
                self.messages.ask(lambda _: None, None)
            self.state.queue_outdated()
        messages, message_files = self.messages.edits()
        file_edits = {**self.state.edits(), **index, **messages, **self._settings_edits()}
        data = encode_manifest(replace(manifest, messages=message_files, renewals_due=self.state.manifest.renewals_due))
        return file_edits if data == self.state.base.files[MANIFEST_PATH] else {**file_edits, MANIFEST_PATH: data}

    def _settings_edits(self) -> Edits:
        is_kept = self.settings in (None, self._stored_settings)
        return {} if is_kept else {SETTINGS_PATH: self.settings or None}

    @property
    def _stored_settings(self) -> bytes:
        return self.state.base.read([SETTINGS_PATH]).get(SETTINGS_PATH, b"")

    def commit(self, message: str, *, squash: bool = False) -> bool:
        """Write what is staged. If another writer was faster, apply it to their state and try again.

        Returns whether anything was written, or would be but for a dry run. With ``squash`` all earlier states are
        discarded. Raises StoreError when the store refuses or other writers keep winning.
        """
        if self.is_dry:
            return self.has_staged
        deadline = time.monotonic() + self._patience
        self.is_outdated = self.has_moved = False
        wait, read = MIN_BACKOFF, dict[ThreadId, Record]()
        while True:
            try:
                edits = self.edits()
                if not edits and not squash:
                    return False
                written = self._write(edits, message, squash=squash)
            except TipMoved:
                if time.monotonic() > deadline:
                    raise StoreError("others keep writing to the memory branch: the next run will catch up") from None
                self._sleep(random.uniform(0, wait))
                wait = min(MAX_BACKOFF, wait * 2)
                self._reapply(read)
                continue
            except TextRefused as error:
                if not self._withhold(error.places, edits):
                    raise
                self._reapply(read)
                continue
            self._adopt(written)
            return True

    def _withhold(self, places: Collection[tuple[str, int]], edits: Edits) -> bool:
        """Stage the records of the threads at these places of a write without their text, or leave the settings out.
        Returns whether that changes anything."""
        keys = _threads_at(places, edits)
        refused = {
            record.id: bare
            for changes in self._staged
            for record in changes.records
            if isinstance(record, Thread) and record.id in keys and (bare := _without_text(record)) != record
        }
        self._staged = [
            replace(changes, records=tuple(refused.get(record.id, record) for record in changes.records))
            for changes in self._staged
        ]
        for key in refused:
            self.notes.add(f"{name_of(key)} is kept without its text: the server takes something in it for a secret")
        has_settings = self.settings is not None and any(path == SETTINGS_PATH for path, _ in places)
        if has_settings:
            self.settings = None
            self.notes.add("The settings are not kept with the memory: the server takes something in them for a secret")
        return bool(refused) or has_settings

    def settle_notes(self) -> None:
        """After a complete rebuild has been written, report the damage that it repaired as repaired."""

        self.notes.settle(self.state.recheck)

    def _adopt(self, snapshot: Snapshot, paths: Iterable[str] = ()) -> None:
        """Switch to this state, with nothing staged; ``paths`` will be read."""
        self._close_indexes()
        state = StagedState(StoredState(snapshot, self.notes, paths, self.time_limit()), self._repo)
        self._index = IndexSlot(state, self.embedder)
        self._messages = MessageIndex(state, self.threads_behind)
        self._staged, self._model_update, self._was_rebuilt, self._newly_read = [], None, False, []
        self._known_settings = None

    def _write(self, edits: Edits, message: str, *, squash: bool) -> Snapshot:
        base = self.state.base
        try:
            return self._store.write(base.snapshot, edits, message, squash=squash)
        except PathClash as clash:  # a foreign folder where one of our files belongs, or the reverse
            written = {path for path, content in edits.items() if content is not None}
            existing = (path for path in base.all_paths("") if path not in written)
            removals = {path: None for path in existing if path in clash.paths or _parent_folders(path) & written}
            return self._store.write(base.snapshot, {**removals, **edits}, message, squash=squash)

    def _reapply(self, read: dict[ThreadId, Record]) -> None:
        """Open the new tip and stage this run's changes again, except promises that another run made meanwhile, reading
        progress that is not valid there, and a model learned from threads that are forgotten there.

        ``read`` collects the threads that this run's comments show, as this run knew them. If they changed since, these
        comments are renewed.
        """
        staged, update = self._staged, self._model_update
        was_rebuilt, newly_read = self._was_rebuilt, self._newly_read
        shown = {key for changes in staged for post in changes.posts for key in post.shows}
        read |= self.state.records(shown - read.keys())
        before, previous, went_back = _promises_in(staged, self.state.base), self.state.base.manifest, self._went_back
        changed = _changed_ids(staged)
        self.open([*changed, *read])
        self.state.records(changed)  # nothing is kept about threads that are gone meanwhile
        after, manifest = _promises_in(staged, self.state.base), self.state.base.manifest
        self.has_moved = True
        self.is_outdated |= manifest.forgotten != previous.forgotten
        self._went_back = went_back or manifest.is_behind(previous)
        if self._went_back:
            self.notes.add(BRANCH_RESET)
        promised = {post.key: post for changes in staged for post in changes.posts if _is_promise(post)}
        self.taken |= {
            key for key, post in after.posts.items() if _is_taken(promised[key], before.posts.get(key), post)
        }
        self.taken_requests |= {
            key
            for key, request in after.requests.items()
            if request != before.requests.get(key) and (request.state != "pending" or request.trying_since)
        }
        for changes in staged:
            self.stage(self._drop_taken(changes, previous))
        self.state.promise_renewal(read)
        if update and not self.is_outdated:
            self.install_model(update)
        if was_rebuilt:
            self.rebuild_index()
        if newly_read:  # their vectors are cached
            self._newly_read = self.index.read_with_model(newly_read, time.monotonic() + self._patience)

    def _drop_taken(self, changes: Changes, previous: Manifest) -> Changes:
        """The changes without what another run has taken over. If a thread was forgotten, this run's plans are
        postponed, as they may show it."""
        remaining = replace(
            changes,
            pages=self.state.base.manifest.valid_pages(changes.pages, previous),
            discussions=self.state.base.manifest.valid_discussions(changes.discussions, previous),
            posts=tuple(post for post in changes.posts if post.key not in self.taken),
            requests=tuple(request for request in changes.requests if request.comment_id not in self.taken_requests),
        )
        if not self.is_outdated:
            return remaining
        requests = tuple(map(postpone, remaining.requests))
        return replace(remaining, posts=self._postponed(remaining.posts), requests=requests, renewals_done=())

    def _postponed(self, posts: Sequence[Post]) -> tuple[Post, ...]:
        """The comments as promises of what a later run works out; they show what stands now. Everything else is left
        out."""
        stored = self.state.comments(post.id for post in posts)
        return tuple(
            replace(postpone(post), matches=()).showing(stored.get(post.id)) for post in posts if post.key.is_comment
        )


def _without_text(thread: Thread) -> Thread:
    comments = tuple(replace(comment, text="") for comment in thread.comments)
    return replace(thread, title="", body="", labels=(), comments=comments)


def _threads_at(places: Iterable[tuple[str, int]], edits: Edits) -> set[ThreadId]:
    """The threads whose records, or whose lines of a shard, are at these places of a write."""
    keys = set[ThreadId]()
    for path, number in places:
        data = edits.get(path)
        if isinstance(data, bytes):
            text = data if path.startswith(f"{RECORD_FOLDER}/") else b"".join(data.split(b"\n")[number - 1 : number])
            with suppress(ValueError, KeyError, TypeError):  # not one of these
                keys.add(parse_key(json.loads(text)["id"]))
    return keys


def postpone(promise: Promise) -> Promise:
    """Mark the promise as not being worked on by any run."""
    return replace(promise, trying_since=None) if promise.state == "pending" else promise


class StoredPromises(NamedTuple):
    """What a stored state contains of some posts, and of some requests by comment."""

    posts: dict[PostKey, Post]
    requests: dict[int, Request]


def _promises_in(staged: Iterable[Changes], base: StoredState) -> StoredPromises:
    """What ``base`` stores wherever the staged changes make a promise."""
    posts = {post.key for changes in staged for post in changes.posts if _is_promise(post)}
    requests = {
        request.comment_id: request.id
        for changes in staged
        for request in changes.requests
        if request.state == "pending"
    }
    stored_posts = [
        post for thread in base.values(POSTS, [key.thread for key in posts]).values() for post in thread.posts
    ]
    stored_requests = [request for thread in base.values(REQUESTS, requests.values()).values() for request in thread]
    return StoredPromises(
        {post.key: post for post in stored_posts if post.key in posts},
        {request.comment_id: request for request in stored_requests if request.comment_id in requests},
    )


def _is_promise(post: Post) -> bool:
    """Whether the post is about to be written or renewed."""
    return post.state == "pending" or post.trying_since is not None


def _is_taken(promised: Post, before: Post | None, after: Post) -> bool:
    """Whether the run that left the post ``after`` took over what this run ``promised``.

    A run that only counted thumbs, or only recorded the outcome of an earlier promise, did not. But a post that a
    person deleted is not written again.
    """
    if before is None or after.at != before.at or after.question != before.question or after.state == "removed":
        return after != before
    is_settled = after.state != before.state and promised.at == before.at
    return is_settled or after.trying_since not in (None, before.trying_since)


def _changed_ids(staged: Iterable[Changes]) -> list[ThreadId]:
    """Threads whose files are read together, as each of these changes meets what is stored."""
    parts = ((*changes.records, *changes.posts, *changes.requests, *changes.fixes) for changes in staged)
    return list(dict.fromkeys(item.id for part in parts for item in part))


def _parent_folders(path: str) -> set[str]:
    parts = path.split("/")
    return {"/".join(parts[:count]) for count in range(1, len(parts))}
