"""The digest of each repository as the server keeps it: the numbers of threads, without any of their text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.domain.kinds import Kind
from bot.server.database import DatabasePart, written
from bot.server.model import DAY, Instant, RepositoryKey

if TYPE_CHECKING:
    from bot.questions.digest import DigestSection, MaintainerReport

OFTEN = 7 * DAY
"""Milliseconds after which a digest is made again. One takes a worker seconds, of a large repository half a minute."""

_MOST = 100
_LARGEST = 1 << 31


class SectionNumbers(NamedTuple):
    """A section of a digest: its title, how many items it has, and the thread of each of the first ones."""

    title: str
    total: int
    numbers: tuple[tuple[int, Kind], ...] = ()


class StoredDigest(NamedTuple):
    """A digest of the time from ``since`` until it was made."""

    made_at: Instant
    since: Instant
    sections: tuple[SectionNumbers, ...]


class Digests(DatabasePart):
    """The table ``digests``."""

    def of(self, repository: RepositoryKey) -> StoredDigest | None:
        """Return the digest of a repository; None if there is none, or it is damaged."""
        row = self._row("select made_at, told from digests where repository = :repository", repository=repository.text)
        return _stored(int(row["made_at"]), row["told"]) if row else None

    def repositories(self) -> frozenset[str]:
        """Return the keys of the repositories that have one."""
        return frozenset(row["repository"] for row in self._rows("select repository from digests"))

    def is_due(self, repository: RepositoryKey) -> bool:
        """Whether the last one is older than OFTEN, or there is none."""
        found = self.of(repository)
        return found is None or found.made_at <= self.now() - OFTEN

    def store(self, repository: RepositoryKey, report: MaintainerReport) -> None:
        """Store the numbers of a digest, in place of the last one."""
        sections = [[one.name.title, one.total, list(_numbers(one))] for one in report.sections]
        told = {"since": round(1000 * report.since.timestamp()), "sections": sections}
        sql = (
            "insert into digests (repository, made_at, told) values (:repository, :now, :told)"
            " on conflict (repository) do update set made_at = excluded.made_at, told = excluded.told"
        )
        self._change(sql, repository=repository.text, now=self.now(), told=written(told))

    def purge(self, before: Instant) -> None:
        """Delete those made before then: their repositories are gone, or nothing happens in them."""
        self._change("delete from digests where made_at < :before", before=before)


def _numbers(section: DigestSection) -> Iterable[tuple[int, Kind]]:
    return ((item.card.id, item.card.kind) for item in section.items if isinstance(item.card.id, int))


def _stored(made_at: Instant, text: str) -> StoredDigest | None:
    try:
        told = json.loads(text)
        sections = (SectionNumbers(str(title), _whole(total), _threads(ids)) for title, total, ids in told["sections"])
        return StoredDigest(made_at, _whole(told["since"]), tuple(sections))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _threads(found: Any) -> tuple[tuple[int, Kind], ...]:
    threads = ((_whole(number), Kind(kind)) for number, kind in found[:_MOST])
    return tuple((number, kind) for number, kind in threads if 0 < number < _LARGEST and kind.is_on_github)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no number")
    return value
