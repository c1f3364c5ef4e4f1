"""Notes what an organisation's index has to read again, in the transaction that changes it.

A row is written in the transaction that ends a run, and deleted once the index has its threads. It holds numbers only.
The index is switched on while the heartbeat `INDEX_HEARTBEAT` exists, which all processes see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from bot.server.model import (
    DAY,
    HOUR,
    MINUTE,
    Instant,
    Lease,
    PendingWork,
    Priority,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
    RunReport,
)
from bot.server.storage.database import Database, DatabasePart, Row, Transaction, to_json
from bot.server.storage.queue import WorkQueue, add_work

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
_INSERT = (
    "insert into organisation_changes (installation, repository, threads, changed_at)"
    " values (:installation, :repository, :threads, :changed_at)"
)


def queue_key(installation: int) -> str:
    """The key of the queue under which the changes of an installation are worked on."""
    return f"organisation-{installation}"


def installation_of(key: str) -> int:
    """The installation whose changes a key of the queue stands for; 0 for any other key."""
    match = _KEY.fullmatch(key)
    return int(match[1]) if match else 0


def note_run(
    transaction: Transaction, work: PendingWork, row: RepositoryRow, report: RunReport, last_run: Instant, now: Instant
) -> None:
    """Note what a run changed in memory, in the transaction that ends it; ``row`` is the repository after it.

    The whole memory is noted when its history was just read, when too many threads changed, when ``ignore.people``
    changed, and when a run since ``last_run`` never ended: it may have pushed.
    """
    key = work.repository
    if not key.number or not is_on(transaction):
        return
    stored = transaction.row("select indexed, people from repositories where key = :key", key=key.text)
    changed = report.changed
    is_whole = (
        len(changed) > MAX_ROW_THREADS
        or not (stored and stored["indexed"])
        or _has_unfinished_run(transaction, work, last_run)
    )
    if stored and report.people not in (None, stored["people"]):
        is_whole = True
        note_forgotten(transaction, key.installation, now)
        sql = "update repositories set people = :people where key = :key"
        transaction.change(sql, people=report.people, key=key.text)
    if is_whole and not (row.is_unread or row.history):
        insert_and_queue(transaction, [(key, None)], now)
        mark_indexed(transaction, [key], is_indexed=True)
        return
    if is_whole:  # the run that reads the end of the history will note it
        mark_indexed(transaction, [key], is_indexed=False)
    if 0 < len(changed) <= MAX_ROW_THREADS:
        insert_and_queue(transaction, [(key, sorted(changed))], now)


def people_digest(people: Collection[str]) -> str:
    """A fingerprint of logins in any order and case, "" for none."""
    names = " ".join(sorted(login.casefold() for login in people))
    return hashlib.sha256(names.encode()).hexdigest()[:16] if names else ""


def note_gone(transaction: Transaction, repository: RepositoryKey, now: Instant) -> None:
    """Note that a repository is gone, in the transaction that marks it so."""
    if repository.number and is_on(transaction):
        insert_and_queue(transaction, [(repository, None)], now)
        mark_indexed(transaction, [repository], is_indexed=False)


def note_forgotten(transaction: Transaction, installation: int, now: Instant) -> None:
    sql = (
        "insert into heartbeats (name, said_at, note) values (:name, :due, :note)"
        " on conflict (name) do update set note = excluded.note, said_at = case"
        " when heartbeats.said_at < excluded.said_at then heartbeats.said_at else excluded.said_at end"
    )
    transaction.change(
        sql, name=f"{PURGE_PREFIX}{installation}", due=now + PURGE_DELAY, note=to_json({"left": PURGE_COUNT})
    )


def is_on(transaction: Transaction) -> bool:
    return transaction.row("select 1 from heartbeats where name = :name", name=INDEX_HEARTBEAT) is not None


def _has_unfinished_run(transaction: Transaction, work: PendingWork, last_run: Instant) -> bool:
    sql = "select 1 from runs where repository = :repository and began >= :since and ended = 0 and id <> :id limit 1"
    since = max(last_run - MAX_PROCESS_SKEW, work.began_at - 30 * DAY)
    return transaction.row(sql, repository=work.repository.text, since=since, id=work.id) is not None


def insert_and_queue(
    transaction: Transaction, changes: Sequence[tuple[RepositoryKey, Sequence[int] | None]], now: Instant
) -> None:
    insert_changes(transaction, changes, now)
    queue_installations(transaction, {key.installation for key, _ in changes}, now)


def insert_changes(
    transaction: Transaction, changes: Iterable[tuple[RepositoryKey, Sequence[int] | None]], now: Instant
) -> None:
    transaction.change_each(
        _INSERT,
        [
            {
                "installation": key.installation,
                "repository": key.text,
                "threads": "" if threads is None else to_json(threads),
                "changed_at": now,
            }
            for key, threads in changes
        ],
    )


def queue_installations(transaction: Transaction, installations: Iterable[int], now: Instant) -> None:
    add_work(transaction, [(queue_key(each), Priority.CATCH_UP, now) for each in installations], now)


def mark_indexed(transaction: Transaction, repositories: Sequence[RepositoryKey], *, is_indexed: bool) -> None:
    transaction.change_each(
        "update repositories set indexed = :indexed where key = :key",
        [{"key": each.text, "indexed": int(is_indexed)} for each in repositories],
    )


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A row: ``threads`` of a repository must be read again; None for all, or if it may be gone."""

    seq: int
    repository: RepositoryKey
    threads: tuple[int, ...] | None
    attempts: int = 0


class OrganisationChanges(DatabasePart):
    """The table ``organisation_changes``. Every method raises WorldError when the database is not available."""

    def __init__(self, database: Database, queue: WorkQueue, now: Callable[[], Instant]) -> None:
        super().__init__(database, now)
        self._queue = queue

    def take(self, installation: int) -> list[IndexChange]:
        """Take the oldest due rows of one repository; a row that failed before is taken alone.

        Each counts as tried and is due again later, even if it kills this process.
        """
        now = self.now()
        due = "from organisation_changes where installation = :installation and next_at <= :now"
        with self._database.transaction() as transaction:
            first = transaction.row(f"select * {due} order by seq limit 1", installation=installation, now=now)
            if first is None:
                return []
            rows = [first]
            if not first["attempts"]:
                rows = transaction.rows(
                    f"select * {due} and repository = :repository and attempts = 0 order by seq limit :most",
                    installation=installation,
                    now=now,
                    repository=first["repository"],
                    most=MAX_ROWS,
                )
            transaction.change_each(
                "update organisation_changes set attempts = :attempts, next_at = :next_at where seq = :seq",
                [
                    {"seq": row["seq"], "attempts": row["attempts"] + 1, "next_at": now + _retry_pause(row["attempts"])}
                    for row in rows
                ],
            )
        return [_parse_change(row) for row in rows]

    def mark_done(self, changes: Sequence[IndexChange]) -> None:
        """Delete these rows: the index has what they name."""
        with self._database.transaction() as transaction:
            _delete(transaction, changes)

    def divide(self, changes: Sequence[IndexChange], threads: Sequence[int]) -> None:
        """Replace rows of one repository with rows that list all its threads, each done in seconds."""
        parts = [threads[start : start + MAX_ROW_THREADS] for start in range(0, len(threads), MAX_ROW_THREADS)]
        with self._database.transaction() as transaction:
            _delete(transaction, changes)
            insert_changes(transaction, [(changes[0].repository, part) for part in parts], self.now())

    def claim_repair(self, installation: int) -> bool:
        """Return whether an installation's index may be replaced now; if so, nobody else may for a while."""
        now = self.now()
        sql = (
            "insert into heartbeats (name, said_at, note) values (:name, :next, '{}') on conflict (name) do update"
            " set said_at = excluded.said_at where heartbeats.said_at <= :now"
        )
        name = f"{REPAIR_PREFIX}{installation}"
        return bool(self._change(sql, name=name, next=now + REPAIR_RETRY_DELAY, now=now))

    def note_repaired(self, installation: int) -> None:
        """Note all memories of an installation in place of earlier notes, as its index is new and empty."""
        now = self.now()
        with self._database.transaction() as transaction:
            transaction.change(
                "update heartbeats set said_at = :next where name = :name",
                name=f"{REPAIR_PREFIX}{installation}",
                next=now + REPAIR_INTERVAL,
            )
            sql = "delete from organisation_changes where installation = :installation"
            transaction.change(sql, installation=installation)
            insert_and_queue(
                transaction, [(key, None) for key in _indexed_repositories(transaction, installation)], now
            )

    def note_forgotten(self, installation: int) -> None:
        """Note that something leaves the index for good, so that its files are purged a while later."""
        with self._database.transaction() as transaction:
            note_forgotten(transaction, installation, self.now())

    def is_purge_due(self, installation: int) -> bool:
        """Whether files that hold forgotten threads may be rewritten or removed."""
        sql = "select 1 from heartbeats where name = :name and said_at <= :now"
        return self._row(sql, name=f"{PURGE_PREFIX}{installation}", now=self.now()) is not None

    def note_purged(self, installation: int, *, failed: bool = False) -> None:
        """Note a purge, or a failed one. It counts if the index has everything that was noted."""
        name = f"{PURGE_PREFIX}{installation}"
        any_change = "select 1 from organisation_changes where installation = :installation limit 1"
        with self._database.transaction() as transaction:
            # An update locks the row: otherwise this would overwrite what a run notes meanwhile.
            row = transaction.row("update heartbeats set note = note where name = :name returning note", name=name)
            note = json.loads(row["note"]) if row else {"left": 0}
            counts = not failed and transaction.row(any_change, installation=installation) is None
            left = note["left"] - counts
            pause = PURGE_DELAY if counts else min(2 * note.get("pause", PURGE_DELAY), MAX_PURGE_DELAY)
            sql = "update heartbeats set said_at = :then, note = :note where name = :name"
            then, new_note = self.now() + pause, to_json({"left": left, "pause": pause})
            transaction.change(sql, name=name, then=then, note=new_note)
            if left < 1:
                transaction.change("delete from heartbeats where name = :name", name=name)

    def installations(self) -> list[int]:
        """The installations that have memories in the index."""
        rows = self._rows("select key from repositories where indexed = 1")
        return sorted({RepositoryKey.of(row["key"]).installation for row in rows})

    def indexed_repositories(self, installation: int) -> list[RepositoryKey]:
        """The repositories of an installation whose memories are in the index, or noted for it."""
        with self._database.transaction() as transaction:
            return _indexed_repositories(transaction, installation)

    def request_reread(self, repositories: Sequence[RepositoryKey]) -> None:
        """Note that the whole memory of each of these must be read again."""
        with self._database.transaction() as transaction:
            insert_and_queue(transaction, [(key, None) for key in repositories], self.now())

    def is_gone(self, repository: RepositoryKey) -> bool:
        """Whether the repository is gone, or no longer known."""
        row = self._row("select state from repositories where key = :key", key=repository.text)
        return row is None or row["state"] == "gone"

    def finish(self, lease: Lease, installation: int, pause: Instant = 0) -> None:
        """End the lease; the key is due again with the next row or purge, and not within ``pause`` milliseconds."""
        sql = (
            "select min(due) as due from (select next_at as due from organisation_changes"
            " where installation = :installation union all select said_at from heartbeats where name = :purge) as dues"
        )
        with self._database.transaction() as transaction:
            if not self._queue.lock(transaction, lease):
                return
            row = transaction.row(sql, installation=installation, purge=f"{PURGE_PREFIX}{installation}")
            due = 0 if row is None or row["due"] is None else max(row["due"], self.now() + pause)
            self._queue.finish(transaction, lease, due, Priority.CATCH_UP)

    def align(self, place: str, scope: RepositoryScope, version: str = "") -> int:
        """Note every repository whose memory is missing from the index, or should no longer be in it.

        ``place`` is the address of the index, and ``version`` the form of documents, "" for the current one. When
        either changes, all memories are read again, and gone repositories are noted too, as the index may still have
        them. Returns how many were noted.
        """
        from bot.organisation.documents import DOCUMENT_VERSION  # not at the top: it loads the analyser

        note = to_json({"place": hashlib.sha256(f"{version or DOCUMENT_VERSION} {place}".encode()).hexdigest()[:16]})
        with self._database.transaction() as transaction:
            heartbeat = transaction.row("select note from heartbeats where name = :name", name=INDEX_HEARTBEAT)
            if is_new := heartbeat is None or heartbeat["note"] != note:
                _clear(transaction)
                transaction.change(
                    "insert into heartbeats (name, said_at, note) values (:name, :now, :note)",
                    name=INDEX_HEARTBEAT,
                    now=self.now(),
                    note=note,
                )
            misplaced = {True: list[RepositoryKey](), False: list[RepositoryKey]()}
            for row in transaction.rows("select * from repositories order by key"):
                key, belongs = RepositoryKey.of(row["key"]), row["state"] != "gone" and scope.includes(row["name"])
                is_read = not (row["unread"] or row["history"])
                is_misplaced = belongs != bool(row["indexed"]) or (is_new and not belongs)
                if key.number and is_misplaced and (is_read or not belongs):
                    misplaced[belongs].append(key)
            for belongs, keys in misplaced.items():
                mark_indexed(transaction, keys, is_indexed=belongs)
            insert_changes(transaction, [(key, None) for keys in misplaced.values() for key in keys], self.now())
            pending = transaction.rows("select distinct installation from organisation_changes")
            queue_installations(transaction, {row["installation"] for row in pending}, self.now())
        return sum(map(len, misplaced.values()))

    def switch_off(self) -> None:
        """Forget all notes and make no more; next time, the index starts empty."""
        with self._database.transaction() as transaction:
            if is_on(transaction):
                _clear(transaction)

    def backlog(self) -> tuple[int, Instant] | None:
        """How many rows wait, and the time of the oldest (0: none); None while the index is switched off."""
        with self._database.transaction() as transaction:
            if not is_on(transaction):
                return None
            row = transaction.row("select count(*) as many, min(changed_at) as oldest from organisation_changes")
        return (int(row["many"]), int(row["oldest"] or 0)) if row else (0, 0)


def _indexed_repositories(transaction: Transaction, installation: int) -> list[RepositoryKey]:
    sql = "select key from repositories where indexed = 1 and key like :some order by key"
    return [RepositoryKey.of(row["key"]) for row in transaction.rows(sql, some=f"{installation}-%")]


def _delete(transaction: Transaction, changes: Iterable[IndexChange]) -> None:
    transaction.change_each(
        "delete from organisation_changes where seq = :seq", [{"seq": each.seq} for each in changes]
    )


def _clear(transaction: Transaction) -> None:
    transaction.change("delete from organisation_changes")
    transaction.change("update repositories set indexed = 0 where indexed = 1")
    transaction.change("delete from heartbeats where name = :name", name=INDEX_HEARTBEAT)


def _parse_change(row: Row) -> IndexChange:
    threads = tuple(json.loads(row["threads"])) if row["threads"] else None
    return IndexChange(row["seq"], RepositoryKey.of(row["repository"]), threads, row["attempts"] + 1)


def _retry_pause(attempts: int) -> int:
    return int(min(MAX_ROW_PAUSE, FIRST_ROW_PAUSE << min(attempts, 10)))
