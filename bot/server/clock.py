"""The time that all machines share: the database's."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bot.errors import WorldError
from bot.server.database import Database
from bot.server.nouns import Instant

EVERY = 30.0
"""Seconds between two questions to the database; meanwhile the time goes on by what this machine counts."""

log = logging.getLogger(__name__)


def machine_clock() -> Instant:
    """Now, for this machine."""
    return time.time_ns() // 1_000_000


class DatabaseClock:
    """Now, for the database. A machine whose own clock is off begins nothing too early or too late.

    SQLite's clock is the machine's, as all its processes are on one. Asking for the time never waits for the database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told: tuple[Instant, float] | None = None

    def __call__(self) -> Instant:
        if self._told is None:
            return machine_clock()
        then, at = self._told
        return then + round(1000 * (time.monotonic() - at))

    def ask(self) -> None:
        """Ask the database what time it is. Raises WorldError."""
        if not self._database.is_postgres:
            return
        with self._database.transaction() as asking:
            before = time.monotonic()
            row = asking.row("select cast(1000 * extract(epoch from clock_timestamp()) as bigint) as now")
            assert row is not None
            self._told = int(row["now"]), (before + time.monotonic()) / 2

    @contextmanager
    def kept(self, every: float = EVERY) -> Iterator[None]:
        """Asked now, and again and again within the block. Raises WorldError where it cannot be asked now."""
        self.ask()
        stop = threading.Event()
        asking = threading.Thread(target=self._go_on, args=(stop, every), name="clock", daemon=True)
        asking.start()
        try:
            yield
        finally:
            stop.set()
            asking.join()

    def _go_on(self, stop: threading.Event, every: float) -> None:
        while not stop.wait(every):
            try:
                self.ask()
            except WorldError as error:
                log.warning("the time goes on by this machine's count: %s", error)
