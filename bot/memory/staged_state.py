"""What memory knows: the stored state with this run's changes on top, and the files to write for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from bot.domain.card import Card, card_of
from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.cluster import ClusterLinks
from bot.domain.digest import Digest
from bot.domain.post import Post, Renewal, ThreadPosts
from bot.domain.thread import Record, Thread, ThreadId, Tombstone, is_forgotten
from bot.files import bytes_hash
from bot.memory.manifest import (
    MAX_HIDDEN_BY_GITHUB,
    MAX_PENDING,
    limit_pending,
    next_pending,
    promised_posts,
    promised_replies,
)
from bot.memory.merge import recent, without_links
from bot.memory.model_store import (
    BACKTEST_PATH,
    RANKING_PATH,
    ModelUpdate,
    read_ranking,
)
from bot.memory.paths import RECORD_FOLDER, record_path
from bot.memory.posts import StagedPosts, outdated_posts
from bot.memory.records import encode_record, same_content, sorted_record_paths, wins
from bot.memory.shards import (
    CLUSTERS,
    DIGESTS,
    FIXES,
    MERGED,
    POSTS,
    REQUESTS,
    MergedShard,
    ShardSchema,
    edit_shards,
    read_lines,
    read_texts,
)
from bot.memory.stored_state import StoredState, files_of
from bot.ranking.weights import RankingModels, shipped

Value = TypeVar("Value")

Progress = Callable[[int], None]
FileEdits = dict[str, bytes | None]


class StagedState:
    """The stored state ``base`` and the changes of this run: reads see both.

    ``repo`` is OWNER/NAME of the repository, to recognise links to itself; by default, as the last writer stored it.
    """

    def __init__(self, base: StoredState, repo: str | None = None) -> None:
        self.base, self.notes = base, base.notes
        self.manifest = base.manifest
        self.repo = repo or self.manifest.repo or None
        self._written: dict[ThreadId, Record] = {}
        self._digests: dict[ThreadId, Digest] = {}
        self._renewed: dict[ThreadId, str | None] = {}  # digest lines that differ from the stored ones
        self._staged: dict[str, dict[ThreadId, Any]] = {schema.folder: {} for schema in MERGED}
        self._posts = StagedPosts(partial(base.values, POSTS))
        self._passed: dict[ThreadId, datetime] = {}  # later revisions with the same content, which were not stored
        self._model_files: dict[str, bytes] = {}
        self._ranking: RankingModels | None = None

    # -- reading ---------------------------------------------------------------------------------------------------

    def prefetch(self, ids: Iterable[ThreadId]) -> None:
        """Fetch everything stored about these threads, in one exchange with a remote store."""
        self.base.read(files_of(ids))

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        """The records of these threads, including those that GitHub does not show now."""
        keys = list(dict.fromkeys(ids))
        stored = self.base.records(key for key in keys if key not in self._written)
        return {key: record for key in keys if (record := self._written.get(key) or stored.get(key))}

    def posts(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadPosts]:
        """Our posts on these threads, and the keys of the posts that show these threads."""
        return self._posts.lookup(ids)

    def posts_on(self, key: ThreadId) -> ThreadPosts:
        """Like `posts`, of one thread, which may have none."""
        return self.posts([key]).get(key, ThreadPosts(key))

    def comments(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Post]:
        """The comment on each of these threads: what was said, promised, or why there is none."""
        return {key: post for key, thread in self.posts(ids).items() if (post := thread.post())}

    def values(self, schema: MergedShard[Value], ids: Iterable[ThreadId]) -> dict[ThreadId, Value]:
        """The values of these threads; of threads that are gone, only what is kept of them."""
        keys, staged = list(dict.fromkeys(ids)), self._staged[schema.folder]
        return self._remaining(
            schema, self.base.values(schema, keys) | {key: staged[key] for key in keys if key in staged}
        )

    def all_values(self, schema: MergedShard[Value]) -> dict[ThreadId, Value]:
        """Like `values`, of all threads, in no order. Reads all shards."""
        return self._remaining(schema, self.base.all_values(schema) | self._staged[schema.folder])

    def is_damaged(self, key: ThreadId) -> bool:
        """Whether the stored record of this thread has been read and is damaged."""
        return self.base.known.get(key) is None and self.base.files.get(record_path(key)) is not None

    def is_shown(self, key: ThreadId) -> bool:
        """Whether one of our posts shows this thread."""
        return bool(self.posts_on(key).shown_by)

    def every_thread_posts(self) -> list[ThreadPosts]:
        """Our posts on all threads, and where each thread is shown, in no order. Reads all shards of posts."""
        return list(self.posts([*self.base.all_values(POSTS), *self._posts.changes()]).values())

    def every_comment(self) -> list[Post]:
        """The comment on each thread, as in `comments`, in no order. Reads all shards of posts."""
        return [post for thread in self.every_thread_posts() if (post := thread.post())]

    def every_request(self) -> list[Request]:
        """What people asked for on all threads, in no order. Reads all shards of requests."""
        return [request for requests in self.all_values(REQUESTS).values() for request in requests]

    def every_link(self) -> dict[ThreadId, ClusterLinks]:
        """The cluster signs found so far, by thread that has any. Reads all their shards."""
        return {key: found for key, found in self.all_values(CLUSTERS).items() if found.links}

    def digest_lines(self, ids: Iterable[ThreadId]) -> dict[ThreadId, str]:
        """The digests of these threads as JSON, as far as they can be read; none for threads that are gone."""
        keys = list(dict.fromkeys(ids))
        stored = {key for key in keys if key not in self._written}
        shards = self.base.read(sorted(map(DIGESTS.path, stored)))
        lines = {key: line for shard in shards.values() for key, line in read_texts(shard) if key in stored}
        return lines | {
            key: line for key in keys if key in self._digests and (line := DIGESTS.line(self._digests[key]))
        }

    def cards(self) -> Iterator[Card]:
        """The cards of all threads, in no order. Reads all shards of digests."""
        for _, shard in self.base.digest_shards():
            lines = (line for key, line in read_texts(shard) if key not in self._written)
            yield from (card for line in lines if (card := card_of(line)))
        changed = (DIGESTS.line(digest) or "" for digest in self._digests.values())
        yield from (card for line in changed if (card := card_of(line)))

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids; damaged ones are left out."""
        written = {record_path(key): record for key, record in self._written.items()}
        paths = self._record_paths()
        stored = self.base.contents(path for path in paths if path not in written)
        for path in paths:
            record = written.get(path) or self.base.decode(*next(stored, (path, b"")))
            if record is not None:
                yield record
            tick(1)

    def living_threads(self, tick: Progress = lambda _: None) -> Iterator[Thread]:
        """All threads that are not gone. Once the iterator is exhausted, the manifest's count is right."""
        gone = 0
        self.base.snapshot.sizes(self.base.digest_paths())  # fetches them together: `fresh_digest` compares with them
        for record in self.every_record(tick):
            if isinstance(record, Thread):
                yield record
            else:
                gone += 1
                self._renewed[record.id] = None
        self.manifest = replace(self.manifest, threads=len(self._record_paths()) - gone)

    @property
    def ranking(self) -> RankingModels:
        """The learned ranking; the shipped one if none was learned, or it cannot be read."""
        if self._ranking is None:
            self._ranking = self._read_ranking() or shipped()
        return self._ranking

    def recheck(self, paths: Iterable[str]) -> None:
        """Check these files again, and the learned ranking, and note the damage that is left."""
        self.base.recheck(paths)
        self._ranking = None
        _ = self.ranking

    def digest(self, thread: Thread) -> Digest:
        return self._digests.get(thread.id) or _read_digest(thread, repo=self.repo)

    def fresh_digest(self, thread: Thread) -> Digest:
        """The digest as this version makes it. If the stored one differs, such as another version's, the next write
        replaces it. Only the line is kept until then, as a thousand digests take five megabytes."""
        new_digest = self.digest(thread)
        line = DIGESTS.line(new_digest)
        if f"{line}\n".encode() not in self.base.content(DIGESTS.path(thread.id)):
            self._renewed[thread.id] = line
        return new_digest

    # -- changing --------------------------------------------------------------------------------------------------

    def apply(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top. Applying the same changes twice, or older ones later, has no effect.

        Returns the records that replaced stored ones.
        """
        self.manifest = self.manifest.with_remembered(changes.remembered)
        began = (progress.began for progress in (changes.reading, changes.discussions) if progress)
        records = self._winners(changes.records, max(began, default=None))
        self._queue_renewals_for(records)
        self._update_hidden(changes)
        self._put_records(records, tick)
        forgotten = {record.id for record in records if is_forgotten(record)}
        self._forget(forgotten)
        self._posts.drop((record.id for record in records if isinstance(record, Tombstone)), forgotten)
        self._note_posts(changes.posts)
        self._note_requests(changes.requests)
        self._note_fixes(changes.fixes)
        self._put(CLUSTERS, ((each.id, each) for each in changes.links))
        if changes.read_whole:
            self._posts.relist(self.every_thread_posts())
        manifest = self.manifest.with_renewals(changes.renewals_due, changes.renewals_done).with_pages(changes.pages)
        manifest = manifest.with_notified(changes.notified_until, changes.notifying_from)
        cursors = [moment for moment in (manifest.cursor, changes.cursor) if moment]
        manifest = manifest.with_reading(changes.reading, changes.read_whole).with_discussions(changes.discussions)
        repo = self.repo or "" if records else manifest.repo
        self.manifest = replace(manifest, cursor=max(cursors, default=None), repo=repo)
        return records

    def promise_renewal(self, read: Mapping[ThreadId, Record]) -> None:
        """Have comments renewed that show one of these threads if the record ``read`` differs visibly from the stored
        one, because another run was faster."""
        stored = self.records(read)
        for key, record in read.items():
            if key in stored and _is_visible(record, stored[key], self.repo):
                self._queue_renewals(key, stored[key].revised_at)

    def queue_outdated(self) -> None:
        """Have posts renewed that show a thread changed since, as a damaged manifest does not list them."""
        stored = self.base.all_values(POSTS)
        self.manifest = self.manifest.with_renewals(outdated_posts(stored.values(), self.records(stored)))

    def install_model(self, update: ModelUpdate) -> None:
        """Store a learned model."""
        self._model_files, self._ranking = update.files(), None
        model = self.manifest.model | {path: bytes_hash(data) for path, data in self._model_files.items()}
        learned_from = min(update.threads, self.manifest.threads)  # the branch may have been set back meanwhile
        self.manifest = replace(self.manifest, model=model, learned_from=learned_from)

    def edits(self) -> FileEdits:
        """The files of records, shards and the learned model to write."""
        file_edits: FileEdits = {record_path(key): encode_record(record) for key, record in self._written.items()}
        file_edits |= self._shard_edits()
        models = self._model_files.items()
        return file_edits | {path: data or None for path, data in models if data or self.base.snapshot.sizes([path])}

    def _put(
        self, schema: MergedShard[Value], new: Iterable[tuple[ThreadId, Value]]
    ) -> dict[ThreadId, tuple[Value, Value | None]]:
        """Merge values, each with its thread, into the stored ones. Returns each merged value with the one before."""
        values = list(new)
        stored, staged = self.values(schema, (key for key, _ in values)), self._staged[schema.folder]
        merged = dict(stored)
        for key, value in values:
            staged[key] = merged[key] = schema.merge(value, merged.get(key))
        return {key: (merged[key], stored.get(key)) for key, _ in values}

    def _remaining(self, schema: MergedShard[Value], values: Mapping[ThreadId, Value]) -> dict[ThreadId, Value]:
        kept = ((key, schema.when_gone(value) if self._is_gone(key) else value) for key, value in values.items())
        return {key: value for key, value in kept if value is not None}

    def _cached_record(self, key: ThreadId) -> Record | None:
        """The record if it has been read already; nothing is fetched."""
        return self._written.get(key) or self.base.known.get(key)

    def _is_gone(self, key: ThreadId) -> bool:
        """Whether the thread is known to be gone. Reads no record, as its shards are deleted along with it."""
        return isinstance(self._cached_record(key), Tombstone)

    def _record_paths(self) -> list[str]:
        return sorted_record_paths({*self.base.snapshot.paths(RECORD_FOLDER), *map(record_path, self._written)})

    def _read_ranking(self) -> RankingModels | None:
        path = RANKING_PATH
        expected = self.manifest.model.get(path)
        if expected is None:
            return None
        files = self._model_files if path in self._model_files else self.base.read([path])
        try:
            if bytes_hash(files[path]) != expected:
                raise ValueError("it does not match the manifest")
            return read_ranking(files[path])
        except (KeyError, ValueError) as error:
            problem = "missing" if isinstance(error, KeyError) else f"damaged ({error!s:.80})"
            damage = f"{path} is {problem}: the search works without it until the next rebuild."
            self.notes.fault(path, damage, f"{path} was {problem}: this rebuild restored it.")
            return None

    def _winners(self, records: Iterable[Record], read_since: datetime | None) -> list[Record]:
        in_time = sorted(
            self._still_forgotten(records),
            key=lambda each: (is_forgotten(each), each.revised_at, isinstance(each, Tombstone)),
        )
        newest = {record.id: record for record in in_time}
        stored = {old.id: old for old in self._still_forgotten(self.records(newest).values())}
        winners = []
        for key, record in newest.items():
            old, last_seen = stored.get(key), self._passed.get(key, record.revised_at)
            if old and record.revised_at > old.revised_at and same_content(record, old):
                self._passed[key] = max(record.revised_at, last_seen)
            elif (record.revised_at >= last_seen or is_forgotten(record)) and wins(record, old, read_since):
                winners.append(record)
        return winners

    def _still_forgotten(self, records: Iterable[Record]) -> list[Record]:
        """These records without the tombstones of forgotten threads that were remembered again since."""
        remembered = dict(self.manifest.remembered)
        return [
            record
            for record in records
            if not (is_forgotten(record) and record.id in remembered and record.revised_at <= remembered[record.id])
        ]

    def _put_records(self, records: Iterable[Record], tick: Progress) -> None:
        threads = self.manifest.threads
        for record in records:
            old = self._cached_record(record.id)
            is_damaged = old is None and self.is_damaged(record.id)
            threads += isinstance(record, Thread) - (is_damaged or isinstance(old, Thread))
            self._written[record.id] = record
            self._digests.pop(record.id, None)
            if isinstance(record, Thread):
                self._digests[record.id] = _read_digest(record, repo=self.repo)
            tick(1)
        self.manifest = replace(self.manifest, threads=threads)

    def _forget(self, gone: set[ThreadId]) -> None:
        """Drop everything kept about these threads except their records; the shards follow when they are written.

        The learned model goes too, as it was learned from all threads; a later run learns it again.
        """
        if gone:
            self._model_files, self._ranking = dict.fromkeys((RANKING_PATH, BACKTEST_PATH), b""), None
            self._staged[CLUSTERS.folder] |= without_links(self.every_link(), gone)
            self.manifest = replace(self.manifest.without(gone), model={}, learned_from=0)

    def _queue_renewals(self, about: ThreadId, at: datetime, on: Iterable[ThreadId] | None = None) -> None:
        """Have the posts renewed that show this thread: all of them, or those ``on`` some threads."""
        shown_by = self.posts_on(about).shown_by
        keys = [key for key in shown_by if not key.is_note and (on is None or key.thread in on)]
        if keys:
            self.manifest = self.manifest.with_renewals(Renewal(*key, about, at) for key in keys)

    def _queue_renewals_for(self, records: Iterable[Record]) -> None:
        new = {record.id: record for record in records}
        shown = [key for key, thread in self.posts(new).items() if thread.shown_by]
        for key in shown:
            if _is_visible(self._cached_record(key), new[key], self.repo):
                self._queue_renewals(key, new[key].revised_at)

    def _update_hidden(self, changes: Changes) -> None:
        """Hide threads that GitHub does not show until they are read again or known to be gone."""
        hidden = dict.fromkeys(self.manifest.hidden_by_github)
        for record in (*changes.hidden_by_github, *(record for record in changes.records if record.id in hidden)):
            if (record.id in hidden) is (record not in changes.hidden_by_github):
                self._queue_renewals(record.id, record.revised_at)
        hidden |= dict.fromkeys(record.id for record in changes.hidden_by_github)
        kept = [key for key in hidden if key not in {record.id for record in changes.records}]
        self.manifest = replace(self.manifest, hidden_by_github=tuple(kept[-MAX_HIDDEN_BY_GITHUB:]))

    def _note_posts(self, posts: Iterable[Post]) -> None:
        merged = self._posts.put(filter(None, map(self._storable, posts)))
        comments = {post.id: post for post, _ in merged if post.key.is_comment}
        promised = [key for key, post in comments.items() if post.state == "pending"]
        pending = next_pending(self.manifest.pending, promised, comments.keys() - set(promised))
        manifest = self.manifest.with_written(promised_posts(merged))
        self.manifest = replace(manifest, pending=self._limit_pending(pending))

    def _storable(self, post: Post) -> Post | None:
        """The post as it may be stored on its thread, which may be gone."""
        record = self._cached_record(post.id)
        if not isinstance(record, Tombstone):
            return post
        return None if is_forgotten(record) or not post.key.is_comment else post.showing(None)

    def _limit_pending(self, pending: tuple[ThreadId, ...]) -> tuple[ThreadId, ...]:
        """Keep the promises within the limit; settle the others, with a note."""
        if len(pending) <= MAX_PENDING:
            return pending
        waiting = self.comments(pending)
        authors = {key: record.author for key, record in self.records(pending).items() if isinstance(record, Thread)}
        kept = limit_pending(pending, {key for key, post in waiting.items() if post.trying_since}, authors)
        for post in (waiting[key] for key in waiting.keys() - set(kept)):
            state = "said" if post.comment_id else "silent"
            self._posts.put([replace(post, state=state, reason="too many wait for an answer")])
        self.notes.add(f"More than {MAX_PENDING} issues are waiting for an answer: each account's newest get none.")
        return kept

    def _note_requests(self, requests: Iterable[Request]) -> None:
        new = list(requests)
        comments = {request.comment_id for request in new}
        known, merged = list[Request](), list[Request]()
        for current, before in self._put(REQUESTS, ((request.id, (request,)) for request in new)).values():
            known += before or ()
            merged += [request for request in current if request.comment_id in comments]
        known_comments = {request.comment_id for request in known}
        for request in merged:
            if request.name == "wrong" and request.comment_id not in known_comments:
                self._queue_renewals(request.id, request.at, request.about)
        if merged:
            manifest = self.manifest.with_written(promised_replies(merged, known))
            self.manifest = replace(manifest, recent=recent(self.manifest.recent, merged))

    def _note_fixes(self, fixes: Iterable[FixInfo]) -> None:
        for key, (fix, old) in self._put(FIXES, ((fix.id, fix) for fix in fixes)).items():
            if old is None or replace(old, looked_at=fix.looked_at) != fix:
                self._queue_renewals(key, fix.looked_at)

    def _shard_edits(self) -> FileEdits:
        touched = self.records([*self._written, *(key for staged in self._staged.values() for key in staged)])
        gone = [key for key, record in touched.items() if isinstance(record, Tombstone)]
        values: list[tuple[ShardSchema[Any], Mapping[ThreadId, Any]]] = [
            (POSTS, self._posts.changes()),
            *((kind, self._staged[kind.folder] | dict.fromkeys(gone) | self.values(kind, gone)) for kind in MERGED),
        ]
        digests = {DIGESTS.path(key) for key in (*self._written, *self._renewed)}
        shards = self.base.read(sorted(digests | {schema.path(key) for schema, staged in values for key in staged}))
        for path in {DIGESTS.path(key) for key in self._written}:
            if not read_lines(shards.get(path, b""))[1]:
                self._repair_digests(path)
        digest_lines = {key: DIGESTS.line(digest) for key, digest in self._digests.items()}
        lines = self._renewed | dict.fromkeys(self._written) | digest_lines
        changed_shards = edit_shards(shards, lines.items(), DIGESTS.path)
        for schema, staged in values:
            changed_shards |= schema.edits(shards, staged)
        return changed_shards

    def _repair_digests(self, path: str) -> None:
        folder = f"{RECORD_FOLDER}/{PurePosixPath(path).stem}"
        for record_file in self.base.contents(sorted_record_paths(self.base.snapshot.paths(folder))):
            record = self.base.decode(*record_file)
            if isinstance(record, Thread) and record.id not in self._written:
                self._digests[record.id] = _read_digest(record, repo=self.repo)
        self.notes.add(f"{path} was damaged: it was rebuilt from the records.")


def _read_digest(record: Thread, *, repo: str | None) -> Digest:
    from bot.reading.digest import digest  # slow to load, and a run that only reads a memory does not need it

    return digest(record, repo=repo)


def _is_visible(old: Record | None, new: Record, repo: str | None) -> bool:
    from bot.reading.digest import is_visible

    return is_visible(old, new, repo)
