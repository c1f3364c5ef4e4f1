"""What memory knows: the stored state with this run's changes on top, and the files to write for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from bot.domain.card import Card, card_of
from bot.domain.changes import (
    FORGET,
    AnswerRecord,
    Changes,
    FixInfo,
    Renewal,
    Request,
    StandingComment,
    ThreadComments,
)
from bot.domain.cluster import ClusterLinks
from bot.domain.digest import Digest
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone, is_forgotten
from bot.files import bytes_hash
from bot.memory.base_state import CHUNK, BaseState, files_of
from bot.memory.manifest import (
    MAX_PENDING,
    MAX_UNSEEN,
    LinkProgress,
    next_pending,
    promised_comments,
    promised_replies,
    within_bounds,
)
from bot.memory.merge import joined, later_answer, later_fix, later_links, recent, without_links
from bot.memory.model_store import BACKTEST, RANKING, WORDS, LearnedModel, ModelUpdate, read_ranking, read_words
from bot.memory.places import RECORD_FOLDER, record_path
from bot.memory.records import encode_record, in_order, key_in, same_content, sort_key, wins
from bot.memory.shards import (
    ANSWERS,
    CLUSTERS,
    COMMENTS,
    DIGESTS,
    FIXES,
    REQUESTS,
    ShardSchema,
    StoredShard,
    edit_shards,
    read_lines,
    read_texts,
)
from bot.memory.thread_comments import ThreadCommentChanges, outdated
from bot.ranking.weights import shipped
from bot.reading.digest import digest as read_digest
from bot.reading.digest import is_visible

Model = TypeVar("Model")
Value = TypeVar("Value")

Progress = Callable[[int], None]
FileEdits = dict[str, bytes | None]


class MemoryState:
    """The stored state ``base`` and the changes of this run: reads see both.

    ``repo`` is OWNER/NAME of the repository, which links are told apart by; without it, the last writer's counts.
    """

    def __init__(self, base: BaseState, repo: str | None = None) -> None:
        self.base, self.notes = base, base.notes
        self.manifest = base.manifest
        self.repo = repo or self.manifest.repo or None
        self._written: dict[ThreadId, Record] = {}
        self._digests: dict[ThreadId, Digest] = {}
        self._renewed: dict[ThreadId, str | None] = {}  # digest lines that differ from what this version makes
        self._answers: dict[ThreadId, AnswerRecord] = {}
        self._requests: dict[ThreadId, tuple[Request, ...]] = {}
        self._fixes: dict[ThreadId, FixInfo] = {}
        self._links: dict[ThreadId, ClusterLinks] = {}
        self._comments = ThreadCommentChanges(partial(base.values, COMMENTS))
        self._passed: dict[ThreadId, datetime] = {}  # later revisions with the same content, which were not stored
        self._model_files: dict[str, bytes] = {}

    # -- reading ---------------------------------------------------------------------------------------------------

    def prefetch(self, ids: Iterable[ThreadId]) -> None:
        """Fetch all that is stored of these threads, in one exchange with a remote store."""
        self.base.read(files_of(ids))

    def records(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Record]:
        """The records of these threads, also of those that GitHub does not show now."""
        wanted = list(dict.fromkeys(ids))
        stored = self.base.records(key for key in wanted if key not in self._written)
        return {key: record for key in wanted if (record := self._written.get(key) or stored.get(key))}

    def answers(self, ids: Iterable[ThreadId]) -> dict[ThreadId, AnswerRecord]:
        return self._values(ANSWERS, self._answers, ids)

    def requests(self, ids: Iterable[ThreadId]) -> dict[ThreadId, tuple[Request, ...]]:
        """What people asked of the bot on these threads, oldest first; on those that are gone, only to forget them."""
        found = self._values(REQUESTS, self._requests, ids)
        return {key: left for key, requests in found.items() if (left := self._left_of(key, requests))}

    def fixes(self, ids: Iterable[ThreadId]) -> dict[ThreadId, FixInfo]:
        """Where the fixes of these threads are; nothing for those that are gone."""
        return {key: fix for key, fix in self._values(FIXES, self._fixes, ids).items() if not self._is_gone(key)}

    def thread_comments(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        """Our comments that stand on these threads, and the keys of those that show them."""
        return self._comments.of(ids)

    def is_damaged(self, key: ThreadId) -> bool:
        """Whether the stored record of this thread was read and is damaged."""
        return self.base.known.get(key) is None and self.base.files.get(record_path(key)) is not None

    def is_shown(self, key: ThreadId) -> bool:
        """Whether one of our comments shows this thread."""
        linked = self.thread_comments([key]).get(key)
        return linked is not None and bool(linked.shown_in)

    def every_answer(self) -> list[AnswerRecord]:
        """What was said on all threads, in no order. Reads all shards of answers."""
        return list((self.base.every(ANSWERS) | self._answers).values())

    def every_request(self) -> list[Request]:
        """What people asked for on all threads, in no order. Reads all shards of requests."""
        stored = self.base.every(REQUESTS) | self._requests
        return [request for key, requests in stored.items() for request in self._left_of(key, requests)]

    def every_fix(self) -> list[FixInfo]:
        """Where the fixes of all threads are, in no order. Reads all shards of fixes."""
        return [fix for key, fix in (self.base.every(FIXES) | self._fixes).items() if not self._is_gone(key)]

    def every_link(self) -> dict[ThreadId, ClusterLinks]:
        """The signs of clusters that were found, by thread. Reads all shards of them."""
        every = self.base.every(CLUSTERS) | self._links
        return {key: found for key, found in every.items() if found.links and not self._is_gone(key)}

    def uncompared(self) -> Iterator[tuple[ThreadId, bool]]:
        """The threads that are still to be compared for clusters: those that changed, then the others, newest first;
        and whether all newer ones were compared before."""
        progress = self.manifest.links
        for changed in sorted(progress.behind, key=sort_key, reverse=True):
            yield changed, False
        for key in map(key_in, reversed(self._record_paths())):
            if key is not None and not progress.has_passed(key):
                yield key, True

    def every_thread_comments(self) -> list[ThreadComments]:
        """Our comments on all threads, and where each thread is shown, in no order."""
        return list(self.thread_comments([*self.base.every(COMMENTS), *self._comments.changed()]).values())

    def cards(self) -> Iterator[Card]:
        """The cards of all threads, in no order. Reads all shards of digests."""
        for _, shard in self.base.digest_shards():
            lines = (line for key, line in read_texts(shard) if key not in self._written)
            yield from (card for line in lines if (card := card_of(line)))
        changed = (DIGESTS.line(digest) or "" for digest in self._digests.values())
        yield from (card for line in changed if (card := card_of(line)))

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids, a thousand read at a time; damaged ones are left out."""
        written = {record_path(key): record for key, record in self._written.items()}
        paths = self._record_paths()
        for start in range(0, len(paths), CHUNK):
            part = paths[start : start + CHUNK]
            found = self.base.contents(path for path in part if path not in written)
            for path in part:
                record = written.get(path) or self.base.decode(path, found.get(path, b""))
                if record is not None:
                    yield record
            tick(len(part))

    def living(self, tick: Progress = lambda _: None) -> Iterator[Thread]:
        """All threads that are not gone. Once the last was taken, the counts of the manifest are right."""
        gone = 0
        self.base.read(self.base.digest_paths())  # `fresh_digest` compares with them
        for record in self.every_record(tick):
            if isinstance(record, Thread):
                yield record
            else:
                gone += 1
                self._renewed[record.id] = None
        self.manifest = replace(self.manifest, threads=len(self._record_paths()) - gone, tombstones=gone)

    def page_ids(self) -> list[ThreadId]:
        """The ids of the remembered pages, in order. Reads the digests of all threads that have names, and the longer
        records only where a shard of digests is damaged."""
        folders: dict[str, list[str]] = {}
        for path in in_order(self.base.snapshot.paths(RECORD_FOLDER)):
            folder = PurePosixPath(path).parent.name
            if folder.startswith("x"):
                folders.setdefault(f"{DIGESTS.folder}/{folder}.jsonl", []).append(path)
        shards = self.base.read(folders)
        found: set[ThreadId] = set()
        for shard, paths in folders.items():
            lines, is_whole = read_lines(shards.get(shard, b""))
            if lines and is_whole:
                found |= {key for key, line in lines.items() if line.get("kind") == Kind.PAGE and isinstance(key, str)}
            else:
                found |= {record.id for record in self._decoded(paths) if _is_page(record)}
        found -= self._written.keys()
        found |= {key for key, record in self._written.items() if _is_page(record)}
        return sorted(found, key=sort_key)

    def learned(self) -> LearnedModel:
        """What this memory has learned, as far as it can be read; the shipped ranking where it has learned none."""
        files = self.base.read(sorted({WORDS, RANKING} & self.manifest.model.keys())) | self._model_files
        words = self._model_file(WORDS, files, read_words)
        return LearnedModel(self._model_file(RANKING, files, read_ranking) or shipped(), words)

    def digest(self, thread: Thread) -> Digest:
        return self._digests.get(thread.id) or read_digest(thread, repo=self.repo)

    def fresh_digest(self, thread: Thread) -> Digest:
        """The digest as this version makes it. Where another one is stored, such as an earlier version's, it is
        replaced by the next write; only its line is kept until then, as a thousand digests have five megabytes."""
        made = self.digest(thread)
        line = DIGESTS.line(made)
        if f"{line}\n".encode() not in (self.base.files.get(DIGESTS.path(thread.id)) or b""):
            self._renewed[thread.id] = line
        return made

    # -- changing --------------------------------------------------------------------------------------------------

    def apply(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top. Applying the same ones twice, or older ones later, changes nothing.

        Returns the records that replaced stored ones.
        """
        records = self._winners(changes.records)
        self._owe_for(records)
        self._hide(changes)
        self._take(records, tick)
        self._forget({record.id for record in records if is_forgotten(record)})
        self._note_answers(changes.answers)
        self._note_requests(changes.requests)
        self._note_fixes(changes.fixes)
        self._note_links(changes)
        self._comments.drop(record.id for record in records if isinstance(record, Tombstone))
        self._comments.put(changes.standing)
        if changes.read_whole:
            self._relist()
        manifest = self.manifest.with_owed(changes.owed, changes.renewed).with_pages(changes.pages)
        manifest = manifest.with_written(self._comments.tell(changes.notices)).with_told(changes.told_until)
        cursors = [moment for moment in (manifest.cursor, changes.cursor) if moment]
        manifest = manifest.with_reading(changes.reading, changes.read_whole).with_discussions(changes.discussions)
        repo = self.repo or "" if records else manifest.repo
        self.manifest = replace(manifest, cursor=max(cursors, default=None), repo=repo)
        return records

    def promise_renewal(self, read: Mapping[ThreadId, Record]) -> None:
        """Renew the comments that show one of these threads where the record ``read`` differs visibly from the stored
        one: another run was faster."""
        stored = self.records(read)
        for key, record in read.items():
            if key in stored and is_visible(record, stored[key], self.repo):
                self._owe(key, stored[key].revised_at)

    def owe_outdated(self) -> None:
        """Renew the comments that show a thread which changed since: an earlier version does not see to that."""
        every = self.base.every(COMMENTS)
        self.manifest = self.manifest.with_owed(outdated(every.values(), self.records(every)))

    def install_model(self, update: ModelUpdate) -> None:
        """Keep what was learned. The index has to be rebuilt after it."""
        self._model_files = update.files()
        hashes = self.manifest.model | {path: bytes_hash(data) for path, data in self._model_files.items()}
        model = {path: digest for path, digest in hashes.items() if self._model_files.get(path) != b""}
        learned_from = min(update.threads, self.manifest.threads)  # the branch may have gone back meanwhile
        self.manifest = replace(self.manifest, model=model, learned_from=learned_from)

    def edits(self) -> FileEdits:
        """The files of records, shards and learned models that have to be written."""
        found: FileEdits = {record_path(key): encode_record(record) for key, record in self._written.items()}
        found |= self._shard_edits()
        models = self._model_files.items()
        return found | {path: data or None for path, data in models if data or self.base.contents([path])}

    def _values(
        self, schema: StoredShard[Value], staged: Mapping[ThreadId, Value], ids: Iterable[ThreadId]
    ) -> dict[ThreadId, Value]:
        wanted = list(dict.fromkeys(ids))
        return self.base.values(schema, wanted) | {key: staged[key] for key in wanted if key in staged}

    def _known(self, key: ThreadId) -> Record | None:
        """The record as far as it is in memory already; nothing is read."""
        return self._written.get(key) or self.base.known.get(key)

    def _is_gone(self, key: ThreadId) -> bool:
        """Whether the thread is known to be gone; no record is read for it, as its shards go with the text."""
        return isinstance(self._known(key), Tombstone)

    def _left_of(self, key: ThreadId, requests: tuple[Request, ...]) -> tuple[Request, ...]:
        return tuple(request for request in requests if request.name == FORGET) if self._is_gone(key) else requests

    def _record_paths(self) -> list[str]:
        return in_order({*self.base.snapshot.paths(RECORD_FOLDER), *map(record_path, self._written)})

    def _decoded(self, paths: Iterable[str]) -> Iterator[Record]:
        for path, data in self.base.contents(paths).items():
            if record := self.base.decode(path, data):
                yield record

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
            now = f"{path} is {what}: the search goes without it until the next rebuild."
            self.notes.fault(path, now, f"{path} was {what}: this rebuild restored it.")
            return None

    def _winners(self, records: Iterable[Record]) -> list[Record]:
        in_time = sorted(records, key=lambda one: (is_forgotten(one), one.revised_at, isinstance(one, Tombstone)))
        newest = {record.id: record for record in in_time}
        stored = self.records(newest)
        found = []
        for key, record in newest.items():
            old, passed = stored.get(key), self._passed.get(key, record.revised_at)
            if old and record.revised_at > old.revised_at and same_content(record, old):
                self._passed[key] = max(record.revised_at, passed)
            elif (record.revised_at >= passed or is_forgotten(record)) and wins(record, old):
                found.append(record)
        return found

    def _take(self, records: Iterable[Record], tick: Progress) -> None:
        threads, tombstones = self.manifest.threads, self.manifest.tombstones
        for record in records:
            old = self._known(record.id)
            is_damaged = old is None and self.is_damaged(record.id)
            threads += isinstance(record, Thread) - (is_damaged or isinstance(old, Thread))
            tombstones += isinstance(record, Tombstone) - isinstance(old, Tombstone)
            self._written[record.id] = record
            self._digests.pop(record.id, None)
            if isinstance(record, Thread):
                self._digests[record.id] = read_digest(record, repo=self.repo)
            tick(1)
        links = self.manifest.links.with_changed(record.id for record in records if _may_cluster(record))
        self.manifest = replace(self.manifest, threads=threads, tombstones=tombstones, links=links)

    def _forget(self, gone: set[ThreadId]) -> None:
        """Drop all that is kept of these threads besides their records; the shards follow when they are written.

        The learned models go too, as they hold words of all threads: a run that comes soon learns again.
        """
        if gone:
            self._answers = {key: said for key, said in self._answers.items() if key not in gone}
            self._model_files = dict.fromkeys((WORDS, RANKING, BACKTEST), b"")
            self._links |= without_links(self.every_link(), gone)
            self.manifest = replace(self.manifest.without(gone), model={}, learned_from=0)

    def _owe(self, about: ThreadId, at: datetime, on: Iterable[ThreadId] | None = None) -> None:
        """Renew the comments that show this thread: all of them, or those ``on`` some threads."""
        linked = self.thread_comments([about]).get(about)
        keys = [key for key in (linked.shown_in if linked else ()) if on is None or key[0] in on]
        if keys:
            self.manifest = self.manifest.with_owed(Renewal(*key, about, at) for key in keys)

    def _owe_for(self, records: Iterable[Record]) -> None:
        new = {record.id: record for record in records}
        shown = [key for key, linked in self.thread_comments(new).items() if linked.shown_in]
        for key in shown:
            if is_visible(self._known(key), new[key], self.repo):
                self._owe(key, new[key].revised_at)

    def _hide(self, changes: Changes) -> None:
        """Show no thread that GitHub does not show, until it was read again or is known to be gone."""
        unseen = dict.fromkeys(self.manifest.unseen)
        for record in (*changes.unseen, *(record for record in changes.records if record.id in unseen)):
            if (record.id in unseen) is (record not in changes.unseen):
                self._owe(record.id, record.revised_at)
        unseen |= dict.fromkeys(record.id for record in changes.unseen)
        kept = [key for key in unseen if key not in {record.id for record in changes.records}]
        self.manifest = replace(self.manifest, unseen=tuple(kept[-MAX_UNSEEN:]))

    def _note_answers(self, said: Iterable[AnswerRecord]) -> None:
        new = [one for one in said if not is_forgotten(self._known(one.id))]
        stood = self.answers(one.id for one in new)
        answers: dict[ThreadId, AnswerRecord] = {}
        for one in new:
            answers[one.id] = later_answer(one, answers.get(one.id, stood.get(one.id)))
        self._answers |= answers
        promised = [one.id for one in answers.values() if one.state == "pending"]
        pending = next_pending(self.manifest.pending, promised, answers.keys() - set(promised))
        manifest = self.manifest.with_written(promised_comments(answers.values(), stood))
        self.manifest = replace(manifest, pending=self._bounded(pending))

    def _bounded(self, pending: tuple[ThreadId, ...]) -> tuple[ThreadId, ...]:
        """The promises within the bound; the others are settled, with a note."""
        if len(pending) <= MAX_PENDING:
            return pending
        said = self.answers(pending)
        authors = {key: record.author for key, record in self.records(pending).items() if isinstance(record, Thread)}
        kept = within_bounds(pending, {key for key, one in said.items() if one.trying_since}, authors)
        for key in said.keys() - set(kept):
            state = "said" if said[key].comment_id else "silent"
            self._answers[key] = replace(said[key], state=state, reason="too many wait for an answer")
        self.notes.add(f"More than {MAX_PENDING} issues wait for an answer: of each account the newest get none.")
        return kept

    def _note_requests(self, requests: Iterable[Request]) -> None:
        asked: dict[ThreadId, list[Request]] = {}
        for request in requests:
            asked.setdefault(request.id, []).append(request)
        stored = self._values(REQUESTS, self._requests, asked)
        known = [request for requests in stored.values() for request in requests]
        self._requests |= {key: joined(stored.get(key, ()), new) for key, new in asked.items()}
        noted = {request.comment_id for new in asked.values() for request in new}
        now = [request for key in asked for request in self._requests[key] if request.comment_id in noted]
        known_comments = {request.comment_id for request in known}
        for request in now:
            if request.name == "wrong" and request.comment_id not in known_comments:
                self._owe(request.id, request.at, request.about)
        if now:
            manifest = self.manifest.with_written(promised_replies(now, known))
            self.manifest = replace(manifest, recent=recent(self.manifest.recent, now))

    def _note_fixes(self, fixes: Iterable[FixInfo]) -> None:
        found = list(fixes)
        stored = self._values(FIXES, self._fixes, [fix.id for fix in found])
        for fix in found:
            old = stored.get(fix.id)
            stored[fix.id] = self._fixes[fix.id] = now = later_fix(fix, old)
            if old != now and (old is None or replace(old, looked_at=now.looked_at) != now):
                self._owe(fix.id, now.looked_at)

    def _note_links(self, changes: Changes) -> None:
        """Keep the signs of clusters. A thread that changed since it was compared stays to be compared."""
        records, stood = self.records(one.id for one in changes.links), self._stored_links(changes.links)
        current = [one for one in changes.links if one.id not in records or records[one.id].revised_at <= one.at]
        self._links |= {one.id: later_links(one, stood.get(one.id)) for one in current}
        progress = LinkProgress(None, self.manifest.links.behind) if changes.relink else self.manifest.links
        links = progress.with_compared({one.id for one in current}, changes.linked_to)
        self.manifest = replace(self.manifest, links=links)

    def _stored_links(self, found: Iterable[ClusterLinks]) -> dict[ThreadId, ClusterLinks]:
        return self._values(CLUSTERS, self._links, [one.id for one in found])

    def _relist(self) -> None:
        """Rebuild the lists of which comments show a thread. A comment by an earlier version shows its matches."""
        linked = self.every_thread_comments()
        known = {one.comment_key: one for each in linked for one in each.comments}
        for said in self.every_answer():
            shows = tuple(key for key, _ in said.matches)
            if shows and said.state == "said" and not self._is_gone(said.id):
                known.setdefault((said.id, 0), StandingComment(said.id, said.at, 0, said.text_hash, shows))
        self._comments.relist(known.values(), linked)

    def _shard_edits(self) -> FileEdits:
        known = self.records([*self._written, *self._requests, *self._fixes])
        nothing = {key: None for key, record in known.items() if isinstance(record, Tombstone)}
        forgotten = {key: None for key, record in known.items() if is_forgotten(record)}
        values: list[tuple[ShardSchema[Any], Mapping[ThreadId, Any]]] = [
            (ANSWERS, self._answers | forgotten),
            (REQUESTS, self._requests | nothing | self.requests(nothing)),
            (FIXES, self._fixes | nothing),
            (CLUSTERS, self._links | nothing),
            (COMMENTS, self._comments.changed()),
        ]
        digests = {DIGESTS.path(key) for key in (*self._written, *self._renewed)}
        shards = self.base.read(sorted(digests | {schema.path(key) for schema, kept in values for key in kept}))
        for path in {DIGESTS.path(key) for key in self._written}:
            if not read_lines(shards.get(path, b""))[1]:
                self._mend_digests(path)
        made = {key: DIGESTS.line(digest) for key, digest in self._digests.items()}
        lines = self._renewed | dict.fromkeys(self._written) | made
        found = edit_shards(shards, lines.items(), DIGESTS.path)
        for schema, kept in values:
            found |= schema.edits(shards, kept)
        return found

    def _mend_digests(self, path: str) -> None:
        folder = f"{RECORD_FOLDER}/{PurePosixPath(path).stem}"
        for record in self._decoded(in_order(self.base.snapshot.paths(folder))):
            if isinstance(record, Thread) and record.id not in self._written:
                self._digests[record.id] = read_digest(record, repo=self.repo)
        self.notes.add(f"{path} was damaged: it was rebuilt from the records.")


def _is_page(record: Record) -> bool:
    return isinstance(record, Thread) and record.kind is Kind.PAGE


def _may_cluster(record: Record) -> bool:
    """Whether it is an issue, or gone."""
    return not isinstance(record, Thread) or record.kind.traits.is_listed
