"""The outbox of the organisation's index: what has to be read again from which memory branch.

A row is written in the transaction that ends a run, and deleted once the index has what it names. It holds numbers
only. The index is switched on while the heartbeat `PLACE` is there, which all processes see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from bot.server.database import Database, Row, Transaction, written
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
    RunReport,
)
from bot.server.queue import WorkQueue, add_work
from bot.server.scope import RepositoryScope

PLACE = "organisation"
"""The heartbeat that says that there is an index, and where."""

NEXT_REPAIR = "organisation-repair:"
"""Prefix of the heartbeats whose time is when a damaged index of an installation may be replaced, at the earliest."""

REPAIR_EVERY, REPAIR_AGAIN = 6 * HOUR, 10 * MINUTE
"""Milliseconds until it may be replaced once more, and until that is tried again if it failed."""

NEXT_PURGE = "organisation-purge:"
"""Prefix of the heartbeats whose time is when the files of an index are written again without what was forgotten."""

PURGE_AFTER = 11 * MINUTE
"""Milliseconds until then: longer than searches may still read files that were replaced."""

LONGEST_PURGE = 6 * HOUR
"""Milliseconds between two of them at most: after one that failed or did not count, twice as many as before it."""

PURGES = 2
"""The second time removes the files that the first one replaced."""

MOST_CHANGED = 500
"""Threads that one row names. More of a repository are in several rows."""

AT_ONCE = 20
"""Rows of one repository that are taken together."""

FIRST_PAUSE, LONGEST_PAUSE = MINUTE // 2, 15 * MINUTE
"""Milliseconds until a row is tried again; each further time twice as many."""

SLACK = MINUTE // 12
"""The clocks of two processes differ by less."""

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
    found = _KEY.fullmatch(key)
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A row: ``threads`` of a repository have to be read again; None for all, or whether it is still there."""

    seq: int
    repository: RepositoryKey
    threads: tuple[int, ...] | None
    attempts: int = 0


def note_run(
    ending: Transaction,
    work: PendingWork,
    row: RepositoryRow,
    report: RunReport,
    last_run: Instant,
    now: Instant,
) -> None:
    """Note what a run changed in memory, in the transaction that ends it; ``row`` is the repository after it.

    A whole memory is noted when its history was just read, when very much changed, when the words of other people are
    to be left out, and when a run since ``last_run`` never ended: it may have pushed.
    """
    key = work.repository
    if not key.number or not _is_on(ending):
        return
    known, changed = (
        ending.row("select indexed, people from repositories where key = :key", key=key.text),
        report.changed,
    )
    is_whole = len(changed) > MOST_CHANGED or not (known and known["indexed"]) or _was_cut_off(ending, work, last_run)
    if known and report.people not in (None, known["people"]):
        is_whole = True
        _note_forgotten(ending, key.installation, now)
        ending.change("update repositories set people = :people where key = :key", people=report.people, key=key.text)
    if is_whole and not (row.is_unread or row.history):
        _put(ending, [(key, None)], now)
        _mark(ending, [key], is_indexed=True)
        return
    if is_whole:  # the run that reads the end of the history will note it
        _mark(ending, [key], is_indexed=False)
    if 0 < len(changed) <= MOST_CHANGED:
        _put(ending, [(key, sorted(changed))], now)


def people_digest(people: Collection[str]) -> str:
    """A fingerprint of logins in any order and case, "" for none."""
    names = " ".join(sorted(login.casefold() for login in people))
    return hashlib.sha256(names.encode()).hexdigest()[:16] if names else ""


def note_gone(losing: Transaction, repository: RepositoryKey, now: Instant) -> None:
    """Note that a repository is gone, in the transaction that marks it so."""
    if repository.number and _is_on(losing):
        _put(losing, [(repository, None)], now)
        _mark(losing, [repository], is_indexed=False)


class OrganisationChanges:
    """The table ``organisation_changes``. Every method raises WorldError when the database is not available."""

    def __init__(self, database: Database, queue: WorkQueue, now: Callable[[], Instant]) -> None:
        self._database = database
        self._queue = queue
        self._now = now

    def take(self, installation: int) -> list[IndexChange]:
        """The oldest due rows of one repository; one that failed before comes alone.

        Each counts as tried, and is due again later, even if this process dies of it.
        """
        now = self._now()
        due = "from organisation_changes where installation = :installation and next_at <= :now"
        with self._database.transaction() as taking:
            first = taking.row(f"select * {due} order by seq limit 1", installation=installation, now=now)
            if first is None:
                return []
            found = [first]
            if not first["attempts"]:
                found = taking.rows(
                    f"select * {due} and repository = :repository and attempts = 0 order by seq limit :most",
                    installation=installation,
                    now=now,
                    repository=first["repository"],
                    most=AT_ONCE,
                )
            taking.change_each(
                "update organisation_changes set attempts = :attempts, next_at = :next_at where seq = :seq",
                [
                    {"seq": row["seq"], "attempts": row["attempts"] + 1, "next_at": now + _pause(row["attempts"])}
                    for row in found
                ],
            )
        return [_change(row) for row in found]

    def done(self, changes: Sequence[IndexChange]) -> None:
        """Delete these rows: the index has what they name."""
        with self._database.transaction() as ending:
            _delete(ending, changes)

    def divide(self, changes: Sequence[IndexChange], threads: Sequence[int]) -> None:
        """Replace rows of one repository by rows that name all its threads, so that each is done in seconds."""
        parts = [threads[start : start + MOST_CHANGED] for start in range(0, len(threads), MOST_CHANGED)]
        with self._database.transaction() as dividing:
            _delete(dividing, changes)
            _insert(dividing, [(changes[0].repository, part) for part in parts], self._now())

    def may_repair(self, installation: int) -> bool:
        """Whether the index of an installation may be replaced now; if so, not again for a while."""
        now = self._now()
        sql = (
            "insert into heartbeats (name, said_at, note) values (:name, :next, '{}') on conflict (name) do update"
            " set said_at = excluded.said_at where heartbeats.said_at <= :now"
        )
        with self._database.transaction() as asking:
            return bool(asking.change(sql, name=f"{NEXT_REPAIR}{installation}", next=now + REPAIR_AGAIN, now=now))

    def repaired(self, installation: int) -> None:
        """Note all memories of an installation, whose index is new and empty, in place of what was noted before."""
        now = self._now()
        with self._database.transaction() as putting:
            putting.change(
                "update heartbeats set said_at = :next where name = :name",
                name=f"{NEXT_REPAIR}{installation}",
                next=now + REPAIR_EVERY,
            )
            sql = "delete from organisation_changes where installation = :installation"
            putting.change(sql, installation=installation)
            _put(putting, [(key, None) for key in _indexed(putting, installation)], now)

    def note_forgotten(self, installation: int) -> None:
        """Note that something leaves the index for good, so that it leaves its files a while later."""
        with self._database.transaction() as noting:
            _note_forgotten(noting, installation, self._now())

    def is_purge_due(self, installation: int) -> bool:
        """Whether files may be written again, or removed, that hold what was forgotten."""
        sql = "select 1 from heartbeats where name = :name and said_at <= :now"
        with self._database.transaction() as asking:
            return asking.row(sql, name=f"{NEXT_PURGE}{installation}", now=self._now()) is not None

    def purged(self, installation: int, *, failed: bool = False) -> None:
        """Note that the files were written again, or not. That counts if the index has everything that was noted."""
        name = f"{NEXT_PURGE}{installation}"
        waits = "select 1 from organisation_changes where installation = :installation limit 1"
        with self._database.transaction() as ending:
            # An update, as it locks the row: what a run notes meanwhile would be overwritten.
            row = ending.row("update heartbeats set note = note where name = :name returning note", name=name)
            note = json.loads(row["note"]) if row else {"left": 0}
            counts = not failed and ending.row(waits, installation=installation) is None
            left = note["left"] - counts
            pause = PURGE_AFTER if counts else min(2 * note.get("pause", PURGE_AFTER), LONGEST_PURGE)
            sql = "update heartbeats set said_at = :then, note = :note where name = :name"
            then, kept = self._now() + pause, written({"left": left, "pause": pause})
            ending.change(sql, name=name, then=then, note=kept)
            if left < 1:
                ending.change("delete from heartbeats where name = :name", name=name)

    def installations(self) -> list[int]:
        """The installations that have memories in the index."""
        with self._database.transaction() as asking:
            rows = asking.rows("select key from repositories where indexed = 1")
        return sorted({_repository(row).installation for row in rows})

    def indexed(self, installation: int) -> list[RepositoryKey]:
        """The repositories of an installation whose memories are in the index, or noted to be brought there."""
        with self._database.transaction() as asking:
            return _indexed(asking, installation)

    def read_again(self, repositories: Sequence[RepositoryKey]) -> None:
        """Note that the whole memory of each of these has to be read."""
        with self._database.transaction() as putting:
            _put(putting, [(key, None) for key in repositories], self._now())

    def is_gone(self, repository: RepositoryKey) -> bool:
        """Whether the repository is gone, or not known any more."""
        with self._database.transaction() as asking:
            row = asking.row("select state from repositories where key = :key", key=repository.text)
        return row is None or row["state"] == "gone"

    def finish(self, lease: Lease, installation: int, pause: Instant = 0) -> None:
        """End the lease: the key is due again when the next row or purge is, and not before ``pause`` milliseconds."""
        sql = (
            "select min(due) as due from (select next_at as due from organisation_changes"
            " where installation = :installation union all select said_at from heartbeats where name = :purge) as dues"
        )
        with self._database.transaction() as ending:
            if not self._queue.lock(ending, lease):
                return
            row = ending.row(sql, installation=installation, purge=f"{NEXT_PURGE}{installation}")
            due = 0 if row is None or row["due"] is None else max(row["due"], self._now() + pause)
            self._queue.finish(ending, lease, due, Priority.CATCH_UP)

    def align(self, place: str, scope: RepositoryScope) -> int:
        """Note every repository whose memory is not in the index and should be, or is and should not be any more.

        ``place`` is where the index is: when that changes, or what documents are made of, all are read again, and
        those that are gone are noted too, as the index may have them from earlier. Returns how many were noted.
        """
        from bot.organisation.documents import MADE  # not where the queue is only listed: it loads the analyser

        note = written({"place": hashlib.sha256(f"{MADE} {place}".encode()).hexdigest()[:16]})
        with self._database.transaction() as aligning:
            known = aligning.row("select note from heartbeats where name = :name", name=PLACE)
            if is_new := known is None or known["note"] != note:
                _forget(aligning)
                aligning.change(
                    "insert into heartbeats (name, said_at, note) values (:name, :now, :note)",
                    name=PLACE,
                    now=self._now(),
                    note=note,
                )
            wrong = {True: list[RepositoryKey](), False: list[RepositoryKey]()}
            for row in aligning.rows("select * from repositories order by key"):
                key, belongs = _repository(row), row["state"] != "gone" and scope.includes(row["name"])
                is_read = not (row["unread"] or row["history"])
                is_wrong = belongs != bool(row["indexed"]) or (is_new and not belongs)
                if key.number and is_wrong and (is_read or not belongs):
                    wrong[belongs].append(key)
            for belongs, keys in wrong.items():
                _mark(aligning, keys, is_indexed=belongs)
            _insert(aligning, [(key, None) for keys in wrong.values() for key in keys], self._now())
            waiting = aligning.rows("select distinct installation from organisation_changes")
            _call(aligning, {row["installation"] for row in waiting}, self._now())
        return sum(map(len, wrong.values()))

    def switch_off(self) -> None:
        """Forget what was noted: from now on nothing is, and the index begins from nothing next time."""
        with self._database.transaction() as ending:
            if _is_on(ending):
                _forget(ending)

    def waiting(self) -> tuple[int, Instant] | None:
        """How many rows wait, and since when the oldest does (0: none); None while the index is switched off."""
        with self._database.transaction() as asking:
            if not _is_on(asking):
                return None
            row = asking.row("select count(*) as many, min(changed_at) as oldest from organisation_changes")
        return (int(row["many"]), int(row["oldest"] or 0)) if row else (0, 0)


def _note_forgotten(noting: Transaction, installation: int, now: Instant) -> None:
    sql = (
        "insert into heartbeats (name, said_at, note) values (:name, :due, :note)"
        " on conflict (name) do update set note = excluded.note, said_at = case"
        " when heartbeats.said_at < excluded.said_at then heartbeats.said_at else excluded.said_at end"
    )
    noting.change(sql, name=f"{NEXT_PURGE}{installation}", due=now + PURGE_AFTER, note=written({"left": PURGES}))


def _indexed(asking: Transaction, installation: int) -> list[RepositoryKey]:
    sql = "select key from repositories where indexed = 1 and key like :some order by key"
    return [_repository(row) for row in asking.rows(sql, some=f"{installation}-%")]


def _is_on(asking: Transaction) -> bool:
    return asking.row("select 1 from heartbeats where name = :name", name=PLACE) is not None


def _was_cut_off(asking: Transaction, work: PendingWork, last_run: Instant) -> bool:
    sql = "select 1 from runs where repository = :repository and began >= :since and ended = 0 and id <> :id limit 1"
    since = max(last_run - SLACK, work.began_at - 30 * DAY)
    return asking.row(sql, repository=work.repository.text, since=since, id=work.id) is not None


def _put(putting: Transaction, changes: Sequence[tuple[RepositoryKey, Sequence[int] | None]], now: Instant) -> None:
    _insert(putting, changes, now)
    _call(putting, {key.installation for key, _ in changes}, now)


def _insert(
    inserting: Transaction, changes: Iterable[tuple[RepositoryKey, Sequence[int] | None]], now: Instant
) -> None:
    inserting.change_each(
        _INSERT,
        [
            {
                "installation": key.installation,
                "repository": key.text,
                "threads": "" if threads is None else written(threads),
                "changed_at": now,
            }
            for key, threads in changes
        ],
    )


def _call(calling: Transaction, installations: Iterable[int], now: Instant) -> None:
    add_work(calling, [(queue_key(each), Priority.CATCH_UP, now) for each in installations], now)


def _mark(marking: Transaction, repositories: Sequence[RepositoryKey], *, is_indexed: bool) -> None:
    marking.change_each(
        "update repositories set indexed = :indexed where key = :key",
        [{"key": each.text, "indexed": int(is_indexed)} for each in repositories],
    )


def _delete(deleting: Transaction, changes: Iterable[IndexChange]) -> None:
    deleting.change_each("delete from organisation_changes where seq = :seq", [{"seq": each.seq} for each in changes])


def _forget(forgetting: Transaction) -> None:
    forgetting.change("delete from organisation_changes")
    forgetting.change("update repositories set indexed = 0 where indexed = 1")
    forgetting.change("delete from heartbeats where name = :name", name=PLACE)


def _change(row: Row) -> IndexChange:
    threads = tuple(json.loads(row["threads"])) if row["threads"] else None
    return IndexChange(row["seq"], _repository({"key": row["repository"]}), threads, row["attempts"] + 1)


def _repository(row: Row) -> RepositoryKey:
    return RepositoryKey.of(row["key"])


def _pause(attempts: int) -> int:
    return int(min(LONGEST_PAUSE, FIRST_PAUSE << min(attempts, 10)))
