"""Files on the local disk: reading only regular ones, writing durably, and errors that say what to do."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from bot.errors import UserError
from bot.memory.bounds import MAX_FILE
from bot.memory.store import StoreError, UnreadableFile

_MANY = 64


class DiskTrouble(StoreError):
    """The local disk is full or cannot be written or read."""

    usual_remedy = "free some space, or use a folder that this account can write to"


@contextmanager
def on_disk(doing: str) -> Iterator[None]:
    """Turn what the operating system says against ``doing`` something into DiskTrouble."""
    try:
        yield
    except OSError as error:
        raise DiskTrouble(f"cannot {doing}: {error.strerror or error}", DiskTrouble.usual_remedy) from error


def regular_bytes(file: Path, most: int = MAX_FILE) -> bytes | None:
    """The content of a regular file of at most so many bytes, None where there is no file.

    UnreadableFile for a symlink, a device or a pipe, none of which is waited for, and for a larger file.
    """
    descriptor = _opened(file)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        content = opened.read(most + 1) if os.fstat(descriptor).st_size <= most else None
    if content is None or len(content) > most:
        raise UnreadableFile(f"{file} has more than {most:,} bytes; remove it from the store", [str(file)])
    return content


def copy_regular(file: Path, target: Path, most: int) -> int:
    """Copy a regular file of at most so many bytes, and say how many it has; a larger one is left out."""
    descriptor = _opened(file)
    if descriptor is None:
        return 0
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        size = os.fstat(descriptor).st_size
        if size <= most:
            with target.open("xb") as copy:
                shutil.copyfileobj(opened, copy)
        return size


def _opened(file: Path) -> int | None:
    """A descriptor of a regular file, None where there is none."""
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
    """Whether it is a regular file itself, and no link to one."""
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False


def detour(root: Path, folder: str) -> Path | None:
    """The symlink that ``folder`` is, or that is on the way to it from ``root``; None where there is none."""
    steps = (root / step for step in (PurePath(folder), *PurePath(folder).parents) if step != PurePath())
    return next((step for step in steps if step.is_symlink()), None)


def refuse_detour(root: Path, path: str) -> None:
    """StoreError where a folder on the way to the file is a symlink: what lies behind it is not in the store."""
    if link := detour(root, path.rpartition("/")[0]):
        raise StoreError(f"{link} is a symlink; put a real folder in its place")


def flush(files: Iterable[Path]) -> None:
    """Have the disk keep these files and folders, whatever happens to the power; many are flushed as one."""
    named = list(files)
    if len(named) > _MANY:
        os.sync()
        return
    for file in named:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace(file: Path, content: bytes) -> None:
    """Put ``content`` in the place of ``file``: whoever reads sees the old or the new one, even after a crash."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    with fresh.open("xb") as new:  # never through a link that lies there
        new.write(content)
    flush([fresh])
    fresh.replace(file)
    flush([file.parent])


def read_beside(top: Path, path: str, most: int) -> bytes | None:
    """The first ``most`` bytes of a file in somebody's folder, None where there is none.

    UserError for a link, or one on the way, and for what is no file.
    """
    file = top / path
    if link := detour(top, path):
        raise UserError(f"{link.relative_to(top)} is a link: put the real one there")
    if not is_regular(file):
        if os.path.lexists(file):
            raise UserError(f"{path} is no regular file: move it out of the way")
        return None
    with on_disk(f"read {path}"), file.open("rb") as opened:
        return opened.read(most)


def write_beside(top: Path, path: str, content: bytes) -> None:
    """Put a file there in one step, and the folders on the way, none of which may be a link."""
    if link := detour(top, path):
        raise UserError(f"{link.relative_to(top)} is a link: put the real one there")
    with on_disk(f"write {path}"):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        replace(top / path, content)
