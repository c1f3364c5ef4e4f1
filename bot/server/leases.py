"""Leases of workers, which end with their process, and the locks behind them: files, or PostgreSQL's own."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

from bot.errors import WorldError
from bot.server.database import KEEPALIVE, Database, Transaction
from bot.server.model import Instant

LEADER = "leader"

LINGER = 30_000
"""Milliseconds after which a dead worker is checked again: one that lost its lease, but still runs, may take a ticket
before it notices."""


class WorkerLeases:
    """Knows which workers are alive, by locks and the table ``workers``. A lease ends however its process dies.

    ``name`` is unique to this start of the process.
    """

    def __init__(self, name: str, database: Database, locks: Locks, now: Callable[[], Instant]) -> None:
        self.name = name
        self._database = database
        self._locks = locks
        self._now = now
        self._alone = threading.RLock()

    def hold(self) -> None:
        """Take our own lease, and register it for others."""
        with self._alone:
            if not self._locks.take(self.name):
                raise WorldError(f"another process is {self.name}")
            if isinstance(self._locks, ServerLocks) and not self._locks.is_seen(self.name):
                raise WorldError(
                    "something between us and PostgreSQL shares connections: give the server's own address"
                )
            with self._database.transaction() as holding:
                holding.change("insert into workers (id, since) values (:name, :now)", name=self.name, now=self._now())

    def check(self) -> bool:
        """Whether we still hold it. If not, this process has to end at once."""
        with self._alone:
            return self._locks.holds(self.name)

    def dead(self) -> list[str]:
        """Workers whose lease could be taken. We hold these leases now, so that nobody else gets them."""
        with self._alone:
            with self._database.transaction() as asking:
                found = asking.rows(
                    "select id from workers where id <> :name and (dead_since = 0 or dead_since < :long)"
                    " order by since",
                    name=self.name,
                    long=self._now() - LINGER,
                )
            names = [str(row["id"]) for row in found]
            return [name for name in names if self._locks.holds(name) or self._locks.take(name)]

    def mark_dead(self, worker: str) -> None:
        """Forget a dead worker and release its lease. With our own name: this process ends with nothing unfinished."""
        with self._alone:
            with self._database.transaction() as burying:
                burying.change(
                    "delete from workers where id = :worker and (dead_since > 0 and dead_since < :long or id = :name)",
                    worker=worker,
                    long=self._now() - LINGER,
                    name=self.name,
                )
                burying.change(
                    "update workers set dead_since = :now where id = :worker and dead_since = 0",
                    worker=worker,
                    now=self._now(),
                )
            self._locks.give(worker)

    def is_leader(self) -> bool:
        """Whether this worker is the one that looks for missed deliveries."""
        with self._alone:
            return self._locks.holds(LEADER) or self._locks.take(LEADER)


class FileLocks:
    """A file for each name, locked by `flock`; for one machine only, like SQLite.

    Threads may share them: a lock that one has taken is taken for the others too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: dict[str, int] = {}
        self._alone = threading.RLock()

    def take(self, name: str) -> bool:
        """Take it. Returns whether it is ours now."""
        with self._alone:
            file = -1 if name in self.held else self._locked(name)
            if file < 0:
                return False
            self.held[name] = file
            if not self.holds(name):  # its holder gave it back and deleted it between our two steps
                os.close(self.held.pop(name))
            return name in self.held

    def _locked(self, name: str) -> int:
        """The file, open and locked; -1 if somebody else has locked it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise WorldError(f"{self.folder} cannot be written ({error.strerror}): give us the folder") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return -1
        return file

    def holds(self, name: str) -> bool:
        """Whether it is still ours: a deleted file locks nobody out."""
        with self._alone, contextlib.suppress(OSError, KeyError):
            return os.path.samestat(os.fstat(self.held[name]), self._path(name).stat())
        return False

    def give(self, name: str) -> None:
        """Release it."""
        with self._alone:
            if name in self.held:
                self._path(name).unlink(missing_ok=True)
                os.close(self.held.pop(name))

    def close(self) -> None:
        """Release all."""
        for name in list(self.held):
            self.give(name)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.lock"


class ServerLocks:
    """PostgreSQL's advisory locks, on a connection that is used for nothing else."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.open = contextlib.ExitStack()
        self.session: Transaction | None = None
        self.held: set[str] = set()
        self._alone = threading.RLock()

    def take(self, name: str) -> bool:
        with self._alone, self.database.asked():
            if name not in self.held:
                row = self._session().row("select pg_try_advisory_lock(:name) as ours", name=_number(name))
                if row and row["ours"]:
                    self.held.add(name)
                    return True
            return False

    def holds(self, name: str) -> bool:
        """Also False when the server or the connection is gone: the lock is gone too then."""
        with self._alone, contextlib.suppress(WorldError), self.database.asked():
            row = self._session().row("select pg_backend_pid() as pid") if name in self.held else None
            return row is not None and row["pid"] in self._holders(self._session(), _number(name))
        return False

    def is_seen(self, name: str) -> bool:
        """Whether another connection finds it taken by ours: it may not if something in between shares connections."""
        with self._alone, self.database.asked():
            ours = self._session().row("select pg_backend_pid() as pid")
        with self.database.transaction() as other:
            found = self._holders(other, _number(name))
        return ours is not None and found == {ours["pid"]}

    def give(self, name: str) -> None:
        with self._alone, self.database.asked():
            if name in self.held:
                self.held.discard(name)
                self._session().rows("select pg_advisory_unlock(:name)", name=_number(name))

    def close(self) -> None:
        with self._alone:
            for name in list(self.held):
                with contextlib.suppress(WorldError):  # the server forgets them with the connection
                    self.give(name)
            self.held.clear()
            self.session = None
            with contextlib.suppress(WorldError):
                self.open.close()

    def _session(self) -> Transaction:
        if self.session is None:
            self.session = self.open.enter_context(self.database.session())
            # The server also has to notice a machine that vanished, or it keeps its locks for hours.
            for name in ("idle", "interval", "count"):
                self.session.change(f"set tcp_keepalives_{name} = {KEEPALIVE[f'keepalives_{name}']}")
            self.session.change(f"set tcp_user_timeout = {KEEPALIVE['tcp_user_timeout']}")
        return self.session

    @staticmethod
    def _holders(session: Transaction, number: int) -> set[int]:
        found = session.rows(
            "select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1"
            " and database = (select oid from pg_database where datname = current_database())"
            " and classid = :upper and objid = :lower",
            upper=number >> 32 & 0xFFFF_FFFF,
            lower=number & 0xFFFF_FFFF,
        )
        return {row["pid"] for row in found}


Locks = FileLocks | ServerLocks
"""Locks that end with the process that holds them, however it dies."""


class Lead:
    """Makes one of several processes the leader: the first that asks, until it ends.

    ``held`` are for this lock alone, as a lock that is lost with a connection is taken again on another one.
    """

    def __init__(self, held: Locks, name: str) -> None:
        self._held = held
        self._name = name
        self._alone = threading.Lock()

    def __call__(self) -> bool:
        with self._alone:
            if self._held.holds(self._name):
                return True
            self._held.close()
            return self._held.take(self._name)


def locks(database: Database, folder: Path) -> Locks:
    """The locks that fit the database; ``folder`` is for locks in files."""
    return ServerLocks(database) if database.is_postgres else FileLocks(folder)


def _number(name: str) -> int:
    """The number that PostgreSQL knows a name by: 64 bits, so that two of our names never collide."""
    digest = hashlib.blake2b(f"precedent {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
