"""Stores where the App is installed, and what is known of each repository: its state, its history, its digest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.github.errors import EVENT_LIMITS, HISTORY_LIMITS
from bot.organisation.scope import Share
from bot.server.model import (
    DAY,
    HistoryPart,
    Instant,
    PendingWork,
    RepositoryKey,
    RepositoryRow,
    RepositoryScope,
    RunReport,
)
from bot.server.storage.database import DatabasePart, Row, to_json
from bot.server.storage.github_access import GitHubLimits

if TYPE_CHECKING:
    from bot.questions.digest import DigestSection, MaintainerReport

DIGEST_INTERVAL = 7 * DAY
"""Milliseconds after which a digest is made again. That takes seconds, half a minute for a large repository."""

MAX_STORED_PUSHES = 6
PACE_RUNS = 6
"""Runs whose pace counts: the newest ones, with the time between them."""


@dataclass(frozen=True, slots=True)
class HistoryEstimate:
    """An unfinished reading: ``read`` threads so far. ``marks`` are times with how many threads were left then."""

    read: int
    marks: tuple[tuple[Instant, int], ...] = ()

    @property
    def left(self) -> int:
        """How many threads are left; -1 if GitHub did not say."""
        return self.marks[-1][1] if self.marks else -1

    @property
    def percent(self) -> int:
        """How much is read, in 0..99; -1 if that is not known."""
        total = self.read + self.left
        return min(99, 100 * self.read // total) if self.left >= 0 and total else -1

    def after(self, part: HistoryPart, began: Instant, ended: Instant) -> HistoryEstimate:
        if part.left < 0 or part.before < 0:
            return replace(self, read=part.read)
        marks = self.marks or ((began, part.before),)
        return HistoryEstimate(part.read, (*marks, (ended, part.left))[-PACE_RUNS - 1 :])

    def done_at(self, paused_until: Instant = 0) -> Instant:
        """When it will be done at the pace so far, after a pause until ``paused_until``; 0 if unknown.

        The time between runs counts, so a reading that has to wait for others takes as long as it does.
        """
        if len(self.marks) < 2:
            return 0
        (first, before), (last, left) = self.marks[0], self.marks[-1]
        if before <= left:
            return 0
        return max(last, paused_until) + round(left * (last - first) / (before - left))

    def to_text(self) -> str:
        return to_json([self.read, self.marks])


def parse_estimate(text: str) -> HistoryEstimate | None:
    """Read the text of a column; None for "", when no history is being read."""
    if not text:
        return None
    read, marks = json.loads(text)
    return HistoryEstimate(read, tuple((at, left) for at, left in marks))


def row_after_run(row: RepositoryRow, work: PendingWork, report: RunReport, now: Instant) -> RepositoryRow:
    history = row.history
    if report.history:
        before = parse_estimate(row.history) or HistoryEstimate(0)
        history = before.after(report.history, work.began_at, now).to_text()
    elif report.is_unread is not None:
        history = ""
    return replace(
        row,
        cursor=max(row.cursor, report.cursor),
        pushes=tuple(sorted((*row.pushes, *report.pushes)))[-MAX_STORED_PUSHES:],
        last_run=now,
        backoff=report.backoff,
        is_unread=row.is_unread if report.is_unread is None else report.is_unread,
        threads=report.threads if report.threads >= 0 else row.threads,
        history=history,
    )


UNINSTALLED = "the App is no longer installed there"
SUSPENDED = "the App is suspended there"
REMOVED = "the App can no longer see this repository"
DELETED = "the repository was deleted"
MOVED = "the repository went to another account"


class Installations(DatabasePart):
    """The tables of installations and repositories."""

    def state(self, installation: int) -> str:
        """Return the state of an installation; "active" if it is unknown."""
        row = self.database.row("select state from installations where id = :id", id=installation)
        return row["state"] if row else "active"

    def drop_waiting(self, repository: RepositoryKey, why: str) -> int:
        """Drop the waiting deliveries of a repository; returns their number."""
        sql = (
            "update deliveries set state = 'dropped', reason = :why, finished_at = :now"
            " where repository = :repository and state = 'waiting'"
        )
        return self.database.change(sql, why=why, now=self.now(), repository=repository.text)

    def repository(self, repository: RepositoryKey) -> RepositoryRow:
        """Return the row of a repository, an empty one if it is unknown."""
        return self.find(repository) or RepositoryRow(repository)

    def find(self, repository: RepositoryKey) -> RepositoryRow | None:
        row = self.database.row("select * from repositories where key = :key", key=repository.text)
        return parse_repository(row) if row else None

    def unread_keys(self, keys: Sequence[str]) -> frozenset[str]:
        """Return the keys of repositories whose history was never read completely, including unknown ones."""
        rows = self.database.rows("select key from repositories where key in :keys and unread = 0", keys=list(keys))
        return frozenset(keys) - {row["key"] for row in rows} - {key for key in keys if key.endswith("-0")}

    def states(self) -> dict[int, str]:
        return {row["id"]: row["state"] for row in self.database.rows("select id, state from installations")}

    def repositories(self, *, active_since: Instant = 0) -> list[RepositoryRow]:
        """Return the repositories that are not gone and had a run since ``active_since``; all of them for 0."""
        sql = "select * from repositories where state <> 'gone' and last_run >= :since"
        rows = [parse_repository(row) for row in self.database.rows(sql, since=active_since)]
        return sorted((row for row in rows if row.repository.number), key=lambda row: row.repository)

    def record_work(self, repository: RepositoryKey, name: str) -> None:
        """Store that a repository has work, with the payload's name for it if none is known."""
        self.database.change(
            "insert into repositories (key, name) values (:key, :name) on conflict (key) do"
            " update set name = excluded.name where repositories.name = ''",
            key=repository.text,
            name=name,
        )

    def store_run_state(self, row: RepositoryRow) -> None:
        """Store the state after a run."""
        self.database.change(
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
        with self.database.transaction():
            for table in ("repositories", "installations"):
                self.database.change(
                    f"delete from {table} where state = 'gone' and changed < :before",  # noqa: S608 (our own names)
                    before=before,
                )
            self.database.change(
                "delete from organisation_shown"
                " where not exists (select 1 from repositories where key = organisation_shown.repository)"
            )


def parse_repository(row: Row) -> RepositoryRow:
    return RepositoryRow(
        repository=RepositoryKey.of(row["key"]),
        name=row["name"],
        is_gone=row["state"] == "gone",
        cursor=row["cursor"],
        pushes=tuple(json.loads(row["pushes"])),
        last_run=row["last_run"],
        backoff=row["backoff"],
        is_unread=bool(row["unread"]),
        threads=row["threads"],
        history=row["history"],
        visibility=Visibility(row["visibility"]),
        shares=tuple(Share(pattern, number) for pattern, number in json.loads(row["shares"])),
        is_sharing=bool(row["sharing"]),
        people=tuple(json.loads(row["people"])),
    )


RepositoryState = Literal["excluded", "suspended", "unread", "reading", "ready"]


@dataclass(frozen=True, slots=True)
class RepositoryStatus:
    """A repository as operators see it.

    ``state``: "unread" until a first run has read of its history, "reading" while some of it is left. ``estimate`` is
    that of an unfinished reading. ``paused_until`` is the end of a limit of GitHub's, 0 without one.
    """

    row: RepositoryRow
    state: RepositoryState
    is_observed: bool = False
    estimate: HistoryEstimate | None = None
    paused_until: Instant = 0

    @property
    def name(self) -> str:
        return self.row.name or self.row.repository.text

    @property
    def done_at(self) -> Instant:
        """When its history is read, 0 if that is not known."""
        return self.estimate.done_at(self.paused_until) if self.estimate and self.state == "reading" else 0


def repository_list(
    rows: Sequence[RepositoryRow], installations: Installations, limits: GitHubLimits, scope: RepositoryScope
) -> list[RepositoryStatus]:
    """Return the status of these repositories, in their order. Raises WorldError without the database."""
    states, of_events, of_history = installations.states(), limits.pauses(EVENT_LIMITS), limits.pauses(HISTORY_LIMITS)
    statuses = []
    for row in rows:
        installation = row.repository.installation
        state = _state(row, states.get(installation, "active"), scope)
        until = of_events.get(installation, 0)
        if state in ("unread", "reading"):
            until = max(until, of_history.get(installation, 0))
        statuses.append(RepositoryStatus(row, state, scope.observes(row.name), parse_estimate(row.history), until))
    return statuses


def _state(row: RepositoryRow, installation: str, scope: RepositoryScope) -> RepositoryState:
    if not scope.includes(row.name):
        return "excluded"
    if installation != "active":
        return "suspended"
    if row.history:
        return "reading"
    return "unread" if row.is_unread else "ready"


class SectionNumbers(NamedTuple):
    """A section of a digest: its title, how many items it has, and the threads of the first ones."""

    title: str
    total: int
    numbers: tuple[tuple[int, Kind], ...] = ()


class StoredDigest(NamedTuple):
    """A digest of the time from ``since`` to ``made_at``."""

    made_at: Instant
    since: Instant
    sections: tuple[SectionNumbers, ...]


class Digests(DatabasePart):
    """The table ``digests``."""

    def get(self, repository: RepositoryKey) -> StoredDigest | None:
        """Return the digest of a repository; None if there is none."""
        row = self.database.row(
            "select made_at, told from digests where repository = :repository", repository=repository.text
        )
        if row is None:
            return None
        content = json.loads(row["told"])
        sections = (
            SectionNumbers(title, total, tuple((number, Kind(kind)) for number, kind in threads))
            for title, total, threads in content["sections"]
        )
        return StoredDigest(row["made_at"], content["since"], tuple(sections))

    def repositories(self) -> frozenset[str]:
        """Return the keys of the repositories that have a digest."""
        return frozenset(row["repository"] for row in self.database.rows("select repository from digests"))

    def is_due(self, repository: RepositoryKey) -> bool:
        """Whether the last one is older than `DIGEST_INTERVAL`, or there is none."""
        digest = self.get(repository)
        return digest is None or digest.made_at <= self.now() - DIGEST_INTERVAL

    def store(self, repository: RepositoryKey, report: MaintainerReport) -> None:
        """Store the numbers of a digest, in place of the last one."""
        sections = [[section.name.title, section.total, list(_numbers(section))] for section in report.sections]
        content = {"since": round(1000 * report.since.timestamp()), "sections": sections}
        sql = (
            "insert into digests (repository, made_at, told) values (:repository, :now, :told)"
            " on conflict (repository) do update set made_at = excluded.made_at, told = excluded.told"
        )
        self.database.change(sql, repository=repository.text, now=self.now(), told=to_json(content))

    def purge(self, before: Instant) -> None:
        """Delete digests made before then: their repositories are gone or inactive."""
        self.database.change("delete from digests where made_at < :before", before=before)


def _numbers(section: DigestSection) -> Iterable[tuple[int, Kind]]:
    return (
        (item.card.id, item.card.kind)
        for item in section.items
        if isinstance(item.card.id, int) and item.card.kind.is_on_github
    )
