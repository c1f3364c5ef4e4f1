"""What a snapshot holds with a run's changes on top of it, and the files that have to be written for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from bot.domain.changes import (
    FORGET,
    AnswerRecord,
    Changes,
    CommentKey,
    FixInfo,
    Renewal,
    Request,
    StandingComment,
    ThreadComments,
)
from bot.domain.digest import Digest
from bot.domain.thread import Kind, Record, Thread, ThreadId, Tombstone, is_forgotten
from bot.memory.base_state import CHUNK, BaseState, Notes
from bot.memory.manifest import (
    MAX_PENDING,
    MAX_UNSEEN,
    next_pending,
    promised_comments,
    promised_replies,
    within_bounds,
)
from bot.memory.records import RECORD_FOLDER, encode_record, in_order, record_path, same_content, sort_key, wins
from bot.memory.shards import (
    ANSWERS,
    COMMENTS,
    DIGESTS,
    FIXES,
    REQUESTS,
    ShardSchema,
    edit_shards,
    joined,
    later_answer,
    later_fix,
    read_lines,
    recent,
)
from bot.memory.store import Snapshot
from bot.reading.digest import digest as read_digest
from bot.reading.digest import is_visible

Progress = Callable[[int], None]


class ThreadCommentChanges:
    """Which comments of ours stand on each thread, and which show it: those that ``read`` gives, with a run's changes.

    Nothing is read before it is asked for; what is put again, or is older than what stands, changes nothing."""

    def __init__(self, read: Callable[[Iterable[ThreadId]], Mapping[ThreadId, ThreadComments]]) -> None:
        self._read = read
        self._comments: dict[ThreadId, dict[int, StandingComment]] = {}
        self._shown: dict[ThreadId, dict[CommentKey, bool]] = {}

    def of(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        """The comments on these threads and those that show them, for threads that have one."""
        wanted = list(dict.fromkeys(ids))
        held = self._read(wanted)
        found = {key: self._now(held.get(key, ThreadComments(key))) for key in wanted}
        return {key: linked for key, linked in found.items() if linked.comments or linked.shown_in}

    def put(self, comments: Iterable[StandingComment]) -> None:
        """Have these comments stand, each in the place of what is known of it. One that shows nothing is taken out."""
        new = list(comments)
        self._read([key for one in new for key in (one.id, *one.shows)])  # together, as each read may cost an exchange
        for one in new:
            linked = self.of([one.id]).get(one.id, ThreadComments(one.id))
            stood = next((each for each in linked.comments if each.reply == one.reply), None)
            if stood is None or one.at >= stood.at:
                self._comments.setdefault(one.id, {})[one.reply] = one
                for key in stood.shows if stood else ():
                    self._shown.setdefault(key, {})[one.comment_key] = False
                for key in one.shows:
                    self._shown.setdefault(key, {})[one.comment_key] = True

    def drop(self, ids: Iterable[ThreadId]) -> None:
        """Forget the comments on threads that are gone."""
        known = [one for linked in self.of(ids).values() for one in linked.comments]
        self.put(replace(one, shows=(), quotes=()) for one in known)

    def relist(self, comments: Iterable[StandingComment], listed: Iterable[ThreadComments]) -> None:
        """Make the lists of where threads are shown anew from all ``comments``; ``listed``: all that are known."""
        for linked in listed:
            self._shown.setdefault(linked.id, {}).update(dict.fromkeys(linked.shown_in, False))
        self.put(comments)

    def changed(self) -> dict[ThreadId, ThreadComments]:
        touched = dict.fromkeys([*self._comments, *self._shown])
        return {key: ThreadComments(key) for key in touched} | self.of(touched)

    def _now(self, held: ThreadComments) -> ThreadComments:
        comments = {one.reply: one for one in held.comments} | self._comments.get(held.id, {})
        shown = dict.fromkeys(held.shown_in, True) | self._shown.get(held.id, {})
        standing = (comments[reply] for reply in sorted(comments) if comments[reply].shows)
        keys = [key for key, is_shown in shown.items() if is_shown]
        return ThreadComments(held.id, tuple(standing), tuple(sorted(keys, key=lambda key: (sort_key(key[0]), key[1]))))


class StagedChanges(BaseState):
    """Reads see the snapshot and the changes. ``repo`` is OWNER/NAME of the repository, which links are told by: where
    it is not given, that of the last writer who knew it."""

    def __init__(self, snapshot: Snapshot, notes: Notes, expected: Iterable[str] = (), repo: str | None = None) -> None:
        super().__init__(snapshot, notes, expected)
        self.repo = repo or self.manifest.repo or None
        self._written: dict[ThreadId, Record] = {}
        self._digests: dict[ThreadId, Digest] = {}
        self._renewed: dict[ThreadId, str | None] = {}  # lines of digests that are held otherwise than made now
        self._answers: dict[ThreadId, AnswerRecord] = {}
        self._requests: dict[ThreadId, tuple[Request, ...]] = {}
        self._fixes: dict[ThreadId, FixInfo] = {}
        self._comments_shown = ThreadCommentChanges(super().thread_comments)
        self._passed: dict[ThreadId, datetime] = {}  # later revisions that said the same, and were not kept for it

    # -- reading ---------------------------------------------------------------------------------------------------

    def answers(self, ids: Iterable[ThreadId]) -> dict[ThreadId, AnswerRecord]:
        wanted = list(dict.fromkeys(ids))
        return super().answers(wanted) | {key: self._answers[key] for key in wanted if key in self._answers}

    def requests(self, ids: Iterable[ThreadId]) -> dict[ThreadId, tuple[Request, ...]]:
        """What people asked of the bot on these threads, oldest first; of those that are gone, to forget them."""
        wanted = list(dict.fromkeys(ids))
        found = super().requests(wanted) | {key: self._requests[key] for key in wanted if key in self._requests}
        return {key: left for key, requests in found.items() if (left := self._left_of(key, requests))}

    def fixes(self, ids: Iterable[ThreadId]) -> dict[ThreadId, FixInfo]:
        """Where the fixes of these threads are; nothing of those that are gone."""
        wanted = list(dict.fromkeys(ids))
        found = super().fixes(wanted) | {key: self._fixes[key] for key in wanted if key in self._fixes}
        return {key: fix for key, fix in found.items() if not self._is_gone(key)}

    def thread_comments(self, ids: Iterable[ThreadId]) -> dict[ThreadId, ThreadComments]:
        return self._comments_shown.of(ids)

    def standing_before(self, ids: Iterable[ThreadId]) -> set[StandingComment]:
        """The comments of ours that stood on these threads when the snapshot was taken."""
        return {one for linked in super().thread_comments(ids).values() for one in linked.comments}

    def answer_before(self, ids: Iterable[ThreadId]) -> dict[ThreadId, AnswerRecord]:
        """What was said on these threads when the snapshot was taken."""
        return super().answers(ids)

    def requests_before(self, ids: Iterable[ThreadId]) -> dict[int, Request]:
        """What had been asked for on these threads when the snapshot was taken, by comment."""
        return {request.comment_id: request for requests in super().requests(ids).values() for request in requests}

    def every_answer(self) -> Iterator[AnswerRecord]:
        yield from (dict(self._every(ANSWERS)) | self._answers).values()

    def every_request(self) -> Iterator[Request]:
        for key, requests in (dict(self._every(REQUESTS)) | self._requests).items():
            yield from self._left_of(key, requests)

    def every_fix(self) -> Iterator[FixInfo]:
        for key, fix in (dict(self._every(FIXES)) | self._fixes).items():
            yield from () if self._is_gone(key) else (fix,)

    def every_thread_comments(self) -> Iterator[ThreadComments]:
        """The comments of ours that stand on all threads or show all threads, in no order."""
        yield from self.thread_comments([*dict(self._every(COMMENTS)), *self._comments_shown.changed()]).values()

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids, a thousand read at a time; damaged ones are left out."""
        paths = in_order({*self.snapshot.paths(RECORD_FOLDER), *map(record_path, self._written)})
        written = {record_path(key): record for key, record in self._written.items()}
        for start in range(0, len(paths), CHUNK):
            part = paths[start : start + CHUNK]
            found = self._contents(path for path in part if path not in written)
            for path in part:
                record = written.get(path) or self._decode(path, found.get(path, b""))
                if record is not None:
                    yield record
            tick(len(part))

    def page_ids(self) -> list[ThreadId]:
        """The pages that are there, in order. Digests tell; where they are not whole, records do, which are longer."""
        folders: dict[str, list[str]] = {}
        for path in in_order(self.snapshot.paths(RECORD_FOLDER)):
            folder = PurePosixPath(path).parent.name
            if folder.startswith("x"):
                folders.setdefault(f"{DIGESTS.folder}/{folder}.jsonl", []).append(path)
        shards = self._read(folders)
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

    # -- changing --------------------------------------------------------------------------------------------------

    def apply(self, changes: Changes, tick: Progress = lambda _: None) -> list[Record]:
        """Put changes on top. Applying the same ones twice, or older ones later, changes nothing.

        Returns the records that replaced what was held.
        """
        threads = tombstones = 0
        records = self._winners(changes.records)
        self._owe_for(records)
        self._hide(changes)
        for record in records:
            old = self._records[record.id]
            was_thread = old is None and self._files.get(record_path(record.id)) is not None  # as it is damaged
            threads += isinstance(record, Thread) - (was_thread or isinstance(old, Thread))
            tombstones += isinstance(record, Tombstone) - isinstance(old, Tombstone)
            self._records[record.id] = self._written[record.id] = record
            self._read_digest(record)
            tick(1)
        self._forget({record.id for record in records if is_forgotten(record)})
        self.manifest = replace(
            self.manifest, threads=self.manifest.threads + threads, tombstones=self.manifest.tombstones + tombstones
        )
        self._note_answers(changes.answers)
        self._note_requests(changes.requests)
        self._note_fixes(changes.fixes)
        self._comments_shown.drop(record.id for record in records if isinstance(record, Tombstone))
        self._comments_shown.put(changes.standing)
        if changes.read_whole:
            self._relist()
        self.manifest = self.manifest.with_owed((), changes.renewed)
        cursors = [moment for moment in (self.manifest.cursor, changes.cursor) if moment]
        manifest = self.manifest.with_pages(changes.pages).with_reading(changes.reading, changes.read_whole)
        self.manifest = replace(manifest, cursor=max(cursors, default=None))
        if records:
            self.manifest = replace(self.manifest, repo=self.repo or "")
        return records

    def promise_renewal(self, read: Mapping[ThreadId, Record]) -> None:
        """Have the comments worked out again that show one of these threads, where what was ``read`` of it is not what
        is held: somebody else was faster."""
        held = self.records(read)
        for key, record in read.items():
            if key in held and is_visible(record, held[key], self.repo):
                self._owe(key, held[key].revised_at)

    def _file_edits(self) -> dict[str, bytes | None]:
        return {record_path(key): encode_record(record) for key, record in self._written.items()} | self._shard_edits()

    def _note_answers(self, said: Iterable[AnswerRecord]) -> None:
        new = [one for one in said if not is_forgotten(self._records.get(one.id))]
        stood = self.answers(one.id for one in new)
        answers: dict[ThreadId, AnswerRecord] = {}
        for one in new:
            answers[one.id] = later_answer(one, answers.get(one.id, stood.get(one.id)))
        self._answers |= answers
        promised = [one.id for one in answers.values() if one.state == "pending"]
        pending = next_pending(self.manifest.pending, promised, answers.keys() - set(promised))
        manifest = self.manifest.with_written(promised_comments(answers.values(), stood))
        self.manifest = replace(manifest, pending=self._bounded(pending))

    def _owe(self, about: ThreadId, at: datetime, on: Iterable[ThreadId] | None = None) -> None:
        """Have the comments worked out again that show this thread, those ``on`` some threads only where these are
        named."""
        linked = self.thread_comments([about]).get(about)
        keys = [key for key in (linked.shown_in if linked else ()) if on is None or key[0] in on]
        if keys:
            self.manifest = self.manifest.with_owed(Renewal(*key, about, at) for key in keys)

    def _owe_for(self, records: Iterable[Record]) -> None:
        new = {record.id: record for record in records}
        shown = [key for key, linked in self.thread_comments(new).items() if linked.shown_in]
        for key in shown:
            if is_visible(self._records[key], new[key], self.repo):
                self._owe(key, new[key].revised_at)

    def _hide(self, changes: Changes) -> None:
        """Show no thread that cannot be seen, and show it again once it was read, or is known to be gone."""
        unseen = dict.fromkeys(self.manifest.unseen)
        for record in (*changes.unseen, *(record for record in changes.records if record.id in unseen)):
            if (record.id in unseen) is (record not in changes.unseen):
                self._owe(record.id, record.revised_at)
        unseen |= dict.fromkeys(record.id for record in changes.unseen)
        kept = [key for key in unseen if key not in {record.id for record in changes.records}]
        self.manifest = replace(self.manifest, unseen=tuple(kept[-MAX_UNSEEN:]))

    def _relist(self) -> None:
        """Make the lists of which comments show a thread anew. Of comments that an earlier version wrote it is known
        which like threads they show."""
        linked = list(self.every_thread_comments())
        known = {one.comment_key: one for each in linked for one in each.comments}
        for said in self.every_answer():
            shows = tuple(key for key, _ in said.matches)
            if shows and said.state == "said" and not self._is_gone(said.id):
                known.setdefault((said.id, 0), StandingComment(said.id, said.at, 0, said.text_hash, shows))
        self._comments_shown.relist(known.values(), linked)

    def _bounded(self, pending: tuple[ThreadId, ...]) -> tuple[ThreadId, ...]:
        """The promises that are kept; the others are settled, and that is said."""
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
        held = super().requests(asked) | {key: self._requests[key] for key in asked if key in self._requests}
        known = [request for requests in held.values() for request in requests]
        self._requests |= {key: joined(held.get(key, ()), new) for key, new in asked.items()}
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
        held = super().fixes(fix.id for fix in found) | self._fixes
        for fix in found:
            old = held.get(fix.id)
            held[fix.id] = self._fixes[fix.id] = now = later_fix(fix, old)
            if old != now and (old is None or replace(old, looked_at=now.looked_at) != now):
                self._owe(fix.id, now.looked_at)

    def _forget(self, gone: set[ThreadId]) -> None:
        """Drop all that is kept of these threads beside their records; the shards do so when they are written."""
        if gone:
            self._answers = {key: said for key, said in self._answers.items() if key not in gone}
            self.manifest = self.manifest.without(gone)

    def _left_of(self, key: ThreadId, requests: tuple[Request, ...]) -> tuple[Request, ...]:
        """The requests on a thread that count still: of one that is gone, that it be forgotten."""
        return tuple(request for request in requests if request.name == FORGET) if self._is_gone(key) else requests

    def _is_gone(self, key: ThreadId) -> bool:
        """Whether the thread is known to be gone; no record is read for it, as its shards go with the text."""
        return isinstance(self._records.get(key), Tombstone)

    def _winners(self, records: Iterable[Record]) -> list[Record]:
        in_time = sorted(records, key=lambda one: (is_forgotten(one), one.revised_at, isinstance(one, Tombstone)))
        newest = {record.id: record for record in in_time}
        held = self.records(newest)
        found = []
        for key, record in newest.items():
            old, passed = held.get(key), self._passed.get(key, record.revised_at)
            if old and record.revised_at > old.revised_at and same_content(record, old):
                self._passed[key] = max(record.revised_at, passed)
            elif (record.revised_at >= passed or is_forgotten(record)) and wins(record, old):
                found.append(record)
        return found

    def _read_digest(self, record: Record) -> None:
        if isinstance(record, Thread):
            self._digests[record.id] = read_digest(record, repo=self.repo)
        else:
            self._digests.pop(record.id, None)

    def _shard_edits(self) -> dict[str, bytes | None]:
        known = self.records([*self._written, *self._requests, *self._fixes])
        nothing = {key: None for key, record in known.items() if isinstance(record, Tombstone)}
        forgotten = {key: None for key, record in known.items() if is_forgotten(record)}
        values: list[tuple[ShardSchema[Any], Mapping[ThreadId, Any]]] = [
            (ANSWERS, self._answers | forgotten),
            (REQUESTS, self._requests | nothing | self.requests(nothing)),
            (FIXES, self._fixes | nothing),
            (COMMENTS, self._comments_shown.changed()),
        ]
        digests = {DIGESTS.path(key) for key in (*self._written, *self._renewed)}
        shards = self._read(sorted(digests | {family.path(key) for family, kept in values for key in kept}))
        for path in {DIGESTS.path(key) for key in self._written}:
            if not read_lines(shards.get(path, b""))[1]:
                self._mend_digests(path)
        made = {key: DIGESTS.line(digest) for key, digest in self._digests.items()}
        lines = self._renewed | dict.fromkeys(self._written) | made
        found = edit_shards(shards, lines.items(), DIGESTS.path)
        for family, kept in values:
            found |= family.edits(shards, kept)
        return found

    def _digest_anew(self, thread: Thread) -> Digest:
        """The digest as this version makes it, to be written where another one is held, such as an earlier version's.

        Only lines are kept of those: a thousand digests have five megabytes."""
        made = self._digests.get(thread.id) or read_digest(thread, repo=self.repo)
        line = DIGESTS.line(made)
        if f"{line}\n".encode() not in (self._files.get(DIGESTS.path(thread.id)) or b""):
            self._renewed[thread.id] = line
        return made

    def _mend_digests(self, path: str) -> None:
        for record in self._decoded(in_order(self.snapshot.paths(f"{RECORD_FOLDER}/{PurePosixPath(path).stem}"))):
            if isinstance(record, Thread) and record.id not in self._written:
                self._digests[record.id] = read_digest(record, repo=self.repo)
        self.notes.add(f"{path} was damaged: it was made anew from the records.")

    def _decoded(self, paths: list[str]) -> Iterator[Record]:
        for path, data in self._contents(paths).items():
            if record := self._decode(path, data):
                yield record


def _is_page(record: Record) -> bool:
    return isinstance(record, Thread) and record.kind is Kind.PAGE
