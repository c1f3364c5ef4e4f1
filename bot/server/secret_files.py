"""Secrets in files: reads those given as files again, when one changes and on SIGHUP, and makes a password."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from bot.errors import UserError, WorldError
from bot.server.log import hide, run_guarded
from bot.server.options import (
    MAX_SECRET_CHARS,
    MIN_PASSWORD_BITS,
    MIN_SECRET_CHARS,
    ServerOptions,
    guessing_bits,
    read_secret,
    secret_files,
    variable,
)

CHECK_INTERVAL = 2.0
"""Seconds between two checks. A change takes effect at the second check that sees it."""

STARTUP_ONLY = "database_url"
"""The secret that is used only at the start, by connections that stay open."""

log = logging.getLogger(__name__)
Mark = tuple[int, ...]


class SecretFiles:
    """The options of a process, with its secrets as they are in their files now.

    ``environ`` names the files (``PRECEDENT_…_FILE``). ``use`` is called with options in which one secret is new, and
    raises UserError if that cannot be used: then the former value stays. ``warns``: whether rejected values are logged
    as warnings. ``every``: seconds between two looks at the files.
    """

    def __init__(
        self,
        options: ServerOptions,
        environ: Mapping[str, str],
        use: Callable[[ServerOptions], object],
        *,
        warns: bool = True,
        every: float = CHECK_INTERVAL,
    ) -> None:
        self._options = options
        self._files = {name: file for name, file in secret_files(environ).items() if getattr(options, name)}
        self._use = use
        self._every = every
        self._level = logging.WARNING if warns else logging.DEBUG
        self._seen: dict[str, Mark] = {}
        self._read: dict[str, Mark] = {}

    def watch(self) -> None:
        """Look at once, and from now on in a thread. Call it in the main thread, as it handles SIGHUP."""
        requests = SimpleQueue[int]()  # the only queue that is safe in a signal handler
        signal.signal(signal.SIGHUP, lambda number, _: requests.put(number))
        requests.put(0)  # a file may have changed since the start
        threading.Thread(target=self._watch, args=(requests,), name="secrets", daemon=True).start()

    def reload_changed(self, *, at_once: bool = False) -> None:
        """Use changed secrets. A file that changed since the last look may be half written, and waits for the next one.

        ``at_once`` reads every file now.
        """
        for name, file in self._files.items():
            fingerprint = _fingerprint(file)
            is_settled = self._seen.get(name) == fingerprint
            self._seen[name] = fingerprint
            if at_once or (is_settled and self._read.get(name) != fingerprint):
                self._read[name] = fingerprint
                self._reload(name, file)

    def _watch(self, requests: SimpleQueue[int]) -> None:
        while True:
            try:
                requests.get(timeout=self._every)
                at_once = True
            except Empty:
                at_once = False
            if line := run_guarded(partial(self.reload_changed, at_once=at_once)):
                log.warning("the secrets could not be read again: %s", line)

    def _reload(self, name: str, file: str) -> None:
        try:
            if not self._read[name]:
                raise UserError(f"{variable(name)}_FILE does not name a regular file")
            value = read_secret(name, file)
            if value == getattr(self._options, name):
                return
            new = replace(self._options, **{name: value})  # type: ignore[arg-type]
            hide(new.hidden)
            if name == STARTUP_ONLY:
                log.log(self._level, "%s has changed: restart the server to use it", file)
                return
            self._use(new)
        except UserError as error:
            log.log(self._level, "%s is not used; the previous value stays in use: %s", file, error)
            return
        self._options = new
        log.info("%s was read again", file, extra={"option": variable(name)})


def _fingerprint(file: str) -> Mark:
    """A value that changes with the file, even behind a link, and with its content; () without a file."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe would wait for its writer
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# If no password is set for the status page, the first start makes one and keeps it in a file in the data folder.


PASSWORD_BYTES = 24
"""Random bytes in a generated password."""

REMEDY = "remove it; the next start generates a new one"


def password_file(folder: Path) -> Path:
    return folder / "status-password"


def stored_password(folder: Path) -> str:
    """Return the password of an earlier start, "" without a file. Raises UserError for an unusable file."""
    file = password_file(folder)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        why = "it is a link" if file.is_symlink() else error.strerror
        raise UserError(f"{file} cannot be read ({why}): {REMEDY}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UserError(f"{file} is not a regular file: {REMEDY}")
        return _check_password(file, os.read(descriptor, MAX_SECRET_CHARS + 1))
    finally:
        os.close(descriptor)


def new_password(folder: Path) -> str:
    """Make and store a new password, readable only by this account. Raises WorldError."""
    file, password = password_file(folder), secrets.token_urlsafe(PASSWORD_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise WorldError(f"{file} cannot be created ({error.strerror}): check the folder's permissions") from None
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as handle:
            handle.write(f"{password}\n")
            handle.flush()
            os.fsync(descriptor)
    except OSError as error:
        file.unlink(missing_ok=True)  # half a password would be refused at every start
        raise WorldError(f"{file} cannot be written ({error.strerror}): make room") from None
    return password


def _check_password(file: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8").strip()
    except ValueError:
        raise UserError(f"{file} is not UTF-8 text: {REMEDY}") from None
    if len(content) > MAX_SECRET_CHARS:
        raise UserError(f"{file} is longer than {MAX_SECRET_CHARS:,} characters: {REMEDY}")
    if len(text) < MIN_SECRET_CHARS["status_password"]:
        raise UserError(f"{file} holds fewer than {MIN_SECRET_CHARS['status_password']} characters: {REMEDY}")
    if guessing_bits(text) < MIN_PASSWORD_BITS:
        raise UserError(f"{file} holds a password that can be guessed: {REMEDY}")
    return text
