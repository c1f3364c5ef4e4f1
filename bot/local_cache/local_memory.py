"""Describes the memory that a command reads: its place, its cache, and the settings that apply."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot import __version__
from bot.errors import UserError, WorldError
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA
from bot.reading.analyzer import ANALYSER_VERSION
from bot.sources.sessions.head import head_of

if TYPE_CHECKING:
    from bot.settings.schema import Settings


_MAX_NAME_CHARS = 150


def cache_folder() -> Path:
    """Return the folder for files that can be rebuilt. https://specifications.freedesktop.org/basedir-spec/latest/"""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(folder) if folder.startswith("/") else Path.home() / ".cache") / "precedent"
    except RuntimeError as error:
        raise WorldError("this account has no home folder", "set XDG_CACHE_HOME to a folder") from error


def cache_name(text: str) -> str:
    """Return a name for a file or folder that is unique to this text."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else f"_{ord(letter):x}_" for letter in text)
    if len(plain) <= _MAX_NAME_CHARS:
        return plain
    from hashlib import sha256  # slow to load

    return f"{plain[-_MAX_NAME_CHARS:]}.{sha256(plain.encode()).hexdigest()}"


_CACHE_VERSION = f"{CARDS_SCHEMA.format}-{ANALYSER_VERSION}"
CACHE_FILE, FETCHED_FILE = f"glance-{_CACHE_VERSION}.db", f"fetched-{_CACHE_VERSION}"
"""Names in the folder of a memory: its cache, and the note of the last fetch, whose file has the time of that fetch.
Versions with other formats use other names, so that two versions on one machine do not disturb each other."""

ProgressBar = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Shows progress: takes a label and the number of steps (None: unknown), and yields a function that takes the number
of steps done since the last call."""

Warn = Callable[[str], None]
"""Shows one line about something that could not be read."""


@contextmanager
def no_progress(_label: str, _total: int | None) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def no_warning(_note: str) -> None:
    """Shows nothing."""


class MemoryOptions(NamedTuple):
    """Which memory to open: a ``store``, else that of ``repo`` (OWNER/NAME), else that of the checkout around
    ``folder``. ``refresh`` always fetches, ``offline`` never does."""

    folder: Path
    store: Path | None = None
    repo: str = ""
    branch: str = ""
    refresh: bool = False
    offline: bool = False
    progress: ProgressBar = no_progress
    warn: Warn = no_warning


class LocalMemory(NamedTuple):
    """An open memory. ``repo`` is OWNER/NAME and ``home`` its web address, "" if unknown.

    ``top`` is the top folder of the checkout, None outside a checkout. ``fetch_note`` says why it is not as of the last
    fetch, "" if it is. ``missing`` says why there is no memory, and the remedy; the cache is empty then. ``cache`` is
    the folder of its files on this machine; ``store`` is the folder it was read from, None for a branch.
    ``is_of_checkout``: it is the memory of the repository that was cloned to ``top``. ``questions`` are the phrases by
    which its people ask.
    """

    local_cache: LocalCache
    repo: str = ""
    home: str = ""
    top: Path | None = None
    fetch_note: str = ""
    missing: str = ""
    cache: Path | None = None
    store: Path | None = None
    is_of_checkout: bool = False
    questions: tuple[str, ...] = ()
    progress: ProgressBar = no_progress
    warn: Warn = no_warning

    @property
    def note(self) -> str:
        """What to know about the memory, one line each."""
        return "\n".join(filter(None, (self.fetch_note, self.local_cache.fact("notes"))))

    @property
    def session_top(self) -> Path | None:
        """The checkout whose sessions belong to this memory; None if it is the memory of another repository."""
        return self.top if self.is_of_checkout or self.store else None

    def require(self) -> LocalMemory:
        """Return self. Raises UserError if there is no memory."""
        if self.missing:
            raise UserError(self.missing)
        return self


SETTINGS_PATH = Path(".github/precedent.yml")
_MAX_BYTES = 65_537
"""Bytes to read: one more than a settings file may have."""


class EarlySettings(NamedTuple):
    """The settings that a search needs, or the defaults without a file. ``people`` are never quoted."""

    branch: str = "precedent"
    sessions: tuple[str, ...] = ()
    default_sessions: bool = True
    people: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()


def early_settings_at(top: Path | None) -> EarlySettings:
    """Return these settings of the checkout at ``top``. Raises UserError if any setting is wrong.

    Loading the parser takes as long as a search, so its result is cached together with the bytes of the file. It is
    valid as long as the file and the version of this program stay the same.
    """
    text = settings_bytes(top)
    if not text:
        return EarlySettings()
    file = cache_folder() / "settings" / cache_name(str(top))
    settings = _cached_settings(file, text)
    if settings is None:
        from bot.settings.yaml_file import load_settings

        loaded = load_settings(text, str(SETTINGS_PATH))
        sources = loaded.sources
        people, questions = loaded.ignore.people, loaded.commands.questions
        settings = EarlySettings(loaded.branch, sources.sessions, sources.default_sessions, people, questions)
        _cache_settings(file, settings, text)
    return settings


def settings_at(top: Path | None) -> Settings:
    """Return the settings of the checkout at ``top``, else the defaults. Raises UserError for wrong ones."""
    from bot.settings.yaml_file import load_settings

    return load_settings(settings_bytes(top), str(SETTINGS_PATH))


def settings_of(memory: LocalMemory) -> Settings:
    """Return the settings of the checkout whose memory this is, else the defaults."""
    return settings_at(memory.top if memory.is_of_checkout else None)


def templates_of(memory: LocalMemory) -> dict[str, str]:
    """Return the templates and words of the checkout whose memory this is, by their names."""
    from bot.settings.yaml_file import TEMPLATE_PATHS

    top = memory.top if memory.is_of_checkout else None
    files = {Path(path).name: settings_bytes(top, Path(path)) for path in TEMPLATE_PATHS}
    return {name: data.decode("utf-8", "replace") for name, data in files.items() if data}


def settings_bytes(top: Path | None, path: Path = SETTINGS_PATH) -> bytes:
    """Return the start of a settings file; empty if it is not a regular file, since other kinds might never end.

    Links are not followed: they may lead out of the checkout, which may be a stranger's.
    """
    if top is None or any((top / folder).is_symlink() for folder in path.parents[:-1]):
        return b""
    return head_of(str(top / path), _MAX_BYTES)


def _cached_settings(file: Path, text: bytes) -> EarlySettings | None:
    with suppress(OSError, ValueError, TypeError):
        head, _, stored = file.read_bytes().partition(b"\n")
        version, branch, sessions, default_sessions, people, questions = json.loads(head)
        if (version, stored) == (__version__, text):
            paths, ignored = tuple(map(str, sessions)), tuple(map(str, people))
            return EarlySettings(str(branch), paths, default_sessions is True, ignored, tuple(map(str, questions)))
    return None


def _cache_settings(file: Path, settings: EarlySettings, text: bytes) -> None:
    """Store the settings with an atomic rename. If that fails, the next search is only slower."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_bytes(json.dumps([__version__, *settings]).encode() + b"\n" + text)
        temporary.replace(file)
