"""The settings in somebody's checkout, read where a command depends on them."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot import __version__
from bot.doors.cache import cache_folder, name_of

if TYPE_CHECKING:
    from bot.doors.located import Place
    from bot.settings import Settings

PATH = Path(".github/precedent.yml")
_MOST = 65_537
"""Bytes that are read: one more than settings may have."""


class Early(NamedTuple):
    """The settings that tell where to look, which every question needs first; the defaults where there is no file."""

    branch: str = "precedent"
    sessions: tuple[str, ...] = ()


def early_at(top: Path | None) -> Early:
    """These settings of the checkout at ``top``. UserError where any setting is wrong.

    To load the parser takes as long as a search. So what it found is kept beside the bytes that it read, and holds as
    long as the file has the same bytes and this program the same version.
    """
    text = settings_bytes(top)
    if not text:
        return Early()
    file = cache_folder() / "settings" / name_of(str(top))
    known = _known(file, text)
    if known is None:
        from bot.config import load_settings

        found = load_settings(text, str(PATH))
        known = Early(found.branch, found.sources.sessions)
        _keep(file, known, text)
    return known


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


def _known(file: Path, text: bytes) -> Early | None:
    """What is kept of settings with these bytes, None where nothing of use is."""
    with suppress(OSError, ValueError, TypeError):
        head, _, held = file.read_bytes().partition(b"\n")
        version, branch, sessions = json.loads(head)
        if (version, held) == (__version__, text):
            return Early(str(branch), tuple(map(str, sessions)))
    return None


def _keep(file: Path, known: Early, text: bytes) -> None:
    """Keep it, by one rename; a cache that cannot be written costs time and nothing else."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_bytes(json.dumps([__version__, *known]).encode() + b"\n" + text)
        fresh.replace(file)
