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
from bot.server.model import Delivery, Priority, RepositoryKey, RepositoryRow
from bot.server.storage.database import DatabasePart, Row, Value, to_json
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import parse_repository

INTERNAL_APP_ID = "0"
"""Stands for the App in the ids of these deliveries: no App of GitHub's has this number."""

_STORE_REPOSITORY = """
insert into repositories (key, name, visibility) values (:key, :name, :first)
 on conflict (key) do update set name = excluded.name, state = 'active',
 former_names = case when lower(repositories.name) in ('', lower(excluded.name))
  or repositories.former_names like '% ' || lower(repositories.name) || ' %' then repositories.former_names
  else repositories.former_names || ' ' || lower(repositories.name) || ' ' end,
 visibility = case when :known = '' then repositories.visibility else :known end
"""
"""Former names are in lower case, each between spaces."""

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
        with self.database.transaction():
            before = self._inbox.installations.state(installation)
            self.database.change(
                "insert into installations (id, account, state, changed) values (:id, :account, :state, :now)"
                " on conflict (id) do update set state = excluded.state, changed = excluded.changed,"
                " account = case when excluded.account = '' then installations.account else excluded.account end",
                id=installation,
                account=account,
                state=state,
                now=self.now(),
            )
            if state == "active" and before != "active":
                self._requeue_comments(self.database.rows(_SHOWN_OF_INSTALLATION, installation=f"{installation}-%"))

    def store_repository(self, repository: RepositoryKey, name: str, visibility: Visibility | None) -> None:
        """Store what GitHub just said about a repository; a gone one becomes active again.

        Without a visibility its answer may be out of date: then it only counts for a repository that is not known, or
        that was gone. Otherwise two answers would undo each other and have the same comments checked again and again.
        """
        before = self._find(repository)
        if visibility is None and before and before.name and not before.is_gone:
            return
        self._bind_name(repository, name)
        with self.database.transaction():
            before = self._find(repository)
            is_same = before and before.name == name and visibility in (None, before.visibility)
            if before and is_same and not before.is_gone:
                return
            self._lock_keys(repository)
            self.database.change(
                _STORE_REPOSITORY,
                key=repository.text,
                name=name,
                first=(visibility or Visibility.PRIVATE).value,
                known=visibility.value if visibility else "",
            )
            if before:  # even if only its name is new: repositories agree to share by name
                self._requeue_comments(self._related_comments(repository))

    def note_unarchived(self, repository: RepositoryKey) -> None:
        """Have the comments in a repository checked: while it was archived, none could be changed."""
        with self.database.transaction():
            self._requeue_comments(self._related_comments(repository))

    def mark_gone(self, repository: RepositoryKey, why: str) -> int:
        """Mark a repository as gone and drop its waiting deliveries; returns their number."""
        with self.database.transaction():
            self._lock_keys(repository)
            before = self._find(repository)
            self.database.change(
                "insert into repositories (key, state, changed) values (:key, 'gone', :now)"
                " on conflict (key) do update set state = 'gone', changed = excluded.changed",
                key=repository.text,
                now=self.now(),
            )
            self._inbox.changes.note_gone(repository)
            dropped = self._inbox.installations.drop_waiting(repository, why)
            if before and not before.is_gone:
                self._requeue_comments(self._related_comments(repository))
        return dropped

    def note_excluded(self, repositories: Iterable[RepositoryKey]) -> None:
        """Renew the comments that show one of these repositories, on which the server no longer works."""
        with self.database.transaction():
            rows = self.database.rows("select distinct other_repository as number from organisation_shown")
            shown = {row["number"] for row in rows}
            left_out = [each for each in repositories if each.number in shown]
            self._requeue_comments([row for each in left_out for row in self._related_comments(each)])

    def store_settings(
        self, repository: RepositoryKey, shares: Collection[str] | None, people: Collection[str] = ()
    ) -> None:
        """Store the patterns in the settings of a repository, and the people whom it ignores.

        None if its settings cannot be read: it shares nothing then, but names keep their meaning until they are gone
        from settings that can be read.
        """
        with self.database.transaction():
            before = self._find(repository)
            if before is None:
                return
            after = replace(before, is_sharing=False)
            if shares is not None:
                known = {share.pattern: share for share in before.shares}
                bound = [known.get(each) or self._bind(repository, Share(each)) for each in shares]
                after = replace(before, shares=tuple(bound), people=tuple(people), is_sharing=True)
            if after != before:
                self._lock_keys(repository)
                self._write_settings(after)
                if _folded(before.people) != _folded(after.people):
                    self._inbox.changes.note_ignored_people(repository)
                if (before.agreed, before.people) != (after.agreed, after.people):
                    self._requeue_comments(self._related_comments(repository))

    def _write_settings(self, row: RepositoryRow) -> None:
        sql = "update repositories set shares = :shares, people = :people, sharing = :sharing where key = :key"
        shares = to_json([(share.pattern, share.repository) for share in row.shares])
        sharing, key = int(row.is_sharing), row.repository.text
        self.database.change(sql, shares=shares, people=to_json(row.people), sharing=sharing, key=key)

    def _bind_name(self, repository: RepositoryKey, name: str) -> None:
        """Give this name, in the settings that wait for its first repository, the meaning of this one, unless another
        one had it: whoever takes a name that became free takes over nothing."""
        sql = "select * from repositories where key like :installation and shares like :unbound order by key"
        with self.database.transaction():  # of its own, as it locks other rows than the queue's
            waiting = self.database.rows(sql, installation=f"{repository.installation}-%", unbound="%,0]%")
            is_free = bool(waiting) and self._holders(repository, name, ever=True) <= {repository.number}
            for before in map(parse_repository, waiting if is_free else ()):
                bound = tuple(share.bound_to(repository.number, name) for share in before.shares)
                if bound != before.shares:
                    self._write_settings(replace(before, shares=bound))

    def _bind(self, repository: RepositoryKey, share: Share) -> Share:
        """The share with the repository that has this name now, as far as is known."""
        holders = self._holders(repository, share.pattern)
        return share.bound_to(holders.pop(), share.pattern) if len(holders) == 1 else share

    def _holders(self, repository: RepositoryKey, name: str, *, ever: bool = False) -> set[int]:
        """The repositories of the same installation that are known under this name: several if some news is missing.
        ``ever``: and those that had it, or are gone."""
        sql = "select key from repositories where key like :installation and (lower(name) = :name and state <> 'gone'"
        sql += " or :ever = 1 and (lower(name) = :name or former_names like '% ' || :name || ' %'))"
        rows = self.database.rows(sql, installation=f"{repository.installation}-%", name=name.lower(), ever=int(ever))
        return {RepositoryKey.of(row["key"]).number for row in rows}

    def note_changed(
        self, repository: RepositoryKey, threads: Iterable[ThreadId], gone: Collection[ThreadId] = ()
    ) -> None:
        """Renew the comments of other repositories that show one of these threads.

        No comment may show those that are ``gone`` from its memory, even if GitHub still has them: somebody asked to
        forget them.
        """
        names, dropped = (sorted({str(thread) for thread in some}) for some in (threads, gone))
        with self.database.transaction():
            rows = list[Row]()
            for start in range(0, len(names), self._batch_size):
                rows += self.database.rows(
                    _SHOWN_OF_THREADS, **_parameters_of(repository), threads=names[start : start + self._batch_size]
                )
            self._requeue_comments(rows, Priority.CHANGE)
            self.database.change_each(
                _DELETE_SHOWN, [{**_parameters_of(repository), "thread": name} for name in dropped]
            )

    def add_shown(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment may show these. It comes before their check, or changes meanwhile would be missed."""
        sql = (
            "insert into organisation_shown (repository, thread, other_repository, other_thread)"
            " values (:repository, :thread, :other, :name) on conflict do nothing"
        )
        with self.database.transaction():
            self.database.change_each(sql, [_shown_row(repository, number, key) for key in sorted(keys, key=str)])

    def filter_shown(
        self, repository: RepositoryKey, number: int, keys: Iterable[OrganisationKey]
    ) -> list[OrganisationKey]:
        """Return those keys that the comment is known to show, without those gone since."""
        stored = self.database.rows(_SELECT_STORED, repository=repository.text, thread=str(number))
        return [key for key in keys if _shown_row(repository, number, key) in stored]

    def retain_shown(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment shows only these."""
        sql = (
            "delete from organisation_shown where repository = :repository and thread = :thread"
            " and other_repository = :other and other_thread = :name"
        )
        kept = [_shown_row(repository, number, key) for key in keys]
        with self.database.transaction():
            stored = self.database.rows(_SELECT_STORED, repository=repository.text, thread=str(number))
            self.database.change_each(sql, [row for row in stored if row not in kept])

    def repositories(self, installation: int) -> list[OrganisationRepository]:
        """The known repositories of an installation, except those that are gone."""
        rows = self._inbox.installations.repositories()
        return [_organisation_repository(row) for row in rows if row.repository.installation == installation]

    def repository(self, repository: RepositoryKey) -> OrganisationRepository | None:
        """One repository as it is known; None if it is gone."""
        row = self._find(repository)
        return _organisation_repository(row) if row and not row.is_gone else None

    def _find(self, repository: RepositoryKey) -> RepositoryRow | None:
        return self._inbox.installations.find(repository)

    def _related_comments(self, repository: RepositoryKey) -> list[Row]:
        """The comments in a repository that show others, and those of others that show it."""
        return self.database.rows(_SHOWN_OF_REPOSITORY, key=repository.text, **_parameters_of(repository))

    def _lock_keys(self, repository: RepositoryKey) -> None:
        """Lock its key and those of comments that may have to be renewed, before anything is written."""
        related = self._related_comments(repository)
        self._inbox.queue.lock_keys({repository.text, *(row["repository"] for row in related)})

    def _requeue_comments(self, rows: Iterable[Row], priority: Priority = Priority.URGENT) -> None:
        """Queue a delivery for each of these comments: once in a transaction, as it sorts the keys that it locks.

        A delivery that already waits is not enough: a run may have begun it and read the old state.
        """
        now, cause = self.now(), uuid.uuid4().hex[:12]
        arrivals: list[Delivery] = []
        for key, thread in sorted({(row["repository"], row["thread"]) for row in rows}):
            name = f"{INTERNAL_APP_ID}:{ORGANISATION_EVENT}-{key}-{thread}-{cause}"
            event = Event(ORGANISATION_EVENT, number=int(thread))
            arrivals.append(Delivery(name, RepositoryKey.of(key), event, received_at=now, priority=priority))
        for start in range(0, len(arrivals), self._batch_size):
            self._inbox.put(arrivals[start : start + self._batch_size])


def _shown_row(repository: RepositoryKey, number: int, key: OrganisationKey) -> dict[str, Value]:
    return {"repository": repository.text, "thread": str(number), "other": key.repository, "name": str(key.thread)}


def _organisation_repository(row: RepositoryRow) -> OrganisationRepository:
    key = row.repository
    return OrganisationRepository(key.number, row.name, key.installation, row.visibility, row.agreed, row.people)


def _folded(logins: Iterable[str]) -> frozenset[str]:
    return frozenset(login.casefold() for login in logins)


def _parameters_of(repository: RepositoryKey) -> dict[str, str | int]:
    return {"installation": f"{repository.installation}-%", "number": repository.number}
