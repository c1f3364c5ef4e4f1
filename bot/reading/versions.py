"""Versions in the spellings of tags and reports, and which of two is older."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Literal

Standing = Literal["older", "same or newer"]

MAX_WRITTEN = 64
"""Characters of the longest version that is read."""

_UNSTEADY = 0
_STAGES = {
    **dict.fromkeys(("dev", "snapshot", "nightly", "canary", "unstable", "next"), _UNSTEADY),
    **dict.fromkeys(("a", "alpha"), 1),
    **dict.fromkeys(("m", "milestone"), 2),
    **dict.fromkeys(("b", "beta"), 3),
    **dict.fromkeys(("pre", "preview"), 4),
    **dict.fromkeys(("c", "rc", "cr"), 5),
}
"""Words for what comes before a release, from early to late. How unsteady builds stand to the others nobody knows."""

_STAGE = "|".join(sorted(_STAGES, key=len, reverse=True))
PRE = rf"(?:[-._]?(?:{_STAGE})(?:[-._]?\d{{1,10}}){{0,3}})"
"""A pattern for what may stand behind the numbers of a pre-release, once or twice."""

_TAG = re.compile(
    r"(?P<name>(?:[a-z@][\w.@/+-]{0,40}?[-_/@ ]|[a-z]{1,20}(?=\d{1,4}\.))??)(?:v[. ]?)?"
    r"(?P<numbers>\d{1,10}(?:[._]\d{1,10}){0,4})"
    rf"(?P<pre>{PRE}{{0,2}})(?P<post>[-.]?(?:post|patch|hotfix|sp)[-.]?\d{{1,6}})?"
    r"(?:[-.](?:final|release|ga|stable))?(?:\+[\w.-]{1,40})?",
    re.ASCII | re.IGNORECASE,
)
_DATED = re.compile(r"(?:nightly[ -]?)?(\d{4}-\d\d-\d\d)", re.ASCII | re.IGNORECASE)
_STAGE_PART = re.compile(rf"(?P<word>{_STAGE})|(?P<number>\d+)", re.ASCII | re.IGNORECASE)
_PLAIN_NAMES = frozenset({"", "v", "release", "releases", "rel", "version", "ver", "stable", "tag", "r"})


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version in its order: 2.4 is equal to 2.4.0, a pre-release is older than its release, ``+build`` says nothing.

    ``day`` is the ordinal of a dated nightly, 0 for all others. ``numbers`` are without the zeros at their end;
    ``stage`` begins with 0 for what comes before a release, 1 for the release, 2 for what comes after it. ``name`` is
    what a tag says before the version where that is more than ``v`` or ``release``, in small letters; ``written`` is
    how many numbers there are.
    """

    day: int
    numbers: tuple[int, ...]
    stage: tuple[int, ...]
    written: int = field(compare=False, default=0)
    name: str = field(compare=False, default="")

    @property
    def is_early(self) -> bool:
        """Whether it comes before the release that it is named for."""
        return self.stage[0] == 0

    @property
    def line(self) -> tuple[int, ...]:
        """The first two numbers: releases that differ only behind them come from one branch."""
        return (*self.numbers, 0, 0)[:2]


def read_version(text: str) -> Version | None:
    """The version that ``text`` is: ``2.3.0``, ``v2.3``, ``2024.10.1``, ``release-1.2``, ``project-v1.2.0-rc.1``.

    None for what is none, and for what is older by one custom and newer by another (``1.0-1``).
    """
    bare = text.strip()
    if len(bare) > MAX_WRITTEN:
        return None
    dated = _DATED.fullmatch(bare)
    if dated:
        day = read_day(dated[1])
        return Version(day.toordinal(), (), (1,)) if day else None
    tag = _TAG.fullmatch(bare)
    if tag is None:
        return None
    written = tuple(map(int, re.split("[._]", tag["numbers"])))
    name = tag["name"].lower().strip("-_/@ .")
    if len(written) == 1 and name not in _PLAIN_NAMES:
        return None
    numbers = written
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    return Version(0, numbers, _stage(tag), len(written), "" if name in _PLAIN_NAMES else name)


def stands(
    asked: str, release: str, released_at: datetime | None = None, merged_at: datetime | None = None
) -> Standing | None:
    """How the version ``asked`` stands to the first release with a fix; None where that cannot be told.

    A dated nightly is compared with the day on which the fix was merged, and says nothing on that day and the next one.
    A version of two numbers may stand for all of its line, so it is not older than a later release of that line.
    """
    have, first = read_version(asked), read_version(release)
    if have is None:
        return None
    if have.day:
        return _by_day(date.fromordinal(have.day), merged_at, released_at)
    if first is None or first.day or min(have.written, first.written) < 2 or _is_calendar(have) != _is_calendar(first):
        return None
    if have >= first:
        return "same or newer" if not _unsettled(have, first) else None
    return None if _is_line_of(have, first) or _unsettled(have, first) else "older"


def _by_day(day: date, merged_at: datetime | None, released_at: datetime | None) -> Standing | None:
    fixed = merged_at or released_at
    if fixed is None:
        return None
    there = fixed.astimezone(UTC).date()
    if day > there + timedelta(days=1):
        return "same or newer"
    return "older" if merged_at and day < there else None


def read_day(text: str) -> date | None:
    """The day of an ISO date, None where there is no such day."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _stage(tag: re.Match[str]) -> tuple[int, ...]:
    if tag["post"]:
        return (2, int(re.sub(r"\D", "", tag["post"])))
    if not tag["pre"]:
        return (1,)
    parts = _STAGE_PART.finditer(tag["pre"])
    return (0, *(_STAGES[part["word"].lower()] if part["word"] else int(part["number"]) for part in parts))


def _is_calendar(version: Version) -> bool:
    return bool(version.numbers) and 1900 < version.numbers[0] < 2200


def _is_line_of(have: Version, first: Version) -> bool:
    """Whether ``have`` names all releases that begin like it, of which ``first`` is one."""
    stem = (*have.numbers, *[0] * have.written)[: have.written]
    return have.stage == (1,) and first.written > have.written and first.numbers[: have.written] == stem


def _unsettled(have: Version, first: Version) -> bool:
    """Whether both come before one release, and one of them is a build of which nobody knows where it stands."""
    both = have.numbers == first.numbers and have.is_early and first.is_early
    return both and have.stage != first.stage and _UNSTEADY in (have.stage[1], first.stage[1])
