"""Reads the times in transcripts: with a zone, in the zone of this machine, or as numbers since 1970."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from bot.domain.thread_json import MAX_TIME, MIN_TIME, parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_S, _MAX_MS, _MAX_US = 1e11, 1e14, 1e17
"""A number below the first is in seconds (until the year 5138), below the second in milliseconds, and so on."""

_CLOCK_TOLERANCE = timedelta(minutes=1)
"""A line may be this much older than the one before it although the clock was not changed."""


class TranscriptClock:
    """Reads the times of one log, line by line. ``zone`` applies to times without one. In the hour that such a clock
    shows twice, a time that jumps back counts as the second pass. ``last`` is the last time read.
    """

    def __init__(self, zone: tzinfo = UTC, last: datetime | None = None) -> None:
        self._zone, self.last = zone, last

    def read(self, value: Any) -> datetime | None:
        """Read ISO 8601, or seconds, milliseconds or microseconds since 1970; None for anything else."""
        moment = self._parse(value)
        self.last = moment or self.last
        return moment

    def _parse(self, value: Any) -> datetime | None:
        if isinstance(value, str) and len(value) <= 40:
            try:
                return self._parse_text(value.strip())
            except (ValueError, OverflowError):
                return _since_epoch(value)
        return _since_epoch(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def _parse_text(self, text: str) -> datetime:
        parsed = datetime.fromisoformat(text)
        if parsed.tzinfo:
            return parse_time(text)
        first, second = (parse_time(parsed.replace(tzinfo=self._zone, fold=fold).isoformat()) for fold in (0, 1))
        is_back = self.last is not None and first < self.last - _CLOCK_TOLERANCE
        return second if is_back and second > first else first


def _since_epoch(value: str | float) -> datetime | None:
    try:
        number = float(value)
        scale = 1 if number < _MAX_S else 1e3 if number < _MAX_MS else 1e6 if number < _MAX_US else 1e9
        moment = _EPOCH + timedelta(seconds=number / scale)
    except (ValueError, OverflowError):
        return None
    return moment if MIN_TIME < moment <= MAX_TIME else None


LOCALTIME_FILE = Path("/etc/localtime")
MAX_ZONE_CHARS = 100


def zone_named(name: str) -> tzinfo | None:
    """Return the zone of a name such as ``Europe/Berlin``, or None."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if len(name) <= MAX_ZONE_CHARS else None
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder of zones
        return None


def local_zone(environ: Mapping[str, str] = os.environ, path: Path = LOCALTIME_FILE) -> tzinfo:
    """Return the time zone of this machine with its summer time rules; UTC if it is unknown."""
    name = _zone_name(environ)
    if name and not name.startswith("/"):
        return zone_named(name) or UTC
    from zoneinfo import ZoneInfo

    try:
        with Path(name or path).open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def local_key(environ: Mapping[str, str] = os.environ, path: Path = LOCALTIME_FILE) -> str:
    """Return a text that identifies the zone, without reading its rules."""
    return _zone_name(environ) or os.path.realpath(path)


def _zone_name(environ: Mapping[str, str]) -> str:
    return environ.get("TZ", "").removeprefix(":")
