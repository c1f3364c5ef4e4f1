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

MAX_PACKS = 50
MAX_FILES = 2_000
"""A clone with more is cloned again next time, in under a second: fetches leave packs, writes leave files."""

SLACK_DIVISOR = 20
"""A cleanup leaves 1/``SLACK_DIVISOR`` of the space free; the next one runs when that may be used up."""

_USAGE_FILE = "used"
_REMOVED_PREFIX = ".gone-"
_TEMPORARY_PREFIX = ".apart-"
_MEGABYTE = 1_000_000
_STALE_SECONDS = 3600
"""Seconds after which a folder made for one run is no longer in use."""


class CloneCache:
    """Clones in ``folder``, which several processes may share. Only speed depends on them."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self._folder = folder
        self._limit = megabytes * _MEGABYTE
        self._slack = self._limit // SLACK_DIVISOR
        self._growth = self._slack  # nothing is measured yet
        self._lock = threading.Lock()
        with on_disk("create the folder for clones"):
            folder.mkdir(parents=True, exist_ok=True)
            long_ago = time.time() - _STALE_SECONDS
            for leftover in (*folder.glob(f"{_REMOVED_PREFIX}*"), *folder.glob(f"{_TEMPORARY_PREFIX}*")):
                with suppress(OSError):  # another process may do the same
                    if leftover.name.startswith(_REMOVED_PREFIX) or leftover.stat().st_mtime < long_ago:
                        shutil.rmtree(leftover, ignore_errors=True)

    @property
    def empty(self) -> Path:
        """A folder that stays empty: no repository has files on this machine."""
        return self._folder / ".empty"

    @contextmanager
    def borrow(self, repository: RepositoryKey) -> Iterator[Path]:
        """Lock the repository's folder and give it; give a temporary one if it is in use."""
        with self._try_lock(repository.text) as has_lock:
            if not has_lock:
                with tempfile.TemporaryDirectory(prefix=_TEMPORARY_PREFIX, dir=self._folder) as temporary:
                    yield Path(temporary)
                return
            clone = self._folder / repository.text
            with on_disk("create a folder"):
                clone.mkdir(exist_ok=True)
            try:
                yield clone
            finally:
                growth = self._record_use(clone)
        self._make_room(growth)

    def forget(self, repository: RepositoryKey) -> None:
        """Remove the clone of a repository, unless it is in use."""
        with self._try_lock(repository.text) as has_lock:
            if has_lock:
                self._remove(self._folder / repository.text)

    @contextmanager
    def _try_lock(self, key: str) -> Iterator[bool]:
        """Lock a clone, and give whether that worked. Lock files stay, since other processes may have them open."""
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

    def _record_use(self, clone: Path) -> int:
        """Record the use and size of a clone, or remove it if a fresh one is better. Returns its growth in bytes."""
        _, before, _ = _read_usage(clone) if (clone / _USAGE_FILE).exists() else (0.0, 0, clone)
        files = [file for file in clone.rglob("*") if file.is_file()]
        packs = sum(file.suffix == ".pack" for file in files)
        if packs > MAX_PACKS or len(files) > MAX_FILES:
            self._remove(clone)
            return 0
        size = _size(files)
        with suppress(OSError):  # the next run will report a full disk
            (clone / _USAGE_FILE).write_text(str(size), encoding="ascii")
        return max(0, size - before)

    def _make_room(self, growth: int) -> None:
        """Clean up once the clones used here have grown by the slack; 10,000 clones take half a second."""
        with self._lock:
            self._growth += growth
            if self._growth < self._slack:
                return
            self._growth = 0
        self._shrink()

    def _shrink(self) -> None:
        """Remove the least recently used clones, until the rest fits and leaves the slack."""
        clones = sorted(
            (_read_usage(clone) for clone in self._folder.glob("[0-9]*-*") if clone.is_dir()),
            key=lambda usage: usage[0],
        )
        total = sum(size for _, size, _ in clones)
        for _, size, clone in clones:
            if total <= self._limit - self._slack:
                return
            with self._try_lock(clone.name) as has_lock:
                if has_lock:
                    self._remove(clone)
                    total -= size

    def _remove(self, clone: Path) -> None:
        """Rename the clone before deleting it, so that nobody uses half a clone."""
        removed = self._folder / f"{_REMOVED_PREFIX}{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            clone.rename(removed)
            shutil.rmtree(removed, ignore_errors=True)


def _read_usage(clone: Path) -> tuple[float, int, Path]:
    """Time of last use, size and folder. A clone whose use never ended is the first to go."""
    try:
        note = clone / _USAGE_FILE
        return note.stat().st_mtime, int(note.read_text(encoding="ascii")), clone
    except (OSError, ValueError):
        with suppress(OSError):  # another process may be filling or removing it
            return 0.0, _size(file for file in clone.rglob("*") if file.is_file()), clone
        return 0.0, 0, clone


def _size(files: Iterable[Path]) -> int:
    total = 0
    for file in files:
        with suppress(OSError):
            total += file.stat().st_size
    return total
