"""Reads releases and tags, and finds the first one with a commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.thread_json import parse_time
from bot.github.api import object_in
from bot.reading.versions import Version, read_version

_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """A release, or a tag if there are no releases. ``at`` is its publication, None if unknown."""

    tag: str
    version: Version
    at: datetime | None = None
    is_early: bool = False
    commit: str = ""


def first_by_date(releases: Sequence[Release], has: Callable[[str], bool]) -> Release | None:
    """Return the first of these releases, given in order of time, that has the commit.

    Within a line of releases (2.3.*) later ones have what earlier ones have. So if the first one of a line lacks it,
    the last one is asked next: a line that branched off before the fix costs two comparisons.
    """
    left = list(releases)
    while left:
        first = left.pop(0)
        if has(first.tag):
            return first
        later = [release for release in left if release.version.line == first.version.line]
        if later and not has(later[-1].tag):
            left = [release for release in left if release not in later]
    return None


def first_by_version(releases: Sequence[Release], has: Callable[[str], bool]) -> Release | None:
    """Return the first of these releases, given in order of version, that has the commit, by bisection."""
    if not releases or not has(releases[-1].tag):
        return None
    low, high = 0, len(releases) - 1
    while low < high:
        middle = (low + high) // 2
        if has(releases[middle].tag):
            high = middle
        else:
            low = middle + 1
    return releases[high]


def of_project(releases: Iterable[Release], name: str) -> list[Release]:
    """Return the releases of the project itself, without those of other packages in the repository."""
    given = list(releases)
    names = {one.version.name for one in given}
    plain = {"", name} & names
    return [one for one in given if one.version.name in plain] if plain else given if len(names) == 1 else []


def read_release(fields: Mapping[str, Any]) -> Release | None:
    """Read a release of the REST API; None if its tag is not a version."""
    tag, at = str(fields.get("tag_name") or ""), time_in(fields.get("published_at"))
    version = read_version(tag)
    if version is None or version.day:
        return None
    return Release(tag, version, at, bool(fields.get("prerelease")) or version.is_early)


def read_tag(fields: Mapping[str, Any]) -> Release | None:
    """Read a tag of the REST API; None if it is not a version."""
    name, commit = str(fields.get("name") or ""), sha_in(object_in(fields.get("commit")).get("sha"))
    version = read_version(name)
    if version is None or version.day or commit is None:
        return None
    return Release(name, version, None, version.is_early, commit)


def sha_in(value: object) -> str | None:
    """Return ``value`` if it is a full or abbreviated SHA."""
    return value if isinstance(value, str) and _COMMIT.match(value) else None


def time_in(value: object) -> datetime | None:
    """Return the time that ``value`` contains, or None."""
    try:
        return parse_time(value)
    except ValueError:
        return None
