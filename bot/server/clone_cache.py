"""Keeps clones of memory branches for the next run, one per repository, within a limit of disk space."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.files import on_disk
from bot.server.model import RepositoryKey

MOST_PACKS = 50
MOST_FILES = 2_000
"""A clone with more files is made again next time, within a second: fetches leave packs, writes leave files."""

SLACK = 20
"""A cleanup leaves one part in so many of the space free; the next one comes when that may be used up."""

_USED = "used"
_GONE = ".gone-"
_APART = ".apart-"
_MEGABYTE = 1_000_000
_LEFT = 3600
"""Seconds after which a folder made for one run is no longer in use."""


class CloneCache:
    """Clones below ``folder``, which several processes may share. Only speed depends on them."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self._folder = folder
        self._limit = megabytes * _MEGABYTE
        self._slack = self._limit // SLACK
        self._grown = self._slack  # nothing is measured yet
        self._alone = threading.Lock()
        with on_disk("make the folder for clones"):
            folder.mkdir(parents=True, exist_ok=True)
            long_ago = time.time() - _LEFT
            for left in (*folder.glob(f"{_GONE}*"), *folder.glob(f"{_APART}*")):
                with suppress(OSError):  # another process may do the same
                    if left.name.startswith(_GONE) or left.stat().st_mtime < long_ago:
                        shutil.rmtree(left, ignore_errors=True)

    @property
    def empty(self) -> Path:
        """A folder that stays empty: no repository has files on this machine."""
        return self._folder / ".empty"

    @contextmanager
    def borrowed(self, repository: RepositoryKey) -> Iterator[Path]:
        """Open the repository's folder exclusively; a temporary one if it is in use."""
        with self._locked(repository.text) as is_ours:
            if not is_ours:
                with tempfile.TemporaryDirectory(prefix=_APART, dir=self._folder) as apart:
                    yield Path(apart)
                return
            place = self._folder / repository.text
            with on_disk("make a folder"):
                place.mkdir(exist_ok=True)
            try:
                yield place
            finally:
                grown = self._used(place)
        self._make_room(grown)

    def forget(self, repository: RepositoryKey) -> None:
        """Remove the clone of a repository, unless it is in use."""
        with self._locked(repository.text) as is_ours:
            if is_ours:
                self._remove(self._folder / repository.text)

    @contextmanager
    def _locked(self, key: str) -> Iterator[bool]:
        """Whether we hold the lock of the folder. Lock files stay, as waiting processes may have them open."""
        with on_disk("lock a clone"):
            descriptor = os.open(self._folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def _used(self, place: Path) -> int:
        """Record its use and size, or remove it if a fresh one is better; returns its growth in bytes."""
        _, before, _ = _noted(place) if (place / _USED).exists() else (0.0, 0, place)
        files = [file for file in place.rglob("*") if file.is_file()]
        packs = sum(file.suffix == ".pack" for file in files)
        if packs > MOST_PACKS or len(files) > MOST_FILES:
            self._remove(place)
            return 0
        size = _size(files)
        with suppress(OSError):  # the next run will report a full disk
            (place / _USED).write_text(str(size), encoding="ascii")
        return max(0, size - before)

    def _make_room(self, grown: int) -> None:
        """Clean up once the clones used here have grown by the slack; 10,000 clones take half a second."""
        with self._alone:
            self._grown += grown
            if self._grown < self._slack:
                return
            self._grown = 0
        self._shrink()

    def _shrink(self) -> None:
        """Remove the least recently used ones, until the rest fits and leaves the slack."""
        kept = sorted(
            (_noted(place) for place in self._folder.glob("[0-9]*-*") if place.is_dir()), key=lambda one: one[0]
        )
        total = sum(size for _, size, _ in kept)
        for _, size, place in kept:
            if total <= self._limit - self._slack:
                return
            with self._locked(place.name) as is_ours:
                if is_ours:
                    self._remove(place)
                    total -= size

    def _remove(self, place: Path) -> None:
        """Rename it first, so that half a clone is never used."""
        gone = self._folder / f"{_GONE}{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            place.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def _noted(place: Path) -> tuple[float, int, Path]:
    """Time of last use, size and place. One whose use never ended is the first to go."""
    try:
        note = place / _USED
        return note.stat().st_mtime, int(note.read_text(encoding="ascii")), place
    except (OSError, ValueError):
        with suppress(OSError):  # it may be being filled or removed
            return 0.0, _size(file for file in place.rglob("*") if file.is_file()), place
        return 0.0, 0, place


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return total
