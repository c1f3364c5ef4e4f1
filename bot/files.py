"""Files and paths: bounded reads of regular files, durable writes, safe paths in a store, and globs."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from bot.errors import PathClash, StoreError, UnreadableFile, UserError, WorldError

MAX_FILE_BYTES = 16_000_000
"""Maximum size of a file that is read in one piece. A thread of a million characters takes a third of it."""

MAX_CHECKOUT_BYTES = 500_000_000
"""Maximum size of a working copy: a blob of one megabyte may appear under a million names."""

MAX_CHECKOUT_FILES = 10_000
"""Maximum number of files in a working copy; an index has a few hundred."""

MAX_FILES = 400_000
"""Maximum number of files in a store. 100,000 threads take a quarter of it."""

MAX_DEPTH = 20
"""Maximum number of folder levels that are read."""

_MAX_FILE_SYNCS = 64
"""Files flushed one by one; more are flushed with one call."""


def shipped_folder(name: str) -> Path:
    """A folder shipped with the program: inside the package in a wheel, next to it in a checkout and in the image."""
    package = Path(__file__).resolve().parent
    return package / name if (package / name).is_dir() else package.parent / name


def read_shipped(folder: str, name: str) -> bytes:
    """A file shipped with the program. Raises WorldError if it is missing."""
    try:
        return (shipped_folder(folder) / name).read_bytes()
    except OSError as error:
        raise WorldError(f"this installation lacks {folder}/{name}", "install precedent again") from error


class DiskFault(StoreError):
    """The local disk is full or cannot be written or read."""

    usual_remedy = "free some space, or use a folder that this account can write to"


_LIMIT_ERRORS = (errno.EMFILE, errno.ENFILE)
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, *_LIMIT_ERRORS)
"""Errors of the system that are about its disk, whatever was done there."""


class TooManyFiles(DiskFault):
    """This process, or the machine, has as many files and connections open as it may have."""

    usual_remedy = "raise the limit of open files (`ulimit -n`, or LimitNOFILE of the systemd unit) and start again"


def disk_fault(doing: str, error: OSError) -> DiskFault:
    """The fault, with its remedy, that kept us from ``doing`` something."""
    kind = TooManyFiles if error.errno in _LIMIT_ERRORS else DiskFault
    return kind(f"{doing}: {error.strerror or error}", kind.usual_remedy)


@contextmanager
def on_disk(action: str) -> Iterator[None]:
    """Turn an OSError in this block into DiskFault: "cannot" and the ``action``."""
    try:
        yield
    except OSError as error:
        raise disk_fault(f"cannot {action}", error) from error


def read_regular(file: Path, limit: int = MAX_FILE_BYTES) -> bytes | None:
    """Read a regular file of at most ``limit`` bytes; None if there is no file.

    Raises UnreadableFile for a larger file, and for a symlink, a device or a pipe, without waiting for it.
    """
    descriptor = _open_regular(file)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        content = opened.read(limit + 1) if os.fstat(descriptor).st_size <= limit else None
    if content is None or len(content) > limit:
        raise UnreadableFile(f"{file} has more than {limit:,} bytes; remove it from the store", [str(file)])
    return content


def bytes_hash(data: bytes) -> str:
    """The SHA-256 of a file's content, which reveals damage."""
    return hashlib.sha256(data).hexdigest()


def copy_regular(file: Path, target: Path, limit: int) -> int:
    """Copy a regular file of at most ``limit`` bytes. Returns the bytes copied: 0 for a larger file, or none."""
    descriptor = _open_regular(file)
    if descriptor is None:
        return 0
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        size = os.fstat(descriptor).st_size
        if size > limit:
            return 0
        with target.open("xb") as copy:
            shutil.copyfileobj(opened, copy)
        return size


def _open_regular(file: Path) -> int | None:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnreadableFile(f"cannot read {file}: {error.strerror}; it must be a regular file", [str(file)]) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        return None
    raise UnreadableFile(f"{file} is not a regular file; remove it from the store", [str(file)])


def is_regular(file: Path) -> bool:
    """Whether it is a regular file, not a link to one."""
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False


def find_symlink(root: Path, folder: str) -> Path | None:
    """The first symlink at ``folder`` or on the way to it from ``root``; None if there is none."""
    steps = (root / step for step in (PurePath(folder), *PurePath(folder).parents) if step != PurePath())
    return next((step for step in steps if step.is_symlink()), None)


def refuse_symlinks(root: Path, path: str) -> None:
    """Raise StoreError if a folder on the way to the file is a symlink, which may lead out of the store."""
    if link := find_symlink(root, path.rpartition("/")[0]):
        raise StoreError(f"{link} is a symlink; put a real folder in its place")


def lock_within(descriptor: int, kind: int, seconds: float) -> bool:
    """Wait at most ``seconds`` for a lock (fcntl.LOCK_EX or LOCK_SH). Raises OSError if locks are not supported."""
    until = time.monotonic() + seconds
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.005)


def flush(files: Iterable[Path]) -> None:
    """Flush these files and folders to the disk, many of them with one call."""
    paths = list(files)
    if len(paths) > _MAX_FILE_SYNCS:
        os.sync()
        return
    for file in paths:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace(file: Path, content: bytes) -> None:
    """Replace ``file`` in one step: readers see the old content or the new, even after a crash."""
    temporary = file.with_name(f".{file.name}.new")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as stream:  # never through an existing symlink
        stream.write(content)
    flush([temporary])
    temporary.replace(file)
    flush([file.parent])


def read_user_file(top: Path, path: str, limit: int) -> bytes | None:
    """The first ``limit`` bytes of a file in a user's folder; None if there is no file.

    Raises UserError if it is not a regular file, or if a folder on the way is a symlink.
    """
    file = top / path
    if link := find_symlink(top, path):
        raise UserError(f"{link.relative_to(top)} is a symlink: replace it with the real file or folder")
    if not is_regular(file):
        if os.path.lexists(file):
            raise UserError(f"{path} is not a regular file: move it out of the way")
        return None
    with on_disk(f"read {path}"), file.open("rb") as opened:
        return opened.read(limit)


def write_user_file(top: Path, path: str, content: bytes) -> None:
    """Write a file in one step, and create its folders. Raises UserError if any of them is a symlink."""
    if link := find_symlink(top, path):
        raise UserError(f"{link.relative_to(top)} is a symlink: replace it with the real file or folder")
    with on_disk(f"write {path}"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        replace(top / path, content)


_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_RESERVED = frozenset({"", ".", "..", ".git", ".store"})
MAX_PATH_CHARS = 1024
"""Maximum length of a path."""

_MAX_NAME_BYTES = 255
"""Maximum length of one name in a path, the limit of file systems."""


def check_path(path: str) -> str:
    """``path`` itself. Raises StoreError unless it is relative, normal, and the same file in git and on disk."""
    parts = path.split("/")
    is_valid = len(path) <= MAX_PATH_CHARS and not _UNSAFE.search(path)
    if not is_valid or any(part.lower() in _RESERVED or len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        raise StoreError(f"not a path inside the store: {path[:80]!r}; use relative names with '/' and no '..'")
    return path


def is_safe_path(path: str) -> bool:
    try:
        return check_path(path) == path
    except StoreError:
        return False


def check_paths(paths: Iterable[str]) -> list[str]:
    return [check_path(path) for path in dict.fromkeys(paths)]


def check_folder(prefix: str) -> str:
    """``prefix`` without a trailing slash, checked; "" is the whole store."""
    trimmed = prefix.rstrip("/")
    return check_path(trimmed) if trimmed else ""


def is_below(path: str, folder: str) -> bool:
    """Whether the file is in ``folder`` at any depth; everything is below ""."""
    return not folder or path.startswith(folder + "/")


def refuse_clashes(files: Iterable[str]) -> None:
    """Raise PathClash if one of these files would also have to be a folder."""
    names = frozenset(files)
    folders: set[str] = set()
    parents = {name.rpartition("/")[0] for name in names}
    while parents := parents - folders - {""}:
        folders |= parents
        parents = {folder.rpartition("/")[0] for folder in parents}
    if clashes := folders & names:
        raise PathClash(f"{min(clashes)!r} would be a file and a folder at once; choose another name", clashes)


class Globs:
    """Matches paths with patterns such as ``docs/**/*.md``: ``*`` within a folder, ``**`` across folders, in any case.

    Time is linear in the lengths of path and pattern.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [pattern.casefold().split("/") for pattern in patterns]

    def match(self, path: str) -> bool:
        parts = path.casefold().split("/")
        return any(len(steps) in _reachable_steps(parts, steps) for steps in self._patterns)

    def may_match_below(self, folder: str) -> bool:
        """Whether a file below this folder could match."""
        parts = folder.casefold().split("/")
        return any(min(_reachable_steps(parts, steps), default=len(steps)) < len(steps) for steps in self._patterns)


def _reachable_steps(parts: Sequence[str], steps: Sequence[str]) -> set[int]:
    """How many steps of a pattern may be done after all parts of a path."""
    positions = _skip_globstars({0}, steps)
    for part in parts:
        reached = set()
        for position in positions:
            if position < len(steps) and steps[position] == "**":
                reached.add(position)
            elif position < len(steps) and fnmatchcase(part, steps[position]):
                reached.add(position + 1)
        positions = _skip_globstars(reached, steps)
    return positions


def _skip_globstars(positions: set[int], steps: Sequence[str]) -> set[int]:
    """These positions and those after a ``**``, which may match no folder."""
    reachable = set(positions)
    for position, step in enumerate(steps):
        if step == "**" and position in reachable:
            reachable.add(position + 1)
    return reachable
