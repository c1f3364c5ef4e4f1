"""Notes what an organisation's index has to read again, in the transaction that changes it.

A row is written in the transaction that ends a run, and deleted once the index has its threads. It holds numbers only.
The index is switched on while the heartbeat `INDEX_HEARTBEAT` exists, which all processes see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.server.model import (
    DAY,
    HOUR,
    MINUTE,
    Instant,
    PendingWork,
    Priority,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
    RunReport,
)
from bot.server.storage.database import DatabasePart, Row, to_json
from bot.server.storage.queue import WorkQueue

INDEX_HEARTBEAT = "organisation"
"""The heartbeat that shows that there is an index, and where."""

PURGE_PREFIX = "organisation-purge:"
"""Prefix of the heartbeats whose time is when the files of an index are rewritten without forgotten threads."""

PURGE_DELAY = 11 * MINUTE
"""Milliseconds until a purge: longer than any search reads replaced files."""

PURGE_COUNT = 2
"""The second purge removes the files that the first one replaced."""

MAX_ROW_THREADS = 500
"""Most threads in one row; more are split over several rows."""

MAX_PROCESS_SKEW = MINUTE // 12
"""Milliseconds; the clocks of two processes differ by less."""

REPAIR_PREFIX = "organisation-repair:"
"""Prefix of the heartbeats whose time is the earliest at which an installation's damaged index may be replaced."""

REPAIR_INTERVAL, REPAIR_RETRY_DELAY = 6 * HOUR, 10 * MINUTE
"""Milliseconds until an index may be replaced again, and until a failed replacement is retried."""

MAX_PURGE_DELAY = 6 * HOUR
"""Most milliseconds between two purges; the pause doubles after one that failed or did not count."""

MAX_ROWS = 20
"""Most rows of one repository that are processed together."""

FIRST_ROW_PAUSE, MAX_ROW_PAUSE = MINUTE // 2, 15 * MINUTE
"""Milliseconds until a row is retried; the pause doubles each time."""

_KEY = re.compile(r"organisation-([1-9][0-9]{0,17})")


def queue_key(installation: int) -> str:
    """The key of the queue under which the changes of an installation are worked on."""
    return f"organisation-{installation}"


def installation_of(key: str) -> int:
    """The installation whose changes a key of the queue stands for; 0 for any other key."""
    match = _KEY.fullmatch(key)
    return int(match[1]) if match else 0


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A row: ``threads`` of a repository must be read again; None for all, or if it may be gone."""

    seq: int
    repository: RepositoryKey
    threads: tuple[int, ...] | None
    attempts: int = 0


class OrganisationChanges(DatabasePart):
    """The table ``organisation_changes``. Every method raises WorldError when the database is not available."""

    def note_run(self, work: PendingWork, row: RepositoryRow, report: RunReport, last_run: Instant) -> None:
        """Note what a run changed in memory, in the transaction that ends it; ``row`` is the repository after it.

        The whole memory is noted when its history was just read, when too many threads changed, when other people are
        ignored, and when a run since ``last_run`` never ended: it may have pushed.
        """
        key = work.repository
        if not key.number or not self.is_on():
            return
        stored = self.database.row("select indexed from repositories where key = :key", key=key.text)
        changed = report.changed
        is_whole = (
            len(changed) > MAX_ROW_THREADS
            or not (stored and stored["indexed"])
            or self._has_unfinished_run(work, last_run)
        )
        if is_whole and not (row.is_unread or row.history):
            self.request_reread([key])
            self._mark_indexed([key], is_indexed=True)
            return
        if is_whole:  # the run that reads the end of the history will note it
            self._mark_indexed([key], is_indexed=False)
        if 0 < len(changed) <= MAX_ROW_THREADS:
            self._insert([(key, sorted(changed))])
            self._queue([key.installation])

    def note_ignored_people(self, repository: RepositoryKey) -> None:
        """Note that a repository ignores other people than before: the end of its run notes its whole memory."""
        if self.is_on():
            self.note_forgotten(repository.installation)
            self._mark_indexed([repository], is_indexed=False)

    def note_gone(self, repository: RepositoryKey) -> None:
        """Note that a repository is gone, in the transaction that marks it so."""
        if repository.number and self.is_on():
            self.request_reread([repository])
            self._mark_indexed([repository], is_indexed=False)

    def note_forgotten(self, installation: int) -> None:
        """Note that something leaves the index for good, so that its files are purged a while later."""
        self.database.change(
            "insert into heartbeats (name, said_at, note) values (:name, :due, :note)"
            " on conflict (name) do update set note = excluded.note, said_at = case"
            " when heartbeats.said_at < excluded.said_at then heartbeats.said_at else excluded.said_at end",
            name=f"{PURGE_PREFIX}{installation}",
            due=self.now() + PURGE_DELAY,
            note=to_json({"left": PURGE_COUNT}),
        )

    def is_on(self) -> bool:
        return self.database.row("select 1 from heartbeats where name = :name", name=INDEX_HEARTBEAT) is not None

    def take(self, installation: int) -> list[IndexChange]:
        """Take the oldest due rows of one repository; a row that failed before is taken alone.

        Each counts as tried and is due again later, even if it kills this process.
        """
        now = self.now()
        due = "from organisation_changes where installation = :installation and next_at <= :now"
        with self.database.transaction():
            first = self.database.row(f"select * {due} order by seq limit 1", installation=installation, now=now)
            if first is None:
                return []
            rows = [first]
            if not first["attempts"]:
                rows = self.database.rows(
                    f"select * {due} and repository = :repository and attempts = 0 order by seq limit :most",
                    installation=installation,
                    now=now,
                    repository=first["repository"],
                    most=MAX_ROWS,
                )
            self.database.change_each(
                "update organisation_changes set attempts = :attempts, next_at = :next_at where seq = :seq",
                [
                    {"seq": row["seq"], "attempts": row["attempts"] + 1, "next_at": now + _retry_pause(row["attempts"])}
                    for row in rows
                ],
            )
        return [_parse_change(row) for row in rows]

    def mark_done(self, changes: Sequence[IndexChange]) -> None:
        """Delete these rows: the index has what they name."""
        self.database.change_each(
            "delete from organisation_changes where seq = :seq", [{"seq": each.seq} for each in changes]
        )

    def divide(self, changes: Sequence[IndexChange], threads: Sequence[int]) -> None:
        """Replace rows of one repository with rows that list all its threads, each done in seconds."""
        parts = [threads[start : start + MAX_ROW_THREADS] for start in range(0, len(threads), MAX_ROW_THREADS)]
        with self.database.transaction():
            self.mark_done(changes)
            self._insert([(changes[0].repository, each) for each in parts])

    def claim_repair(self, installation: int) -> bool:
        """Return whether an installation's index may be replaced now; if so, nobody else may for a while."""
        now = self.now()
        sql = (
            "insert into heartbeats (name, said_at, note) values (:name, :next, '{}') on conflict (name) do update"
            " set said_at = excluded.said_at where heartbeats.said_at <= :now"
        )
        name = f"{REPAIR_PREFIX}{installation}"
        return bool(self.database.change(sql, name=name, next=now + REPAIR_RETRY_DELAY, now=now))

    def note_repaired(self, installation: int) -> None:
        """Note all memories of an installation in place of earlier notes, as its index is new and empty."""
        with self.database.transaction():
            self.database.change(
                "update heartbeats set said_at = :next where name = :name",
                name=f"{REPAIR_PREFIX}{installation}",
                next=self.now() + REPAIR_INTERVAL,
            )
            self.database.change("delete from organisation_changes where installation = :number", number=installation)
            self.request_reread(self.indexed_repositories(installation))

    def is_purge_due(self, installation: int) -> bool:
        """Whether files that hold forgotten threads may be rewritten or removed."""
        sql = "select 1 from heartbeats where name = :name and said_at <= :now"
        return self.database.row(sql, name=f"{PURGE_PREFIX}{installation}", now=self.now()) is not None

    def note_purged(self, installation: int, *, failed: bool = False) -> None:
        """Note a purge, or a failed one. It counts if the index has everything that was noted."""
        name = f"{PURGE_PREFIX}{installation}"
        any_change = "select 1 from organisation_changes where installation = :installation limit 1"
        with self.database.transaction():
            # An update locks the row: otherwise this would overwrite what a run notes meanwhile.
            row = self.database.row("update heartbeats set note = note where name = :name returning note", name=name)
            note = json.loads(row["note"]) if row else {"left": 0}
            counts = not failed and self.database.row(any_change, installation=installation) is None
            left = note["left"] - counts
            pause = PURGE_DELAY if counts else min(2 * note.get("pause", PURGE_DELAY), MAX_PURGE_DELAY)
            sql = "update heartbeats set said_at = :then, note = :note where name = :name"
            then, new_note = self.now() + pause, to_json({"left": left, "pause": pause})
            self.database.change(sql, name=name, then=then, note=new_note)
            if left < 1:
                self.database.change("delete from heartbeats where name = :name", name=name)

    def installations(self) -> list[int]:
        """The installations that have memories in the index."""
        rows = self.database.rows("select key from repositories where indexed = 1")
        return sorted({RepositoryKey.of(row["key"]).installation for row in rows})

    def indexed_repositories(self, installation: int) -> list[RepositoryKey]:
        """The repositories of an installation whose memories are in the index, or noted for it."""
        sql = "select key from repositories where indexed = 1 and key like :some order by key"
        return [RepositoryKey.of(row["key"]) for row in self.database.rows(sql, some=f"{installation}-%")]

    def request_reread(self, repositories: Sequence[RepositoryKey]) -> None:
        """Note that the whole memory of each of these must be read again, or that it may be gone."""
        with self.database.transaction():
            self._insert([(key, None) for key in repositories])
            self._queue({key.installation for key in repositories})

    def is_gone(self, repository: RepositoryKey) -> bool:
        """Whether the repository is gone, or no longer known."""
        row = self.database.row("select state from repositories where key = :key", key=repository.text)
        return row is None or row["state"] == "gone"

    def next_due(self, installation: int) -> Instant | None:
        """When the next row or purge of an installation is due, 0 for a new row; None if there is none."""
        sql = (
            "select min(due) as due from (select next_at as due from organisation_changes"
            " where installation = :installation union all select said_at from heartbeats where name = :purge) as dues"
        )
        row = self.database.row(sql, installation=installation, purge=f"{PURGE_PREFIX}{installation}")
        return row["due"] if row else None

    def align(self, place: str, scope: RepositoryScope, version: str = "") -> int:
        """Note every repository whose memory is missing from the index, or should no longer be in it.

        ``place`` is the address of the index, and ``version`` the form of documents, "" for the current one. When
        either changes, all memories are read again, and gone repositories are noted too, as the index may still have
        them. Returns how many were noted.
        """
        from bot.organisation.documents import DOCUMENT_VERSION  # not at the top: it loads the analyser

        note = to_json({"place": hashlib.sha256(f"{version or DOCUMENT_VERSION} {place}".encode()).hexdigest()[:16]})
        with self.database.transaction():
            heartbeat = self.database.row("select note from heartbeats where name = :name", name=INDEX_HEARTBEAT)
            if is_new := heartbeat is None or heartbeat["note"] != note:
                self._clear()
                self.database.change(
                    "insert into heartbeats (name, said_at, note) values (:name, :now, :note)",
                    name=INDEX_HEARTBEAT,
                    now=self.now(),
                    note=note,
                )
            misplaced = {True: list[RepositoryKey](), False: list[RepositoryKey]()}
            for row in self.database.rows("select * from repositories order by key"):
                key, belongs = RepositoryKey.of(row["key"]), row["state"] != "gone" and scope.includes(row["name"])
                is_read = not (row["unread"] or row["history"])
                is_misplaced = belongs != bool(row["indexed"]) or (is_new and not belongs)
                if key.number and is_misplaced and (is_read or not belongs):
                    misplaced[belongs].append(key)
            for belongs, keys in misplaced.items():
                self._mark_indexed(keys, is_indexed=belongs)
                self._insert([(key, None) for key in keys])
            pending = self.database.rows("select distinct installation from organisation_changes")
            self._queue({row["installation"] for row in pending})
        return sum(map(len, misplaced.values()))

    def switch_off(self) -> None:
        """Forget all notes and make no more; next time, the index starts empty."""
        with self.database.transaction():
            if self.is_on():
                self._clear()

    def backlog(self) -> tuple[int, Instant] | None:
        """How many rows wait, and the time of the oldest (0: none); None while the index is switched off."""
        if not self.is_on():
            return None
        row = self.database.row("select count(*) as many, min(changed_at) as oldest from organisation_changes")
        return (int(row["many"]), int(row["oldest"] or 0)) if row else (0, 0)

    def _has_unfinished_run(self, work: PendingWork, last_run: Instant) -> bool:
        sql = (
            "select 1 from runs where repository = :repository and began >= :since and ended = 0 and id <> :id limit 1"
        )
        since = max(last_run - MAX_PROCESS_SKEW, work.began_at - 30 * DAY)
        return self.database.row(sql, repository=work.repository.text, since=since, id=work.id) is not None

    def _insert(self, changes: Iterable[tuple[RepositoryKey, Sequence[int] | None]]) -> None:
        self.database.change_each(
            "insert into organisation_changes (installation, repository, threads, changed_at)"
            " values (:installation, :repository, :threads, :changed_at)",
            [
                {
                    "installation": key.installation,
                    "repository": key.text,
                    "threads": "" if threads is None else to_json(threads),
                    "changed_at": self.now(),
                }
                for key, threads in changes
            ],
        )

    def _queue(self, installations: Iterable[int]) -> None:
        now = self.now()
        WorkQueue(self.database, self.now).add((queue_key(each), Priority.CATCH_UP, now) for each in installations)

    def _mark_indexed(self, repositories: Sequence[RepositoryKey], *, is_indexed: bool) -> None:
        self.database.change_each(
            "update repositories set indexed = :indexed where key = :key",
            [{"key": each.text, "indexed": int(is_indexed)} for each in repositories],
        )

    def _clear(self) -> None:
        self.database.change("delete from organisation_changes")
        self.database.change("update repositories set indexed = 0 where indexed = 1")
        self.database.change("delete from heartbeats where name = :name", name=INDEX_HEARTBEAT)


def _parse_change(row: Row) -> IndexChange:
    threads = tuple(json.loads(row["threads"])) if row["threads"] else None
    return IndexChange(row["seq"], RepositoryKey.of(row["repository"]), threads, row["attempts"] + 1)


def _retry_pause(attempts: int) -> int:
    return int(min(MAX_ROW_PAUSE, FIRST_ROW_PAUSE << min(attempts, 10)))
