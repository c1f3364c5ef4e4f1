"""Notes what an organisation's index has to read again, in the transaction that changes it.

A row is written in the transaction that ends a run, and deleted once the index has its threads. It holds numbers only.
The index is switched on while the heartbeat `INDEX_HEARTBEAT` exists, which all processes see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

from bot.server.model import DAY, MINUTE, Instant, PendingWork, Priority, RepositoryKey, RepositoryRow, RunReport
from bot.server.storage.database import Transaction, to_json
from bot.server.storage.queue import add_work

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

_INSERT = (
    "insert into organisation_changes (installation, repository, threads, changed_at)"
    " values (:installation, :repository, :threads, :changed_at)"
)


def queue_key(installation: int) -> str:
    """The key of the queue under which the changes of an installation are worked on."""
    return f"organisation-{installation}"


def note_run(
    transaction: Transaction,
    work: PendingWork,
    row: RepositoryRow,
    report: RunReport,
    last_run: Instant,
    now: Instant,
) -> None:
    """Note what a run changed in memory, in the transaction that ends it; ``row`` is the repository after it.

    The whole memory is noted when its history was just read, when too many threads changed, when ``ignore.people``
    changed, and when a run since ``last_run`` never ended: it may have pushed.
    """
    key = work.repository
    if not key.number or not is_on(transaction):
        return
    stored, changed = (
        transaction.row("select indexed, people from repositories where key = :key", key=key.text),
        report.changed,
    )
    is_whole = (
        len(changed) > MAX_ROW_THREADS
        or not (stored and stored["indexed"])
        or _has_unfinished_run(transaction, work, last_run)
    )
    if stored and report.people not in (None, stored["people"]):
        is_whole = True
        note_forgotten(transaction, key.installation, now)
        transaction.change(
            "update repositories set people = :people where key = :key", people=report.people, key=key.text
        )
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
