"""Files of a checkout, read and written without following a link: what is named lies where its name says."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from bot.errors import UserError, WorldError

MAX_BYTES = 65_536
"""Of a file that is read: as many as a file of settings may have."""

MAX_FILES = 200

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read(top: Path, path: str) -> bytes | None:
    """The first MAX_BYTES + 1 bytes of a file, None where there is none. UserError for a link and for no file."""
    try:
        with _folder_of(top, path) as folder:
            return _content(folder, PurePosixPath(path).name, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _trouble(error, path, "read") from error


def write(top: Path, path: str, data: bytes, before: bytes | None) -> None:
    """Put a file there in one step: who looks meanwhile sees the old one or the new one.

    ``before`` is what `read` gave; UserError where something else is there now, or a link is on the way.
    """
    name = PurePosixPath(path).name
    try:
        with _folder_of(top, path, make=True) as folder:
            draft = f".{name}-{secrets.token_hex(8)}"
            try:
                _fill(folder, draft, data)
                if _content(folder, name, path, missing_is_fine=True) != before:
                    raise UserError(f"{path} was changed meanwhile: look at it, and begin again")
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                os.fsync(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
    except OSError as error:
        raise _trouble(error, path, "written") from error


def names(top: Path, folder: str) -> list[str]:
    """The YAML files in a folder, by path from ``top``; at most MAX_FILES, and none where there is no folder."""
    try:
        with _folder_of(top, f"{folder}/x") as found:
            listed = sorted(name for name in os.listdir(found) if name.endswith((".yml", ".yaml")))  # noqa: PTH208 - a descriptor
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _trouble(error, folder, "read") from error
    return [f"{folder}/{name}" for name in listed[:MAX_FILES]]


@contextmanager
def _folder_of(top: Path, path: str, *, make: bool = False) -> Iterator[int]:
    """The folder that a file is in, opened step by step, so that nobody can put a link on the way."""
    at = os.open(top, _FOLDER)
    try:
        for name in PurePosixPath(path).parent.parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=at)
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _content(folder: int, name: str, path: str, *, missing_is_fine: bool = False) -> bytes | None:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError:
        if missing_is_fine:
            return None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"{path} is no regular file: move it out of the way")
    with os.fdopen(descriptor, "rb") as opened:
        return opened.read(MAX_BYTES + 1)


def _fill(folder: int, name: str, data: bytes) -> None:
    with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=folder), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), 0o644)
        file.flush()
        os.fsync(file.fileno())


def _trouble(error: OSError, path: str, doing: str) -> UserError | WorldError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return UserError(f"{path} is, or lies behind, a link or something that is no folder: put the real one there")
    return WorldError(f"{path} cannot be {doing}: {error.strerror or error}", "see who may write there, and the space")
