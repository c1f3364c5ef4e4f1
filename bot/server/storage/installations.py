"""Stores where the App is installed, and the state of each repository."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from bot.domain.organisation import Visibility
from bot.organisation.scope import Share
from bot.server.model import Instant, RepositoryKey, RepositoryRow
from bot.server.storage.database import DatabasePart, Row, to_json
from bot.server.storage.outbox import note_gone

UNINSTALLED = "the App is no longer installed there"
SUSPENDED = "the App is suspended there"
REMOVED = "the App can no longer see this repository"
DELETED = "the repository was deleted"
MOVED = "the repository went to another account"


class Installations(DatabasePart):
    """The tables of installations, repositories and rate limits."""

    def store_installation(
        self, installation: int, account: str, state: Literal["active", "suspended", "gone"]
    ) -> None:
        self._change(
            "insert into installations (id, account, state, changed) values (:id, :account, :state, :now)"
            " on conflict (id) do update set state = excluded.state, changed = excluded.changed,"
            " account = case when excluded.account = '' then installations.account else excluded.account end",
            id=installation,
            account=account,
            state=state,
            now=self.now(),
        )

    def state(self, installation: int) -> str:
        """Return the state of an installation; "active" if it is unknown."""
        row = self._row("select state from installations where id = :id", id=installation)
        return row["state"] if row else "active"

    def pause(self, installation: int, resource: str, until: Instant) -> None:
        """Store a rate limit of this resource. During a limit in `EVENT_LIMITS` no run of the installation starts."""
        self._change(
            "insert into pauses (installation, resource, until) values (:id, :resource, :until)"
            " on conflict (installation, resource) do update set until = case"
            " when excluded.until > pauses.until then excluded.until else pauses.until end",
            id=installation,
            resource=resource,
            until=until,
        )

    def paused_until(self, installation: int, resources: Sequence[str]) -> Instant:
        """Return the end of the last limit of any of these resources; 0 without one."""
        sql = "select max(until) as until from pauses where installation = :id and resource in :resources"
        row = self._row(sql, id=installation, resources=list(resources))
        return int(row["until"] or 0) if row else 0

    def count_paused(self, resources: Sequence[str]) -> int:
        """Return how many installations are within a limit of any of these resources."""
        sql = "select count(distinct installation) as paused from pauses where until > :now and resource in :resources"
        row = self._row(sql, now=self.now(), resources=list(resources))
        return int(row["paused"]) if row else 0

    def store_repository(
        self, repository: RepositoryKey, name: str, *, private: bool, visibility: Visibility | None = None
    ) -> None:
        """Store the current name and visibility (None: unknown) of a repository; a gone one becomes active again.

        Its ``former_names`` are in lower case, each between spaces.
        """
        self._change(
            "insert into repositories (key, name, private, visibility) values (:key, :name, :private, :first)"
            " on conflict (key) do update set name = excluded.name, private = excluded.private, state = 'active',"
            " former_names = case when lower(repositories.name) in ('', lower(excluded.name))"
            " or repositories.former_names like '% ' || lower(repositories.name) || ' %' then repositories.former_names"
            " else repositories.former_names || ' ' || lower(repositories.name) || ' ' end,"
            " visibility = case when :known = '' then repositories.visibility else :known end",
            key=repository.text,
            name=name,
            private=int(private),
            first=(visibility or Visibility.PRIVATE).value,
            known=visibility.value if visibility else "",
        )

    def store_settings(
        self, repository: RepositoryKey, shares: Sequence[Share], people: Sequence[str], *, sharing: bool
    ) -> None:
        """Store what the settings of a repository say about others, as in `RepositoryRow`."""
        sql = "update repositories set shares = :shares, unquoted = :people, sharing = :sharing where key = :key"
        pairs = [(share.pattern, share.repository) for share in shares]
        self._change(sql, shares=to_json(pairs), people=to_json(people), sharing=int(sharing), key=repository.text)

    def mark_gone(self, repository: RepositoryKey, why: str) -> int:
        """Mark a repository as gone and drop its waiting deliveries; returns their number."""
        now = self.now()
        with self._database.transaction() as transaction:
            transaction.change(
                "insert into repositories (key, state, changed) values (:key, 'gone', :now)"
                " on conflict (key) do update set state = 'gone', changed = excluded.changed",
                key=repository.text,
                now=now,
            )
            note_gone(transaction, repository, now)
            return transaction.change(
                "update deliveries set state = 'dropped', reason = :why, finished_at = :now"
                " where repository = :repository and state = 'waiting'",
                why=why,
                now=now,
                repository=repository.text,
            )

    def repository(self, repository: RepositoryKey) -> RepositoryRow:
        """Return the row of a repository, an empty one if it is unknown."""
        row = self._row("select * from repositories where key = :key", key=repository.text)
        return parse_repository(row) if row else RepositoryRow(repository)

    def unread_keys(self, keys: Sequence[str]) -> frozenset[str]:
        """Return the keys of repositories whose history was never read completely, including unknown ones."""
        rows = self._rows("select key from repositories where key in :keys and unread = 0", keys=list(keys))
        return frozenset(keys) - {row["key"] for row in rows} - {key for key in keys if key.endswith("-0")}

    def pauses(self, resources: Sequence[str]) -> dict[int, Instant]:
        """Return the end of the last limit of any of these resources, for each installation that has one."""
        sql = "select installation, max(until) as until from pauses where resource in :resources group by installation"
        return {row["installation"]: int(row["until"]) for row in self._rows(sql, resources=list(resources))}

    def states(self) -> dict[int, str]:
        return {row["id"]: row["state"] for row in self._rows("select id, state from installations")}

    def repositories(self, *, active_since: Instant = 0) -> list[RepositoryRow]:
        """Return the repositories that are not gone and had a run since ``active_since``; all of them for 0."""
        sql = "select * from repositories where state <> 'gone' and last_run >= :since"
        rows = [parse_repository(row) for row in self._rows(sql, since=active_since)]
        return sorted((row for row in rows if row.repository.number), key=lambda row: row.repository)

    def record_work(self, repository: RepositoryKey, name: str, *, private: bool) -> None:
        """Store that a repository has work, with the payload's name for it if none is known."""
        self._change(
            "insert into repositories (key, name, private) values (:key, :name, :private) on conflict (key) do"
            " update set name = case when repositories.name = '' then excluded.name else repositories.name end,"
            " private = case when repositories.name = '' then excluded.private else repositories.private end",
            key=repository.text,
            name=name,
            private=int(private),
        )

    def store_run_state(self, row: RepositoryRow) -> None:
        """Store the state after a run."""
        self._change(
            "update repositories set cursor = :cursor, pushes = :pushes, last_run = :last_run,"
            " backoff = :backoff, unread = :unread, threads = :threads, history = :history"
            " where key = :key",
            key=row.repository.text,
            cursor=row.cursor,
            pushes=to_json(row.pushes),
            last_run=row.last_run,
            backoff=row.backoff,
            unread=int(row.is_unread),
            threads=row.threads,
            history=row.history,
        )

    def purge(self, before: Instant) -> None:
        with self._database.transaction() as transaction:
            for table in ("repositories", "installations"):
                transaction.change(
                    f"delete from {table} where state = 'gone' and changed < :before",  # noqa: S608 (our own names)
                    before=before,
                )
            transaction.change(
                "delete from organisation_shown"
                " where not exists (select 1 from repositories where key = organisation_shown.repository)"
            )
            transaction.change("delete from pauses where until < :before", before=before)


def parse_repository(row: Row) -> RepositoryRow:
    return RepositoryRow(
        repository=RepositoryKey.of(row["key"]),
        name=row["name"],
        private=bool(row["private"]),
        cursor=row["cursor"],
        pushes=tuple(json.loads(row["pushes"])),
        last_run=row["last_run"],
        backoff=row["backoff"],
        is_unread=bool(row["unread"]),
        threads=row["threads"],
        history=row["history"],
        visibility=_visibility(row["visibility"]),
        shares=tuple(Share(pattern, number) for pattern, number in json.loads(row["shares"])),
        is_sharing=bool(row["sharing"]),
        people=tuple(json.loads(row["unquoted"])),
    )


def _visibility(stored: str) -> Visibility:
    return Visibility(stored) if stored in list(Visibility) else Visibility.PRIVATE
