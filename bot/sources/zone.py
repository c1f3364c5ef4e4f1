"""The time zone of this machine, in which its logs are written where they do not say otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path

LOCAL = Path("/etc/localtime")
MAX_ZONE = 100


def zone_named(name: str) -> tzinfo | None:
    """The zone of a name such as ``Europe/Berlin``; None where there is none."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name) if len(name) <= MAX_ZONE else None
    except (KeyError, ValueError, OSError):  # of a folder of zones it is an OSError
        return None


def local_zone(environ: Mapping[str, str] = os.environ, place: Path = LOCAL) -> tzinfo:
    """The time zone of this machine with its rules for summer; UTC where it cannot be told."""
    name = _name(environ)
    if name and not name.startswith("/"):
        return zone_named(name) or UTC
    from zoneinfo import ZoneInfo

    try:
        with Path(name or place).open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def local_key(environ: Mapping[str, str] = os.environ, place: Path = LOCAL) -> str:
    """Another text for another zone, had without reading its rules."""
    return _name(environ) or os.path.realpath(place)


def _name(environ: Mapping[str, str]) -> str:
    return environ.get("TZ", "").removeprefix(":")
