"""Memory branches on this machine: clones within a limit of disk space, and pushes within a limit per minute."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.errors import StoreError
from bot.files import DiskFault, on_disk
from bot.memory.manifest import MANIFEST_PATH, decode_manifest
from bot.memory.paths import RECORD_FOLDER
from bot.memory.shards import FIXES, read_texts
from bot.memory.store import Edits, Snapshot, Store
from bot.server.model import MINUTE, Instant, RepositoryKey, ServerStopping

MAX_PACKS = 50
MAX_FILES = 2_000
"""A clone with more is cloned again next time, in under a second: fetches leave packs, writes leave files."""

SLACK_DIVISOR = 20
"""A cleanup leaves 1/``SLACK_DIVISOR`` of the space free; the next one runs when that may be used up."""

MIN_FREE_BYTES = 200_000_000
"""Free bytes of disk below which no delivery is accepted and no run begins."""

REST_SECONDS = 60.0
"""Seconds without a new run after one that failed for want of disk: a quota does not show in the free bytes."""

Wait = Callable[[threading.Event, float], bool]

_RECORD_PATH = re.compile(rf"{RECORD_FOLDER}/[0-9]+/(0|[1-9][0-9]{{0,17}})\.json")
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


def describe_free_space(folder: Path) -> tuple[bool, str]:
    """Whether there is enough room on the disk of ``folder``, and a line about it."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return False, f"{folder} cannot be read ({error.strerror}): is it mounted?"
    line = f"{free / 1e9:,.1f} GB free"
    return (True, line) if free >= MIN_FREE_BYTES else (False, f"only {line}: make room")


class DiskGuard:
    """The disk of ``folder``, as one process sees it. Safe for several threads; ``clock`` is in seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._fault: tuple[float, str] = (clock(), "")

    def note_fault(self, fault: DiskFault) -> None:
        """Begin no run for a minute: one has just failed for this reason."""
        self._fault = (self._clock() + REST_SECONDS, str(fault))

    def obstacle(self) -> str:
        """Why no run may begin now; "" if one may."""
        until, fault = self._fault
        if self._clock() < until:
            return fault
        has_room, line = describe_free_space(self._folder)
        return "" if has_room else f"disk: {line}"


class RateLimiter:
    """Allows ``per_minute`` pushes within any minute. ``wait`` waits some seconds for an event to be set."""

    def __init__(self, per_minute: int, clock: Callable[[], Instant], wait: Wait = threading.Event.wait) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.wait = wait

    def earliest(self, pushes: Sequence[Instant]) -> Instant:
        """When the next run of a repository may begin, so that its two pushes need not wait; 0 for at once."""
        if not pushes:
            return 0
        ordered = sorted(pushes)
        recent = ordered[-self.per_minute + 1 :] if self.per_minute > 1 else ordered[-1:]
        start = max(
            ordered[-1] + MINUTE // self.per_minute, recent[0] + MINUTE if len(recent) == self.per_minute - 1 else 0
        )
        return start if start - self.clock() <= MINUTE else 0  # a push in the future: the clock was set back

    def wait_for_room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is allowed. Raises ServerStopping."""
        recent = sorted(pushes)[-self.per_minute :]
        if len(recent) == self.per_minute and not self._wait_until(recent[0] + MINUTE, stop):
            raise ServerStopping

    def _wait_until(self, moment: Instant, stop: threading.Event) -> bool:
        left = min(moment - self.clock(), MINUTE)  # a push in the future: the clock was set back
        return left <= 0 or not self.wait(stop, left / 1000)


class PacedStore:
    """A store whose writes wait for the limit; there were ``earlier`` pushes to its branch.

    ``pushes`` are the times of its own, ``changed`` the threads in them.
    """

    def __init__(self, store: Store, pace: RateLimiter, earlier: Iterable[Instant], stop: threading.Event) -> None:
        self.pushes: list[Instant] = []
        self.changed: set[int] = set()
        self._store, self._pace, self._stop = store, pace, stop
        self._earlier = tuple(earlier)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """See `Store.write`. Waits for the limit first. Raises ServerStopping."""
        self._pace.wait_for_room((*self._earlier, *self.pushes), self._stop)
        try:
            written = self._store.write(base, edits, message, squash=squash)
        except StoreError:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)  # it may have arrived, with only its answer lost
            raise
        if written is not base:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)
        return written

    def close(self) -> None:
        self._store.close()


def thread_numbers(paths: Iterable[str]) -> Iterator[int]:
    """The issues, pull requests and discussions whose records are at these paths."""
    return (int(match[1]) for path in paths if (match := _RECORD_PATH.fullmatch(path)))


def changed_threads(base: Snapshot, edits: Edits) -> set[int]:
    """The numbers of the threads whose record, fix or visibility differs after ``edits``."""
    changed = set(thread_numbers(edits))
    after = {path: _content(edits, path) for path in (*FIXES.select_paths(edits), *({MANIFEST_PATH} & edits.keys()))}
    try:
        before = base.read(after)
    except StoreError:  # the old files are unreadable, but the push succeeded
        before = {}
    for path, content in after.items():
        parse = _hidden if path == MANIFEST_PATH else _fixes
        changed |= {key for key, _ in parse(before.get(path, b"")) ^ parse(content) if isinstance(key, int)}
    return changed


def _content(edits: Edits, path: str) -> bytes:
    content = edits[path]
    return content if isinstance(content, bytes) else b""


def _fixes(shard: bytes) -> set[tuple[int | str, str]]:
    return set(read_texts(shard))


def _hidden(manifest: bytes) -> set[tuple[int | str, str]]:
    try:
        return {(key, "") for key in decode_manifest(manifest).hidden_by_github}
    except ValueError:  # it is missing or damaged
        return set()
