"""Stores who may read which repository, together with which comments show threads of other repositories.

A change of the former and the deliveries that renew the affected comments share one transaction. So nothing that
became private stays in a comment because a process died in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Literal

from bot.domain.organisation import Visibility
from bot.domain.post import OrganisationKey
from bot.domain.thread import ThreadId
from bot.github.events import ORGANISATION_EVENT, Event
from bot.organisation.scope import OrganisationRepository, Share
from bot.server.model import Arrival, Priority, RepositoryKey
from bot.server.storage.database import DatabasePart, Row, Transaction, Value
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import Installations, parse_repository

INTERNAL_APP_ID = "0"
"""Stands for the App in the ids of these deliveries: no App of GitHub's has this number."""

_FIND = "select * from repositories where key = :key"
_SELECT_SHOWN = (
    "select s.repository, s.thread from organisation_shown s join repositories r on r.key = s.repository"
    " where r.state <> 'gone' and "
)
_SHOWN_OF_REPOSITORY = (
    _SELECT_SHOWN + "(s.repository = :key or (s.repository like :installation and s.other_repository = :number))"
)
_SHOWN_OF_THREADS = (
    _SELECT_SHOWN + "s.repository like :installation and s.other_repository = :number and s.other_thread in :threads"
)
_SHOWN_OF_INSTALLATION = _SELECT_SHOWN + "s.repository like :installation"
_SELECT_STORED = (
    "select repository, thread, other_repository as other, other_thread as name from organisation_shown"
    " where repository = :repository and thread = :thread"
)
_DELETE_SHOWN = (
    "delete from organisation_shown"
    " where repository like :installation and other_repository = :number and other_thread = :thread"
)

BATCH_SIZE = 500
"""Most threads in one statement."""


class OrganisationRegister(DatabasePart):
    """The part of the database that decides what may be shown where. Every method raises WorldError without it.

    GitHub is asked before a change is stored, not believed by its events, which may be late and in any order.
    """

    def __init__(self, inbox: Inbox, batch_size: int = BATCH_SIZE) -> None:
        super().__init__(inbox.database, inbox.now)
        self._inbox = inbox
        self._batch_size = batch_size

    def store_installation(
        self, installation: int, account: str, state: Literal["active", "suspended", "gone"]
    ) -> None:
        """Store the state of an installation. One that comes back has every comment checked: while it was away,
        no events came, and waiting deliveries were dropped."""
        with self._database.transaction() as transaction:
            installations = Installations(transaction, self.now)
            before = installations.state(installation)
            installations.store_installation(installation, account, state)
            if state == "active" and before != "active":
                self._requeue_comments(
                    transaction, transaction.rows(_SHOWN_OF_INSTALLATION, installation=f"{installation}-%")
                )

    def store_repository(
        self, repository: RepositoryKey, name: str, *, private: bool, visibility: Visibility | None
    ) -> None:
        """Store what GitHub just said about a repository. Without a visibility its answer may be out of date: then it
        only counts for a repository that is not known, or that was gone. Otherwise two answers would undo each other
        and have the same comments checked again and again."""
        if visibility is None and self._is_known(repository):
            return
        self._bind_name(repository, name)
        with self._database.transaction() as transaction:
            row = _find_row(transaction, repository)
            before = parse_repository(row) if row else None
            is_back = row is not None and row["state"] == "gone"
            is_other = before is not None and visibility not in (None, before.visibility)
            is_renamed = before is not None and before.name != name  # repositories agree to share by name
            if before and (before.name, before.private) == (name, private) and not is_back and not is_other:
                return
            self._lock_keys(transaction, repository)
            Installations(transaction, self.now).store_repository(
                repository, name, private=private, visibility=visibility
            )
            if is_back or is_other or is_renamed:
                self._requeue_comments(transaction, _related_comments(transaction, repository))

    def _is_known(self, repository: RepositoryKey) -> bool:
        row = self._row(_FIND, key=repository.text)
        return row is not None and bool(row["name"]) and row["state"] != "gone"

    def note_unarchived(self, repository: RepositoryKey) -> None:
        """Have the comments in a repository checked: while it was archived, none could be changed."""
        with self._database.transaction() as transaction:
            self._requeue_comments(transaction, _related_comments(transaction, repository))

    def mark_gone(self, repository: RepositoryKey, why: str) -> int:
        """Mark a repository as gone and drop its waiting deliveries; returns their number."""
        with self._database.transaction() as transaction:
            self._lock_keys(transaction, repository)
            row = _find_row(transaction, repository)
            dropped = Installations(transaction, self.now).mark_gone(repository, why)
            if row and row["state"] != "gone":
                self._requeue_comments(transaction, _related_comments(transaction, repository))
        return dropped

    def note_excluded(self, repositories: Iterable[RepositoryKey]) -> None:
        """Renew the comments that show one of these repositories, on which the server no longer works."""
        with self._database.transaction() as transaction:
            rows = transaction.rows("select distinct other_repository as number from organisation_shown")
            shown = {row["number"] for row in rows}
            left_out = [each for each in repositories if each.number in shown]
            self._requeue_comments(
                transaction, [row for each in left_out for row in _related_comments(transaction, each)]
            )

    def store_settings(
        self, repository: RepositoryKey, shares: Collection[str] | None, people: Collection[str] = ()
    ) -> None:
        """Store the patterns in the settings of a repository, and the people whom it ignores.

        None if its settings cannot be read: it shares nothing then, but names keep their meaning until they are gone
        from settings that can be read.
        """
        with self._database.transaction() as transaction:
            row = _find_row(transaction, repository)
            if row is None:
                return
            before = parse_repository(row)
            after = replace(before, is_sharing=False)
            if shares is not None:
                known = {share.pattern: share for share in before.shares}
                bound = [known.get(each) or _bind(transaction, repository, Share(each)) for each in shares]
                after = replace(before, shares=tuple(bound), people=tuple(people), is_sharing=True)
            if after != before:
                self._lock_keys(transaction, repository)
                Installations(transaction, self.now).store_settings(
                    repository, after.shares, after.people, sharing=after.is_sharing
                )
                if (before.agreed, before.people) != (after.agreed, after.people):
                    self._requeue_comments(transaction, _related_comments(transaction, repository))

    def _bind_name(self, repository: RepositoryKey, name: str) -> None:
        """Give this name, in the settings that wait for its first repository, the meaning of this one, unless another
        one had it: whoever takes a name that became free takes over nothing."""
        sql = "select * from repositories where key like :installation and shares like :unbound order by key"
        with self._database.transaction() as transaction:  # of its own, as it locks other rows than the queue's
            waiting = transaction.rows(sql, installation=f"{repository.installation}-%", unbound="%,0]%")
            is_free = bool(waiting) and _holders(transaction, repository, name, ever=True) <= {repository.number}
            for before in map(parse_repository, waiting if is_free else ()):
                bound = tuple(share.bound_to(repository.number, name) for share in before.shares)
                if bound != before.shares:
                    Installations(transaction, self.now).store_settings(
                        before.repository, bound, before.people, sharing=before.is_sharing
                    )

    def note_changed(
        self, repository: RepositoryKey, threads: Iterable[ThreadId], gone: Collection[ThreadId] = ()
    ) -> None:
        """Renew the comments of other repositories that show one of these threads.

        No comment may show those that are ``gone`` from its memory, even if GitHub still has them: somebody asked to
        forget them.
        """
        names, dropped = (sorted({str(thread) for thread in some}) for some in (threads, gone))
        with self._database.transaction() as transaction:
            rows = list[Row]()
            for start in range(0, len(names), self._batch_size):
                rows += transaction.rows(
                    _SHOWN_OF_THREADS, **_parameters_of(repository), threads=names[start : start + self._batch_size]
                )
            self._requeue_comments(transaction, rows, Priority.CHANGE)
            transaction.change_each(_DELETE_SHOWN, [{**_parameters_of(repository), "thread": name} for name in dropped])

    def add_shown(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment may show these. It comes before their check, or changes meanwhile would be missed."""
        sql = (
            "insert into organisation_shown (repository, thread, other_repository, other_thread)"
            " values (:repository, :thread, :other, :name) on conflict do nothing"
        )
        with self._database.transaction() as transaction:
            transaction.change_each(sql, [_shown_row(repository, number, key) for key in sorted(keys, key=str)])

    def filter_shown(
        self, repository: RepositoryKey, number: int, keys: Iterable[OrganisationKey]
    ) -> list[OrganisationKey]:
        """Return those keys that the comment is known to show, without those gone since."""
        stored = self._rows(_SELECT_STORED, repository=repository.text, thread=str(number))
        return [key for key in keys if _shown_row(repository, number, key) in stored]

    def retain_shown(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment shows only these."""
        sql = (
            "delete from organisation_shown where repository = :repository and thread = :thread"
            " and other_repository = :other and other_thread = :name"
        )
        kept = [_shown_row(repository, number, key) for key in keys]
        with self._database.transaction() as transaction:
            stored = transaction.rows(_SELECT_STORED, repository=repository.text, thread=str(number))
            transaction.change_each(sql, [row for row in stored if row not in kept])

    def repositories(self, installation: int) -> list[OrganisationRepository]:
        """The known repositories of an installation, except those that are gone."""
        sql = "select * from repositories where key like :installation and state <> 'gone' order by key"
        found = [_organisation_repository(row) for row in self._rows(sql, installation=f"{installation}-%")]
        return [each for each in found if each.id]

    def repository(self, repository: RepositoryKey) -> OrganisationRepository | None:
        """One repository as it is known; None if it is gone."""
        row = self._row(_FIND, key=repository.text)
        return _organisation_repository(row) if row and row["state"] != "gone" else None

    def _lock_keys(self, transaction: Transaction, repository: RepositoryKey) -> None:
        """Lock its key and those of comments that may have to be renewed, before anything is written."""
        self._inbox.queue.lock_keys(
            transaction, {repository.text, *(row["repository"] for row in _related_comments(transaction, repository))}
        )

    def _requeue_comments(
        self, transaction: Transaction, rows: Iterable[Row], priority: Priority = Priority.URGENT
    ) -> None:
        """Queue a delivery for each of these comments: once in a transaction, as it sorts the keys that it locks.

        A delivery that already waits is not enough: a run may have begun it and read the old state.
        """
        now, cause = self.now(), uuid.uuid4().hex[:12]
        arrivals: dict[str, Arrival] = {}
        for key, thread in sorted({(row["repository"], row["thread"]) for row in rows}):
            name = f"{INTERNAL_APP_ID}:{ORGANISATION_EVENT}-{key}-{thread}-{cause}"
            event = Event(ORGANISATION_EVENT, number=int(thread))
            arrivals[name] = Arrival(name, RepositoryKey.of(key), event, received_at=now, priority=priority)
        for start in range(0, len(arrivals), self._batch_size):
            self._inbox.put_within(transaction, dict(list(arrivals.items())[start : start + self._batch_size]))


def _shown_row(repository: RepositoryKey, number: int, key: OrganisationKey) -> dict[str, Value]:
    return {"repository": repository.text, "thread": str(number), "other": key.repository, "name": str(key.thread)}


def _organisation_repository(row: Row) -> OrganisationRepository:
    status = parse_repository(row)
    key = status.repository
    return OrganisationRepository(
        key.number, status.name, key.installation, status.visibility, status.agreed, people=status.people
    )


def _bind(transaction: Transaction, repository: RepositoryKey, share: Share) -> Share:
    """The share with the repository that has this name now, as far as is known."""
    holders = _holders(transaction, repository, share.pattern)
    return share.bound_to(holders.pop(), share.pattern) if len(holders) == 1 else share


def _holders(transaction: Transaction, repository: RepositoryKey, name: str, *, ever: bool = False) -> set[int]:
    """The repositories of the same installation that are known under this name: several if some news is missing.
    ``ever``: and those that had it, or are gone."""
    sql = "select key from repositories where key like :installation and (lower(name) = :name and state <> 'gone'"
    sql += " or :ever = 1 and (lower(name) = :name or former_names like '% ' || :name || ' %'))"
    rows = transaction.rows(sql, installation=f"{repository.installation}-%", name=name.lower(), ever=int(ever))
    return {RepositoryKey.of(row["key"]).number for row in rows}


def _find_row(transaction: Transaction, repository: RepositoryKey) -> Row | None:
    return transaction.row(_FIND, key=repository.text)


def _related_comments(transaction: Transaction, repository: RepositoryKey) -> list[Row]:
    """The comments in a repository that show others, and those of others that show it."""
    return transaction.rows(_SHOWN_OF_REPOSITORY, key=repository.text, **_parameters_of(repository))


def _parameters_of(repository: RepositoryKey) -> dict[str, str | int]:
    return {"installation": f"{repository.installation}-%", "number": repository.number}
