"""Stores the digest of each repository: thread numbers, without any of their text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.domain.kinds import Kind
from bot.server.model import DAY, Instant, RepositoryKey
from bot.server.storage.database import DatabasePart, to_json

if TYPE_CHECKING:
    from bot.questions.digest import DigestSection, MaintainerReport

DIGEST_INTERVAL = 7 * DAY
"""Milliseconds after which a digest is made again. That takes seconds, half a minute for a large repository."""

_MAX_SECTION_THREADS = 100
_NUMBER_LIMIT = 1 << 31


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
        """Return the digest of a repository; None if there is none, or it is damaged."""
        row = self._row("select made_at, told from digests where repository = :repository", repository=repository.text)
        return _parse(int(row["made_at"]), row["told"]) if row else None

    def repositories(self) -> frozenset[str]:
        """Return the keys of the repositories that have a digest."""
        return frozenset(row["repository"] for row in self._rows("select repository from digests"))

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
        self._change(sql, repository=repository.text, now=self.now(), told=to_json(content))

    def purge(self, before: Instant) -> None:
        """Delete digests made before then: their repositories are gone or inactive."""
        self._change("delete from digests where made_at < :before", before=before)


def _numbers(section: DigestSection) -> Iterable[tuple[int, Kind]]:
    return ((item.card.id, item.card.kind) for item in section.items if isinstance(item.card.id, int))


def _parse(made_at: Instant, text: str) -> StoredDigest | None:
    try:
        content = json.loads(text)
        sections = (
            SectionNumbers(str(title), _parse_integer(total), _parse_threads(ids))
            for title, total, ids in content["sections"]
        )
        return StoredDigest(made_at, _parse_integer(content["since"]), tuple(sections))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _parse_threads(stored: Any) -> tuple[tuple[int, Kind], ...]:
    threads = ((_parse_integer(number), Kind(kind)) for number, kind in stored[:_MAX_SECTION_THREADS])
    return tuple((number, kind) for number, kind in threads if 0 < number < _NUMBER_LIMIT and kind.is_on_github)


def _parse_integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError("no number")
    return value
