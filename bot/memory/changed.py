"""What a snapshot holds with a run's changes on top of it, and the files that have to be written for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from bot.indexed import Digest
from bot.kept import Changes, Fix, Said, Wish
from bot.memory import manifest as manifests
from bot.memory.families import ANSWERS, DIGESTS, FIXES, WISHES
from bot.memory.held import CHUNK, Held
from bot.memory.merging import joined, later_fix, later_said, recent
from bot.memory.records import FOLDER, encode, in_order, record_path, same_content, sort_key, wins
from bot.memory.shards import Family, is_damaged, read_lines
from bot.memory.store import Snapshot
from bot.model import Kind, Record, Thread, ThreadId, Tombstone
from bot.reading.digest import digest as read_digest

Progress = Callable[[int], None]


class Changed(Held):
    """Reads see the snapshot and the changes. ``repo`` is OWNER/NAME of the repository, which links are told by."""

    def __init__(
        self, snapshot: Snapshot, notes: list[str], expected: Iterable[str] = (), repo: str | None = None
    ) -> None:
        super().__init__(snapshot, notes, expected)
        self._repo = repo
        self._written: dict[ThreadId, Record] = {}
        self._digests: dict[ThreadId, Digest] = {}
        self._said: dict[ThreadId, Said] = {}
        self._wishes: dict[ThreadId, tuple[Wish, ...]] = {}
        self._fixes: dict[ThreadId, Fix] = {}
        self._passed: dict[ThreadId, datetime] = {}  # later revisions that said the same, and were not kept for it

    # -- reading ---------------------------------------------------------------------------------------------------

    def said(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Said]:
        """What was said on these threads before and in this run."""
        wanted = list(dict.fromkeys(ids))
        return super().said(wanted) | {key: self._said[key] for key in wanted if key in self._said}

    def wishes(self, ids: Iterable[ThreadId]) -> dict[ThreadId, tuple[Wish, ...]]:
        """What people asked of the bot on these threads, oldest first; nothing on those that are gone."""
        wanted = list(dict.fromkeys(ids))
        found = super().wishes(wanted) | {key: self._wishes[key] for key in wanted if key in self._wishes}
        return {key: wishes for key, wishes in found.items() if not self._is_gone(key)}

    def fixes(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Fix]:
        """Where the fixes of these threads are; nothing of those that are gone."""
        wanted = list(dict.fromkeys(ids))
        found = super().fixes(wanted) | {key: self._fixes[key] for key in wanted if key in self._fixes}
        return {key: fix for key, fix in found.items() if not self._is_gone(key)}

    def said_before(self, ids: Iterable[ThreadId]) -> dict[ThreadId, Said]:
        """What was said on these threads when the snapshot was taken."""
        return super().said(ids)

    def wishes_before(self, ids: Iterable[ThreadId]) -> dict[int, Wish]:
        """What had been asked for on these threads when the snapshot was taken, by comment."""
        return {wish.comment_id: wish for wishes in super().wishes(ids).values() for wish in wishes}

    def every_said(self) -> Iterator[Said]:
        """What was said on all threads, in no order."""
        yield from (dict(self._every(ANSWERS)) | self._said).values()

    def every_wish(self) -> Iterator[Wish]:
        """What was asked for on all threads, in no order."""
        for key, wishes in (dict(self._every(WISHES)) | self._wishes).items():
            yield from () if self._is_gone(key) else wishes

    def every_record(self, tick: Progress = lambda _: None) -> Iterator[Record]:
        """All records in the order of their ids, a thousand read at a time; damaged ones are left out."""
        paths = in_order({*self.snapshot.paths(FOLDER), *map(record_path, self._written)})
        written = {record_path(key): record for key, record in self._written.items()}
        for start in range(0, len(paths), CHUNK):
            part = paths[start : start + CHUNK]
            found = self.snapshot.read(path for path in part if path not in written)
            for path in part:
                record = written.get(path) or self._decode(path, found.get(path, b""))
                if record is not None:
                    yield record
            tick(len(part))

    def page_ids(self) -> list[ThreadId]:
        """The pages that are there, in order. Digests tell; where they are not whole, records do, which are longer."""
        folders: dict[str, list[str]] = {}
        for path in in_order(self.snapshot.paths(FOLDER)):
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
        for record in records:
            old = self._records[record.id]
            was_thread = old is None and self._files.get(record_path(record.id)) is not None  # as it is damaged
            threads += isinstance(record, Thread) - (was_thread or isinstance(old, Thread))
            tombstones += isinstance(record, Tombstone) - isinstance(old, Tombstone)
            self._records[record.id] = self._written[record.id] = record
            self._read_digest(record)
            tick(1)
        self.manifest = replace(
            self.manifest, threads=self.manifest.threads + threads, tombstones=self.manifest.tombstones + tombstones
        )
        self._hear(changes.said)
        self._note_wishes(changes.wishes)
        self._note_fixes(changes.fixes)
        cursors = [moment for moment in (self.manifest.cursor, changes.cursor) if moment]
        manifest = self.manifest.with_pages(changes.pages).with_reading(changes.reading, changes.read_whole)
        self.manifest = replace(manifest, cursor=max(cursors, default=None))
        return records

    def _file_edits(self) -> dict[str, bytes | None]:
        """The records and shards that have to be written."""
        found: dict[str, bytes | None] = {record_path(key): encode(record) for key, record in self._written.items()}
        return found | self._shard_edits()

    # -- parts -----------------------------------------------------------------------------------------------------

    def _hear(self, said: Iterable[Said]) -> None:
        heard = list(said)
        stood = self.said(one.id for one in heard)
        told: dict[ThreadId, Said] = {}
        for one in heard:
            told[one.id] = later_said(one, told.get(one.id, stood.get(one.id)))
        self._said |= told
        pending = [one.id for one in told.values() if one.state == "pending"]
        self.manifest = replace(
            manifests.count_promises(self.manifest, told.values(), stood),
            pending=manifests.next_pending(self.manifest.pending, pending, told.keys() - set(pending)),
        )

    def _note_wishes(self, wishes: Iterable[Wish]) -> None:
        asked: dict[ThreadId, list[Wish]] = {}
        for wish in wishes:
            asked.setdefault(wish.id, []).append(wish)
        held = super().wishes(asked) | {key: self._wishes[key] for key in asked if key in self._wishes}
        self._wishes |= {key: joined(held.get(key, ()), new) for key, new in asked.items()}
        told = {wish.comment_id for new in asked.values() for wish in new}
        now = [wish for key in asked for wish in self._wishes[key] if wish.comment_id in told]
        if now:
            self.manifest = replace(self.manifest, recent=recent(self.manifest.recent, now))

    def _note_fixes(self, fixes: Iterable[Fix]) -> None:
        found = list(fixes)
        held = super().fixes(fix.id for fix in found) | self._fixes
        for fix in found:
            held[fix.id] = self._fixes[fix.id] = later_fix(fix, held.get(fix.id))

    def _is_gone(self, key: ThreadId) -> bool:
        """Whether the thread is known to be gone; no record is read for it, as its shards go with the text."""
        return isinstance(self._records.get(key), Tombstone)

    def _winners(self, records: Iterable[Record]) -> list[Record]:
        """Of each thread's records the newest, where it replaces what is held."""
        in_time = sorted(records, key=lambda record: (record.revised_at, isinstance(record, Tombstone)))
        newest = {record.id: record for record in in_time}
        held = self.records(newest)
        found = []
        for key, record in newest.items():
            old, passed = held.get(key), self._passed.get(key, record.revised_at)
            if old and record.revised_at > old.revised_at and same_content(record, old):
                self._passed[key] = max(record.revised_at, passed)
            elif record.revised_at >= passed and wins(record, old):
                found.append(record)
        return found

    def _read_digest(self, record: Record) -> None:
        if isinstance(record, Thread):
            self._digests[record.id] = read_digest(record, repo=self._repo)
        else:
            self._digests.pop(record.id, None)

    def _shard_edits(self) -> dict[str, bytes | None]:
        known = self.records([*self._written, *self._wishes, *self._fixes])
        nothing = {key: None for key, record in known.items() if isinstance(record, Tombstone)}
        values: list[tuple[Family[Any], dict[ThreadId, Any]]] = [
            (DIGESTS, dict.fromkeys(self._written)),
            (ANSWERS, self._said),
            (WISHES, self._wishes | nothing),
            (FIXES, self._fixes | nothing),
        ]
        shards = self._read(sorted({family.path(key) for family, kept in values for key in kept}))
        for path in {DIGESTS.path(key) for key in self._written if is_damaged(shards.get(DIGESTS.path(key), b""))}:
            self._mend_digests(path)
        values[0] = DIGESTS, dict.fromkeys(self._written) | self._digests
        found: dict[str, bytes | None] = {}
        for family, kept in values:
            found |= family.edits(shards, kept)
        return found

    def _mend_digests(self, path: str) -> None:
        """Read all digests of a damaged shard again from the records."""
        for record in self._decoded(in_order(self.snapshot.paths(f"{FOLDER}/{PurePosixPath(path).stem}"))):
            if isinstance(record, Thread) and record.id not in self._written:
                self._digests[record.id] = read_digest(record, repo=self._repo)
        self._note(f"{path} was damaged: it was made anew from the records.")

    def _decoded(self, paths: list[str]) -> Iterator[Record]:
        """The records in these files, as far as they can be read."""
        for path, data in self.snapshot.read(paths).items():
            if record := self._decode(path, data):
                yield record


def _is_page(record: Record) -> bool:
    return isinstance(record, Thread) and record.kind is Kind.PAGE
