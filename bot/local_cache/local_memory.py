"""What commands know of the memory that they ask: where it is, what is cached of it, which settings hold."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot import __version__
from bot.errors import UserError, WorldError
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS
from bot.reading.analyzer import ANALYSER_VERSION

if TYPE_CHECKING:
    from bot.settings.schema import Settings


_LONGEST_NAME = 150


def cache_folder() -> Path:
    """The folder in which this program keeps what it can make again. https://specifications.freedesktop.org/basedir-spec/latest/"""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "precedent"
    except RuntimeError as error:
        raise WorldError("this account has no home folder", "name a folder in XDG_CACHE_HOME") from error


def cache_name(text: str) -> str:
    """A name for a file or folder that no other text has."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else f"_{ord(letter):x}_" for letter in text)
    if len(plain) <= _LONGEST_NAME:
        return plain
    from hashlib import sha256  # loads a library of ciphers, which takes its time

    return f"{plain[-_LONGEST_NAME:]}.{sha256(plain.encode()).hexdigest()}"


_OURS = f"{CARDS.format}-{ANALYSER_VERSION}"
CACHE_FILE, FETCHED_FILE = f"glance-{_OURS}.db", f"fetched-{_OURS}"
"""Names in the folder of a memory: its cache, and what was to be said of the last fetch, a file as old as that. Those
of a version that reads other caches have other names: two versions on one machine leave each other's alone."""

ProgressBar = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Shows how far some work is: takes its label and its number of steps (None: unknown), gives a function that takes the
number of steps done since the last call."""


Warn = Callable[[str], None]
"""Tells somebody, in a line, what could not be read."""


@contextmanager
def no_progress(_label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    """Shows nothing."""
    yield lambda _: None


def no_warning(_note: str) -> None:
    """Tells nobody."""


class MemoryOptions(NamedTuple):
    """Where to look, as the command line has it: a ``store``, else ``repo`` (OWNER/NAME), else the checkout of
    ``folder``. ``refresh`` fetches whatever is here, ``offline`` fetches nothing."""

    folder: Path
    store: Path | None = None
    repo: str = ""
    branch: str = ""
    refresh: bool = False
    offline: bool = False
    progress: ProgressBar = no_progress
    warn: Warn = no_warning


class LocalMemory(NamedTuple):
    """A memory that can be asked. ``repo`` is OWNER/NAME and ``home`` its address for people, "" where nobody knows.

    ``top`` is the topmost folder of the checkout, None outside of any. ``note`` says what somebody should know of it;
    ``missing`` why there is none, and what mends it: its cache is empty then. ``cache`` is a folder for what belongs
    to it on this machine, ``store`` the folder that it was read from, None where that is a branch.
    ``is_of_checkout``: it is the memory of the repository that was cloned to ``top``.
    """

    local_cache: LocalCache
    repo: str = ""
    home: str = ""
    top: Path | None = None
    note: str = ""
    missing: str = ""
    cache: Path | None = None
    store: Path | None = None
    is_of_checkout: bool = False
    progress: ProgressBar = no_progress
    warn: Warn = no_warning

    def demand(self) -> LocalMemory:
        """Itself; UserError where there is no memory."""
        if self.missing:
            raise UserError(self.missing)
        return self


PATH = Path(".github/precedent.yml")
_MOST = 65_537
"""Bytes that are read: one more than settings may have."""


class EarlySettings(NamedTuple):
    """The settings that tell where to look, which every question needs first; the defaults where there is no file."""

    branch: str = "precedent"
    sessions: tuple[str, ...] = ()


def early_settings_at(top: Path | None) -> EarlySettings:
    """These settings of the checkout at ``top``. UserError where any setting is wrong.

    To load the parser takes as long as a search. So what it found is kept beside the bytes that it read, and holds as
    long as the file has the same bytes and this program the same version.
    """
    text = settings_bytes(top)
    if not text:
        return EarlySettings()
    file = cache_folder() / "settings" / cache_name(str(top))
    known = _known(file, text)
    if known is None:
        from bot.settings.yaml_file import load_settings

        found = load_settings(text, str(PATH))
        known = EarlySettings(found.branch, found.sources.sessions)
        _keep(file, known, text)
    return known


def settings_at(top: Path | None) -> Settings:
    """The settings of the checkout at ``top``, the defaults where there are none. UserError for wrong ones."""
    from bot.settings.yaml_file import load_settings

    return load_settings(settings_bytes(top), str(PATH))


def settings_of(place: LocalMemory) -> Settings:
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


def _known(file: Path, text: bytes) -> EarlySettings | None:
    with suppress(OSError, ValueError, TypeError):
        head, _, held = file.read_bytes().partition(b"\n")
        version, branch, sessions = json.loads(head)
        if (version, held) == (__version__, text):
            return EarlySettings(str(branch), tuple(map(str, sessions)))
    return None


def _keep(file: Path, known: EarlySettings, text: bytes) -> None:
    """Keep it, by one rename; a cache that cannot be written costs time and nothing else."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_bytes(json.dumps([__version__, *known]).encode() + b"\n" + text)
        fresh.replace(file)
