"""The password of the status page where none is given: made at the first start, and kept in a file of the folder."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from bot.errors import UserError, WorldError
from bot.server.options import LEAST, MAX_SECRET

BYTES = 24
"""Of chance in it."""

REMEDY = "remove it, and another one is made at the next start"


def place(folder: Path) -> Path:
    """Where it is kept."""
    return folder / "status-password"


def kept(folder: Path) -> str:
    """The password of an earlier start, "" where there is no file. Raises UserError for a file that holds none."""
    file = place(folder)
    try:
        found = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        why = "it is a link" if file.is_symlink() else error.strerror
        raise UserError(f"{file} cannot be read ({why}): {REMEDY}") from None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise UserError(f"{file} is no file: {REMEDY}")
        return _usable(file, os.read(found, MAX_SECRET + 1))
    finally:
        os.close(found)


def made(folder: Path) -> str:
    """A new password, kept from now on for nobody but this account. Raises WorldError."""
    file, password = place(folder), secrets.token_urlsafe(BYTES)
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise WorldError(f"{file} cannot be made ({error.strerror}): see who may write there") from None
    try:
        with os.fdopen(opened, "w", encoding="ascii") as written:
            written.write(f"{password}\n")
            written.flush()
            os.fsync(opened)
    except OSError as error:
        file.unlink(missing_ok=True)  # the half of one would be refused at every start
        raise WorldError(f"{file} cannot be written ({error.strerror}): make room") from None
    return password


def _usable(file: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8").strip()
    except ValueError:
        raise UserError(f"{file} is no text: {REMEDY}") from None
    if len(content) > MAX_SECRET:
        raise UserError(f"{file} is longer than {MAX_SECRET:,} characters: {REMEDY}")
    if len(text) < LEAST["status_password"]:
        raise UserError(f"{file} holds less than {LEAST['status_password']} characters: {REMEDY}")
    return text
