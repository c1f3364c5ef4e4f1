"""Reads the secrets that are given as files again, when a file changes and on SIGHUP."""

from __future__ import annotations

import logging
import signal
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue

from bot.errors import UserError
from bot.server.log import hide, run_guarded
from bot.server.options import ServerOptions, read_secret, secret_files, variable

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
