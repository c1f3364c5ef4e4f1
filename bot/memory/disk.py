"""Files on the local disk: reading only regular ones, writing durably, and errors that say what to do."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.memory.store import StoreError

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


def regular_bytes(file: Path) -> bytes | None:
    """The content of a regular file, None where there is no file; a symlink or a device raises StoreError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}; it must be a regular file") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            return None
        raise StoreError(f"{file} is not a regular file; remove it from the store")
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - a descriptor, not a path
        return opened.read()


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
    fresh.write_bytes(content)
    flush([fresh])
    fresh.replace(file)
    flush([file.parent])
