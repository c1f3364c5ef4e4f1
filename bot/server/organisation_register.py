"""Who may read which repository, and which comments show threads of other repositories: kept together.

Whatever changes the first goes into the transaction that puts the comments concerned into the queue, to be worked out
again. So nothing that became private stays in a comment because a process died in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Literal

from bot.domain.answer import OrganisationKey
from bot.domain.organisation import Visibility
from bot.domain.thread import ThreadId
from bot.github.events import ORGANISATION, Event
from bot.organisation.scope import OrganisationRepository
from bot.server.database import Row, Transaction, Value
from bot.server.inbox import Inbox
from bot.server.installations import repository_row, within
from bot.server.model import Arrival, Priority, RepositoryKey

OURS = "0"
"""Stands for the App in the ids of these deliveries: no App of GitHub's has this number."""

_SHOWN = (
    "select s.repository, s.thread from organisation_shown s join repositories r on r.key = s.repository"
    " where r.state <> 'gone' and "
)
_ABOUT = _SHOWN + "(s.repository = :key or (s.repository like :installation and s.other_repository = :number))"
_OF_THREADS = _SHOWN + "s.repository like :installation and s.other_repository = :number and s.other_thread in :threads"
_OF_INSTALLATION = _SHOWN + "s.repository like :installation"
_STORED = (
    "select repository, thread, other_repository as other, other_thread as name from organisation_shown"
    " where repository = :repository and thread = :thread"
)
_DROP = (
    "delete from organisation_shown"
    " where repository like :installation and other_repository = :number and other_thread = :thread"
)

MANY = 500
"""Threads in one statement."""


class OrganisationRegister:
    """The part of the database that decides what may be shown where. Every method raises WorldError without it.

    GitHub is asked before a change is stored, not believed by its events, which may be late and in any order.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def installed(self, installation: int, account: str, state: Literal["active", "suspended", "gone"]) -> None:
        """Store the state of an installation. One that comes back has every comment checked: while it was away,
        nothing was heard, and what waited was dropped."""
        with self._inbox.database.transaction() as storing:
            known = within(storing, self._inbox.now)
            before = known.state(installation)
            known.installed(installation, account, state)
            if state == "active" and before != "active":
                self._renew(storing, storing.rows(_OF_INSTALLATION, installation=f"{installation}-%"))

    def saw(self, repository: RepositoryKey, name: str, *, private: bool, visibility: Visibility | None) -> None:
        """Store what GitHub just said of a repository; None for a visibility that may be out of date."""
        with self._inbox.database.transaction() as storing:
            row = _row(storing, repository)
            before = repository_row(row) if row else None
            is_back = row is not None and row["state"] == "gone"
            is_other = before is not None and visibility not in (None, before.visibility)
            # Private ones agree to share by their names.
            is_renamed = before is not None and before.name != name and before.visibility is Visibility.PRIVATE
            if before and (before.name, before.private) == (name, private) and not is_back and not is_other:
                return
            self._hold(storing, repository)
            within(storing, self._inbox.now).seen(repository, name, private=private, visibility=visibility)
            if is_back or is_other or is_renamed:
                self._renew(storing, _about(storing, repository))

    def unarchived(self, repository: RepositoryKey) -> None:
        """Have the comments in a repository checked: while it was archived, none could be changed."""
        with self._inbox.database.transaction() as storing:
            self._renew(storing, _about(storing, repository))

    def lost(self, repository: RepositoryKey, why: str) -> int:
        """Mark a repository as gone and drop its waiting deliveries; returns their number."""
        with self._inbox.database.transaction() as losing:
            self._hold(losing, repository)
            row = _row(losing, repository)
            dropped = within(losing, self._inbox.now).gone(repository, why)
            if row and row["state"] != "gone":
                self._renew(losing, _about(losing, repository))
        return dropped

    def left_out(self, repositories: Iterable[RepositoryKey]) -> None:
        """Have the comments worked out again that show one of these, on which the server does not work any more."""
        with self._inbox.database.transaction() as storing:
            found = storing.rows("select distinct other_repository as number from organisation_shown")
            shown = {row["number"] for row in found}
            left_out = [each for each in repositories if each.number in shown]
            self._renew(storing, [row for each in left_out for row in _about(storing, each)])

    def share(self, repository: RepositoryKey, shares: Collection[str]) -> None:
        """Store the patterns in the settings of a repository."""
        with self._inbox.database.transaction() as storing:
            row, patterns = _row(storing, repository), tuple(shares)
            if row and repository_row(row).shares != patterns:
                self._hold(storing, repository)
                within(storing, self._inbox.now).share(repository, patterns)
                self._renew(storing, _about(storing, repository))

    def changed(self, repository: RepositoryKey, threads: Iterable[ThreadId], gone: Collection[ThreadId] = ()) -> None:
        """Have the comments of other repositories worked out again that show one of these threads.

        Those that are ``gone`` from its memory may stay in none, also where GitHub still has them: somebody asked to
        forget them.
        """
        names, dropped = (sorted({str(thread) for thread in some}) for some in (threads, gone))
        with self._inbox.database.transaction() as storing:
            rows = list[Row]()
            for start in range(0, len(names), MANY):
                rows += storing.rows(_OF_THREADS, **_theirs(repository), threads=names[start : start + MANY])
            self._renew(storing, rows, Priority.CHANGE)
            storing.change_each(_DROP, [{**_theirs(repository), "thread": name} for name in dropped])

    def show(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment may show these: before they are checked, or what changes meanwhile would be missed."""
        sql = (
            "insert into organisation_shown (repository, thread, other_repository, other_thread)"
            " values (:repository, :thread, :other, :name) on conflict do nothing"
        )
        with self._inbox.database.transaction() as storing:
            storing.change_each(sql, [_shown(repository, number, key) for key in sorted(keys, key=str)])

    def remembered(
        self, repository: RepositoryKey, number: int, keys: Iterable[OrganisationKey]
    ) -> list[OrganisationKey]:
        """Those of these keys that the comment is known to show, without those that are gone since."""
        with self._inbox.database.transaction() as asking:
            found = asking.rows(_STORED, repository=repository.text, thread=str(number))
        return [key for key in keys if _shown(repository, number, key) in found]

    def show_only(self, repository: RepositoryKey, number: int, keys: Collection[OrganisationKey]) -> None:
        """Store that a comment shows none but these."""
        sql = (
            "delete from organisation_shown where repository = :repository and thread = :thread"
            " and other_repository = :other and other_thread = :name"
        )
        kept = [_shown(repository, number, key) for key in keys]
        with self._inbox.database.transaction() as storing:
            found = storing.rows(_STORED, repository=repository.text, thread=str(number))
            storing.change_each(sql, [row for row in found if row not in kept])

    def repositories(self, installation: int) -> list[OrganisationRepository]:
        """The repositories of an installation as they are known, but for those that are gone."""
        sql = "select * from repositories where key like :installation and state <> 'gone' order by key"
        with self._inbox.database.transaction() as asking:
            found = [_repository(row) for row in asking.rows(sql, installation=f"{installation}-%")]
        return [each for each in found if each.id]

    def repository(self, repository: RepositoryKey) -> OrganisationRepository | None:
        """One repository as it is known; None if it is gone."""
        with self._inbox.database.transaction() as asking:
            row = _row(asking, repository)
        return _repository(row) if row and row["state"] != "gone" else None

    def _hold(self, holding: Transaction, repository: RepositoryKey) -> None:
        """Hold its key and those of the comments that may have to be renewed, before anything of it is written."""
        self._inbox.queue.hold(holding, {repository.text, *(row["repository"] for row in _about(holding, repository))})

    def _renew(self, storing: Transaction, rows: Iterable[Row], priority: Priority = Priority.URGENT) -> None:
        """Put a delivery for each of these comments: once in a transaction, as that sorts the keys which it locks.

        One that waits already does not do: a run may have begun it, and read what was true before.
        """
        now, cause = self._inbox.now(), uuid.uuid4().hex[:12]
        arrivals: dict[str, Arrival] = {}
        for key, thread in sorted({(row["repository"], row["thread"]) for row in rows}):
            name = f"{OURS}:{ORGANISATION}-{key}-{thread}-{cause}"
            event = Event(ORGANISATION, number=int(thread))
            arrivals[name] = Arrival(name, RepositoryKey.of(key), event, received_at=now, priority=priority)
        for start in range(0, len(arrivals), MANY):
            self._inbox.put_within(storing, dict(list(arrivals.items())[start : start + MANY]))


def _shown(repository: RepositoryKey, number: int, key: OrganisationKey) -> dict[str, Value]:
    return {"repository": repository.text, "thread": str(number), "other": key.repository, "name": str(key.thread)}


def _repository(row: Row) -> OrganisationRepository:
    found = repository_row(row)
    key = found.repository
    return OrganisationRepository(key.number, found.name, key.installation, found.visibility, found.shares)


def _row(asking: Transaction, repository: RepositoryKey) -> Row | None:
    return asking.row("select * from repositories where key = :key", key=repository.text)


def _about(asking: Transaction, repository: RepositoryKey) -> list[Row]:
    """The comments in a repository that show others, and those of others that show it."""
    return asking.rows(_ABOUT, key=repository.text, **_theirs(repository))


def _theirs(repository: RepositoryKey) -> dict[str, str | int]:
    return {"installation": f"{repository.installation}-%", "number": repository.number}
