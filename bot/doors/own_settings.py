"""The settings in somebody's checkout, read where a command depends on them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.doors.located import Place
    from bot.settings import Settings

PATH = Path(".github/precedent.yml")
_MOST = 65_537
"""Bytes that are read: one more than settings may have."""


def settings_at(top: Path | None) -> Settings:
    """The settings of the checkout at ``top``, the defaults where there are none. UserError for wrong ones."""
    from bot.config import load_settings

    return load_settings(settings_bytes(top), str(PATH))


def settings_of(place: Place) -> Settings:
    """The settings that hold for this memory: those of the checkout whose memory it is, else the defaults."""
    return settings_at(place.top if place.is_of_checkout else None)


def settings_bytes(top: Path | None) -> bytes:
    """The beginning of the file, "" where there is none: what is no regular file may have no end."""
    if top is None:
        return b""
    with suppress(OSError):
        descriptor = os.open(top / PATH, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return opened.read(_MOST)
    return b""
